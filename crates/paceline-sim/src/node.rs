//! A node of a world: a [`Node`] with its clock, its applications and its wires.

use crate::ask::kind_of;
use crate::clock::NodeClock;
use crate::ledger::Ledger;
use crate::pool::Pool;
use crate::sink::{Present, Sink};
use crate::video::ToyVideoScaler;
use crate::wire::{Item, Wire};
use bytes::Bytes;
use core::mem;
use paceline_node::{ClosedStream, NewSample, Node, NodeOutput};
use paceline_proto::control::{BestEffort, ControlOutput};
use paceline_proto::form::Form;
use paceline_proto::ids::{NodeId, PublisherId, SubscriptionId};
use paceline_proto::link::LinkSpec;
use paceline_proto::reason::StreamCounters;
use paceline_sched::Instant;
use std::collections::BTreeMap;

/// A stream from or to a neighbour, whichever node published it.
pub(super) type StreamKey = (NodeId, PublisherId, Form);

/// The wires into which a node sends.
pub(super) struct Air<'a> {
    pub(super) wires: &'a mut [Wire],
    /// The indices of the wires used.
    pub(super) sent: &'a mut Vec<usize>,
}

/// A publisher of the node.
#[derive(Debug, Default)]
pub(super) struct Publisher {
    pub(super) matching: bool,
}

#[derive(Debug)]
pub(super) struct SimNode {
    pub(super) node: Node,
    /// The ids of its incarnations before crashes.
    pub(super) former: Vec<NodeId>,
    pub(super) name: String,
    /// The wire to each neighbour of a link.
    hops: BTreeMap<(usize, NodeId), usize>,
    pub(super) publishers: BTreeMap<u32, Publisher>,
    pub(super) sinks: BTreeMap<SubscriptionId, Sink>,
    pub(super) pool: Pool,
    /// The contracts of its publishers.
    pub(super) ledger: Ledger,
    /// The counters of closed streams.
    pub(super) closed: BTreeMap<StreamKey, StreamCounters>,
    pub(super) stalled: bool,
    /// The node has crashed. The rest is the state of its next start.
    pub(super) down: bool,
    /// It runs an iteration even if the node has no work, because its clock or its state has changed.
    pub(super) touched: bool,
    /// Its publishers' use of idle reservations is reported.
    reports_use: bool,
    pub(super) answers: Vec<(u64, NodeId)>,
    pub(super) clock: NodeClock,
    /// By the world's time: its last activity, and its next due iteration.
    pub(super) at: Instant,
    pub(super) wake: Instant,
    /// Iterations at the instant `at`.
    pub(super) turns_now: u32,
}

impl SimNode {
    pub(super) fn new(id: NodeId, name: &str) -> Self {
        let mut node = Node::new(id, name);
        node.keep_accounts();
        node.set_reports(false);
        node.set_inline_scalers(ToyVideoScaler::make);
        Self {
            node,
            former: Vec::new(),
            name: name.to_owned(),
            hops: BTreeMap::new(),
            publishers: BTreeMap::new(),
            sinks: BTreeMap::new(),
            pool: Pool::new(),
            ledger: Ledger::default(),
            closed: BTreeMap::new(),
            stalled: false,
            down: false,
            touched: true,
            reports_use: false,
            answers: Vec::new(),
            clock: NodeClock::new(),
            at: Instant::ZERO,
            wake: Instant::FAR,
            turns_now: 0,
        }
    }

    pub(super) const fn id(&self) -> NodeId {
        self.node.id()
    }

    pub(super) fn add_link(&mut self, name: &str, spec: LinkSpec) -> usize {
        self.node.add_link(name, spec)
    }

    /// Reports the use of reservations with an idle time.
    pub(super) fn report_use(&mut self) {
        self.reports_use = true;
        self.node.set_reports(true);
    }

    /// Replaces the node by its next incarnation, which is down and has an unused id. Returns the old one.
    ///
    /// The next incarnation has the same name, clocks and links, but no hops.
    pub(super) fn begin_anew(&mut self, id: NodeId) -> Self {
        let mut next = Self::new(id, &self.name);
        (next.down, next.clock, next.pool) = (true, self.clock, self.pool.anew());
        if self.reports_use {
            next.report_use();
        }
        next.former = self.former.iter().copied().chain([self.id()]).collect();
        for link in self.node.links() {
            let place = next.add_link(link.name(), link.spec().clone());
            link.setting().into_iter().for_each(|setting| next.node.measure(place, setting));
        }
        mem::replace(self, next)
    }

