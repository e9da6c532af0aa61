//! The runtime state of a link's classes, and the streams' places in them.

use super::gate::Gate;
use crate::carrier::Carrier;
use crate::classes::{ClassTree, ELIGIBILITY};
use crate::ids::NodeId;
use crate::plan::StreamNames;
use crate::reason::StreamCounters;
use paceline_sched::discipline::{Discipline, Eligibility, Hierarchy, LeafSpec, StreamIndex};
use paceline_sched::hfsc::{ClassIndex, ServedBytes};
use paceline_sched::{Capacity, Duration, Instant, Policy};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A class by its position in the list, and the peer if the class has one subclass per peer.
pub(in crate::link) type Home = (usize, Option<NodeId>);

/// The subclass of one peer.
#[derive(Clone, Copy, Debug)]
struct Peer {
    leaf: ClassIndex,
    streams: u32,
    /// The service of the subclass before it was assigned to this peer.
    before: ServedBytes,
}

/// The runtime state of a link's classes.
#[derive(Debug)]
pub(in crate::link) struct ClassStreams {
    tree: Arc<ClassTree>,
    /// The scheduler's index of each class, by position in the list.
    indexes: Vec<ClassIndex>,
    peers: BTreeMap<Home, Peer>,
    /// Unused subclasses, by parent class; the next peer reuses one.
    vacant: BTreeMap<usize, Vec<ClassIndex>>,
    /// The summed counters of closed streams, by position in the list.
    closed: BTreeMap<usize, StreamCounters>,
    gates: BTreeMap<Home, Gate>,
}

/// A snapshot of a class of a link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassView {
    /// The name of the class; for a peer's subclass, the name of its parent.
    pub name: String,
    /// The parent class; `None` for a class directly below the link.
    pub parent: Option<String>,
    /// The peer of a subclass; `None` for a class of the list.
    pub peer: Option<NodeId>,
    /// The share of the link while all classes are busy, in millionths. For a subclass: the share of all
    /// peers together.
    pub part: u32,
    /// Bytes sent, as counted on the wire, including all subclasses.
    pub served: u64,
    /// The part of `served` that the real-time guarantee served, in bytes.
    pub guaranteed: u64,
    /// The number of streams, including all subclasses.
    pub streams: u32,
    /// The summed counters of the streams. For a peer's subclass: of the open streams only.
    pub counters: StreamCounters,
}

/// Returns the discipline of a link, and the state of its classes if it has any.
pub(in crate::link) fn discipline(
    policy: Policy,
    classes: Option<&Arc<ClassTree>>,
) -> (Discipline, Option<ClassStreams>) {
    let grown = classes.and_then(|tree| Some((tree, tree.grow(policy).ok()?)));
    let Some((tree, (hierarchy, indexes))) = grown else {
        return (Discipline::new(policy, Eligibility::OncePerPeriod), None);
    };
    let (peers, vacant) = (BTreeMap::new(), BTreeMap::new());
    let (closed, gates) = (BTreeMap::new(), BTreeMap::new());
    let class_streams =
        ClassStreams { tree: Arc::clone(tree), indexes, peers, vacant, closed, gates };
    (hierarchy.into(), Some(class_streams))
}

impl ClassStreams {
    /// Returns the scheduler's class for a home. Creates it for the first stream of a peer.
    fn leaf(
        &mut self,
        tree: &mut Hierarchy,
        (class, peer): Home,
        policy: Policy,
    ) -> Option<ClassIndex> {
        let index = self.indexes.get(class).copied()?;
        if peer.is_none() {
            return Some(index);
        }
        if let Some(known) = self.peers.get_mut(&(class, peer)) {
            known.streams += 1;
            return Some(known.leaf);
        }
        let vacant = self.vacant.get_mut(&class).and_then(Vec::pop);
        let policy = self.tree.classes.get(class).and_then(|class| class.policy).unwrap_or(policy);
        let spec =
            LeafSpec { curves: self.tree.peer_curves(class), policy, eligibility: ELIGIBILITY };
        let leaf = vacant.or_else(|| tree.add_leaf(index, &spec).ok())?;
        let before = tree.service(leaf).unwrap_or_default();
        self.peers.insert((class, peer), Peer { leaf, streams: 1, before });
        Some(leaf)
    }

