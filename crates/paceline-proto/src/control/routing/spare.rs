//! Second paths: a contract may have a spare, a reservation on a path without the links of the first one. Hops of a node
//! with the same link name share a link.
//!
//! The publisher's node reserves both paths or neither, and marks the reservation that carries the samples
//! ([`Mark::Carried`](crate::control::membership::registry::Mark::Carried)). The nodes of the other path reserve their links and install nothing.
//! When the first path fails, the publisher's node moves the mark and sends on the second path at once. The mark is flooded
//! while the first samples travel; a node that receives them earlier buffers them.

use super::disjoint::{Ends, may_share, near, shortest_pair};
use crate::control::data::ids::PairKey;
use crate::control::data::second::{PathPair, SecondPaths};
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::Registry;
use crate::ids::{NodeId, SubscriptionId};
use core::cell::RefCell;
use std::collections::BTreeMap;

fn hops(path: &[NodeId]) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
    path.iter().copied().zip(path.iter().skip(1).copied())
}

/// Returns the link of the hop between two nodes at both of its ends, each with its node and its name there.
fn link_ends(
    registry: &Registry,
    (from, to): (NodeId, NodeId),
) -> impl Iterator<Item = (NodeId, &str)> {
    [(from, to), (to, from)].into_iter().filter_map(|(node, next)| {
        Some((node, registry.record(node)?.neighbours.get(&next)?.link_name.as_str()))
    })
}

/// Returns true if the hop between two nodes crosses one of `links`, and may not be shared.
fn crosses(registry: &Registry, (a, b): (NodeId, NodeId), links: &[(NodeId, &str)]) -> bool {
    link_ends(registry, (a, b)).any(|end| links.contains(&end)) && !may_share(registry, a, b)
}

/// Returns true if a path of encrypted hops may not lead from one node to the next.
fn is_plain(registry: &Registry, from: NodeId, to: NodeId) -> bool {
    let hop = registry.record(from).and_then(|record| record.neighbours.get(&to));
    hop.is_none_or(|hop| !hop.encrypted)
}

/// Returns the shortest path between the ends of `path` without its links, and with `apart` without its relays. With
/// `encrypted`, all hops are encrypted.
fn next_to(
    registry: &Registry,
    path: &[NodeId],
    encrypted: bool,
    apart: bool,
) -> Option<Vec<NodeId>> {
    let (&from, &to) = (path.first()?, path.last()?);
    let own: Vec<(NodeId, NodeId)> =
        hops(path).filter(|(a, b)| !may_share(registry, *a, *b)).collect();
    let links: Vec<(NodeId, &str)> = own.iter().flat_map(|hop| link_ends(registry, *hop)).collect();
    // Both paths may pass the processes of the hosts at their ends.
    let near = if apart { vec![near(registry, from), near(registry, to)] } else { Vec::new() };
    let is_relay = |node: &NodeId| apart && !near.iter().any(|near| near.contains(node));
    let relays: Vec<NodeId> = path.iter().copied().filter(is_relay).collect();
    let avoids = |a, b| {
        encrypted && is_plain(registry, a, b)
            || crosses(registry, (a, b), &links)
            || relays.contains(&b)
    };
    Tree::avoiding(registry, from, avoids).path(to)
}

impl PathPair {
    /// Returns the two paths without a common relay if there are such, else those without a common link. Of these, the two
    /// with the least total number of hops are chosen; the shortest path and another one if they are not longer. With
    /// `encrypted`, all hops are encrypted.
    pub(super) fn new(registry: &Registry, shortest: Vec<NodeId>, encrypted: bool) -> Self {
        let (Some(&from), Some(&to)) = (shortest.first(), shortest.last()) else {
            return Self { first: shortest, second: None };
        };
        for apart in [true, false] {
            let second = next_to(registry, &shortest, encrypted, apart);
            let length = second.as_ref().map(Vec::len);
            // No two paths are shorter than the shortest one twice.
            if length != Some(shortest.len()) {
                let ends = Ends { from, to, encrypted, apart };
                let is_better = |[one, other]: &[Vec<NodeId>; 2]| {
                    let both = one.len() + other.len();
                    length.is_none_or(|length| both < shortest.len() + length)
                };
                if let Some([first, second]) = shortest_pair(registry, ends).filter(is_better) {
                    return Self { first, second: Some(second) };
                }
            }
            if second.is_some() {
                return Self { first: shortest, second };
            }
        }
        Self { first: shortest, second: None }
    }

