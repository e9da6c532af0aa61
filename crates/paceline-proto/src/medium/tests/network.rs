//! A network of nodes with one link each on one medium: delayed announcements, crashes and partitions.
//!
//! The announcements of a node reach each other node in order, each after a delay of its own, and only on the same side of a
//! partition. A node notices the loss of others with a delay, too. After a partition, a node may trust an old
//! announcement until the new one arrives. A node that loses all its neighbours and returns finds old records of any age.

use crate::ids::NodeId;
use crate::medium::{Allotments, Holder, Holding, Ledger, LinkKey, allottable, least_rate};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

pub(super) const CAPACITY: u64 = 2_000_000;
/// The lowest side of a node without neighbours.
const ALONE: u64 = 1 << 32;

/// A reproducible source of random numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % most.max(1)
    }

    fn time(&mut self, most: u64) -> Duration {
        Duration::from_millis(1 + self.below(most))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Record {
    holding: Holding,
    allotments: Option<Allotments>,
}

/// The knowledge of another node.
#[derive(Debug, Default)]
struct Known {
    record: Option<Record>,
    reachable: bool,
    /// The changes that are under way.
    arriving: VecDeque<(Instant, Record)>,
    turns: VecDeque<(Instant, bool)>,
}

#[derive(Debug)]
struct Node {
    holder: Holder,
    ledger: Option<Ledger>,
    last: u64,
    record: Record,
    /// All records so far.
    records: Vec<Record>,
    known: BTreeMap<u64, Known>,
    /// The rate that a request waits for, and the end of the wait.
    waits: Option<(u64, Instant)>,
}

pub(super) struct Network {
    pub(super) now: Instant,
    pub(super) random: Random,
    nodes: BTreeMap<u64, Node>,
    /// The side of the partition of each node; all 0 without a partition.
    sides: BTreeMap<u64, u64>,
    pub(super) forced: u64,
    pub(super) granted: u64,
    pub(super) refused: u64,
}

const fn key(id: u64) -> LinkKey {
    (NodeId(id), 0)
}

impl Network {
    pub(super) fn new(seed: u64) -> Self {
        let (nodes, sides) = (BTreeMap::new(), BTreeMap::new());
        let random = Random(seed);
        let now = Instant::from_millis(1);
        Self { now, random, nodes, sides, forced: 0, granted: 0, refused: 0 }
    }

    pub(super) fn ids(&self) -> Vec<u64> {
        self.nodes.keys().copied().collect()
    }

    fn connected(&self, one: u64, other: u64) -> bool {
        self.sides.get(&one) == self.sides.get(&other)
    }

    pub(super) fn join(&mut self, id: u64) {
        let holder = Holder::new(key(id), (least_rate(CAPACITY), CAPACITY));
        let record = Record { holding: holder.holding(), allotments: None };
        let (known, records) = (BTreeMap::new(), Vec::new());
        let node = Node { holder, ledger: None, last: 0, record, records, known, waits: None };
        self.nodes.insert(id, node);
        self.sides.insert(id, 0);
        for other in self.ids() {
            self.meet(id, other);
            self.meet(other, id);
        }
        self.step(id);
    }

    /// Lets `one` learn of `other` after a while.
    fn meet(&mut self, one: u64, other: u64) {
        if one == other || !self.connected(one, other) {
            return;
        }
        let (at, later) = (self.now + self.random.time(100), self.random.time(100));
        let Some(record) = self.nodes.get(&other).map(|node| node.record.clone()) else { return };
        let Some(node) = self.nodes.get_mut(&one) else { return };
        let known = node.known.entry(other).or_default();
        known.turns.clear();
        known.turns.push_back((at, true));
        known.arriving.clear();
        known.arriving.push_back((at + later, record));
    }

    /// Lets `one` notice after a while that `other` is gone.
    fn lose(&mut self, one: u64, other: u64) {
        let at = self.now + self.random.time(2_000);
        let Some(known) = self.nodes.get_mut(&one).and_then(|node| node.known.get_mut(&other))
        else {
            return;
        };
        known.arriving.retain(|(at, _)| *at < self.now);
        known.turns.push_back((at, false));
    }

    pub(super) fn kill(&mut self, id: u64) {
        self.nodes.remove(&id);
        self.sides.remove(&id);
        for other in self.ids() {
            self.lose(other, id);
        }
    }

    /// A node loses all its neighbours: it lowers its rate at once, and the others notice later.
    pub(super) fn isolate(&mut self, id: u64) {
        self.sides.insert(id, ALONE + id);
        for other in self.ids() {
            self.lose(other, id);
        }
        let Some(node) = self.nodes.get_mut(&id) else { return };
        for known in node.known.values_mut() {
            known.reachable = false;
            known.turns.clear();
            known.arriving.clear();
        }
        node.holder.lose_neighbours(least_rate(CAPACITY));
        (node.waits, node.ledger) = (None, None);
        node.record = Record { holding: node.holder.holding(), allotments: None };
    }

    /// Returns the nodes without neighbours.
    pub(super) fn isolated(&self) -> Vec<u64> {
        self.ids().into_iter().filter(|id| self.is_alone(*id)).collect()
    }

    fn is_alone(&self, id: u64) -> bool {
        self.sides.get(&id).is_some_and(|side| *side >= ALONE)
    }

    /// A node without neighbours returns. Before the present record of each other node, it gets an old one of any age.
    pub(super) fn unite(&mut self, id: u64) {
        self.sides.insert(id, 0);
        for other in self.ids() {
            self.meet(id, other);
            self.meet(other, id);
            let at = self.now + Duration::from_millis(1);
            let records = self.nodes.get(&other).map_or(&[][..], |node| &node.records);
            let age = self.random.below(records.len() as u64);
            let old = records.get(usize::try_from(age).unwrap()).cloned();
            let known = self.nodes.get_mut(&id).and_then(|node| node.known.get_mut(&other));
            known
                .zip(old)
                .into_iter()
                .for_each(|(known, old)| known.arriving.push_front((at, old)));
        }
    }

    /// Separates the nodes of which `side` is true from the others.
    pub(super) fn part(&mut self, side: impl Fn(u64) -> bool) {
        let before = self.sides.clone();
        self.sides.iter_mut().for_each(|(id, of)| *of = u64::from(side(*id)));
        for one in self.ids() {
            for other in self.ids() {
                match (before.get(&one) == before.get(&other), self.connected(one, other)) {
                    (true, false) => self.lose(one, other),
                    (false, true) => self.meet(one, other),
                    (true, true) | (false, false) => {}
                }
            }
        }
    }

    pub(super) fn heal(&mut self) {
        self.part(|_| false);
    }

    /// A request for `bits` more arrives: it is granted if it fits, waits for the manager if it could fit, or is refused. Without
    /// neighbours there are none.
    pub(super) fn request(&mut self, id: u64, bits: u64) {
        if self.is_alone(id) {
            return;
        }
        let until = self.now + Duration::from_millis(1_500);
        let attainable = self.attainable(id);
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let Holding { holds, need, wants, .. } = node.holder.holding();
        if need + bits <= holds {
            node.holder.set_need(need + bits, wants);
            self.granted += 1;
        } else if need + bits <= attainable && node.waits.is_none() {
            node.waits = Some((bits, until));
            node.holder.set_need(need, need + bits);
        } else {
            self.refused += 1;
        }
        self.step(id);
    }

    /// All contracts of a node end.
    pub(super) fn release(&mut self, id: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.waits = None;
            node.holder.set_need(0, 0);
        }
        self.step(id);
    }

    fn attainable(&self, id: u64) -> u64 {
        let Some(node) = self.nodes.get(&id) else { return 0 };
        let others = self.view(node).into_iter().filter(|(other, _)| *other != key(id));
        let others: u64 = others.map(|(_, it)| it.need.max(least_rate(CAPACITY))).sum();
        allottable(CAPACITY).saturating_sub(others)
    }

    fn view(&self, node: &Node) -> BTreeMap<LinkKey, Holding> {
        let others = node.known.iter().filter(|(_, known)| known.reachable);
        others.filter_map(|(id, known)| Some((key(*id), known.record.as_ref()?.holding))).collect()
    }

    /// Lets a node follow what it knows, and announces the result.
    fn step(&mut self, id: u64) {
        if self.is_alone(id) {
            return;
        }
        for _ in 0..3 {
            let Some(node) = self.nodes.get(&id) else { return };
            let mut view = self.view(node);
            let manager = view.keys().map(|it| it.0.0).chain([id]).min().unwrap();
            let Some(node) = self.nodes.get_mut(&id) else { return };
            let of_manager = if manager == id {
                node.record.allotments.clone()
            } else {
                node.known.get(&manager).and_then(|it| it.record.clone()?.allotments)
            };
            node.holder.follow(NodeId(manager), of_manager.as_ref());
            let after = node.holder.holding();
            if after.holds < after.need {
                self.forced += 1;
                node.holder.set_need(after.holds, 0);
            }
            if let Some((bits, until)) = node.waits {
                let need = node.holder.holding().need;
                let fits = need + bits <= after.holds;
                if fits || until <= self.now {
                    node.waits = None;
                    node.holder.set_need(need + if fits { bits } else { 0 }, 0);
                    *if fits { &mut self.granted } else { &mut self.refused } += 1;
                }
            }
            view.insert(key(id), node.holder.holding());
            if manager == id {
                let (now, last) = (self.now, node.last);
                let new = || Ledger::new(now, NodeId(id), last);
                let ledger = node.ledger.get_or_insert_with(new);
                ledger.follow(now, CAPACITY, &view);
                node.last = ledger.last();
            } else {
                node.ledger = None;
            }
            let allotments = node.ledger.as_ref().filter(|_| manager == id).map(Ledger::allotments);
            let record = Record { holding: node.holder.holding(), allotments };
            if record == node.record {
                return;
            }
            node.record = record.clone();
            node.records.push(record.clone());
            for other in self.ids() {
                let delay = self.random.time(150);
                if other == id || !self.connected(id, other) {
                    continue;
                }
                let node = self.nodes.get_mut(&other).unwrap();
                let Some(known) = node.known.get_mut(&id) else { continue };
                let last = known.arriving.back().map_or(Instant::ZERO, |(at, _)| *at);
                known.arriving.push_back((last.max(self.now + delay), record.clone()));
            }
        }
    }

    /// Advances time to the next event, or to `end`. Returns false at `end`.
    pub(super) fn advance(&mut self, end: Instant) -> bool {
        let next = self.nodes.values().flat_map(|node| {
            let waits = node.waits.map(|(_, until)| until);
            let ledger = node.ledger.as_ref().map(|it| it.wake_at(self.now));
            let known = node.known.values().flat_map(|known| {
                let arrives = known.arriving.front().map(|(at, _)| *at);
                arrives.into_iter().chain(known.turns.front().map(|(at, _)| *at))
            });
            waits.into_iter().chain(ledger).chain(known)
        });
        let next = next.filter(|at| *at > self.now).min().unwrap_or(Instant::FAR);
        if next > end {
            self.now = end;
            return false;
        }
        self.now = next;
        for id in self.ids() {
            let node = self.nodes.get_mut(&id).unwrap();
            for known in node.known.values_mut() {
                while let Some((_, is)) = known.turns.pop_front_if(|(at, _)| *at <= self.now) {
                    known.reachable = is;
                }
                while let Some((_, it)) = known.arriving.pop_front_if(|(at, _)| *at <= self.now) {
                    known.record = Some(it);
                }
            }
            self.step(id);
        }
        true
    }

    pub(super) fn holds(&self) -> BTreeMap<u64, Holding> {
        self.nodes.iter().map(|(id, node)| (*id, node.holder.holding())).collect()
    }

    /// Returns the sum of the rates. A link without neighbours sends to nobody.
    pub(super) fn sum(&self) -> u64 {
        let holds = self.holds().into_iter().filter(|(id, _)| !self.is_alone(*id));
        holds.map(|(_, it)| it.holds).sum()
    }

    pub(super) fn needs(&self) -> u64 {
        self.holds().values().map(|it| it.need).sum()
    }
}
