//! A network of nodes in virtual time, for the tests of programs.
//!
//! [`TestNetwork`] connects [`Node`]s by links with a capacity, a delay and losses. Time advances only in
//! [`TestNetwork::run_for`], from one event to the next, so a minute of traffic takes milliseconds. The same seed gives the same
//! run.
//!
//! ```
//! use paceline_node::NewSample;
//! use paceline_node::testkit::{TestLink, TestNetwork, publisher, subscription};
//! use paceline_sched::{Capacity, Duration};
//!
//! let mut network = TestNetwork::new(1); // the seed
//! let (robot, operator) = (network.add_node("robot"), network.add_node("operator"));
//! let radio = TestLink {
//!     capacity: Capacity::from_bits_per_s(1_000_000).ok(),
//!     delay: Duration::from_millis(3),
//!     loss_ppm: 0,
//! };
//! network.connect(robot, operator, radio);
//! let steer = network.publish(robot, publisher("robot/steer"));
//! let commands = network.subscribe(operator, subscription("robot/*"));
//! network.run_for(Duration::from_secs(1)); // the link comes up, and the nodes know each other
//!
//! network.put(steer, NewSample::data("left"));
//! network.run_for(Duration::from_millis(10));
//! let samples = network.take(commands);
//! assert_eq!(samples.len(), 1);
//! assert!(samples[0].age.as_millis() >= 3);
//! ```

mod wire;

use crate::{NewSample, Node, NodeOutput, Sample};
use paceline_proto::control::{ControlOutput, PublisherSpec, SubscriptionSpec};
use paceline_proto::link::LinkSpec;
use paceline_proto::reason::DropReason;
use paceline_proto::{NodeId, Pattern, PublisherId, SubscriptionId, Tag};
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use wire::Wire;

/// The interval at which nodes find neighbours over restored links, as live nodes do.
const FIND_EVERY: Duration = Duration::from_millis(200);
/// The samples that wait for the application. It reads at once.
const QUEUE_SAMPLES: usize = 1_024;

/// The properties of a link between two nodes, the same in both directions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TestLink {
    /// The capacity; `None` for unlimited. Contracts need one.
    pub capacity: Option<Capacity>,
    /// The delay of each frame, in addition to its time on the link.
    pub delay: Duration,
    /// The share of lost frames, in millionths.
    pub loss_ppm: u32,
}

/// Returns a publisher of data that declares nothing but its tag.
///
/// # Panics
/// Panics if the tag is not valid.
#[must_use]
pub fn publisher(tag: &str) -> PublisherSpec {
    let Ok(tag) = Tag::new(tag) else { panic!("no tag: {tag}") };
    PublisherSpec::new(tag)
}

/// Returns a subscription to all samples, without further requirements.
///
/// # Panics
/// Panics if the pattern is not valid.
#[must_use]
pub fn subscription(pattern: &str) -> SubscriptionSpec {
    let Ok(pattern) = Pattern::new(pattern) else { panic!("no pattern: {pattern}") };
    SubscriptionSpec::all_of(pattern)
}

/// A node of the network, and its outputs.
#[derive(Debug)]
struct Member {
    node: Node,
    /// The wires of its links.
    wires: BTreeMap<usize, usize>,
    events: Vec<ControlOutput>,
    received: BTreeMap<SubscriptionId, Vec<Sample>>,
    /// The subscriptions whose application does not read.
    paused: BTreeSet<SubscriptionId>,
}

impl Member {
    fn new(node: Node) -> Self {
        Self {
            node,
            wires: BTreeMap::new(),
            events: Vec::new(),
            received: BTreeMap::new(),
            paused: BTreeSet::new(),
        }
    }

    /// Reads the samples of a subscription.
    fn read(&mut self, now: Instant, id: SubscriptionId) {
        if self.paused.contains(&id) {
            return;
        }
        let samples = std::iter::from_fn(|| self.node.read(now, id)).map(|taken| taken.sample);
        self.received.entry(id).or_default().extend(samples);
    }
}