    /// Returns `first` and the shortest path next to it: without its relays if there is one, else without its links.
    fn next_to(registry: &Registry, first: Vec<NodeId>, encrypted: bool) -> Self {
        let next = |apart| next_to(registry, &first, encrypted, apart);
        let second = next(true).or_else(|| next(false));
        Self { first, second }
    }
}

/// The paths of contracts with spares, kept until a hop changes.
#[derive(Debug, Default)]
struct Known {
    hop_changes: u64,
    /// By the shortest path, and whether all hops must be encrypted.
    pairs: BTreeMap<(Vec<NodeId>, bool), PathPair>,
    /// By the first path.
    next_to: BTreeMap<(Vec<NodeId>, bool), PathPair>,
}

impl Known {
    /// Forgets all paths if a hop has changed.
    fn follow(&mut self, registry: &Registry) {
        if self.hop_changes != registry.hop_changes() {
            *self = Self { hop_changes: registry.hop_changes(), ..Self::default() };
        }
    }
}

/// The paths of contracts with spares that were searched before.
#[derive(Debug, Default)]
pub(in crate::control) struct KnownPaths(RefCell<Known>);

/// Finds second paths in the current graph.
pub(in crate::control) struct PathFinder<'r> {
    pub(in crate::control) registry: &'r Registry,
    /// The shortest paths from the publisher's node.
    pub(in crate::control) tree: &'r Tree,
    pub(in crate::control) known: &'r KnownPaths,
}

impl SecondPaths for PathFinder<'_> {
    /// Returns [`PathPair::new`] for a pair whose shortest path is `shortest`, but the best path next to that one if samples
    /// of another subscription would meet the samples on the first path. If there is none, the other subscription is
    /// returned too.
    fn both(
        &self,
        of: PairKey,
        encrypted: bool,
        shortest: Vec<NodeId>,
    ) -> (PathPair, Option<SubscriptionId>) {
        let both = self.pair(shortest.clone(), encrypted);
        // Streams on shortest paths never meet.
        if both.first == shortest {
            return (both, None);
        }
        let Some(other) = self.met((of, encrypted), &both.first) else {
            return (both, None);
        };
        let paths = self.next_to(shortest, encrypted);
        let met = paths.second.is_none().then_some(other);
        (paths, met)
    }

    /// Returns [`PathPair::next_to`].
    fn next_to(&self, first: Vec<NodeId>, encrypted: bool) -> PathPair {
        let mut known = self.known.0.borrow_mut();
        known.follow(self.registry);
        let known = known.next_to.entry((first, encrypted));
        let next_to = |(path, _): &(Vec<NodeId>, bool)| {
            PathPair::next_to(self.registry, path.clone(), encrypted)
        };
        known.or_insert_with_key(next_to).clone()
    }

    fn shared_link(&self, path: &[NodeId], encrypted: bool) -> Option<(NodeId, String)> {
        let (node, link) = shared_link(self.registry, path, encrypted)?;
        Some((node, link.to_owned()))
    }
}

impl PathFinder<'_> {
    /// Returns [`PathPair::new`].
    fn pair(&self, shortest: Vec<NodeId>, encrypted: bool) -> PathPair {
        let mut known = self.known.0.borrow_mut();
        known.follow(self.registry);
        let known = known.pairs.entry((shortest, encrypted));
        let new =
            |(path, _): &(Vec<NodeId>, bool)| PathPair::new(self.registry, path.clone(), encrypted);
        known.or_insert_with_key(new).clone()
    }

    /// Returns another subscription whose samples of the publisher reach a node of a pair's first path over another hop.
    /// They would arrive there twice.
    fn met(
        &self,
        ((subscription, publisher), encrypted): (PairKey, bool),
        first: &[NodeId],
    ) -> Option<SubscriptionId> {
        let spec = self.registry.record(publisher.node)?.publishers.get(&publisher)?;
        let before: BTreeMap<NodeId, NodeId> = hops(first).map(|(from, to)| (to, from)).collect();
        let meets = |path: &[NodeId]| {
            hops(path).any(|(from, to)| before.get(&to).is_some_and(|before| *before != from))
        };
        for (node, record) in
            self.tree.records(self.registry).filter(|(node, _)| *node != publisher.node)
        {
            let requests = record.subscriptions.iter().filter(|(id, request)| {
                // Those with a spare on the same node take the same two paths.
                let is_same = node == subscription.node
                    && request.wants_spare()
                    && request.encrypted == encrypted;
                **id != subscription && !is_same && request.pattern.matches(&spec.tag)
            });
            for (id, request) in requests {
                let Some(path) = self.tree.path(node) else { continue };
                let is_met = meets(&path)
                    || request.wants_spare() && meets(&self.pair(path, request.encrypted).first);
                if is_met {
                    return Some(*id);
                }
            }
        }
        None
    }
}

