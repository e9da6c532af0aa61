//! The egress thread: one link's scheduler at work.
//!
//! A turn reads the clock once, takes in what was announced, lets the link decide, and hands frames
//! to the transport. Nothing in it waits but the sleep at its end.

use super::clock;
use super::engine::{Command, Commands};
use super::handle::{LinkCommand, LinkHandle, LinkSnapshot};
use super::port::{Announcements, RingEnd};
use super::rx::{HopShared, LinkRx};
use super::transport::{Sent, Transport};
use super::wake::exact_timers;
use paceline_proto::link::{Link, LinkEvent, LinkSpec};
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{DropReason, NodeId};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};

/// Frames per turn before the inputs are looked at again.
const FRAMES_PER_TURN: usize = 32;
/// How often neighbours that are not there yet are called, at first and later, and those that are.
const BEACON_FIRST: Duration = Duration::from_millis(25);
const BEACON_SEARCHING: Duration = Duration::from_millis(200);
const BEACON_FOUND: Duration = Duration::from_secs(1);
/// How often the counters are published.
const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);
/// Below this an exact wake-up costs more than it gains.
const SLEEP_MIN: Duration = Duration::from_micros(20);
/// Links up to this many bits per second send each frame at once instead of batching it.
const EXPRESS_BITS_MAX: u64 = 100_000_000;

struct StreamEnd {
    ring: RingEnd,
    /// The link had no room for all of the ring.
    stuck: bool,
}

/// The thread's state.
struct Egress {
    link: Link,
    transport: Transport,
    express: bool,
    rx: Arc<LinkRx>,
    hops: BTreeMap<NodeId, Arc<HopShared>>,
    streams: Vec<Option<StreamEnd>>,
    stuck: Vec<StreamIndex>,
    watched: Vec<StreamIndex>,
    announcements: Arc<Announcements>,
    inbox: Receiver<LinkCommand>,
    has_commands: Arc<AtomicBool>,
    engine: Commands,
    index: usize,
    snapshot: Arc<Mutex<LinkSnapshot>>,
    next_beacon: Instant,
    beacon_every: Duration,
    next_snapshot: Instant,
    frame: FrameBuf,
}

fn is_express(capacity: Option<Capacity>) -> bool {
    capacity.is_some_and(|capacity| capacity.bits_per_s() <= EXPRESS_BITS_MAX)
}

/// Starts the egress thread of a link.
pub(crate) fn start(
    index: usize,
    name: &str,
    spec: LinkSpec,
    transport: Transport,
    rx: Arc<LinkRx>,
    announcements: Arc<Announcements>,
    engine: Commands,
) -> std::io::Result<(LinkHandle, std::thread::JoinHandle<()>)> {
    let (commands, inbox) = std::sync::mpsc::channel();
    let has_commands = Arc::new(AtomicBool::new(false));
    let snapshot = Arc::new(Mutex::new(LinkSnapshot::default()));
    let express = is_express(spec.capacity);
    let mut egress = Egress {
        link: Link::new(spec),
        transport,
        express,
        rx,
        hops: BTreeMap::new(),
        streams: Vec::new(),
        stuck: Vec::new(),
        watched: Vec::new(),
        announcements: announcements.clone(),
        inbox,
        has_commands: has_commands.clone(),
        engine,
        index,
        snapshot: snapshot.clone(),
        next_beacon: Instant::ZERO,
        beacon_every: BEACON_FIRST,
        next_snapshot: Instant::ZERO,
        frame: FrameBuf::default(),
    };
    let named = std::thread::Builder::new().name(format!("paceline-{name}"));
    let thread = named.spawn(move || {
        exact_timers();
        egress.announcements.waker.adopt();
        while egress.turn() {}
        egress.transport.close();
    })?;
    Ok((LinkHandle { commands, has_commands, announcements, snapshot }, thread))
}

impl Egress {
    /// One turn; false when the node closes.
    fn turn(&mut self) -> bool {
        let now = clock::now();
        if self.has_commands.swap(false, Ordering::AcqRel) && !self.take_commands(now) {
            return false;
        }
        while let Some((node, heard)) = self.rx.heard.pop() {
            self.link.handle_heard(now, node, &heard);
            self.share_hop(node);
        }
        self.take_samples(now);
        self.link.handle_timeout(now);
        self.take_events();
        let more = self.send_frames(now);
        self.report_settled();
        self.keep_house(now);
        if !more {
            self.sleep();
        }
        true
    }