/// A network of nodes in virtual time. See the [module](self).
///
/// Each application reads its samples at once. Outputs with a scaler drop their samples as
/// [`DropReason::CannotScale`], unless the node has [inline scalers](Node::set_inline_scalers).
#[derive(Debug)]
pub struct TestNetwork {
    now: Instant,
    /// Those with the ids 1, 2, 3 and so on.
    members: Vec<Member>,
    /// Two for each link: to its second node, and back.
    wires: Vec<Wire>,
    find_at: Instant,
    seed: u64,
}

impl TestNetwork {
    /// Returns a network without nodes. `seed` determines the lost frames.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Not zero, so that no test depends on a clock that starts with its node.
        let now = Instant::from_millis(60_000);
        Self { now, members: Vec::new(), wires: Vec::new(), find_at: now, seed }
    }

    /// Adds a node.
    pub fn add_node(&mut self, name: &str) -> NodeId {
        let id = NodeId(self.members.len() as u64 + 1);
        let mut node = Node::new(id, name);
        node.keep_accounts();
        self.members.push(Member::new(node));
        id
    }

    /// Connects two nodes by a link. It is named after both.
    ///
    /// # Panics
    /// Panics if a node is not one of this network.
    pub fn connect(&mut self, a: NodeId, b: NodeId, link: TestLink) {
        let spec = LinkSpec { capacity: link.capacity, ..LinkSpec::default() };
        let name_of = |id| self.node(id).control().name(id).unwrap_or_default().to_owned();
        let name = format!("{}-{}", name_of(a), name_of(b));
        let ends = [a, b].map(|id| (id, self.node_mut(id).add_link(&name, spec.clone())));
        for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            let seed = self.seed.wrapping_add(self.wires.len() as u64);
            let place = self.wires.len();
            self.member_mut(from.0).wires.insert(from.1, place);
            self.wires.push(Wire::new(from, to, link, seed));
        }
        self.find_at = self.now;
    }

    /// Cuts all links between two nodes. Frames in flight are lost.
    pub fn cut(&mut self, a: NodeId, b: NodeId) {
        self.between(a, b).for_each(Wire::cut);
    }

    /// Restores all links between two nodes.
    pub fn restore(&mut self, a: NodeId, b: NodeId) {
        self.between(a, b).for_each(Wire::restore);
    }

    fn between(&mut self, a: NodeId, b: NodeId) -> impl Iterator<Item = &mut Wire> {
        self.wires.iter_mut().filter(move |wire| wire.joins(a, b))
    }

    /// Returns the present time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    fn member(&self, id: NodeId) -> &Member {
        let member = place(id).and_then(|place| self.members.get(place));
        member.unwrap_or_else(|| panic!("{id} belongs to another network"))
    }

    fn member_mut(&mut self, id: NodeId) -> &mut Member {
        let member = place(id).and_then(|place| self.members.get_mut(place));
        member.unwrap_or_else(|| panic!("{id} belongs to another network"))
    }

    /// Returns a node.
    ///
    /// # Panics
    /// Panics if it is not one of this network, here and below.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.member(id).node
    }

    /// Returns a node, to change it.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.member_mut(id).node
    }

    /// Adds a publisher.
    pub fn publish(&mut self, node: NodeId, spec: PublisherSpec) -> PublisherId {
        let now = self.now;
        self.node_mut(node).publish(now, spec)
    }

    /// Publishes a sample. Returns its sequence number.
    pub fn put(&mut self, publisher: PublisherId, sample: NewSample) -> Option<u64> {
        let now = self.now;
        self.node_mut(publisher.node).handle_put(now, publisher, sample)
    }

    /// Adds a subscription.
    pub fn subscribe(&mut self, node: NodeId, spec: SubscriptionSpec) -> SubscriptionId {
        let now = self.now;
        self.node_mut(node).subscribe(now, spec, QUEUE_SAMPLES)
    }

    /// Returns the samples that a subscription has received since the last call, in order.
    pub fn take(&mut self, subscription: SubscriptionId) -> Vec<Sample> {
        self.member_mut(subscription.node).received.remove(&subscription).unwrap_or_default()
    }

    /// Lets the application of a subscription stop or resume reading. Meanwhile at most 1,024 samples wait.
    pub fn set_reading(&mut self, subscription: SubscriptionId, reads: bool) {
        let now = self.now;
        let member = self.member_mut(subscription.node);
        if reads {
            member.paused.remove(&subscription);
            member.read(now, subscription);
        } else {
            member.paused.insert(subscription);
        }
    }

    /// Returns the notifications of a node since the last call, in order: grants, refusals, matches and answers.
    pub fn take_events(&mut self, node: NodeId) -> Vec<ControlOutput> {
        std::mem::take(&mut self.member_mut(node).events)
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step(end) {}
        self.now = end;
    }

    /// Lets time pass until `is_done` returns true, at most for `time`. Returns true if it is done.
    pub fn run_until(
        &mut self,
        time: Duration,
        mut is_done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        let end = self.now + time;
        loop {
            if is_done(self) {
                return true;
            }
            if !self.step(end) {
                self.now = end;
                return is_done(self);
            }
        }
    }

    /// Handles the events of the next instant. Returns false if there are none until `end`.
    fn step(&mut self, end: Instant) -> bool {
        let nodes = self.members.iter().map(|member| member.node.poll_timeout().at);
        let wires = self.wires.iter().map(Wire::arrives_at);
        let next = nodes.chain(wires).fold(self.find_at, Instant::min);
        if next > end {
            return false;
        }
        self.now = self.now.max(next);
        self.find();
        self.arrive();
        for place in 0..self.members.len() {
            self.drive(place);
        }
        true
    }

    /// Lets the nodes find each other over links that are not cut.
    fn find(&mut self) {
        if self.find_at > self.now {
            return;
        }
        self.find_at = self.now + FIND_EVERY;
        for place in 0..self.wires.len() {
            let Some(wire) = self.wires.get(place).filter(|wire| !wire.is_cut()) else { continue };
            let ((node, link), (neighbour, _)) = (wire.from, wire.to);
            let now = self.now;
            self.node_mut(node).handle_neighbour(now, link, neighbour);
        }
    }

    /// Delivers the frames that arrive now.
    fn arrive(&mut self) {
        let now = self.now;
        for place in 0..self.wires.len() {
            while let Some(wire) = self.wires.get_mut(place)
                && let Some(frame) = wire.receive(now)
            {
                let ((from, _), (to, link)) = (wire.from, wire.to);
                self.node_mut(to).handle_frame(now, link, from, frame);
            }
        }
    }

    /// Takes the outputs and the samples of a node.
    fn drive(&mut self, place: usize) {
        let now = self.now;
        let Some(member) = self.members.get_mut(place) else { return };
        while let Some(output) = member.node.poll_output(now) {
            match output {
                NodeOutput::Frame { link, frame, .. } => {
                    let wire = member.wires.get(&link).and_then(|wire| self.wires.get_mut(*wire));
                    if let Some(wire) = wire {
                        wire.send(now, frame);
                    }
                }
                NodeOutput::Control(event) => member.events.push(event),
                NodeOutput::Silence(..)
                | NodeOutput::StreamClosed(_)
                | NodeOutput::Muted { .. }
                | NodeOutput::NoStream { .. } => {}
            }
        }
        while let Some(job) = member.node.poll_scale() {
            member.node.handle_scaled(now, job.scaler, Err(DropReason::CannotScale));
        }
        while let Some(id) = member.node.poll_readable() {
            member.read(now, id);
        }
    }
}

fn place(id: NodeId) -> Option<usize> {
    usize::try_from(id.0).ok()?.checked_sub(1)
}
