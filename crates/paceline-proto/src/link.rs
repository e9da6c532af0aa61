//! The link: one directed way out of a node.
//!
//! It owns the queues of its streams, decides by its discipline which sample goes next, cuts it into
//! segments, puts segments into frames, and lets no more frames go than the other ends have credited.
//! Order and loss are decided here and nowhere below.
//!
//! The owner feeds it (`handle_*`), drains [`Link::poll_frame`] and [`Link::poll_event`] until both
//! have nothing, and comes back at [`Link::poll_timeout`] at the latest. Stream indexes are the
//! owner's: small, dense, used again only after [`Link::close_stream`].

mod capacity;
mod carrier;
mod classes;
mod closes;
mod control;
mod demoted;
mod excess;
mod expired;
mod fill;
mod flight;
mod gate;
mod heads;
mod hop;
mod hops;
mod ledger;
mod limits;
mod losses;
mod missed;
mod pacer;
mod passages;
mod repair;
mod resend;
mod retire;
mod seats;
mod shed;
mod sizes;
mod stream;
mod transit;
mod trips;
mod windows;

pub use carrier::Carrier;
pub use classes::{
    CLASSES_MAX, ClassError, ClassPolice, ClassTree, DEFAULT, LinkClass, Match, NAME_BYTES_MAX,
    StreamNames,
};
pub(crate) use control::in_the_way;
pub use hop::{Hop, HopChange};
pub use ledger::Fates;
pub use missed::MISSES_PER_TURN;
pub use passages::{PASSAGES_MAX, Passage};
pub use repair::MendCounters;
pub(crate) use repair::repairs_of;
pub use retire::RETIRE_MAX;
pub use seats::ClassView;
pub use stream::StreamSpec;

use crate::ids::NodeId;
use crate::reason::{DropReason, StreamAges, StreamCounters};
use crate::sample::Sample;
use crate::wire;
use bytes::Bytes;
use closes::Parted;
use control::ControlTurn;
use gate::Entry;
use ledger::{Item, Part};
use missed::Backlog;
use paceline_sched::discipline::{Discipline, StreamIndex};
use paceline_sched::{Capacity, Duration, Instant, Policy, Scheduler};
use pacer::Pacer;
use repair::Repairs;
use seats::Seats;
use sizes::{WIRE_OVERHEAD, frame_on_wire, off_wire, on_wire};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use stream::{Offer, Queued, Stream};

/// Streams that a link carries at most.
pub const STREAMS_MAX: u32 = 4_096;
/// Frames on the thinnest link hold this much all the same.
const FRAME_BYTES_MIN: u64 = 1_200;
/// How long a frame may keep the link busy.
const FRAME_TIME: Duration = Duration::from_millis(2);
/// Frames that may wait in the transport's queue. Each takes at most one of its 16 batches, so the transport never
/// has to drop one.
const WINDOW_FRAMES: usize = 12;
/// Control that may wait for a hop; what is beyond is dropped and mended by the next digest.
const CONTROL_WAITING_MAX: usize = 8_192;

/// How a link is set up.
#[derive(Clone, Debug, Default)]
pub struct LinkSpec {
    /// What it carries, on the wire; without one it takes whatever comes.
    pub capacity: Option<Capacity>,
    /// Its discipline; with classes that of those that name none.
    pub policy: Policy,
    /// Classes that share the link; without them all streams are in one.
    pub classes: Option<Arc<ClassTree>>,
    /// What carries its frames.
    pub carrier: Carrier,
}

/// What a link tells its owner beside frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkEvent {
    /// The streams to this hop carry samples.
    HopUp(NodeId),
    /// The hop is gone, or has lost what it knew. What waited for it was dropped, and so is what
    /// comes; its streams stay until they are closed and go on should the hop come up before.
    HopDown(NodeId),
}

#[derive(Debug)]
struct Neighbour {
    hop: Hop,
    control: VecDeque<Bytes>,
    control_sent: usize,
    /// Aborts and closes for the next frame.
    notices: VecDeque<Notice>,
    /// Closes that were sent, each with the number of its frame, until they are acknowledged.
    closes: VecDeque<(u64, Notice)>,
    /// The number of the control message at the front, where frames may be lost.
    message: u64,
    /// Pieces of control that were lost.
    parts: VecDeque<Part>,
}

