//! Nodes in a row with links of 10 Mbit/s. A test may keep, drop and duplicate the messages between
//! them.

use super::*;
use std::collections::BTreeMap;

pub(super) type Flight = (NodeIndex, NodeIndex, ReserveMessage);

/// The links to the left and to the right.
const LEFT: LinkId = LinkId(0);
const RIGHT: LinkId = LinkId(1);
const CAPACITY: u64 = 10_000_000;

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) nodes: Vec<Reservations>,
    pub(super) flight: Vec<Flight>,
    pub(super) now: Instant,
    /// The decision of the other ends; `None` leaves requests pending.
    pub(super) deciding: Option<Decision>,
    pub(super) asked: Vec<Name>,
    /// Every message sent so far, in order, if `keeps` is set.
    pub(super) sent: Vec<Flight>,
    pub(super) keeps: bool,
    epochs: Vec<u64>,
    dead: Vec<bool>,
    answers: BTreeMap<(usize, Key), PathAnswer>,
    ended: BTreeMap<(usize, Key), Option<Reason>>,
    /// The reservations closed after their idle time.
    pub(super) idled: Vec<(usize, Key)>,
    /// The installed demands.
    police: BTreeMap<(usize, LinkId, Trunk), StreamDemand>,
}

pub(super) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A stream of `mbit` Mbit/s in packets of 1,000 bytes, within 300 ms.
pub(super) fn wanted(trunk: u128, mbit: u64) -> Wanted {
    Wanted {
        trunk: Trunk(trunk),
        traffic: Traffic::leaky(1_000, mbit * 1_000_000, 1_000).unwrap(),
        bunched: Duration::ZERO,
        within: millis(300),
        loss: LossTolerance::NONE,
        level: None,
    }
}

/// Forward along `path`, with a separate trunk for each pair of ends and rate.
pub(super) fn forward(path: &[u64], mbit: u64) -> Request {
    let trunk = path.iter().fold(0, |sum, node| sum * 64 + u128::from(*node) + 1) << 32;
    Request {
        label: Vec::new(),
        weights: Vec::new(),
        path: path.iter().copied().map(NodeIndex).collect(),
        forward: Some(wanted(trunk, mbit)),
        backward: None,
        scaled: None,
        link: None,
        work: 0,
        idle: None,
    }
}

fn index(node: NodeIndex) -> usize {
    usize::try_from(node.0).unwrap()
}

impl World {
    pub(super) fn row(nodes: usize) -> Self {
        let mut world = Self {
            nodes: Vec::new(),
            flight: Vec::new(),
            now: Instant::ZERO,
            deciding: Some(Decision::Accept { slack: Duration::ZERO }),
            asked: Vec::new(),
            sent: Vec::new(),
            keeps: true,
            epochs: vec![1; nodes],
            dead: vec![false; nodes],
            answers: BTreeMap::new(),
            ended: BTreeMap::new(),
            idled: Vec::new(),
            police: BTreeMap::new(),
        };
        world.nodes = (0..nodes).map(|at| world.fresh(at, nodes, Timing::default())).collect();
        world
    }

    fn fresh(&self, at: usize, nodes: usize, timing: Timing) -> Reservations {
        let me = NodeIndex(at as u64);
        let mut node = Reservations::new(me, self.epochs[at], timing, at as u64 + 1);
        let capacity = Capacity::from_bits_per_s(CAPACITY).unwrap();
        for link in [LEFT, RIGHT] {
            node.add_link(
                link,
                Admission::new(LinkParameters::new(capacity, AdmissionTest::Edf, 0)),
            );
        }
        if at > 0 {
            node.set_neighbour(self.now, NodeIndex(me.0 - 1), LEFT, self.epochs[at - 1]);
        }
        if at + 1 < nodes {
            node.set_neighbour(self.now, NodeIndex(me.0 + 1), RIGHT, self.epochs[at + 1]);
        }
        node
    }

    pub(super) fn set_timing(&mut self, at: usize, timing: Timing) {
        self.nodes[at] = self.fresh(at, self.nodes.len(), timing);
    }

    /// The node loses its state and restarts. Its neighbours notice if `told` is true.
    pub(super) fn restart(&mut self, at: usize, told: bool) {
        self.epochs[at] += 1;
        self.nodes[at] = self.fresh(at, self.nodes.len(), Timing::default());
        self.police.retain(|(node, _, _), _| *node != at);
        if told {
            for (other, link) in [(at.checked_sub(1), RIGHT), (Some(at + 1), LEFT)] {
                let Some(other) = other.filter(|other| *other < self.nodes.len()) else { continue };
                self.nodes[other].set_neighbour(
                    self.now,
                    NodeIndex(at as u64),
                    link,
                    self.epochs[at],
                );
                self.collect(other);
            }
        }
    }

    /// The node fails permanently.
    pub(super) fn die(&mut self, at: usize, told: bool) {
        self.restart(at, false);
        self.dead[at] = true;
        if told {
            self.nodes[at - 1].lose_neighbour(self.now, NodeIndex(at as u64));
            self.collect(at - 1);
        }
    }

    pub(super) fn request(&mut self, at: usize, request: &Request) -> Result<Key, RequestError> {
        let key = self.nodes[at].request(self.now, request);
        self.collect(at);
        key
    }

    pub(super) fn change(
        &mut self,
        at: usize,
        key: Key,
        request: &Request,
    ) -> Result<(), RequestError> {
        let changed = self.nodes[at].change(self.now, key, request);
        self.collect(at);
        changed
    }

    pub(super) fn close(&mut self, at: usize, key: Key) -> bool {
        let closed = self.nodes[at].close(self.now, key);
        self.collect(at);
        closed
    }

