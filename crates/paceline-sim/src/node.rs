//! One node: the pure parts, connected by plain queues where the driver shell has rings and threads.

use crate::arrivals::ArrivalCounts;
use crate::ask::kind_of;
use crate::clock::NodeClock;
use crate::ledger::Ledger;
use crate::lookup::Lookup;
use crate::outlet::{HopEnd, LinkEnd, Outlets, Port, StreamKey};
use crate::pool::{Pool, Scaler};
use crate::sink::Sink;
use crate::used::Used;
use crate::wire::{Item, Wire};
use bytes::Bytes;
use core::mem;
use paceline_node::arrive::{ArrivedItem, ArrivingStreams, Outputs as _};
use paceline_node::install::{Installer, ScalerId, WantedOutputs};
use paceline_proto::ProbeInterval;
use paceline_proto::control::{
    BestEffort, Control, ControlOutput, HopInfo, PublisherSpec, WayChange, Ways,
};
use paceline_proto::ids::{NodeId, PublisherId, SubscriptionId};
use paceline_proto::ingress::{Ingress, Stamper};
use paceline_proto::link::{Link, LinkEvent, LinkSpec};
use paceline_proto::memory::{Charge, MemoryKind};
use paceline_proto::plan::SourceKey;
use paceline_proto::reason::{DropReason, StreamCounters};
use paceline_proto::receive::Received;
use paceline_proto::wire::frame::FrameBuf;
use paceline_sched::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A limit on the rounds of one node at one instant, to detect endless loops.
const ROUNDS_MAX: usize = 10_000;

/// A publisher of the node, with its outputs.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) ingress: Ingress<Port>,
    pub(super) publisher: Arc<PublisherSpec>,
    /// Numbers the samples, until it is withdrawn.
    pub(super) stamper: Option<Stamper>,
}

impl Source {
    pub(super) fn new(publisher: Arc<PublisherSpec>) -> Self {
        let stamper = Some(Stamper::new(publisher.period));
        Self { ingress: Ingress::new(publisher.period), publisher, stamper }
    }
}

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
pub(super) struct Node {
    pub(super) id: NodeId,
    /// The ids of its incarnations before crashes.
    pub(super) former: Vec<NodeId>,
    pub(super) name: String,
    pub(super) control: Control,
    pub(super) links: Vec<LinkEnd>,
    /// The link in use for each neighbour.
    pub(super) ways: Ways,
    /// The publishers of the node, until their last output is closed.
    pub(super) sources: Lookup<PublisherId, Source>,
    /// The outputs of all sources.
    pub(super) installer: Installer,
    /// The streams that arrive here.
    pub(super) arrivals: ArrivingStreams<Port>,
    pub(super) publishers: BTreeMap<u32, Publisher>,
    pub(super) sinks: BTreeMap<SubscriptionId, Sink>,
    pub(super) scalers: BTreeMap<ScalerId, Scaler>,
    pub(super) pool: Pool,
    /// The contracts of its publishers.
    pub(super) ledger: Ledger,
    /// Its publishers' use of idle reservations, if it reports any.
    pub(super) used: Used,
    /// The counters of closed streams.
    pub(super) closed: BTreeMap<StreamKey, StreamCounters>,
    pub(super) arrived: ArrivalCounts,
    /// Samples that found no output here, by publisher.
    pub(super) unrouted: BTreeMap<PublisherId, u64>,
    /// Malformed frames received.
    pub(super) malformed: u64,
    pub(super) stalled: bool,
    /// The node has crashed. The rest is the state of its next start.
    pub(super) down: bool,
    /// There was input since its last iteration.
    pub(super) touched: bool,
    pub(super) answers: Vec<(u64, NodeId)>,
    pub(super) clock: NodeClock,
    /// By the world's time: its last activity, and its next due iteration.
    pub(super) at: Instant,
    pub(super) wake: Instant,
    /// Iterations at the instant `at`.
    pub(super) turns_now: u32,
    frame: FrameBuf,
    /// A reusable buffer for the items of a frame.
    batch: Vec<Received>,
}