#[derive(Clone, Copy, Debug)]
enum Notice {
    Close(u32, u64),
    Abort(u32, u64),
}

/// One directed way out of a node, with its scheduler.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    frame_bytes: u64,
    pacer: Pacer,
    discipline: Discipline,
    /// The classes, if there are any; then the discipline is a hierarchy.
    seats: Option<Seats>,
    streams: Vec<Option<Stream>>,
    /// Streams that were set aside for want of credit, and maybe some that no longer are.
    suspended: Vec<StreamIndex>,
    /// Streams whose place others take.
    retiring: Vec<StreamIndex>,
    /// How many streams each index has had.
    generations: Vec<u32>,
    neighbours: BTreeMap<NodeId, Neighbour>,
    /// Closes for neighbours that are gone, in case they return.
    parted: Parted,
    events: VecDeque<LinkEvent>,
    frames: u64,
    wire_bytes: u64,
    control_dropped: u64,
    frames_lost: u64,
    /// What became of the samples of streams that are closed.
    closed: StreamCounters,
    /// When a frame was last asked for.
    polled_at: Instant,
    /// Control among samples.
    turn: ControlTurn,
    backlog: Backlog,
    /// What was lost and is to be sent again.
    repairs: Repairs,
    /// What the frame at hand has to say again if it is lost.
    items: Vec<Item>,
}

impl Link {
    /// A link without hops.
    #[must_use]
    pub fn new(spec: LinkSpec) -> Self {
        let frame_bytes = capacity::frame_bytes(spec.capacity, spec.carrier);
        let (discipline, seats) = seats::discipline(spec.policy, spec.classes.as_ref());
        Self {
            frame_bytes,
            pacer: Pacer::new(spec.capacity, frame_bytes),
            spec,
            discipline,
            seats,
            streams: Vec::new(),
            suspended: Vec::new(),
            retiring: Vec::new(),
            generations: Vec::new(),
            neighbours: BTreeMap::new(),
            parted: Parted::default(),
            events: VecDeque::new(),
            frames: 0,
            wire_bytes: 0,
            control_dropped: 0,
            frames_lost: 0,
            closed: StreamCounters::default(),
            polled_at: Instant::ZERO,
            turn: ControlTurn::default(),
            backlog: Backlog::default(),
            repairs: Repairs::default(),
            items: Vec::new(),
        }
    }

    /// Opens a stream; `false` if the index is out of range or in use. While its hop is not up what
    /// comes is dropped, so it does not matter what the owner knows of that already.
    pub fn open_stream(&mut self, index: StreamIndex, spec: StreamSpec) -> bool {
        let up = self.neighbours.get(&spec.hop).is_some_and(|n| n.hop.is_up());
        let place = index.0 as usize;
        if index.0 >= STREAMS_MAX || self.stream(index).is_some() {
            return false;
        }
        if self.streams.len() <= place {
            self.streams.resize_with(place + 1, || None);
            self.generations.resize(place + 1, 0);
        }
        let terms = spec.terms(self.blocked());
        if let (Some(slot), Some(generation)) =
            (self.streams.get_mut(place), self.generations.get_mut(place))
        {
            *slot = Some(Stream::new(spec, wire::segment::stream_id(index.0, *generation), up));
            *generation = generation.wrapping_add(1);
        }
        self.seat(index);
        if up {
            self.discipline.join(index, terms);
        }
        true
    }

    /// Gives a stream another contract; what waits stays.
    pub fn update_stream(&mut self, now: Instant, index: StreamIndex, spec: StreamSpec) {
        let blocked = self.blocked();
        let Some(stream) = self.stream_mut(index) else { return };
        let same =
            stream.spec.names == spec.names && stream.spec.terms(blocked) == spec.terms(blocked);
        let version = stream.version;
        stream.update(spec);
        let (changed, hop) = (stream.version != version, stream.spec.hop);
        if changed && self.is_mended(hop) {
            // The other end holds what is missing by what it was told.
            if let Some(stream) = self.stream_mut(index) {
                stream.announced = false;
            }
        }
        if !same {
            self.join_anew(now, index);
        }
    }

