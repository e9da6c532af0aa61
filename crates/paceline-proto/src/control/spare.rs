//! Second paths: a contract may have a spare, a reservation on a path without the links of the first one. Hops of a node
//! with the same link name share a link.
//!
//! The publisher's node reserves both paths or neither, and marks the reservation that carries the samples
//! ([`Mark::Carried`](super::registry::Mark::Carried)). The nodes of the other path reserve their links and install nothing.
//! When the first path fails, the publisher's node moves the mark and sends on the second path at once. The mark is flooded
//! while the first samples travel; a node that receives them earlier buffers them.

use super::graph::Tree;
use super::registry::Registry;
use crate::ids::NodeId;

/// Returns true if a path may share a hop with another one: the hop between two processes of a host fails with its host.
fn may_share(registry: &Registry, from: NodeId, to: NodeId) -> bool {
    registry.claims(from, to) && registry.claims(to, from)
}

fn hops(path: &[NodeId]) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
    path.iter().copied().zip(path.iter().skip(1).copied())
}

/// Returns true if both ends of each hop of `path` announce it.
pub(super) fn is_whole(registry: &Registry, path: &[NodeId]) -> bool {
    let leads = |from: NodeId, to: NodeId| {
        registry.record(from).is_some_and(|record| record.neighbours.contains_key(&to))
    };
    hops(path).all(|(from, to)| leads(from, to) && leads(to, from))
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

/// Returns the shortest path between the ends of `path` for a spare: without its inner nodes if there is one, else without
/// its links. With `encrypted`, all hops are encrypted.
pub(super) fn second_path(
    registry: &Registry,
    path: &[NodeId],
    encrypted: bool,
) -> Option<Vec<NodeId>> {
    let (&from, &to) = (path.first()?, path.last()?);
    let own: Vec<(NodeId, NodeId)> =
        hops(path).filter(|(a, b)| !may_share(registry, *a, *b)).collect();
    let links: Vec<(NodeId, &str)> = own.iter().flat_map(|hop| link_ends(registry, *hop)).collect();
    let is_plain = |a: NodeId, b: NodeId| {
        let hop = registry.record(a).and_then(|record| record.neighbours.get(&b));
        encrypted && hop.is_none_or(|hop| !hop.encrypted)
    };
    let is_used = |a, b| crosses(registry, (a, b), &links);
    // Between two hops that may not be shared, a node of the first path has no place on the second one.
    let inner: Vec<NodeId> = own.iter().skip(1).map(|(node, _)| *node).collect();
    let apart = Tree::avoiding(registry, from, |a, b| {
        is_plain(a, b) || is_used(a, b) || inner.contains(&b)
    });
    apart
        .path(to)
        .or_else(|| Tree::avoiding(registry, from, |a, b| is_plain(a, b) || is_used(a, b)).path(to))
}

/// Returns the first link of `path` that every path between its ends crosses, if there is one: its node and its name there.
pub(super) fn shared_link<'r>(
    registry: &'r Registry,
    path: &[NodeId],
) -> Option<(NodeId, &'r str)> {
    let (&from, &to) = (path.first()?, path.last()?);
    let own = hops(path).filter(|(a, b)| !may_share(registry, *a, *b));
    let is_shared = |link: &(NodeId, &str)| {
        let avoids = |a, b| crosses(registry, (a, b), &[*link]);
        Tree::avoiding(registry, from, avoids).path(to).is_none()
    };
    own.flat_map(|hop| link_ends(registry, hop)).find(is_shared)
}

#[cfg(test)]
mod tests {
    use crate::control::refusal_overflow::tests::camera;
    use crate::control::{Control, ControlOutput, HopInfo, SubscriptionSpec};
    use crate::control::{Refusal, RefusalReason};
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
    }

    impl Triangle {
        fn new() -> Self {
            let nodes = IDS.map(|id| Control::new(id, "node"));
            let now = Instant::from_millis(1_000);
            let mut net = Self { now, nodes, refused: Vec::new(), taken_back: Vec::new() };
            net.nodes[0].admission.marks_max = 1;
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
            if let ControlOutput::Refused { refusal, .. } = output {
                self.refused.push(refusal);
            }
        }

        fn subscribe(&mut self, spare: bool) -> SubscriptionId {
            let id = self.nodes[1].subscribe(self.now, request(spare));
            self.run();
            id
        }

        /// Returns the number of paths of the granted contract of a subscription.
        fn paths(&self, of: SubscriptionId) -> usize {
            let grant = self.nodes[1].granted.iter().find(|(key, _)| key.0 == of);
            grant.map_or(0, |(_, grant)| 1 + usize::from(!grant.spare.is_empty()))
        }

        /// Returns the number of reservations of a subscription on the publisher's node.
        fn reserved(&self, of: SubscriptionId) -> usize {
            self.nodes[0].admission.bookings().filter(|booking| booking.pair.0 == of).count()
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
        let first = net.subscribe(true);
        assert_eq!((net.paths(first), net.reserved(first)), (2, 2));
        let second = net.subscribe(true);
        assert_eq!((net.paths(second), net.reserved(second)), (0, 0));
        let reasons: Vec<RefusalReason> = net.refused.iter().map(|it| it.reason).collect();
        assert_eq!(reasons, [RefusalReason::TooManySpares]);
        assert_eq!((net.paths(first), net.reserved(first)), (2, 2));
        net.nodes[1].unsubscribe(net.now, first);
        net.run();
        assert_eq!((net.paths(second), net.reserved(second)), (2, 2));
    }

    #[test]
    fn a_change_that_adds_a_spare_without_a_mark_keeps_the_running_contract() {
        let mut net = Triangle::new();
        let first = net.subscribe(true);
        let second = net.subscribe(false);
        assert_eq!((net.paths(first), net.paths(second)), (2, 1));
        net.nodes[1].update_subscription(net.now, second, request(true));
        net.run();
        let reasons: Vec<RefusalReason> = net.taken_back.iter().map(|it| it.reason).collect();
        assert_eq!(reasons, [RefusalReason::TooManySpares]);
        assert_eq!((net.paths(second), net.reserved(second)), (1, 1));
        assert!(net.refused.is_empty());
    }
}