    fn take_commands(&mut self, now: Instant) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(LinkCommand::Found(node)) => self.add_hop(now, node),
                Ok(LinkCommand::Control(node, message)) => self.link.handle_control(node, message),
                Ok(LinkCommand::Open(index, spec, ring)) => {
                    if self.link.open_stream(index, spec) {
                        let place = index.0 as usize;
                        if self.streams.len() <= place {
                            self.streams.resize_with(place + 1, || None);
                        }
                        if let Some(slot) = self.streams.get_mut(place) {
                            *slot = Some(StreamEnd { ring, stuck: false });
                        }
                        self.drain(now, index);
                    }
                }
                Ok(LinkCommand::Update(index, spec)) => self.link.update_stream(now, index, spec),
                Ok(LinkCommand::Watch(index)) => self.watched.push(index),
                Ok(LinkCommand::Close(index)) => {
                    self.drain(now, index);
                    self.count_ring_drops(index);
                    self.count_left_in_ring(index);
                    self.link.close_stream(index);
                    if let Some(slot) = self.streams.get_mut(index.0 as usize) {
                        *slot = None;
                    }
                    // Whoever waited for room in it waits no more.
                    self.announcements.room.notify(usize::MAX);
                }
                Ok(LinkCommand::Capacity(capacity)) => {
                    self.link.set_capacity(now, capacity);
                    // Hops that are there keep their way: to make it anew would lose frames.
                    self.express = is_express(Some(capacity));
                }
                Ok(LinkCommand::Reopen(transport)) => {
                    let nodes: Vec<_> = self.hops.keys().copied().collect();
                    nodes.into_iter().for_each(|node| self.remove_hop(node));
                    std::mem::replace(&mut self.transport, *transport).close();
                    self.next_beacon = now;
                    self.beacon_every = Duration::ZERO;
                }
                Ok(LinkCommand::Stop) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn add_hop(&mut self, now: Instant, node: NodeId) {
        if self.hops.contains_key(&node) {
            return;
        }
        if let Err(error) = self.transport.add_hop(node, self.express) {
            tracing::warn!("no way to node {node}: {error}");
            return;
        }
        // Grows with the clock, so it is above any earlier one on this hop.
        let tenths = now.as_nanos() / 100_000_000 + 1;
        self.link.add_hop(now, node, u32::try_from(tenths).unwrap_or(u32::MAX));
        self.hops.insert(node, self.rx.hop(node));
        self.share_hop(node);
        // It must know us as soon as we know it.
        self.transport.greet();
    }

    fn remove_hop(&mut self, node: NodeId) {
        self.link.remove_hop(node);
        self.transport.remove_hop(node);
        self.rx.remove_hop(node);
        self.hops.remove(&node);
    }

    /// Tells the receiving side what it must know of the hop.
    fn share_hop(&self, node: NodeId) {
        let Some(shared) = self.hops.get(&node) else { return };
        let epoch = self.link.epoch(node);
        if shared.epoch.load(Ordering::Relaxed) != epoch {
            shared.epoch.store(epoch, Ordering::Release);
        }
        if let Some(half) = self.link.half_round_trip(node) {
            shared.half_round_trip.store(half.as_nanos(), Ordering::Relaxed);
        }
    }

    fn take_samples(&mut self, now: Instant) {
        for _ in 0..self.stuck.len() {
            if let Some(index) = self.stuck.pop() {
                if let Some(Some(end)) = self.streams.get_mut(index.0 as usize) {
                    end.stuck = false;
                }
                self.drain(now, index);
            }
        }
        while let Some(index) = self.announcements.ready.pop() {
            self.drain(now, index);
        }
    }