    /// Removes a stream from its home.
    fn leave(&mut self, home: Home) {
        let Some(peer) = self.peers.get_mut(&home) else { return };
        peer.streams = peer.streams.saturating_sub(1);
        if peer.streams == 0 {
            let leaf = peer.leaf;
            self.peers.remove(&home);
            self.gates.remove(&home);
            self.vacant.entry(home.0).or_default().push(leaf);
        }
    }

    /// Creates the policers of a home, if its class has any.
    fn open_gate(&mut self, home: Home) {
        let police = self.tree.classes.get(home.0).and_then(|class| class.police.as_ref());
        if let Some(police) = police {
            self.gates.entry(home).or_insert_with(|| Gate::new(police.start()));
        }
    }

    /// Returns the discipline of a class; `None` for that of the link.
    pub(in crate::link) fn policy_of(&self, home: Home) -> Option<Policy> {
        self.tree.classes.get(home.0).and_then(|class| class.policy)
    }

    /// Returns the longest time for which other traffic can delay a stream of a home with a guarantee.
    pub(in crate::link) fn blocked(
        &self,
        home: Home,
        policy: Policy,
        (capacity, carrier): (Option<Capacity>, Carrier),
    ) -> Option<Duration> {
        let guarantee = self.tree.guarantee(home.0, (policy, capacity?, carrier));
        guarantee.ok().map(|guarantee| guarantee.blocked())
    }

    /// Returns the home of a stream to `hop`: the first class that matches.
    pub(in crate::link) fn home_of(
        &self,
        names: &StreamNames,
        contracted: bool,
        hop: NodeId,
    ) -> Home {
        let class = self.tree.class_of(names, contracted);
        let per_peer = self.tree.classes.get(class).is_some_and(|class| class.per_peer);
        (class, per_peer.then_some(hop))
    }

    /// Moves a stream from one home to another, in the scheduler too. `None` is the root, for the background.
    pub(in crate::link) fn seat(
        &mut self,
        tree: &mut Hierarchy,
        index: StreamIndex,
        (from, to): (Option<Home>, Option<Home>),
        policy: Policy,
    ) {
        let leaf = match to {
            Some(home) => self.leaf(tree, home, policy),
            None => Some(ClassIndex::ROOT),
        };
        tree.seat(index, leaf.unwrap_or(ClassIndex::ROOT));
        if let Some(home) = to {
            self.open_gate(home);
        }
        // The old home last, so that a peer's subclass is not recycled if the home stays the same.
        if let Some(home) = from {
            self.leave(home);
        }
    }

    /// Removes a closed stream from its class, which keeps the sum of its counters.
    pub(in crate::link) fn unseat(&mut self, home: Home, counters: &StreamCounters) {
        self.closed.entry(home.0).or_default().merge(counters);
        self.leave(home);
    }

    pub(in crate::link) fn has_gates(&self) -> bool {
        !self.gates.is_empty()
    }

    pub(in crate::link) fn gate(&mut self, home: Home) -> Option<&mut Gate> {
        self.gates.get_mut(&home)
    }

    /// Returns the homes with a waiting head that conforms at `now`.
    pub(in crate::link) fn due_gates(&self, now: Instant) -> impl Iterator<Item = Home> {
        self.gates.iter().filter(move |(_, gate)| gate.is_due(now)).map(|(home, _)| *home)
    }

    /// Returns the time at which the next waiting head conforms.
    pub(in crate::link) fn next_gate(&self) -> Option<Instant> {
        let gates = self.gates.values().filter(|gate| !gate.waiting.is_empty());
        gates.map(|gate| gate.opens).min()
    }

