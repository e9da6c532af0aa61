//! The assignment of a link's streams to its classes.

use super::classes::{ClassTree, ELIGIBILITY};
use super::gate::Gate;
use super::{Link, StreamIndex, index_of};
use crate::ids::NodeId;
use crate::plan::StreamNames;
use crate::reason::StreamCounters;
use paceline_sched::discipline::{Discipline, Eligibility, Hierarchy, LeafSpec};
use paceline_sched::hfsc::{ClassIndex, Service};
use paceline_sched::{Instant, Policy, Scheduler};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A class by its position in the list, and the peer if the class has one subclass per peer.
pub(super) type Home = (usize, Option<NodeId>);

/// The subclass of one peer.
#[derive(Clone, Copy, Debug)]
struct Peer {
    leaf: ClassIndex,
    streams: u32,
    /// The service of the subclass before it was assigned to this peer.
    before: Service,
}

/// The runtime state of a link's classes.
#[derive(Debug)]
pub(super) struct Seats {
    tree: Arc<ClassTree>,
    /// The scheduler's index of each class, by position in the list.
    indexes: Vec<ClassIndex>,
    peers: BTreeMap<Home, Peer>,
    /// Unused subclasses, by parent class; the next peer reuses one.
    vacant: BTreeMap<usize, Vec<ClassIndex>>,
    /// The summed counters of closed streams, by position in the list.
    closed: BTreeMap<usize, StreamCounters>,
    pub(super) gates: BTreeMap<Home, Gate>,
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
pub(super) fn discipline(
    policy: Policy,
    classes: Option<&Arc<ClassTree>>,
) -> (Discipline, Option<Seats>) {
    let grown = classes.and_then(|tree| Some((tree, tree.grow(policy).ok()?)));
    let Some((tree, (hierarchy, indexes))) = grown else {
        return (Discipline::new(policy, Eligibility::OncePerPeriod), None);
    };
    let (peers, vacant) = (BTreeMap::new(), BTreeMap::new());
    let (closed, gates) = (BTreeMap::new(), BTreeMap::new());
    let seats = Seats { tree: Arc::clone(tree), indexes, peers, vacant, closed, gates };
    (hierarchy.into(), Some(seats))
}

impl Seats {
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
}

impl Link {
    /// Replaces the classes of the link from `now` on; `None` removes them. Queued samples stay. Loss
    /// windows, policers and the counters of classes start again.
    pub fn set_classes(&mut self, now: Instant, classes: Option<Arc<ClassTree>>) {
        (self.discipline, self.seats) = discipline(self.spec.policy, classes.as_ref());
        self.spec.classes = classes;
        let blocked = self.blocked();
        for place in 0..self.streams.len() {
            let index = index_of(place);
            let Some(stream) = self.stream_mut(index) else { continue };
            (stream.home, stream.suspended, stream.passed, stream.held) =
                (None, false, false, false);
            let (terms, up) = (stream.spec.terms(blocked), stream.up);
            self.seat(index);
            if up {
                self.discipline.join(index, terms);
                self.count_anew(index);
                self.announce_head(now, index);
            }
        }
    }

    /// Returns the discipline within a home, or that of a link without classes.
    pub(super) fn policy_of(&self, home: Option<Home>) -> Policy {
        let class = self.seats.as_ref().zip(home).and_then(|(seats, home)| {
            seats.tree.classes.get(home.0).and_then(|class| class.policy)
        });
        class.unwrap_or(self.spec.policy)
    }

    /// Lets a stream join the discipline again on new terms; queued samples stay.
    pub(super) fn join_anew(&mut self, now: Instant, index: StreamIndex) {
        let blocked = self.blocked();
        self.discipline.leave(index);
        self.seat(index);
        let Some(stream) = self.stream_mut(index).filter(|stream| stream.up) else { return };
        (stream.suspended, stream.held) = (false, false);
        let terms = stream.spec.terms(blocked);
        self.discipline.join(index, terms);
        self.count_anew(index);
        self.announce_head(now, index);
    }