    /// Returns true if it has to run an iteration at `world`.
    pub(super) fn is_due(&self, world: Instant) -> bool {
        self.touched || self.node.poll_timeout().at == Instant::ZERO || self.wake <= world
    }

    /// Handles the announcement of a neighbour behind `wire`.
    pub(super) fn find(&mut self, world: Instant, link: usize, node: NodeId, wire: usize) {
        let now = self.clock.shows(world);
        if self.node.handle_neighbour(now, link, node) {
            self.hops.insert((link, node), wire);
        }
    }

    /// Returns true if frames to a neighbour of a link use the wire.
    pub(super) fn uses(&self, link: usize, node: NodeId, wire: usize) -> bool {
        self.hops.get(&(link, node)) == Some(&wire)
    }

    /// Handles a frame of a neighbour. `back` is the wire that leads to it.
    pub(super) fn receive(
        &mut self,
        world: Instant,
        link: usize,
        from: NodeId,
        frame: Bytes,
        back: usize,
    ) {
        let now = self.now_at(world);
        if self.node.handle_frame(now, link, from, frame) {
            self.hops.insert((link, from), back);
        }
        self.read(now);
    }

    /// Records an instant of the world and returns the node's clock at that instant.
    fn now_at(&mut self, world: Instant) -> Instant {
        if self.at != world {
            (self.at, self.turns_now) = (world, 0);
        }
        self.clock.shows(world)
    }

    /// Publishes a sample of a publisher of this node.
    pub(super) fn put(&mut self, world: Instant, index: u32, payload: Bytes) {
        let now = self.now_at(world);
        let id = PublisherId { node: self.id(), index };
        let Some(spec) = self.node.publisher(id) else { return };
        let kind = if spec.kind.is_video() { kind_of(&payload) } else { spec.kind };
        let captured = self.clock.stamp(now);
        self.node.handle_put(now, id, NewSample { captured, kind, ..NewSample::data(payload) });
        self.read(now);
    }

    /// Lets the applications take the samples that have arrived, unless they do not read.
    fn read(&mut self, now: Instant) {
        while let Some(id) = self.node.poll_readable() {
            self.read_of(now, id);
        }
    }

    fn read_of(&mut self, now: Instant, id: SubscriptionId) {
        let Some(sink) = self.sinks.get_mut(&id) else { return };
        while !sink.paused
            && let Some(taken) = self.node.read(now, id)
        {
            sink.take(self.at, taken);
        }
    }

    /// Lets the application of a subscription stop or resume reading.
    pub(super) fn pause(&mut self, world: Instant, id: SubscriptionId, paused: bool) {
        let now = self.now_at(world);
        if let Some(sink) = self.sinks.get_mut(&id) {
            sink.paused = paused;
            self.read_of(now, id);
        }
    }

    /// Processes all consequences of the input at this instant.
    pub(super) fn turn(&mut self, world: Instant, mut air: Air<'_>) {
        let now = self.now_at(world);
        self.touched = false;
        self.pool.run(now, &mut self.node);
        loop {
            while let Some(output) = self.node.poll_output(now) {
                self.handle(now, output, &mut air);
            }
            self.read(now);
            if !self.pool.run(now, &mut self.node) {
                return;
            }
        }
    }

    fn handle(&mut self, now: Instant, output: NodeOutput, air: &mut Air<'_>) {
        match output {
            NodeOutput::Frame { link, to, frame } => {
                let Some(&place) = self.hops.get(&(link, to)) else { return };
                let Some(wire) = air.wires.get_mut(place) else { return };
                let bytes = frame.len() as u64;
                wire.send(self.at, self.node.id(), Item::Frame { to, frame });
                air.sent.push(place);
                // The two directions of a wire are adjacent.
                if let Some(back) = air.wires.get_mut(place ^ 1) {
                    back.acknowledge(bytes);
                }
            }
            NodeOutput::Control(output) => self.notify(now, output),
            NodeOutput::StreamClosed(closed) => self.close(&closed),
            // No node of a world is hostile.
            NodeOutput::Muted { from, flood, .. } => {
                panic!("{} has muted {from}: {}", self.name, flood.name());
            }
            // No scenario has subscriptions with an age limit. Outputs without a stream wait until another one closes.
            NodeOutput::Silence(..) | NodeOutput::NoStream { .. } => {}
        }
    }