    /// Closes a stream; what waits is dropped. Returns its final counters.
    pub fn close_stream(&mut self, index: StreamIndex) -> Option<StreamCounters> {
        let mut stream = self.streams.get_mut(index.0 as usize)?.take()?;
        self.repairs.forget(|key| key.stream == index);
        self.retiring.retain(|retiring| *retiring != index);
        self.discipline.leave(index);
        self.backlog.free_later(stream.drop_all(DropReason::NoRoute));
        // Also one that was to be announced again, after a loss: the other end knows it.
        if stream.number > 0 {
            self.notify_close(stream.spec.hop, Notice::Close(stream.id, stream.number));
        }
        self.closed.merge(&stream.counters);
        self.unseat(stream.home, &stream.counters);
        Some(stream.counters)
    }

    /// What became of the samples of streams that are closed, all together.
    #[must_use]
    pub const fn closed(&self) -> StreamCounters {
        self.closed
    }

    /// True if [`Self::handle_sample`] would take another sample; false for an unknown stream.
    #[must_use]
    pub fn has_room(&self, now: Instant, index: StreamIndex) -> bool {
        self.stream(index).is_some_and(|stream| stream.has_room() || stream.head_has_expired(now))
    }

    /// A sample for a stream; `false` if it was not taken (counted as queue full).
    pub fn handle_sample(&mut self, now: Instant, index: StreamIndex, sample: Sample) -> bool {
        self.handle_waiting(now, now, index, sample)
    }

    /// As [`Self::handle_sample`], for a sample that has waited for the link since `since`.
    pub fn handle_waiting(
        &mut self,
        now: Instant,
        since: Instant,
        index: StreamIndex,
        sample: Sample,
    ) -> bool {
        if self.stream(index).is_none() {
            return false;
        }
        self.make_room(now, index);
        let demoted = match self.enters(now, index, &sample) {
            Entry::Conforms => false,
            Entry::Demoted => true,
            Entry::Dropped => return false,
        };
        if !demoted {
            self.give_up_demoted(index);
        }
        self.count_up_to(index, &sample);
        let Some(stream) = self.stream_mut(index) else { return false };
        stream.count_excess(now, &sample);
        let sample = Queued { since, sample };
        if stream.sheds() {
            return self.handle_video(now, index, sample);
        }
        let offer = stream.offer(now, sample);
        if demoted && !matches!(offer, Offer::Dropped) {
            stream.demoted += 1;
        }
        match offer {
            Offer::Waits => {}
            Offer::IsHead => self.announce_head(now, index),
            Offer::ReplacedHead => self.replace_head(now, index),
            Offer::Dropped => {
                self.count_back(index);
                return false;
            }
        }
        true
    }

    /// Counts a sample that never reached the queue, so that the sums agree.
    pub fn handle_dropped(&mut self, index: StreamIndex, reason: DropReason, samples: u64) {
        if let Some(stream) = self.stream_mut(index) {
            stream.counters.offered = stream.counters.offered.saturating_add(samples);
            stream.counters.drops.add(reason, samples);
        }
    }

    /// A control message for a hop, in order and ahead of all data within control's share.
    pub fn handle_control(&mut self, node: NodeId, message: Bytes) {
        let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
        if neighbour.control.len() >= CONTROL_WAITING_MAX {
            self.control_dropped += 1;
            return;
        }
        neighbour.control.push_back(message);
    }

    /// What time has changed: hops that were silent for too long go down, and samples that can no
    /// longer arrive in time are dropped. [`Self::poll_frame`] does the latter by itself.
    ///
    /// A turn begins: until the next call at most [`MISSES_PER_TURN`] samples are given up. What is
    /// beyond waits for the next turn, which is due at once, and data waits with it.
    pub fn handle_timeout(&mut self, now: Instant) {
        let silent: Vec<_> = self
            .neighbours
            .iter_mut()
            .filter_map(|(node, neighbour)| Some((*node, neighbour.hop.handle_timeout(now)?)))
            .collect();
        for (node, change) in silent {
            self.apply(node, Some(change));
        }
        if self.neighbours.values().any(|neighbour| neighbour.hop.is_lossy()) {
            let nodes: Vec<_> = self.neighbours.keys().copied().collect();
            nodes.into_iter().for_each(|node| self.mend(node));
        }
        // One that never answers is forgotten; the transport will find it again.
        let silent = |(node, it): (&NodeId, &Neighbour)| it.hop.is_forgotten(now).then_some(*node);
        let gone: Vec<_> = self.neighbours.iter().filter_map(silent).collect();
        gone.into_iter().for_each(|node| self.part(node));
        self.backlog.begin_turn(now);
        self.open_gates(now);
        self.drop_hopeless(now);
        self.drop_missed(now);
    }