    pub(super) fn used(&mut self, at: usize, key: Key) {
        self.nodes[at].handle_used(self.now, key);
    }

    pub(super) fn close_unused(&mut self, at: usize) {
        self.nodes[at].close_unused(self.now);
        self.collect(at);
        self.deliver_all();
    }

    pub(super) fn change_link(&mut self, at: usize, spec: LinkParameters) {
        self.nodes[at].change_link(self.now, RIGHT, spec, |_| Some(()));
        self.collect(at);
    }

    pub(super) fn decide(&mut self, at: usize, name: Name, decision: Decision) -> bool {
        let waited = self.nodes[at].answer(self.now, name, decision);
        self.collect(at);
        waited
    }

    pub(super) fn hear(&mut self, at: usize, from: u64, message: ReserveMessage) {
        if !self.dead[at] {
            self.nodes[at].handle_message(self.now, NodeIndex(from), message);
            self.collect(at);
        }
    }

    /// Collects the outputs of a node and checks the invariants.
    pub(super) fn collect(&mut self, at: usize) {
        while let Some(output) = self.nodes[at].poll_output() {
            match output {
                ReserveOutput::Send { to, message } => {
                    let flight = (NodeIndex(at as u64), to, message);
                    if self.keeps {
                        self.sent.push(flight.clone());
                    }
                    self.flight.push(flight);
                }
                ReserveOutput::Answer { key, answer } => _ = self.answers.insert((at, key), answer),
                ReserveOutput::Ended { key, reason, .. } => {
                    _ = self.ended.insert((at, key), reason)
                }
                ReserveOutput::Asked { name, .. } => match self.deciding {
                    Some(decision) => _ = self.nodes[at].answer(self.now, name, decision),
                    None => self.asked.push(name),
                },
                ReserveOutput::Install { link, trunk, demand } => {
                    self.police.insert((at, link, trunk), demand);
                }
                ReserveOutput::Release { link, trunk } => {
                    _ = self.police.remove(&(at, link, trunk))
                }
                ReserveOutput::Idle { key } => self.idled.push((at, key)),
            }
        }
        self.check(at);
    }

    /// I1, I3, I5, I9 at one node.
    fn check(&self, at: usize) {
        for link in [LEFT, RIGHT] {
            let admission = self.nodes[at].link(link).unwrap();
            let ledger = admission.ledger();
            assert!(ledger.held.rate <= CAPACITY, "I1: more is reserved than available");
            assert!(ledger.installed.rate <= ledger.held.rate);
            let (mut sum, mut streams) = (0, 0);
            for (trunk, demand) in admission.trunks() {
                sum += demand.traffic().rate();
                streams += 1;
                let told = self.police.get(&(at, link, trunk));
                assert_eq!(told, admission.installed(trunk), "I5: policed from the commit on");
            }
            assert_eq!((ledger.held.rate, ledger.held.streams), (sum, streams), "I3, I9");
            for ((_, _, trunk), demand) in
                self.police.iter().filter(|((node, of, _), _)| (*node, *of) == (at, link))
            {
                let installed = admission.installed(*trunk);
                assert_eq!(installed, Some(demand), "I5: only reserved streams are policed");
            }
        }
    }

    pub(super) fn deliver(&mut self, place: usize) {
        let (from, to, message) = self.flight.remove(place);
        if index(to) < self.nodes.len() {
            self.hear(index(to), from.0, message);
        }
    }

    pub(super) fn deliver_all(&mut self) {
        while !self.flight.is_empty() {
            self.deliver(0);
        }
    }

    /// Returns the next wake-up of any node.
    pub(super) fn next_wake(&self) -> Instant {
        let wakes = self.nodes.iter().zip(&self.dead).filter(|(_, dead)| !**dead);
        wakes.map(|(node, _)| node.next_wake()).min().unwrap_or(Instant::FAR)
    }

    /// Advances to the next wake-up, or to `end`.
    pub(super) fn tick(&mut self, end: Instant) {
        let next = self.next_wake().max(self.now).min(end);
        if next == Instant::FAR {
            return;
        }
        self.now = next;
        for at in 0..self.nodes.len() {
            if !self.dead[at] {
                self.nodes[at].tick(self.now);
                self.collect(at);
            }
        }
    }

    /// Lets `time` pass. No message is lost, and each arrives at once.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.deliver_all();
        while self.now < end {
            self.tick(end);
            self.deliver_all();
        }
    }

    /// Returns the reserved rate of each node over both links, in Mbit/s.
    pub(super) fn held(&self) -> Vec<u64> {
        let of = |node: &Reservations, link| node.link(link).map_or(0, |it| it.ledger().held.rate);
        self.nodes.iter().map(|node| (of(node, LEFT) + of(node, RIGHT)) / 1_000_000).collect()
    }

    pub(super) fn answer_of(&mut self, at: usize, key: Key) -> Option<PathAnswer> {
        self.answers.remove(&(at, key))
    }

    pub(super) fn ended(&self, at: usize, key: Key) -> Option<Option<Reason>> {
        self.ended.get(&(at, key)).copied()
    }

    /// Returns true if all ledgers of live nodes are exactly zero.
    pub(super) fn holds_nothing(&self) -> bool {
        let links =
            self.nodes.iter().flat_map(|node| [LEFT, RIGHT].map(|link| node.link(link).unwrap()));
        links.into_iter().all(Admission::is_empty) && self.nodes.iter().all(Reservations::is_empty)
    }

    /// Checks that after `time` no reservation, past entry or timer remains.
    pub(super) fn check_empty_after(&mut self, time: Duration) {
        self.run(time);
        assert!(self.holds_nothing(), "{:?}", self.nodes);
        assert!(self.nodes.iter().all(Reservations::is_idle), "state is kept forever");
    }
}