    /// Returns the classes in matching order, each followed by the subclasses of its peers. `streams` are the
    /// homes and counters of the open streams.
    pub(in crate::link) fn views<'s>(
        &self,
        tree: &Hierarchy,
        streams: impl Iterator<Item = (Home, &'s StreamCounters)>,
    ) -> Vec<ClassView> {
        let sums = self.sums(streams);
        let mut views = Vec::new();
        for (place, class) in self.tree.classes.iter().enumerate() {
            let served = self.indexes.get(place).and_then(|index| tree.service(*index));
            let part = self.tree.parts.get(place).copied().unwrap_or(0);
            let view =
                |peer: Option<NodeId>, served: ServedBytes, sum: (u32, StreamCounters)| ClassView {
                    name: class.name.clone(),
                    parent: class.parent.clone(),
                    peer,
                    part,
                    served: served.total,
                    guaranteed: served.by_real_time,
                    streams: sum.0,
                    counters: sum.1,
                };
            let of = |home: Home| sums.get(&home).copied().unwrap_or_default();
            views.push(view(None, served.unwrap_or_default(), of((place, None))));
            let range = (place, Some(NodeId(0)))..=(place, Some(NodeId(u64::MAX)));
            for (home, peer) in self.peers.range(range) {
                let now = tree.service(peer.leaf).unwrap_or_default();
                let served = ServedBytes {
                    total: now.total.saturating_sub(peer.before.total),
                    by_real_time: now.by_real_time.saturating_sub(peer.before.by_real_time),
                };
                views.push(view(home.1, served, of(*home)));
            }
        }
        views
    }

    /// Returns the number of streams and the summed counters by home; a class includes all classes below it.
    fn sums<'s>(
        &self,
        streams: impl Iterator<Item = (Home, &'s StreamCounters)>,
    ) -> BTreeMap<Home, (u32, StreamCounters)> {
        let mut sums: BTreeMap<Home, (u32, StreamCounters)> = BTreeMap::new();
        let mut add = |home: Home, streams: u32, counters: &StreamCounters| {
            if home.1.is_some() {
                let (count, sum) = sums.entry(home).or_default();
                *count += streams;
                sum.merge(counters);
            }
            let above = |at: &usize| self.tree.parents.get(*at).copied().flatten();
            for class in core::iter::successors(Some(home.0), above) {
                let (count, sum) = sums.entry((class, None)).or_default();
                *count += streams;
                sum.merge(counters);
            }
        };
        streams.for_each(|(home, counters)| add(home, 1, counters));
        self.closed.iter().for_each(|(class, counters)| add((*class, None), 0, counters));
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkClass, Match};
    use paceline_sched::Capacity;

    #[test]
    fn a_peer_has_a_subclass_while_it_has_streams_and_the_next_peer_reuses_it() {
        let class = LinkClass {
            name: "live".into(),
            per_peer: true,
            wants: Match { contracted: Some(true), ..Match::default() },
            ..LinkClass::default()
        };
        let classes = Arc::new(
            ClassTree::new(vec![class], Capacity::from_bits_per_s(8_000_000).ok()).unwrap(),
        );
        let (Discipline::Hierarchy(mut tree), Some(mut class_streams)) =
            discipline(Policy::default(), Some(&classes))
        else {
            panic!("a link with classes has a hierarchy");
        };
        let names = StreamNames::default();
        let one = class_streams.home_of(&names, true, NodeId(1));
        assert_eq!(
            (one, class_streams.home_of(&names, false, NodeId(1))),
            ((0, Some(NodeId(1))), (1, None))
        );
        let policy = Policy::default();
        class_streams.seat(&mut tree, StreamIndex(0), (None, Some(one)), policy);
        let leaf = class_streams.peers[&one].leaf;
        class_streams.seat(&mut tree, StreamIndex(0), (Some(one), Some(one)), policy);
        assert_eq!((class_streams.peers[&one].leaf, class_streams.peers[&one].streams), (leaf, 1));
        let counters = StreamCounters { sent: 5, ..StreamCounters::default() };
        class_streams.unseat(one, &counters);
        assert!(class_streams.peers.is_empty());
        let views = class_streams.views(&tree, core::iter::empty());
        assert_eq!(views.iter().map(|view| view.counters.sent).collect::<Vec<_>>(), [5, 0]);
        let other = class_streams.home_of(&names, true, NodeId(2));
        class_streams.seat(&mut tree, StreamIndex(1), (None, Some(other)), policy);
        assert_eq!(class_streams.peers[&other].leaf, leaf);
    }
}
