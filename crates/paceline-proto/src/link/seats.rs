//! The streams of a link in its classes.

use super::classes::{ClassTree, ELIGIBILITY, StreamNames};
use super::gate::Gate;
use super::{Link, StreamIndex, index_of};
use crate::ids::NodeId;
use crate::reason::StreamCounters;
use paceline_sched::discipline::{Discipline, Eligibility, Hierarchy, LeafSpec};
use paceline_sched::hfsc::{ClassIndex, Service};
use paceline_sched::{Instant, Policy, Scheduler};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A class by its place in the list, and of one with a class for each peer the peer.
pub(super) type Home = (usize, Option<NodeId>);

/// A peer's own class.
#[derive(Clone, Copy, Debug)]
struct Peer {
    leaf: ClassIndex,
    streams: u32,
    /// What the class had been served for the peer before this one.
    before: Service,
}

/// The classes of a link at work.
#[derive(Debug)]
pub(super) struct Seats {
    tree: Arc<ClassTree>,
    /// By place in the list.
    indexes: Vec<ClassIndex>,
    peers: BTreeMap<Home, Peer>,
    /// Classes of peers that are gone, by the class above: the next peer gets one of them.
    vacant: BTreeMap<usize, Vec<ClassIndex>>,
    /// What became of the samples of streams that are closed, by place in the list.
    closed: BTreeMap<usize, StreamCounters>,
    pub(super) gates: BTreeMap<Home, Gate>,
}

/// A class of a link, as it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClassView {
    /// Its name.
    pub name: String,
    /// The class above it; the link if there is none.
    pub parent: Option<String>,
    /// Of a peer's own class the peer: the name is that of the class above then.
    pub peer: Option<NodeId>,
    /// Millionths of the link that it has while all classes are busy; those of a peer are what all peers
    /// of the class have together.
    pub part: u32,
    /// Bytes that left, as they count on the wire, with all classes below it.
    pub served: u64,
    /// Those of them that left because of its guarantee.
    pub guaranteed: u64,
    /// Its streams, with those of all classes below it.
    pub streams: u32,
    /// What became of their samples; of a peer's own class those of streams that are open.
    pub counters: StreamCounters,
}

/// The discipline of a link, and its classes if it has any.
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
    /// The class in the tree for a home, made if it is a peer's first stream.
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

    /// A stream leaves its home.
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
    /// Gives the link other classes from `now` on, or none. What waits stays; windows and what policers
    /// have seen begin anew, and so do the sums of classes.
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

    /// The discipline that decides within a home, or on a link without classes.
    pub(super) fn policy_of(&self, home: Option<Home>) -> Policy {
        let class = self.seats.as_ref().zip(home).and_then(|(seats, home)| {
            seats.tree.classes.get(home.0).and_then(|class| class.policy)
        });
        class.unwrap_or(self.spec.policy)
    }

    /// The stream takes part on other terms; what waits stays.
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

    /// Seats a stream in the class that wants it; it has to join there.
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
        // Last, so that a peer's class stays where the home does.
        if let Some(home) = old {
            seats.leave(home);
        }
    }

    /// A stream is closed: its class keeps what became of its samples.
    pub(super) fn unseat(&mut self, home: Option<Home>, counters: &StreamCounters) {
        let (Some(seats), Some(home)) = (&mut self.seats, home) else { return };
        seats.closed.entry(home.0).or_default().merge(counters);
        seats.leave(home);
    }

    /// The classes, in the order in which they choose, each followed by those of its peers; none if the
    /// link has none.
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

    /// Streams and what became of their samples, by home; a class has those of all classes below it.
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
    /// Policers for a home, if its class has any.
    fn open_gate(&mut self, home: Home) {
        let police = self.tree.classes.get(home.0).and_then(|class| class.police.as_ref());
        if let Some(police) = police {
            self.gates.entry(home).or_insert_with(|| Gate::new(police.start()));
        }
    }
}
