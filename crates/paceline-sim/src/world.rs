//! The world: clock, nodes, wires and publishing drivers.

use crate::driver::Driver;
use crate::handle::{LinkPlan, NodeIx, Pub, Sub};
use crate::node::{Air, Publisher, SimNode};
use crate::queue::{Event, Queue};
use crate::random::Random;
use crate::sink::{QUEUE_SAMPLES, Sink};
use crate::wire::{Item, Wire, WireSpec};
use bytes::Bytes;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::form::Form;
use paceline_proto::ids::{NodeId, PublisherId, SubscriptionId};
use paceline_proto::link::LinkSpec;
use paceline_sched::{Capacity, Duration, Instant};
use std::sync::Arc;

/// The interval at which the transport announces nodes to absent neighbours. Live nodes redial a lost
/// neighbour at the same interval (`paceline/src/shell/redial.rs`).
const BEACON_EVERY: Duration = Duration::from_millis(200);
/// The most iterations of a node at one instant, to detect endless wake-ups.
const TURNS_MAX: u32 = 10_000;

/// A link of a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkIx {
    /// The node.
    pub node: NodeIx,
    /// The index of the link on the node.
    pub link: usize,
}

/// A network of nodes in virtual time.
pub struct World {
    pub(super) now: Instant,
    pub(super) nodes: Vec<SimNode>,
    pub(super) wires: Vec<Wire>,
    pub(super) chance: Random,
    pub(super) publishers: Vec<(usize, PublisherId)>,
    pub(super) subscriptions: Vec<(usize, SubscriptionId)>,
    pub(super) faulty: bool,
    pub(super) drivers: Vec<Driver>,
    pub(super) idle_drivers: Vec<usize>,
    pub(super) queue: Queue,
    /// Wires used in the current iteration.
    sent: Vec<usize>,
    keeps: bool,
    ids: u64,
    turns: u64,
}