    /// Assigns a stream to the class that matches it. The caller then joins it to the discipline.
    pub(super) fn seat(&mut self, index: StreamIndex) {
        let policy = self.spec.policy;
        let (Some(seats), Discipline::Hierarchy(tree)) = (&mut self.seats, &mut self.discipline)
        else {
            return;
        };
        let Some(stream) = self.streams.get_mut(index.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        let spec = &stream.spec;
        let wanted = if spec.background {
            None
        } else {
            let nameless = StreamNames::default();
            let names = spec.names.as_deref().unwrap_or(&nameless);
            let class = seats.tree.class_of(names, spec.contract.is_some());
            let per_peer = seats.tree.classes.get(class).is_some_and(|class| class.per_peer);
            Some((class, per_peer.then_some(spec.hop)))
        };
        let old = core::mem::replace(&mut stream.home, wanted);
        let leaf = match wanted {
            Some(home) => seats.leaf(tree, home, policy),
            None => Some(ClassIndex::ROOT),
        };
        tree.seat(index, leaf.unwrap_or(ClassIndex::ROOT));
        if let Some(home) = wanted {
            seats.open_gate(home);
        }
        // The old home last, so that a peer's subclass is not recycled if the home stays the same.
        if let Some(home) = old {
            seats.leave(home);
        }
    }

    /// Removes a closed stream from its class, which keeps the sum of its counters.
    pub(super) fn unseat(&mut self, home: Option<Home>, counters: &StreamCounters) {
        let (Some(seats), Some(home)) = (&mut self.seats, home) else { return };
        seats.closed.entry(home.0).or_default().merge(counters);
        seats.leave(home);
    }

    /// Returns the classes in matching order, each followed by the subclasses of its peers. Empty for a link
    /// without classes.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassView> {
        let (Some(seats), Discipline::Hierarchy(tree)) = (&self.seats, &self.discipline) else {
            return Vec::new();
        };
        let sums = self.class_sums(seats);
        let mut views = Vec::new();
        for (place, class) in seats.tree.classes.iter().enumerate() {
            let served = seats.indexes.get(place).and_then(|index| tree.service(*index));
            let part = seats.tree.parts.get(place).copied().unwrap_or(0);
            let view =
                |peer: Option<NodeId>, served: Service, sum: (u32, StreamCounters)| ClassView {
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
            for (home, peer) in seats.peers.range(range) {
                let now = tree.service(peer.leaf).unwrap_or_default();
                let served = Service {
                    total: now.total.saturating_sub(peer.before.total),
                    by_real_time: now.by_real_time.saturating_sub(peer.before.by_real_time),
                };
                views.push(view(home.1, served, of(*home)));
            }
        }
        views
    }

    /// Returns the number of streams and the summed counters by home; a class includes all classes below it.
    fn class_sums(&self, seats: &Seats) -> BTreeMap<Home, (u32, StreamCounters)> {
        let mut sums: BTreeMap<Home, (u32, StreamCounters)> = BTreeMap::new();
        let mut add = |home: Home, streams: u32, counters: &StreamCounters| {
            if home.1.is_some() {
                let (count, sum) = sums.entry(home).or_default();
                *count += streams;
                sum.merge(counters);
            }
            let above = |at: &usize| seats.tree.parents.get(*at).copied().flatten();
            for class in core::iter::successors(Some(home.0), above) {
                let (count, sum) = sums.entry((class, None)).or_default();
                *count += streams;
                sum.merge(counters);
            }
        };
        for stream in self.streams.iter().flatten() {
            if let Some(home) = stream.home {
                add(home, 1, &stream.counters);
            }
        }
        seats.closed.iter().for_each(|(class, counters)| add((*class, None), 0, counters));
        sums
    }
}

impl Seats {
    /// Creates the policers of a home, if its class has any.
    fn open_gate(&mut self, home: Home) {
        let police = self.tree.classes.get(home.0).and_then(|class| class.police.as_ref());
        if let Some(police) = police {
            self.gates.entry(home).or_insert_with(|| Gate::new(police.start()));
        }
    }
}
