//! The world: clock, nodes, wires, and whoever publishes.

use crate::net::{LinkPlan, NodeIx, Payload, Pub, Sub};
use crate::node::{Node, Publisher, Source};
use crate::random::Random;
use crate::sink::Sink;
use crate::wire::{Item, Wire, WireSpec};
use bytes::Bytes;
use paceline_proto::control::{PublisherSpec, SourceKey, SubscriptionSpec};
use paceline_proto::form::Form;
use paceline_proto::ids::{NodeId, PublisherId, SubscriptionId};
use paceline_proto::link::LinkSpec;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;

/// How often the transport calls neighbours that are not there.
const BEACON_EVERY: Duration = Duration::from_millis(200);
/// Time that does not pass although this many things were done: somebody wakes for nothing.
const STEPS_MAX: usize = 10_000;

/// A link of a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkIx {
    /// The node.
    pub node: NodeIx,
    /// The link's place on the node.
    pub link: usize,
}

struct Driver {
    publisher: Pub,
    period: Duration,
    jitter: Duration,
    /// When the next one is due, and when it comes.
    due: Instant,
    at: Instant,
    number: u64,
    count: u64,
    payload: Payload,
}

/// A network of nodes in virtual time.
pub struct World {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Node>,
    pub(super) wires: Vec<Wire>,
    pub(super) chance: Random,
    pub(super) publishers: Vec<(usize, PublisherId)>,
    pub(super) subscriptions: Vec<(usize, SubscriptionId)>,
    pub(super) faulty: bool,
    drivers: Vec<Driver>,
    next_beacon: Instant,
    wakes: Vec<Instant>,
    ids: u64,
    turns: u64,
}