impl World {
    /// Creates an empty world. `seed` determines loss, jitter and the ids of nodes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            // Not zero, so that no test depends on a clock that starts with its node.
            now: Instant::from_millis(60_000),
            nodes: Vec::new(),
            wires: Vec::new(),
            chance: Random::new(seed),
            publishers: Vec::new(),
            subscriptions: Vec::new(),
            faulty: false,
            drivers: Vec::new(),
            idle_drivers: Vec::new(),
            queue: Queue::default(),
            sent: Vec::new(),
            keeps: true,
            ids: 0,
            turns: 0,
        }
    }

    /// Returns the current time of the world.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the number of iterations of all nodes, a measure of the cost of a run.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// Sets whether subscriptions added from now on keep every delivered sample. Defaults to true.
    ///
    /// Without it they only [count](Self::counted) samples, so that long runs of large worlds fit into
    /// memory.
    pub const fn keep_deliveries(&mut self, keep: bool) {
        self.keeps = keep;
    }

    pub(super) fn new_id(&mut self) -> NodeId {
        self.ids += 1;
        NodeId(self.chance.next() << 16 | self.ids)
    }

    /// Adds a node.
    pub fn add_node(&mut self, name: &str) -> NodeIx {
        let id = self.new_id();
        self.nodes.push(SimNode::new(id, name));
        let node = NodeIx(self.nodes.len() - 1);
        self.touch(node);
        node
    }

    /// Adds a link to a node, to be [joined](Self::join) to others.
    pub fn add_link(&mut self, node: NodeIx, name: &str, spec: LinkSpec) -> LinkIx {
        let link = self.node_mut(node).add_link(name, spec);
        LinkIx { node, link }
    }

    /// Sets the buffer of a link for contracts in bytes, until its node starts anew.
    pub fn set_buffer(&mut self, at: LinkIx, bytes: u64) {
        let node = &mut self.node_mut(at.node).node;
        if let Some(name) = node.links().get(at.link).map(|link| link.name().to_owned()) {
            node.control_mut().set_buffer(&name, bytes);
        }
    }

    /// Measures the capacity of a link within the range of `setting`, which must not be a fixed one
    /// ([`Node::measure`](paceline_node::Node::measure)).
    pub fn measure(&mut self, at: LinkIx, setting: LinkCapacity) {
        self.node_mut(at.node).node.measure(at.link, setting);
        self.touch(at.node);
    }

    /// Changes the capacity that a node assumes for a link, which is not measured. The wire stays as it is.
    pub fn set_capacity(&mut self, at: LinkIx, capacity: Capacity) {
        let now = self.local(at.node);
        self.node_mut(at.node).node.set_capacity(now, at.link, capacity);
        self.touch(at.node);
    }

    /// Adds a wire between two links: `there` leads from `a` to `b`, `back` from `b` to `a`. Returns the
    /// indices of the two directions for [`Self::wire_at`] and [`Self::cut_wire`].
    pub fn join(
        &mut self,
        a: LinkIx,
        b: LinkIx,
        there: WireSpec,
        back: WireSpec,
    ) -> (usize, usize) {
        let (from, to) = ((a.node.0, a.link), (b.node.0, b.link));
        self.faulty |= !there.keeps_all() || !back.keeps_all();
        for (spec, from, to) in [(there, from, to), (back, to, from)] {
            let seed = self.chance.next();
            let end = self.nodes.get(from.0).and_then(|node| node.node.links().get(from.1));
            let carrier = end.map(|end| end.spec().carrier).unwrap_or_default();
            self.wires.push(Wire::new(spec, carrier, from, to, seed));
        }
        self.queue.wake(Event::Beacons, self.now);
        (self.wires.len() - 2, self.wires.len() - 1)
    }

    /// Connects two nodes by one link per direction, over a wire with the capacity of the links.
    pub fn connect(&mut self, a: NodeIx, b: NodeIx, plan: LinkPlan) {
        let wire = WireSpec::limited(plan.capacity);
        let spec = LinkSpec { capacity: plan.capacity, ..LinkSpec::default() };
        let (name_a, name_b) = (self.node(a).name.clone(), self.node(b).name.clone());
        let here = self.add_link(a, &format!("{name_a}-{name_b}"), spec.clone());
        let there = self.add_link(b, &format!("{name_b}-{name_a}"), spec);
        self.join(here, there, wire, wire);
    }

    /// Sets the time that a node takes to scale a picture.
    pub fn set_scaler_time(&mut self, node: NodeIx, time: Duration) {
        self.node_mut(node).pool.service = time;
    }

    /// Lets the scalers of a node share a number of threads. By default each has its own.
    pub fn set_scaler_threads(&mut self, node: NodeIx, threads: usize) {
        self.node_mut(node).pool.workers = Some(threads.max(1));
    }

    /// Sets the longest time in which any node codes a sample of a publisher in `form`. The results then have any size
    /// up to the budget of the form.
    pub fn set_coding_time(&mut self, publisher: Pub, form: Form, most: Duration) {
        let (_, id) = self.place(publisher);
        self.nodes.iter_mut().for_each(|node| node.pool.set_coding_time(id, form, most));
    }

    /// Returns a node's monotonic clock.
    pub(super) fn local(&self, node: NodeIx) -> Instant {
        self.node(node).clock.shows(self.now)
    }

    /// Schedules an iteration of the node at this instant, since there is input.
    pub(super) fn touch(&mut self, node: NodeIx) {
        self.node_mut(node).touched = true;
        self.queue.wake(Event::Node(node.0), self.now);
    }

    /// Adds a publisher.
    pub fn publish(&mut self, node: NodeIx, spec: PublisherSpec) -> Pub {
        let id = self.declare(node, Arc::new(spec));
        self.publishers.push((node.0, id));
        Pub(self.publishers.len() - 1)
    }

    pub(super) fn declare(&mut self, node: NodeIx, spec: Arc<PublisherSpec>) -> PublisherId {
        let now = self.local(node);
        let here = self.node_mut(node);
        let id = here.node.publish(now, spec);
        here.publishers.insert(id.index, Publisher::default());
        self.touch(node);
        id
    }

    /// Withdraws a publisher.
    pub fn unpublish(&mut self, publisher: Pub) {
        let (node, id) = self.place(publisher);
        let (node, now) = (NodeIx(node), self.local(NodeIx(node)));
        let its = |driver: &&mut Driver| driver.publisher == publisher;
        self.drivers.iter_mut().filter(its).for_each(|driver| driver.count = 0);
        let here = self.node_mut(node);
        here.publishers.remove(&id.index);
        here.node.unpublish(now, id);
        self.touch(node);
    }

    /// Publishes one sample. Does nothing if the publisher's node is down.
    pub fn put(&mut self, publisher: Pub, payload: Bytes) {
        let (now, (node, id)) = (self.now, self.place(publisher));
        let here = self.node_mut(NodeIx(node));
        if here.down {
            return;
        }
        here.put(now, id.index, payload);
        self.queue.wake(Event::Node(node), now);
    }

    /// Adds a subscription.
    pub fn subscribe(&mut self, node: NodeIx, spec: SubscriptionSpec) -> Sub {
        let (now, keeps) = (self.local(node), self.keeps);
        if spec.idle.is_some() {
            self.nodes.iter_mut().for_each(SimNode::report_use);
        }
        let here = self.node_mut(node);
        let id = here.node.subscribe(now, spec.clone(), QUEUE_SAMPLES);
        here.sinks.insert(id, Sink::new(spec, keeps));
        self.touch(node);
        self.subscriptions.push((node.0, id));
        Sub(self.subscriptions.len() - 1)
    }

    /// Ends a subscription; its received samples stay available.
    pub fn unsubscribe(&mut self, subscription: Sub) {
        let Some(&(node, id)) = self.subscriptions.get(subscription.0) else { return };
        let (node, now) = (NodeIx(node), self.local(NodeIx(node)));
        let here = self.node_mut(node);
        here.node.unsubscribe(now, id);
        if let Some(sink) = here.sinks.get_mut(&id) {
            sink.ended = true;
        }
        self.touch(node);
    }

    /// Lets the application of a subscription stop reading (`true`) or read again. At most 1,024 samples wait meanwhile.
    pub fn pause(&mut self, subscription: Sub, paused: bool) {
        let Some(&(node, id)) = self.subscriptions.get(subscription.0) else { return };
        let now = self.now;
        self.node_mut(NodeIx(node)).pause(now, id, paused);
    }

    /// Sends a question from one node to another, and returns its number. [`Self::answers`] returns the
    /// answers.
    pub fn ask(&mut self, node: NodeIx, of: NodeIx, question: Bytes) -> u64 {
        let (now, id) = (self.local(node), self.node(of).id());
        self.touch(node);
        self.node_mut(node).node.control_mut().ask(now, id, question)
    }

    /// Returns the answers to a node's questions: the number of the question and the answering node.
    #[must_use]
    pub fn answers(&self, node: NodeIx) -> &[(u64, NodeId)] {
        &self.node(node).answers
    }

    /// Lets time pass, and checks at the end that the sums agree.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.queue.next_at().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            while let Some(event) = self.queue.pop(self.now) {
                self.happen(event);
            }
        }
        self.now = end;
        self.check();
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Beacons => self.send_beacons(),
            Event::Wire(place) => self.receive(place),
            Event::Driver(place) => self.drive(place),
            Event::Node(place) => self.turn(place),
        }
    }

    fn turn(&mut self, place: usize) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(place).filter(|node| !node.stalled && !node.down)
        else {
            return;
        };
        if node.is_due(now) {
            self.turns += 1;
            node.turns_now = if node.at == now { node.turns_now + 1 } else { 0 };
            assert!(node.turns_now < TURNS_MAX, "{} wakes without work at {now}", node.name);
            let air = Air { wires: &mut self.wires, sent: &mut self.sent };
            node.turn(now, air);
            node.wake = node.wake_at();
        }
        self.queue.wake(Event::Node(place), node.wake);
        for wire in self.sent.drain(..) {
            if let Some(wire_at) = self.wires.get(wire).map(Wire::arrives_at) {
                self.queue.wake(Event::Wire(wire), wire_at);
            }
        }
    }

    fn send_beacons(&mut self) {
        let now = self.now;
        // The two directions of a wire are adjacent. The second end is the one that connects.
        for (place, wire) in self.wires.iter_mut().enumerate().skip(1).step_by(2) {
            let Some(node) = self.nodes.get(wire.from.0) else { continue };
            let Some(end) = node.node.links().get(wire.from.1) else { continue };
            let led = |id: NodeId| node.uses(wire.from.1, id, place);
            let up = end.link().hops().any(|(id, hop)| hop.is_up() && led(id));
            if !up && !node.stalled && !node.down {
                wire.send(now, node.id(), Item::Beacon);
                self.queue.wake(Event::Wire(place), wire.arrives_at());
            }
        }
        self.queue.wake(Event::Beacons, now + BEACON_EVERY);
    }

    fn receive(&mut self, place: usize) {
        let Some(wire) = self.wires.get_mut(place) else { return };
        let Some(node) = self.nodes.get_mut(wire.to.0).filter(|node| !node.stalled) else { return };
        // The two directions of a wire are adjacent.
        let back = place ^ 1;
        while let Some(carried) = wire.receive(self.now) {
            match carried.item {
                Item::Beacon if !node.down => {
                    node.find(self.now, wire.to.1, carried.from, back);
                }
                Item::Frame { to, frame } if to == node.id() && !node.down => {
                    node.receive(self.now, wire.to.1, carried.from, frame, back);
                }
                // The node is down, or another incarnation.
                Item::Beacon | Item::Frame { .. } => wire.unheard += 1,
            }
        }
        self.queue.wake(Event::Wire(place), wire.arrives_at());
        if node.is_due(self.now) {
            self.queue.wake(Event::Node(wire.to.0), self.now);
        }
    }
}