    /// The next event, if there is one.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`] and [`Self::poll_frame`] next if nothing happens before.
    /// Only meaningful after `poll_frame` had nothing; it counts from then, so that what has become due
    /// since is due at once and not forgotten.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let now = self.polled_at;
        if self.backlog.is_due() {
            return now;
        }
        let paced = self.pacer.ready_at();
        let mut next = self.discipline.next_wake(now).unwrap_or(Instant::FAR);
        // The background may have to wait for longer than what is live.
        let waits = [paced, self.pacer.free_at()].into_iter().filter(|at| *at > now);
        for at in waits.chain(self.next_gate()) {
            next = next.min(at);
        }
        for neighbour in self.neighbours.values() {
            next =
                next.min(neighbour.hop.next_frame().max(paced)).min(neighbour.hop.next_timeout());
            next = next.min(neighbour.hop.next_loss(now));
            if neighbour.may_send_control(now) {
                next = next.min(self.pacer.control_ready_at().max(paced));
            }
        }
        next
    }

    /// The counters of a stream.
    #[must_use]
    pub fn counters(&self, index: StreamIndex) -> Option<StreamCounters> {
        self.stream(index).map(|stream| stream.counters)
    }

    /// How old the samples of a stream were when they came to the link and when they left it.
    #[must_use]
    pub fn ages(&self, index: StreamIndex) -> Option<StreamAges> {
        self.stream(index).map(|stream| stream.ages)
    }

    /// What a stream is.
    #[must_use]
    pub fn spec_of(&self, index: StreamIndex) -> Option<&StreamSpec> {
        self.stream(index).map(|stream| &stream.spec)
    }

    /// True if nothing of a stream waits or is on its way any more; also for an unknown stream.
    #[must_use]
    pub fn is_settled(&self, index: StreamIndex) -> bool {
        self.stream(index).is_none_or(|stream| {
            let hop = self.neighbours.get(&stream.spec.hop).map(|neighbour| &neighbour.hop);
            let settled = |seq| hop.is_none_or(|hop| hop.has_settled(seq));
            stream.waiting() == 0
                && stream.last_frame.is_none_or(settled)
                && !self.repairs.has_any_of(index)
        })
    }

    /// Every stream with its specification, counters and number of waiting samples.
    pub fn streams(
        &self,
    ) -> impl Iterator<Item = (StreamIndex, &StreamSpec, StreamCounters, usize)> {
        self.streams.iter().enumerate().filter_map(|(place, stream)| {
            let stream = stream.as_ref()?;
            Some((index_of(place), &stream.spec, stream.counters, stream.waiting()))
        })
    }

    /// Frames sent, and bytes sent as they count on the wire.
    #[must_use]
    pub const fn sent(&self) -> (u64, u64) {
        (self.frames, self.wire_bytes)
    }

    /// Frames that never arrived although their carrier keeps frames in order and was up.
    #[must_use]
    pub const fn frames_lost(&self) -> u64 {
        self.frames_lost
    }

    /// How long a frame at full size keeps the link busy.
    #[must_use]
    pub fn frame_time(&self) -> Duration {
        self.pacer.wire_time(on_wire(self.frame_bytes))
    }

    /// How long what may go before a stream, however soon it is due, keeps it waiting.
    fn blocked(&self) -> Duration {
        let bytes = |capacity| in_the_way(self.spec.policy, capacity, self.spec.carrier);
        self.pacer.wire_time(self.spec.capacity.map_or(0, bytes))
    }

    fn stream(&self, index: StreamIndex) -> Option<&Stream> {
        self.streams.get(index.0 as usize)?.as_ref()
    }

    fn stream_mut(&mut self, index: StreamIndex) -> Option<&mut Stream> {
        self.streams.get_mut(index.0 as usize)?.as_mut()
    }
}

fn index_of(place: usize) -> StreamIndex {
    StreamIndex(u32::try_from(place).unwrap_or(u32::MAX))
}

#[cfg(test)]
#[path = "link/tests.rs"]
mod tests;