    /// Moves what waits in a stream's ring to the link, as far as that has room.
    fn drain(&mut self, now: Instant, index: StreamIndex) {
        let Some(Some(end)) = self.streams.get_mut(index.0 as usize) else { return };
        end.ring.shared.withdraw();
        let mut moved = false;
        loop {
            if !self.link.has_room(index) && !end.ring.consumer.is_empty() {
                if !end.stuck {
                    end.stuck = true;
                    self.stuck.insert(0, index);
                }
                break;
            }
            let Ok(sample) = end.ring.consumer.pop() else { break };
            self.link.handle_sample(now, index, sample);
            moved = true;
        }
        if moved && end.ring.has_much_room() {
            self.announcements.room.notify(usize::MAX);
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.link.poll_event() {
            let (node, up) = match event {
                LinkEvent::HopUp(node) => (node, true),
                LinkEvent::HopDown(node) => (node, false),
            };
            self.share_hop(node);
            if !up {
                self.next_beacon = Instant::ZERO;
                self.beacon_every = Duration::ZERO;
            }
            self.engine.offer(Command::Hop { link: self.index, node, up });
        }
        let forgotten: Vec<_> =
            self.hops.keys().copied().filter(|node| self.link.epoch(*node) == 0).collect();
        forgotten.into_iter().for_each(|node| self.remove_hop(node));
    }

    /// Sends what may go now; true if there may be more.
    fn send_frames(&mut self, now: Instant) -> bool {
        for _ in 0..FRAMES_PER_TURN {
            let Some(node) = self.link.poll_frame(now, &mut self.frame) else { return false };
            if self.transport.try_send(node, &mut self.frame) == Sent::Down {
                // The hop will find it lost, or go down.
                tracing::debug!("a frame for {node} found no way");
            }
            // What had no room may have it now, and the next frame should be full.
            self.take_samples(now);
        }
        true
    }

    fn report_settled(&mut self) {
        let Self { watched, streams, link, engine, index: at, .. } = self;
        watched.retain(|index| {
            let ring = streams.get(index.0 as usize).and_then(Option::as_ref);
            let settled =
                ring.is_none_or(|end| end.ring.consumer.is_empty()) && link.is_settled(*index);
            if settled {
                engine.offer(Command::Settled { link: *at, stream: *index });
            }
            !settled
        });
    }

    fn keep_house(&mut self, now: Instant) {
        if now >= self.next_beacon {
            self.transport.greet();
            let found = self.link.hops().any(|(_, hop)| hop.is_up());
            self.beacon_every = if found {
                BEACON_FOUND
            } else {
                self.beacon_every.mul_div(3, 2).clamp(BEACON_FIRST, BEACON_SEARCHING)
            };
            self.next_beacon = now + self.beacon_every;
        }
        if now >= self.next_snapshot {
            self.next_snapshot = now + SNAPSHOT_EVERY;
            self.publish_snapshot();
        }
    }

    /// Counts what never got from a stream's ring into the link.
    fn count_ring_drops(&mut self, index: StreamIndex) {
        let Some(Some(end)) = self.streams.get(index.0 as usize) else { return };
        let drops = end.ring.shared.drops.take();
        drops.iter().for_each(|(reason, n)| self.link.handle_dropped(index, reason, n));
    }

    /// Counts what waits in the ring of a stream that is being closed: the link had no room for it.
    fn count_left_in_ring(&mut self, index: StreamIndex) {
        let Some(Some(end)) = self.streams.get_mut(index.0 as usize) else { return };
        let left = std::iter::from_fn(|| end.ring.consumer.pop().ok()).count() as u64;
        self.link.handle_dropped(index, DropReason::NoRoute, left);
    }

    fn publish_snapshot(&mut self) {
        for place in 0..self.streams.len() {
            self.count_ring_drops(StreamIndex(u32::try_from(place).unwrap_or(u32::MAX)));
        }
        let (frames, wire_bytes) = self.link.sent();
        let snapshot = LinkSnapshot {
            hops: self.link.hops().map(|(node, hop)| (node, hop.is_up())).collect(),
            least_round_trip: self.link.hops().filter_map(|(_, h)| h.least_round_trip()).min(),
            frames,
            wire_bytes,
            streams: self.link.streams().map(|(_, spec, n, _)| (spec.clone(), n)).collect(),
            closed: self.link.closed(),
        };
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn sleep(&self) {
        let until = self.link.poll_timeout().min(self.next_beacon).min(self.next_snapshot);
        let now = clock::now();
        let until = until.max(now + SLEEP_MIN);
        self.announcements.waker.sleep(now, until, || {
            !self.announcements.ready.is_empty()
                || !self.rx.heard.is_empty()
                || self.has_commands.load(Ordering::Acquire)
        });
    }
}