impl World {
    /// An empty world; `seed` decides about loss, jitter and the ids of nodes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            // Not zero: nothing may depend on a node that starts with its clock.
            now: Instant::from_millis(60_000),
            nodes: Vec::new(),
            wires: Vec::new(),
            chance: Random::new(seed),
            publishers: Vec::new(),
            subscriptions: Vec::new(),
            faulty: false,
            drivers: Vec::new(),
            next_beacon: Instant::ZERO,
            wakes: Vec::new(),
            ids: 0,
            turns: 0,
        }
    }

    /// What time it is.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// How many turns nodes have taken: what a run has cost.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    fn new_id(&mut self) -> NodeId {
        self.ids += 1;
        NodeId(self.chance.next() << 16 | self.ids)
    }

    /// A new node.
    pub fn add_node(&mut self, name: &str) -> NodeIx {
        let id = self.new_id();
        self.nodes.push(Node::new(id, name));
        self.wakes.push(Instant::FAR);
        NodeIx(self.nodes.len() - 1)
    }

    /// A new link of a node, to be [joined](Self::join) to others.
    pub fn add_link(&mut self, node: NodeIx, name: &str, spec: LinkSpec) -> LinkIx {
        let link = self.node_mut(node).add_link(name, spec);
        LinkIx { node, link }
    }

    /// Lays a wire between two links: `there` from `a` to `b`, and `back`. Returns its two
    /// directions for [`Self::wire`].
    pub fn join(
        &mut self,
        a: LinkIx,
        b: LinkIx,
        there: WireSpec,
        back: WireSpec,
    ) -> (usize, usize) {
        let (from, to) = ((a.node.0, a.link), (b.node.0, b.link));
        self.faulty |= there.loss_per_mille > 0 || back.loss_per_mille > 0;
        self.wires.push(Wire::new(there, from, to));
        self.wires.push(Wire::new(back, to, from));
        self.next_beacon = self.now;
        (self.wires.len() - 2, self.wires.len() - 1)
    }

    /// Joins two nodes by a link each way; the wire carries what the links may send.
    pub fn connect(&mut self, a: NodeIx, b: NodeIx, plan: LinkPlan) {
        let wire = WireSpec { rate: plan.capacity, ..WireSpec::default() };
        let spec = LinkSpec { capacity: plan.capacity, ..LinkSpec::default() };
        let (name_a, name_b) = (self.node(a).name.clone(), self.node(b).name.clone());
        let here = self.add_link(a, &format!("{name_a}-{name_b}"), spec);
        let there = self.add_link(b, &format!("{name_b}-{name_a}"), spec);
        self.join(here, there, wire, wire);
    }

    fn wires_between(&mut self, a: NodeIx, b: NodeIx) -> impl Iterator<Item = &mut Wire> {
        let ends = [(a.0, b.0), (b.0, a.0)];
        self.wires.iter_mut().filter(move |wire| ends.contains(&(wire.from.0, wire.to.0)))
    }

    /// Nothing passes between two nodes any more; what was on its way is lost.
    pub fn cut(&mut self, a: NodeIx, b: NodeIx) {
        self.faulty = true;
        for wire in self.wires_between(a, b) {
            wire.cut = true;
            wire.clear();
        }
    }

    /// What was cut is whole again.
    pub fn restore(&mut self, a: NodeIx, b: NodeIx) {
        self.wires_between(a, b).for_each(|wire| wire.cut = false);
    }

    /// From now on so many frames in a thousand are lost between two nodes.
    pub fn set_loss(&mut self, a: NodeIx, b: NodeIx, per_mille: u32) {
        self.faulty = true;
        self.wires_between(a, b).for_each(|wire| wire.spec.loss_per_mille = per_mille);
    }

    /// A node neither reads nor sends until it is [resumed](Self::resume).
    pub fn stall(&mut self, node: NodeIx) {
        self.faulty = true;
        self.node_mut(node).stalled = true;
    }

    /// A stalled node goes on where it was.
    pub fn resume(&mut self, node: NodeIx) {
        let node = self.node_mut(node);
        node.stalled = false;
        node.touched = true;
    }

    /// How long a node takes to scale a picture.
    pub fn set_scaler_time(&mut self, node: NodeIx, time: Duration) {
        self.node_mut(node).scaler_time = time;
    }

    /// A new publisher.
    pub fn publish(&mut self, node: NodeIx, spec: PublisherSpec) -> Pub {
        let now = self.now;
        let here = self.node_mut(node);
        let id = here.control.publish(now, spec.clone());
        let source = SourceKey { publisher: id, form: Form::FULL };
        here.sources.insert(source, Source::new(Arc::new(spec)));
        here.publishers.insert(id.index, Publisher::default());
        here.touched = true;
        self.publishers.push((node.0, id));
        Pub(self.publishers.len() - 1)
    }

    /// A publisher is gone.
    pub fn unpublish(&mut self, publisher: Pub) {
        let (now, (node, id)) = (self.now, self.place(publisher));
        self.drivers.retain(|driver| driver.publisher != publisher);
        let here = self.node_mut(NodeIx(node));
        here.publishers.remove(&id.index);
        here.control.unpublish(now, id);
        here.touched = true;
    }

    /// Publishes one sample.
    pub fn put(&mut self, publisher: Pub, payload: Bytes) {
        let (now, (node, id)) = (self.now, self.place(publisher));
        self.node_mut(NodeIx(node)).put(now, id.index, payload);
    }

    /// From now on publishes `count` samples, one each `period`.
    pub fn every(&mut self, publisher: Pub, period: Duration, count: u64, payload: Payload) {
        self.every_jittered(publisher, (period, Duration::ZERO), count, payload);
    }

    /// As [`Self::every`], each up to a jitter later than its time: `(period, jitter)`.
    pub fn every_jittered(
        &mut self,
        publisher: Pub,
        (period, jitter): (Duration, Duration),
        count: u64,
        payload: Payload,
    ) {
        let at = self.now;
        let driver = Driver { publisher, period, jitter, due: at, at, number: 0, count, payload };
        self.drivers.push(driver);
    }

    /// A new subscription.
    pub fn subscribe(&mut self, node: NodeIx, spec: SubscriptionSpec) -> Sub {
        let now = self.now;
        let here = self.node_mut(node);
        let id = here.control.subscribe(now, spec.clone());
        here.sinks.insert(id, Sink::new(spec));
        here.touched = true;
        self.subscriptions.push((node.0, id));
        Sub(self.subscriptions.len() - 1)
    }

    /// Ends a subscription; what it got stays.
    pub fn unsubscribe(&mut self, subscription: Sub) {
        let now = self.now;
        let Some(&(node, id)) = self.subscriptions.get(subscription.0) else { return };
        let here = self.node_mut(NodeIx(node));
        here.control.unsubscribe(now, id);
        here.touched = true;
    }

    /// Has a node ask another one; [`Self::answers`] counts the answers.
    pub fn ask(&mut self, node: NodeIx, of: NodeIx, question: Bytes) -> u64 {
        let (now, id) = (self.now, self.node(of).id);
        let here = self.node_mut(node);
        here.touched = true;
        here.control.ask(now, id, question)
    }

    /// The answers to a node's questions: the question's number and who answered.
    #[must_use]
    pub fn answers(&self, node: NodeIx) -> &[(u64, NodeId)] {
        &self.node(node).answers
    }

    /// Lets time pass, and checks that the sums agree at its end.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        let mut steps = 0;
        loop {
            self.step();
            let next = self.next_wake();
            if next > end {
                break;
            }
            steps = if next > self.now { 0 } else { steps + 1 };
            assert!(steps < STEPS_MAX, "somebody wakes for nothing at {}", self.now);
            self.now = self.now.max(next);
        }
        self.now = end;
        self.check();
    }

    /// What happens at this instant.
    fn step(&mut self) {
        let now = self.now;
        if self.next_beacon <= now {
            self.next_beacon = now + BEACON_EVERY;
            self.send_beacons();
        }
        for wire in 0..self.wires.len() {
            self.receive(wire);
        }
        self.drive();
        for (node, wake) in self.nodes.iter_mut().zip(&mut self.wakes) {
            if !node.stalled && (node.touched || *wake <= now) {
                self.turns += 1;
                node.turn(now, &mut self.wires, &mut self.chance);
                *wake = node.wake_at();
            }
        }
    }

    fn send_beacons(&mut self) {
        let now = self.now;
        for (place, wire) in self.wires.iter_mut().enumerate() {
            let Some(node) = self.nodes.get(wire.from.0) else { continue };
            let Some(end) = node.links.get(wire.from.1) else { continue };
            let led = |id: NodeId| end.hops.get(&id).is_some_and(|hop| hop.wire == place);
            let up = end.link.hops().any(|(id, hop)| hop.is_up() && led(id));
            if !up && !node.stalled {
                wire.send(now, node.id, Item::Beacon, &mut self.chance);
            }
        }
    }

    fn receive(&mut self, place: usize) {
        let Some(wire) = self.wires.get_mut(place) else { return };
        let Some(node) = self.nodes.get_mut(wire.to.0).filter(|node| !node.stalled) else { return };
        // The two directions of a wire lie side by side.
        let back = place ^ 1;
        while let Some(carried) = wire.receive(self.now) {
            match carried.item {
                Item::Beacon => node.found(self.now, wire.to.1, carried.from, back),
                Item::Frame(frame) => {
                    node.receive(self.now, wire.to.1, carried.from, frame, back);
                }
            }
        }
    }

    fn drive(&mut self) {
        let now = self.now;
        let mut drivers = core::mem::take(&mut self.drivers);
        for driver in &mut drivers {
            while driver.at <= now && driver.count > 0 {
                let payload = (driver.payload)(driver.number);
                self.put(driver.publisher, payload);
                driver.number += 1;
                driver.count -= 1;
                driver.due += driver.period;
                driver.at = driver.due + self.jitter(driver.jitter);
            }
        }
        drivers.retain(|driver| driver.count > 0);
        self.drivers = drivers;
    }

    fn jitter(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.chance.below(most.as_nanos()))
    }

    fn next_wake(&self) -> Instant {
        let mut next = self.next_beacon;
        for (node, wake) in self.nodes.iter().zip(&self.wakes) {
            match node.stalled {
                true => {}
                false if node.touched => next = next.min(self.now),
                false => next = next.min(*wake),
            }
        }
        let stalled = |wire: &&Wire| self.nodes.get(wire.to.0).is_none_or(|node| node.stalled);
        let wires = self.wires.iter().filter(|wire| !stalled(wire)).map(Wire::arrives_at);
        let drivers = self.drivers.iter().map(|driver| driver.at);
        wires.chain(drivers).fold(next, Instant::min)
    }
}
