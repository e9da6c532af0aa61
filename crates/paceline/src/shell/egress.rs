//! The egress thread, which runs one link's scheduler.
//!
//! An iteration reads the clock once, takes announced samples, lets the link decide, and passes
//! frames to the transport. Only the sleep at its end blocks.

mod broken;
mod intake;
mod measured;
mod multicast;
mod traces;

use super::clock;
use super::command::{Command, Commands};
use super::depth::HostDepth;
use super::handle::{HopSnapshot, LinkCommand, LinkHandle, LinkSnapshot, StreamSnapshot};
use super::port::Announcements;
use super::realtime::Role;
use super::rx::{HopShared, LinkRx, NeighbourInput};
use super::transport::{Multicast, Sent, Transport};
use super::vitals::{Pulse, Vitals};
use super::wake::exact_timers;
use crate::config::LinkConfig;
use broken::Broken;
use intake::Intake;
use multicast::Following;
use paceline_node::capacity::CapacityFollower;
use paceline_node::install::StreamPlace;
use paceline_proto::link::{Link, LinkEvent, LinkSpec, RETIRE_MAX};
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{NodeId, ProbeInterval};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use traces::Traces;

/// The limit of frames per iteration, before the inputs are read again.
const FRAMES_PER_TURN: usize = 32;
/// The limit of received headers per iteration. A peer that sends many must not keep the link from
/// sending.
const HEARD_PER_TURN: usize = 1_024;
/// The interval of looking for connected peers whose hop was forgotten.
const FIND_EVERY: Duration = Duration::from_millis(250);
/// The interval between published snapshots of the counters.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);
/// Shorter sleeps cost more than they gain.
const SLEEP_MIN: Duration = Duration::from_micros(20);

struct Egress {
    link: Link,
    transport: Transport,
    rx: Arc<LinkRx>,
    hops: BTreeMap<NodeId, Arc<HopShared>>,
    /// The hops without a connection, and since when.
    unconnected: BTreeMap<NodeId, Instant>,
    /// True for the link between the processes of a host.
    is_host: bool,
    intake: Intake,
    watched: Vec<StreamIndex>,
    /// Streams that were replaced, and the latest time to close them.
    retiring: Vec<(StreamIndex, Instant)>,
    announcements: Arc<Announcements>,
    inbox: Receiver<LinkCommand>,
    has_commands: Arc<AtomicBool>,
    engine: Commands,
    index: usize,
    snapshot: Arc<Mutex<LinkSnapshot>>,
    next_find: Instant,
    next_snapshot: Instant,
    frame: FrameBuf,
    traces: Traces,
    name: String,
    /// The number of lost frames on an ordered transport that was logged last.
    frames_lost: u64,
    pulse: Arc<Pulse>,
    broken: Broken,
    /// The capacity for admission.
    capacity: CapacityFollower,
    following: Following,
    /// The contracted samples that wait on this node, and those of this link among them.
    host_depth: Arc<HostDepth>,
    depth: u64,
}

/// Starts the egress thread of a link.
pub(crate) fn start(
    config: &LinkConfig,
    spec: LinkSpec,
    transport: Transport,
    rx: Arc<LinkRx>,
    announcements: Arc<Announcements>,
    (engine, vitals): (&Commands, &Arc<Vitals>),
) -> std::io::Result<(LinkHandle, std::thread::JoinHandle<()>)> {
    let name = format!("paceline-{}", config.name);
    let (commands, inbox) = std::sync::mpsc::channel();
    let has_commands = Arc::new(AtomicBool::new(false));
    let snapshot = Arc::new(Mutex::new(LinkSnapshot::default()));
    let handle = LinkHandle { commands, has_commands, announcements, snapshot };
    let mut link = Link::new(spec);
    link.set_stamping(true);
    if let Some(setting) = config.measurable() {
        link.measure(setting);
    }
    let mut egress = Egress {
        link,
        transport,
        hops: BTreeMap::new(),
        unconnected: BTreeMap::new(),
        is_host: config.is_host(),
        intake: Intake::new(handle.announcements.clone()),
        watched: Vec::new(),
        retiring: Vec::new(),
        announcements: handle.announcements.clone(),
        inbox,
        has_commands: handle.has_commands.clone(),
        engine: engine.clone(),
        index: rx.link(),
        host_depth: rx.depth(),
        depth: 0,
        rx,
        snapshot: handle.snapshot.clone(),
        next_find: Instant::ZERO,
        next_snapshot: Instant::ZERO,
        frame: FrameBuf::default(),
        traces: Traces::default(),
        name: config.name.clone(),
        frames_lost: 0,
        pulse: vitals.pulse(&name),
        broken: Broken::default(),
        capacity: CapacityFollower::new(config.measured),
        following: Following::default(),
    };
    let vitals = vitals.clone();
    let named = std::thread::Builder::new().name(name.clone());
    let thread = named.spawn(move || {
        exact_timers();
        vitals.enter(Role::Link);
        egress.announcements.waker.adopt();
        vitals.guard(&name, || while egress.turn() {});
        egress.pulse.rest(Instant::FAR);
        vitals.guard(&name, || egress.close());
    })?;
    Ok((handle, thread))
}