impl Node {
    pub(super) fn new(id: NodeId, name: &str) -> Self {
        Self {
            id,
            former: Vec::new(),
            name: name.to_owned(),
            control: Control::new(id, name),
            links: Vec::new(),
            ways: Ways::default(),
            sources: Lookup::default(),
            installer: Installer::default(),
            arrivals: ArrivingStreams::default(),
            publishers: BTreeMap::new(),
            sinks: BTreeMap::new(),
            scalers: BTreeMap::new(),
            pool: Pool::new(),
            ledger: Ledger::default(),
            used: Used::default(),
            closed: BTreeMap::new(),
            arrived: ArrivalCounts::default(),
            unrouted: BTreeMap::new(),
            malformed: 0,
            stalled: false,
            down: false,
            touched: true,
            answers: Vec::new(),
            clock: NodeClock::new(),
            at: Instant::ZERO,
            wake: Instant::FAR,
            turns_now: 0,
            frame: FrameBuf::default(),
            batch: Vec::new(),
        }
    }

    pub(super) fn add_link(&mut self, name: &str, spec: LinkSpec) -> usize {
        self.control.set_link(name, spec.policy, spec.carrier);
        self.control.set_classes(name, spec.classes.clone());
        self.links.push(LinkEnd::new(name.to_owned(), spec));
        self.links.len() - 1
    }

    /// Replaces the node by its next incarnation, which is down and has an unused id. Returns the old one.
    ///
    /// The next incarnation has the same name, clocks and links, but no hops.
    pub(super) fn begin_anew(&mut self, id: NodeId) -> Self {
        let mut next = Self::new(id, &self.name);
        (next.down, next.clock, next.pool) = (true, self.clock, self.pool.anew());
        next.used = self.used.anew();
        next.former = self.former.iter().copied().chain([self.id]).collect();
        self.links.iter().for_each(|end| {
            next.add_link(&end.name, end.spec.clone());
        });
        mem::replace(self, next)
    }

    /// Returns the declaration of a publisher of this node, or `None` after it was withdrawn.
    pub(super) fn published(&self, id: PublisherId) -> Option<Arc<PublisherSpec>> {
        let source = self.sources.get(&id)?;
        source.stamper.is_some().then(|| Arc::clone(&source.publisher))
    }

    /// Handles the announcement of a neighbour behind `wire`.
    pub(super) fn find(&mut self, world: Instant, link: usize, node: NodeId, wire: usize) {
        let now = self.clock.shows(world);
        self.found(now, link, node, wire);
    }

    /// Adds a neighbour that was found behind `wire`.
    fn found(&mut self, now: Instant, link: usize, node: NodeId, wire: usize) {
        let Some(end) = self.links.get_mut(link) else { return };
        if end.hops.contains_key(&node) {
            return;
        }
        // The epoch grows with the clock, so it exceeds any earlier one on this hop.
        let tenths = now.as_nanos() / 100_000_000 + 1;
        end.link.add_hop(now, node, u32::try_from(tenths).unwrap_or(u32::MAX));
        let receiver = end.parted.remove(&node).unwrap_or_default();
        end.hops.insert(node, HopEnd { wire, receiver });
        end.touched = true;
        self.touched = true;
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
        self.touched = true;
        let Some(end) = self.links.get_mut(link) else { return };
        let Some(hop) = end.hops.get_mut(&from) else {
            self.found(now, link, from, back);
            return;
        };
        if let Some(half) = end.link.half_round_trip(from) {
            hop.receiver.set_half_round_trip(half);
        }
        let mut batch = mem::take(&mut self.batch);
        let epoch = end.link.epoch(from);
        let result = hop.receiver.handle_frame(now, epoch, frame, |item| batch.push(item));
        let heard = match result {
            Ok(heard) => Some(heard),
            Err((heard, _)) => {
                self.malformed += 1;
                heard
            }
        };
        // The messages before the header: those of a hop that it brings up wait in control as early ones. The shell, where both
        // pass through queues, handles the hop first.
        for item in batch.drain(..) {
            self.hand_over(now, from, item);
        }
        self.batch = batch;
        if let (Some(heard), Some(end)) = (heard, self.links.get_mut(link)) {
            end.touched = true;
            end.link.handle_heard(now, from, &heard);
        }
    }

    /// Records an instant of the world and returns the node's clock at that instant.
    fn now_at(&mut self, world: Instant) -> Instant {
        if self.at != world {
            (self.at, self.turns_now) = (world, 0);
        }
        self.clock.shows(world)
    }

    fn hand_over(&mut self, now: Instant, from: NodeId, item: Received) {
        match item {
            // Control itself counts malformed messages.
            Received::Control(message) => {
                let _ = self.control.handle_message(now, from, message);
            }
            Received::Sample { publisher, form, sample } => {
                self.arrived.get_mut((from, publisher, form)).whole += 1;
                let key = SourceKey { publisher, form };
                self.arrive(now, (from, key), ArrivedItem::Sample(sample));
            }
            Received::Lost { publisher, form, lost } => {
                let arrived = self.arrived.get_mut((from, publisher, form));
                arrived.lost.add(lost.reason, lost.samples);
                self.arrive(now, (from, SourceKey { publisher, form }), ArrivedItem::Lost(lost));
            }
        }
    }