    fn close(&mut self, closed: &ClosedStream) {
        let ClosedStream { hop, source, counters, offered, .. } = closed;
        assert_eq!(counters.offered, *offered, "{}: {closed:?}", self.name);
        assert_eq!(counters.offered, counters.sent + counters.drops.total(), "{}", self.name);
        let key = (*hop, source.publisher, source.form);
        self.closed.entry(key).or_default().merge(counters);
    }

    /// Notifies the applications.
    fn notify(&mut self, now: Instant, output: ControlOutput) {
        match output {
            ControlOutput::Matching { publisher, matching } => {
                if let Some(publisher) = self.publishers.get_mut(&publisher.index) {
                    publisher.matching = matching;
                }
            }
            ControlOutput::Subscribed { subscription, publishers } => {
                if let Some(sink) = self.sinks.get_mut(&subscription) {
                    sink.publishers = publishers;
                }
            }
            ControlOutput::Refused { subscription, publisher, refusal } => {
                self.ledger.note((subscription, publisher), self.at, false);
                if let Some(sink) = self.sinks.get_mut(&subscription) {
                    sink.refusals.push((publisher, refusal));
                }
            }
            ControlOutput::Granted { grant } => {
                self.ledger.note((grant.subscription, grant.publisher), self.at, true);
                let sink = self.sinks.get_mut(&grant.subscription);
                _ = sink.map(|sink| sink.grants.insert(grant.publisher, grant));
            }
            ControlOutput::Withdrawn { subscription, publisher } => {
                self.ledger.note((subscription, publisher), self.at, false);
            }
            ControlOutput::BestEffort { subscription, publisher, why } => {
                if let Some(sink) = self.sinks.get_mut(&subscription)
                    && why == BestEffort::NoCapacity
                {
                    sink.unlimited.insert(publisher);
                }
            }
            ControlOutput::NoSpare { refusal } => {
                let sink = self.sinks.get_mut(&refusal.subscription);
                _ = sink.map(|sink| sink.unspared.push(refusal));
            }
            ControlOutput::Warned { subscription, warning, .. } => {
                if let Some(sink) = self.sinks.get_mut(&subscription) {
                    sink.warnings.push((self.at, warning));
                }
            }
            ControlOutput::Changed { subscription, spec, adaptation } => {
                let Some((sink, step)) = self.sinks.get_mut(&subscription).zip(adaptation) else {
                    return;
                };
                sink.steps.push((self.at, spec.form, *step));
            }
            ControlOutput::Asked { request, from, .. } => {
                let answer = Bytes::from_static(b"answer");
                self.node.control_mut().answer(now, request, from, answer);
            }
            ControlOutput::Answered { request, node, .. } => self.answers.push((request, node)),
            // The node handles the first two itself.
            ControlOutput::Send { .. }
            | ControlOutput::Install { .. }
            | ControlOutput::Excess { .. }
            | ControlOutput::Allotted { .. }
            | ControlOutput::Surveyed { .. }
            | ControlOutput::InForce { .. }
            | ControlOutput::ChangeRefused { .. }
            | ControlOutput::Denied { .. }
            | ControlOutput::Used { .. }
            | ControlOutput::ChangedFor { .. }
            | ControlOutput::Unread { .. } => {}
        }
    }

    /// Returns the counters of a subscription since the start of the node.
    pub(super) fn present(&self, id: SubscriptionId) -> Present<'_> {
        self.node.delivery(id).zip(self.node.account(id))
    }

    /// Returns the world's time of the node's next iteration without further input.
    pub(super) fn wake_at(&self) -> Instant {
        let local = self.node.poll_timeout().at.min(self.pool.next_at());
        // The node has work at once.
        if local == Instant::ZERO { self.at } else { self.clock.world(local) }
    }
}