/// Returns the first link of `path` that every path between its ends crosses, if there is one: its node and its name there.
/// With `encrypted`, only paths of encrypted hops count, if there is one.
fn shared_link<'r>(
    registry: &'r Registry,
    path: &[NodeId],
    encrypted: bool,
) -> Option<(NodeId, &'r str)> {
    let (&from, &to) = (path.first()?, path.last()?);
    let own = hops(path).filter(|(a, b)| !may_share(registry, *a, *b));
    let leads = |avoids: &dyn Fn(NodeId, NodeId) -> bool| {
        Tree::avoiding(registry, from, avoids).path(to).is_some()
    };
    let encrypted = encrypted && leads(&|a, b| is_plain(registry, a, b));
    let is_shared = |link: &(NodeId, &str)| {
        !leads(&|a, b| encrypted && is_plain(registry, a, b) || crosses(registry, (a, b), &[*link]))
    };
    own.flat_map(|hop| link_ends(registry, hop)).find(is_shared)
}

#[cfg(test)]
mod tests {
    use crate::control::contracts::refusal_overflow::tests::camera;
    use crate::control::{Control, ControlOutput, HopInfo, SubscriptionSpec};
    use crate::control::{Refusal, RefusalReason};
    use crate::plan::Target;
    use crate::{NodeId, Pattern, SubscriptionId};
    use paceline_sched::{Capacity, Duration, Instant};

    const IDS: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

    /// A publisher on the first node and subscriptions on the second one, joined directly and over the third one. The
    /// first node can announce one mark.
    struct Triangle {
        now: Instant,
        nodes: [Control; 3],
        refused: Vec<Refusal>,
        taken_back: Vec<Refusal>,
        surveyed: Vec<Option<Refusal>>,
    }

    impl Triangle {
        fn new() -> Self {
            let nodes = IDS.map(|id| Control::new(id, "node"));
            let now = Instant::from_millis(1_000);
            let (refused, taken_back, surveyed) = Default::default();
            let mut net = Self { now, nodes, refused, taken_back, surveyed };
            net.nodes[0].contracts.admission.marks_max = 1;
            let capacity = Capacity::from_bits_per_s(100_000_000).ok();
            for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
                let hop = HopInfo::new(format!("to{to}"), capacity);
                net.nodes[from].handle_hop_up(now, IDS[to], hop);
            }
            net.nodes[0].publish(now, camera());
            net.run();
            net
        }

        /// Exchanges messages for four seconds.
        fn run(&mut self) {
            for _ in 0..400 {
                self.now += Duration::from_millis(10);
                for (from, sender) in IDS.into_iter().enumerate() {
                    self.nodes[from].handle_timeout(self.now);
                    while let Some(output) = self.nodes[from].poll_output() {
                        if let ControlOutput::Send { hop, message } = output {
                            let to = IDS.iter().position(|id| *id == hop).unwrap();
                            self.nodes[to].handle_message(self.now, sender, message).unwrap();
                        } else if from == 1 {
                            self.note(output);
                        }
                    }
                }
            }
        }

        fn note(&mut self, output: ControlOutput) {
            if let ControlOutput::ChangeRefused { refusals, .. } = &output {
                self.taken_back.extend(refusals.iter().cloned());
            }
            if let ControlOutput::Surveyed { refusal, complete, .. } = &output {
                assert!(complete);
                self.surveyed.push(refusal.clone());
            }
            if let ControlOutput::Refused { refusal, .. } = output {
                self.refused.push(refusal);
            }
        }

        /// Returns the reason for which a dry run refuses a request for a spare: a new one, or a change.
        fn dry_run(&mut self, changed: Option<SubscriptionId>) -> Option<RefusalReason> {
            let publishers = self.nodes[0].nodes().flat_map(|view| view.publishers.keys().copied());
            let (now, publisher) = (self.now, publishers.last().unwrap());
            let node = &mut self.nodes[1];
            let survey = match changed {
                Some(id) => node.survey_change(now, id, publisher, request(true)),
                None => node.survey(now, publisher, request(true)),
            };
            assert!(survey.is_some());
            self.run();
            self.surveyed.pop().unwrap().map(|refusal| refusal.reason)
        }