    fn arrive(&mut self, now: Instant, from: (NodeId, SourceKey), item: ArrivedItem) {
        let waits = || Some(Charge::uncounted(MemoryKind::Samples));
        let (arrivals, mut outlets) = self.arrivals(now);
        arrivals.handle_item(now, from, item, waits, &mut outlets);
    }

    /// Returns the arriving streams, and all possible targets of their outputs.
    pub(super) fn arrivals(&mut self, now: Instant) -> (&mut ArrivingStreams<Port>, Outlets<'_>) {
        let (at, pool, unrouted) = (self.at, &mut self.pool, &mut self.unrouted);
        let (links, sinks, scalers) = (&mut self.links, &mut self.sinks, &mut self.scalers);
        (&mut self.arrivals, Outlets { now, at, links, sinks, scalers, pool, unrouted })
    }

    pub(super) fn outlets(&mut self, now: Instant) -> Outlets<'_> {
        self.arrivals(now).1
    }

    /// Publishes a sample of a publisher of this node. Returns its sequence number.
    pub(super) fn put(&mut self, world: Instant, index: u32, payload: Bytes) -> Option<u64> {
        let now = self.now_at(world);
        self.touched = true;
        let id = PublisherId { node: self.id, index };
        let captured = self.clock.stamp(now);
        let source = self.sources.get_mut(&id)?;
        let stamper = source.stamper.as_mut()?;
        let (spec, encoding) = (&source.publisher, source.publisher.encoding.clone());
        let kind = if spec.kind.is_video() { kind_of(&payload) } else { spec.kind };
        let sample = stamper.stamp(now, captured, kind, encoding, payload);
        let seq = sample.seq;
        self.used.note(id);
        let (at, pool, unrouted) = (self.at, &mut self.pool, &mut self.unrouted);
        let (links, sinks, scalers) = (&mut self.links, &mut self.sinks, &mut self.scalers);
        let mut outlets = Outlets { now, at, links, sinks, scalers, pool, unrouted };
        if source.ingress.outputs().is_empty() {
            outlets.count_unrouted(id, DropReason::NoRoute, 1);
        } else {
            outlets.offer(now, &mut source.ingress, sample);
        }
        Some(seq)
    }

    /// Processes all consequences of the input at this instant.
    pub(super) fn turn(&mut self, world: Instant, mut air: Air<'_>) {
        let now = self.now_at(world);
        self.touched = false;
        if self.control.poll_timeout() <= now {
            self.control.handle_timeout(now);
        }
        if self.arrivals.poll_timeout() <= now {
            let (arrivals, mut outlets) = self.arrivals(now);
            arrivals.handle_timeout(now, &mut outlets);
        }
        if let Some(used) = self.used.take(now) {
            self.control.handle_published(now, &used);
        }
        for _ in 0..ROUNDS_MAX {
            let mut moved = self.outlets(now).scale();
            for link in 0..self.links.len() {
                let due = self.links.get(link).is_some_and(|end| end.touched || end.wake <= now);
                moved |= due && self.turn_link(now, link, &mut air);
            }
            moved |= self.take_outputs(now);
            if !moved {
                return;
            }
        }
        panic!("node {} is never done at {now}", self.name);
    }

    /// Delivers samples at the receivers of a link that waited too long for missing predecessors.
    fn expire(&mut self, now: Instant, link: usize) {
        let due = |end: &LinkEnd| -> Vec<NodeId> {
            let due = end.hops.iter().filter(|(_, hop)| hop.receiver.poll_timeout() <= now);
            due.map(|(node, _)| *node).collect()
        };
        let due = self.links.get(link).map(due).unwrap_or_default();
        if due.is_empty() {
            return;
        }
        let mut batch = mem::take(&mut self.batch);
        for node in due {
            let hop = self.links.get_mut(link).and_then(|end| end.hops.get_mut(&node));
            let Some(hop) = hop else { continue };
            hop.receiver.handle_timeout(now, |item| batch.push(item));
            batch.drain(..).for_each(|item| self.hand_over(now, node, item));
        }
        self.batch = batch;
    }

    fn turn_link(&mut self, now: Instant, link: usize, air: &mut Air<'_>) -> bool {
        self.expire(now, link);
        let Some(end) = self.links.get_mut(link) else { return false };
        let mut moved = end.drain_all(now);
        end.link.handle_timeout(now);
        let capacity = end.spec.capacity;
        let events: Vec<_> = std::iter::from_fn(|| end.link.poll_event()).collect();
        for event in events {
            moved = true;
            match event {
                LinkEvent::HopUp(node) => {
                    let probes = self.links.get(link).map(|end| probes_to(&end.link, node));
                    let change = self.ways.up(node, link, capacity);
                    self.change_path(now, node, change);
                    if self.ways.link(node) == Some(link) {
                        self.control.set_probe_interval(node, probes.unwrap_or_default());
                    }
                }
                LinkEvent::HopDown(node) => {
                    let change = self.ways.down(node, link);
                    self.change_path(now, node, change);
                }
            }
        }
        self.close_retired(now, link);
        let Some(end) = self.links.get_mut(link) else { return moved };
        let LinkEnd { hops, parted, link, .. } = end;
        let departed: Vec<_> = hops.keys().copied().filter(|node| link.epoch(*node) == 0).collect();
        for node in departed {
            parted.extend(hops.remove(&node).map(|hop| (node, hop.receiver)));
        }
        while let Some(node) = end.link.poll_frame(now, &mut self.frame) {
            moved = true;
            let Some(place) = end.hops.get(&node).map(|hop| hop.wire) else { continue };
            let Some(wire) = air.wires.get_mut(place) else { continue };
            let frame = self.frame.to_bytes();
            let bytes = frame.len() as u64;
            wire.send(self.at, self.id, Item::Frame { to: node, frame });
            air.sent.push(place);
            // The two directions of a wire are adjacent.
            if let Some(back) = air.wires.get_mut(place ^ 1) {
                back.acknowledge(bytes);
            }
        }
        end.touched = moved;
        end.wake = end.next_turn();
        moved
    }

    /// Notifies control of a changed path to a neighbour. Streams on a link no longer in use are closed
    /// before streams on the new link are opened.
    fn change_path(&mut self, now: Instant, node: NodeId, change: WayChange) {
        if matches!(change, WayChange::Moved(_) | WayChange::Down) {
            self.control.handle_hop_down(now, node);
            self.take_outputs(now);
        }
        if let WayChange::Up(link) | WayChange::Moved(link) = change
            && let Some(end) = self.links.get(link)
        {
            let hop = HopInfo::new(end.name.clone(), end.spec.capacity);
            self.control.handle_hop_up(now, node, hop);
        }
    }

    fn take_outputs(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.control.poll_output() {
            moved = true;
            // All outputs of a decision are installed before others are notified of it.
            if !matches!(output, ControlOutput::Install { .. }) {
                self.install(now);
            }
            match output {
                ControlOutput::Send { hop, message } => {
                    let end = self.ways.link(hop).and_then(|link| self.links.get_mut(link));
                    if let Some(end) = end {
                        end.link.handle_control(hop, message);
                        end.touched = true;
                    }
                }
                ControlOutput::Install { source, publisher, from, entry, outputs: plans } => {
                    let wanted = WantedOutputs { source, publisher, from, entry, plans };
                    self.installer.handle_outputs(wanted);
                }
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
                ControlOutput::Excess { .. }
                | ControlOutput::Surveyed { .. }
                | ControlOutput::Changed { .. }
                | ControlOutput::InForce { .. }
                | ControlOutput::ChangeRefused { .. }
                | ControlOutput::Denied { .. }
                | ControlOutput::Used { .. }
                | ControlOutput::ChangedFor { .. }
                | ControlOutput::Unread { .. } => {}
                ControlOutput::Asked { request, from, .. } => {
                    self.control.answer(now, request, from, Bytes::from_static(b"answer"));
                }
                ControlOutput::Answered { request, node, .. } => self.answers.push((request, node)),
            }
        }
        self.install(now);
        moved
    }

    /// Returns the world's time of the node's next iteration without further input.
    pub(super) fn wake_at(&self) -> Instant {
        let links = self.links.iter().map(|end| end.wake);
        let scalers = self.scalers.values().filter_map(|s| s.busy.as_ref().map(|(at, _)| *at));
        let own = self.control.poll_timeout().min(self.used.report_at);
        let own = own.min(self.arrivals.poll_timeout());
        self.clock.world(links.chain(scalers).fold(own, Instant::min))
    }
}

/// Returns the interval of the probes to a neighbour.
fn probes_to(link: &Link, node: NodeId) -> ProbeInterval {
    let hop = link.hops().find(|(hop, _)| *hop == node);
    hop.map(|(_, hop)| hop.probe_interval()).unwrap_or_default()
}