impl Egress {
    /// Runs one iteration; returns false if the node closes.
    fn turn(&mut self) -> bool {
        let now = clock::now();
        self.pulse.begin(now);
        if self.has_commands.swap(false, Ordering::AcqRel) && !self.take_commands(now) {
            return false;
        }
        self.link.set_proving(self.rx.proves_ages());
        for _ in 0..HEARD_PER_TURN {
            let Some((node, heard)) = self.rx.heard.pop() else { break };
            if !self.hops.contains_key(&node) {
                self.take_joined(now);
            }
            self.link.handle_heard(now, node, &heard);
            self.share_hop(node);
        }
        self.take_joined(now);
        self.follow_groups();
        self.intake.begin_turn();
        self.intake.take(now, &mut self.link);
        self.note_depth();
        self.link.handle_timeout(now);
        self.take_events();
        self.report_capacity(now);
        let more = self.send_frames();
        self.note_depth();
        self.report_settled();
        self.close_retired(now);
        self.keep_house(now);
        if !more && !self.link.is_behind() && !self.intake.has_more() {
            self.sleep();
        }
        true
    }

    fn take_commands(&mut self, now: Instant) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(LinkCommand::Control(node, message)) => self.link.handle_control(node, message),
                Ok(LinkCommand::Open(index, spec, ring)) => {
                    if self.link.open_stream(index, spec) {
                        self.intake.open(index, ring);
                    }
                    self.following.streams_changed = true;
                }
                Ok(LinkCommand::Update(index, spec)) => self.link.update_stream(now, index, spec),
                Ok(LinkCommand::Watch(index)) => self.watched.push(index),
                Ok(LinkCommand::Retire(index)) => {
                    self.link.retire_stream(now, index);
                    self.retiring.push((index, now + RETIRE_MAX));
                }
                Ok(LinkCommand::HandOver(index)) => {
                    self.link.hand_over(index);
                    self.retiring.push((index, now + self.link.hand_over_max(index)));
                }
                Ok(LinkCommand::Close(index)) => self.close_stream(now, index),
                Ok(LinkCommand::Capacity(capacity)) => {
                    self.link.set_capacity(now, capacity);
                }
                Ok(LinkCommand::Trace(publisher)) => {
                    self.traces.keep(now, publisher, &mut self.link);
                }
                Ok(LinkCommand::Classes(classes)) => self.link.set_classes(now, classes),
                Ok(LinkCommand::Reopen(transport)) => {
                    let nodes: Vec<_> = self.hops.keys().copied().collect();
                    nodes.into_iter().for_each(|node| self.remove_hop(node));
                    std::mem::replace(&mut self.transport, *transport).close_aside();
                    self.next_find = now;
                }
                Ok(LinkCommand::Attach(stream)) => self.transport.attach(stream),
                Ok(LinkCommand::Stop) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn close_stream(&mut self, now: Instant, index: StreamIndex) {
        self.intake.close(now, index, &mut self.link);
        self.link.close_stream(index);
        self.following.streams_changed = true;
        // Publishers that wait for room in the stream must stop waiting.
        self.announcements.room.notify(usize::MAX);
    }

    fn is_lost(&self) -> bool {
        !self.link.hops().any(|(_, hop)| hop.is_up())
    }