        fn subscribe(&mut self, spare: bool) -> SubscriptionId {
            let id = self.nodes[1].subscribe(self.now, request(spare));
            self.run();
            id
        }

        /// Returns the number of paths of the granted contract of a subscription.
        fn paths(&self, of: SubscriptionId) -> usize {
            let mut its = self.nodes[1].contracts.answers.iter().filter(|(key, _)| key.0 == of);
            let grant = its.find_map(|(_, answer)| answer.granted.as_ref());
            grant.map_or(0, |grant| 1 + usize::from(!grant.spare.is_empty()))
        }

        /// Returns the number of reservations of a subscription on the publisher's node.
        fn reserved(&self, of: SubscriptionId) -> usize {
            self.nodes[0]
                .contracts
                .admission
                .bookings()
                .filter(|booking| booking.pair.0 == of)
                .count()
        }
    }

    fn request(spare: bool) -> SubscriptionSpec {
        let within = Some(Duration::from_millis(200));
        SubscriptionSpec {
            within,
            spare,
            ..SubscriptionSpec::all_of(Pattern::new("camera").unwrap())
        }
    }

    #[test]
    fn a_request_for_a_spare_without_a_mark_is_refused_until_one_is_free() {
        let mut net = Triangle::new();
        assert_eq!(net.dry_run(None), None);
        let first = net.subscribe(true);
        assert_eq!((net.paths(first), net.reserved(first)), (2, 2));
        assert_eq!(net.dry_run(None), Some(RefusalReason::TooManySpares));
        assert_eq!(net.dry_run(Some(first)), None, "it has a mark");
        let second = net.subscribe(true);
        assert_eq!((net.paths(second), net.reserved(second)), (0, 0));
        let reasons: Vec<RefusalReason> = net.refused.iter().map(|it| it.reason).collect();
        assert_eq!(reasons, [RefusalReason::TooManySpares]);
        assert_eq!((net.paths(first), net.reserved(first)), (2, 2));
        net.nodes[1].unsubscribe(net.now, first);
        net.run();
        assert_eq!((net.paths(second), net.reserved(second)), (2, 2));
        net.nodes[1].unsubscribe(net.now, second);
        net.run();
        assert_eq!(net.dry_run(None), None);
    }

    #[test]
    fn a_change_that_adds_a_spare_without_a_mark_keeps_the_running_contract() {
        let mut net = Triangle::new();
        let first = net.subscribe(true);
        let second = net.subscribe(false);
        assert_eq!((net.paths(first), net.paths(second)), (2, 1));
        assert_eq!(net.dry_run(Some(second)), Some(RefusalReason::TooManySpares));
        net.nodes[1].update_subscription(net.now, second, request(true));
        net.run();
        let reasons: Vec<RefusalReason> = net.taken_back.iter().map(|it| it.reason).collect();
        assert_eq!(reasons, [RefusalReason::TooManySpares]);
        assert_eq!((net.paths(second), net.reserved(second)), (1, 1));
        assert!(net.refused.is_empty());
    }

    #[test]
    fn takeovers_are_output_before_new_paths_are_searched() {
        let mut net = Triangle::new();
        net.nodes[0].contracts.admission.marks_max = 2;
        let both = [net.subscribe(true), net.subscribe(true)];
        assert_eq!(both.map(|id| net.paths(id)), [2, 2]);
        let [node, ..] = &mut net.nodes;
        let searched = |node: &Control| {
            node.routing.second_paths.0.borrow().hop_changes
                == node.membership.registry.hop_changes()
        };
        assert!(searched(node));
        node.handle_hop_down(net.now, IDS[1]);
        let served = core::iter::from_fn(|| node.poll_output()).find_map(|output| {
            let ControlOutput::Install { outputs, .. } = output else { return None };
            Some(outputs)
        });
        let served = served.expect("the publisher's stream");
        let [output] = &served[..] else { panic!("{served:?}") };
        assert_eq!((output.target, &output.subscriptions[..]), (Target::Hop(IDS[2]), &both[..]));
        assert!(!searched(node));
        while node.poll_output().is_some() {}
        node.handle_timeout(net.now);
        while node.poll_output().is_some() {}
        assert!(searched(node));
    }
}