    /// Closes the transport.
    fn close(self) {
        let lost = self.is_lost();
        // Without a neighbour there are no frames to flush.
        if lost { self.transport.close_aside() } else { self.transport.close() }
    }

    fn add_hop(&mut self, now: Instant, node: NodeId) {
        let Some(shared) = self.rx.hop(node).filter(|_| !self.hops.contains_key(&node)) else {
            return;
        };
        self.link.add_hop(now, node, shared.epoch.load(Ordering::Acquire));
        self.link.expect_round_trip(now, node, self.transport.met_within(node).into());
        self.hops.insert(node, shared);
        self.share_hop(node);
        tracing::debug!("link {}: node {node} found", self.index);
    }

    /// Adds hops for new neighbours.
    fn take_joined(&mut self, now: Instant) {
        while let Some(node) = self.rx.joined.pop() {
            self.add_hop(now, node);
        }
    }

    fn remove_hop(&mut self, node: NodeId) {
        tracing::debug!("link {}: node {node} removed", self.index);
        self.link.remove_hop(node);
        self.rx.remove_hop(node);
        self.hops.remove(&node);
    }

    /// Removes hops that have had no connection for as long as a hop may be silent on a link that is not slow. On a slow link
    /// their silence would be noticed much later. A process of this host whose connection has ended has ended too.
    fn remove_unconnected(&mut self, now: Instant) {
        let Self { hops, unconnected, transport, link, .. } = self;
        let lacks = |node: &NodeId| !transport.is_connected(*node);
        unconnected.retain(|node, _| hops.contains_key(node) && lacks(node));
        for node in hops.keys().copied().filter(lacks) {
            unconnected.entry(node).or_insert(now);
        }
        // Strangers have lost nothing.
        let was_up: BTreeSet<_> =
            link.hops().filter(|(_, hop)| hop.was_up()).map(|(node, _)| node).collect();
        let is_host = self.is_host;
        let silence = |node| {
            let was_up = was_up.contains(node) && !is_host;
            if was_up { ProbeInterval::SHORTEST.silence_max() } else { Duration::ZERO }
        };
        let gone = unconnected.iter().filter(|(node, since)| now.since(**since) >= silence(node));
        let gone: Vec<NodeId> = gone.map(|(node, _)| *node).collect();
        gone.into_iter().for_each(|node| self.remove_hop(node));
    }

    /// Updates the hop state that the receiving side shares.
    fn share_hop(&self, node: NodeId) {
        let Some(shared) = self.hops.get(&node) else { return };
        let epoch = self.link.epoch(node);
        if epoch == 0 {
            return;
        }
        if shared.epoch.load(Ordering::Relaxed) != epoch {
            shared.epoch.store(epoch, Ordering::Release);
        }
        if let Some(half) = self.link.half_round_trip(node) {
            shared.half_round_trip.store(half.as_nanos(), Ordering::Relaxed);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.link.poll_event() {
            let (node, up) = match event {
                LinkEvent::HopUp(node) => (node, true),
                LinkEvent::HopDown(node) => (node, false),
            };
            let state = if up { "up" } else { "down" };
            tracing::debug!("link {}: the hop to node {node} is {state}", self.index);
            self.share_hop(node);
            if up {
                self.transport.prove(node);
            }
            let peer = self.transport.peer_name(node).filter(|_| up);
            self.rx.give_engine(node, NeighbourInput::Hop { link: self.index, up, peer });
        }
        let forgotten: Vec<_> =
            self.hops.keys().copied().filter(|node| self.link.epoch(*node) == 0).collect();
        forgotten.into_iter().for_each(|node| self.remove_hop(node));
    }

    /// Sends the frames that are due; returns true if there may be more.
    fn send_frames(&mut self) -> bool {
        for _ in 0..FRAMES_PER_TURN {
            // Samples were published since the iteration began. A stamp before them would make them too old.
            let now = clock::now();
            let Some(node) = self.link.poll_frame(now, &mut self.frame) else { return false };
            if self.transport.try_send(node, &self.frame) == Sent::Down {
                // The loss detection of the hop reports it, or the hop times out.
                tracing::debug!("a frame for node {node} has no route");
            }
            // Samples that had no room may fit now, and the next frame should be full.
            self.intake.take(now, &mut self.link);
        }
        true
    }

    fn report_settled(&mut self) {
        let Self { watched, intake, link, engine, index: at, .. } = self;
        watched.retain(|index| {
            let settled = intake.is_empty(*index) && link.is_settled(*index);
            if settled {
                engine.offer(Command::Settled(StreamPlace { link: *at, index: *index }));
            }
            !settled
        });
    }

    /// Closes retired streams that are empty or have reached their time limit.
    fn close_retired(&mut self, now: Instant) {
        for (index, until) in std::mem::take(&mut self.retiring) {
            let over = self.intake.is_spent(index) && self.link.is_settled(index) || now >= until;
            if over {
                self.close_stream(now, index);
            }
            // The engine's queue may be full. Keep the entry and report again: the index is in use
            // until then.
            let reported = over
                && self.engine.offer(Command::Retired(StreamPlace { link: self.index, index }));
            if !reported {
                self.retiring.push((index, until));
            }
        }
    }

    /// Adds this link's queues to those of the node.
    fn note_depth(&mut self) {
        let more = self.link.depth().saturating_sub(self.depth);
        let exact = more > 0 && self.host_depth.is_greatest_with(more);
        let now = if exact { self.link.count_depth() } else { self.link.depth() };
        self.host_depth.replace(&mut self.depth, now);
    }

    fn keep_house(&mut self, now: Instant) {
        if now >= self.next_find {
            self.next_find = now + FIND_EVERY;
            self.leave_out_losing();
            self.transport.find();
            self.remove_unconnected(now);
            for (node, hop) in self.link.hops() {
                self.transport.set_interval(node, hop.probe_interval());
                if hop.is_up() {
                    self.transport.prove(node);
                }
            }
            self.transport.close_unproven();
        }
        if now >= self.next_snapshot {
            self.next_snapshot = now + SNAPSHOT_EVERY;
            self.publish_snapshot(now);
        }
    }

    fn publish_snapshot(&mut self, now: Instant) {
        self.intake.count_drops(&mut self.link);
        let lost = self.link.frames_lost();
        if lost > self.frames_lost {
            tracing::error!(
                "link '{}': {lost} frames were lost although the transport is reliable and up; the \
                 peer counts their samples as link_loss",
                self.name
            );
            self.frames_lost = lost;
        }
        let (frames, wire_bytes) = self.link.sent();
        self.broken.look(now, &self.link);
        let up = || self.link.hops().filter(|(_, hop)| hop.is_up());
        let present = up().filter_map(|(_, hop)| hop.present_round_trip());
        let present = present.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)));
        let fates = self.link.hops().map(|(_, hop)| hop.fates());
        let snapshot = LinkSnapshot {
            at: now,
            hops: up().map(|(node, hop)| HopSnapshot::new(node, hop)).collect(),
            least_round_trip: self.link.hops().filter_map(|(_, h)| h.least_round_trip()).min(),
            present,
            lost: fates.map(|fates| fates.lost.saturating_sub(fates.mistaken)).sum(),
            frames,
            groups: self.transport.multicast().map(Multicast::views).unwrap_or_default(),
            able: self.transport.multicast().map(Multicast::able).unwrap_or_default(),
            frames_lost: self.link.frames_lost(),
            wire_bytes,
            estimate: self.link.estimate(),
            greatest_depth: self.link.greatest_depth(),
            streams: self
                .link
                .streams()
                .map(|(index, spec, counters, _)| StreamSnapshot {
                    spec: spec.clone(),
                    counters,
                    ages: self.link.ages(index).unwrap_or_default(),
                    broken: self.broken.last(index),
                })
                .collect(),
            traced: self.traces.look(now, &mut self.link),
            closed: self.link.closed(),
            classes: self.link.classes(),
            repairs: self.link.repair_counters(),
        };
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn sleep(&self) {
        let until = self.link.poll_timeout().min(self.next_find).min(self.next_snapshot);
        let now = clock::now();
        let until = until.max(now + SLEEP_MIN);
        self.pulse.rest(until);
        self.announcements.waker.sleep(now, until, || {
            !self.announcements.ready.is_empty()
                || !self.rx.heard.is_empty()
                || !self.rx.joined.is_empty()
                || self.has_commands.load(Ordering::Acquire)
        });
    }
}
