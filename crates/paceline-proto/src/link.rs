//! A link: one directed connection from a node, with its scheduler.
//!
//! A link queues the samples of its streams and lets its discipline choose the next one. It cuts samples into
//! segments, packs segments into frames, and sends only as many frames as the hops' credit allows. Order and
//! loss are decided here and in no layer below.
//!
//! The owner passes input through the `handle_*` methods. It then calls [`Link::poll_frame`] and
//! [`Link::poll_event`] until both return nothing, and calls again when the instant returned by
//! [`Link::poll_timeout`] has passed. The owner assigns stream indexes. They are small and dense, and may be
//! reused only after [`Link::close_stream`].

mod capacity;
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

pub use classes::{
    CLASSES_MAX, ClassError, ClassPolice, ClassTree, DEFAULT, LinkClass, Match, NAME_BYTES_MAX,
};
pub use hop::{Hop, HopChange};
pub use ledger::Fates;
pub use missed::MISSES_PER_TURN;
pub use passages::{PASSAGES_MAX, Passage};
pub use repair::MendCounters;
pub use retire::RETIRE_MAX;
pub use seats::ClassView;
pub use stream::StreamSpec;

use crate::budget::in_the_way;
use crate::carrier::{Carrier, on_wire};
use crate::ids::NodeId;
use crate::reason::{DropReason, StreamAges, StreamCounters};
use crate::sample::Sample;
use crate::wire::{STREAMS_MAX, segment};
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
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use stream::{Offer, Queued, Stream};

/// The maximum number of frames in the transport's queue. Each occupies at most one of the transport's 16
/// batches, so the transport never has to drop one.
const WINDOW_FRAMES: usize = 12;
/// The maximum number of queued control messages per hop. Further messages are dropped; the next digest
/// repairs the loss.
const CONTROL_WAITING_MAX: usize = 8_192;

/// The configuration of a link.
#[derive(Clone, Debug, Default)]
pub struct LinkSpec {
    /// The capacity on the wire; `None` disables pacing.
    pub capacity: Option<Capacity>,
    /// The scheduling discipline. With classes, the discipline of the classes that name none.
    pub policy: Policy,
    /// The classes that share the link; `None` puts all streams into one class.
    pub classes: Option<Arc<ClassTree>>,
    /// The carrier of the frames.
    pub carrier: Carrier,
}

/// An event that a link reports to its owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkEvent {
    /// The hop is up: streams to it carry samples.
    HopUp(NodeId),
    /// The hop is down or has restarted. Samples queued for it were dropped, and new ones are dropped as
    /// well. Its streams stay open and resume if the hop returns before they are closed.
    HopDown(NodeId),
}

#[derive(Debug)]
struct Neighbour {
    hop: Hop,
    control: VecDeque<Bytes>,
    control_sent: usize,
    /// Abort and close segments for the next frame.
    notices: VecDeque<Notice>,
    /// Closes that were sent but not yet acknowledged, each with its frame number.
    closes: VecDeque<(u64, Notice)>,
    /// The number of the first queued control message, on carriers that may lose frames.
    message: u64,
    /// Lost pieces of control messages.
    parts: VecDeque<Part>,
}

#[derive(Clone, Copy, Debug)]
enum Notice {
    Close(u32, u64),
    Abort(u32, u64),
}

/// A directed link from a node, with its scheduler.
#[derive(Debug)]
pub struct Link {
    spec: LinkSpec,
    frame_bytes: u64,
    pacer: Pacer,
    discipline: Discipline,
    /// The classes, if any; the discipline is then a hierarchy.
    seats: Option<Seats>,
    streams: Vec<Option<Stream>>,
    /// Streams suspended for lack of credit. May contain streams that have since resumed.
    suspended: Vec<StreamIndex>,
    /// Streams that are being replaced by others.
    retiring: Vec<StreamIndex>,
    /// The number of streams that have used each index.
    generations: Vec<u32>,
    neighbours: BTreeMap<NodeId, Neighbour>,
    /// Closes for removed neighbours, in case they return.
    parted: Parted,
    events: VecDeque<LinkEvent>,
    frames: u64,
    wire_bytes: u64,
    control_dropped: u64,
    frames_lost: u64,
    /// The summed counters of closed streams.
    closed: StreamCounters,
    /// The time of the last call of `poll_frame`.
    polled_at: Instant,
    /// Interleaves control messages with samples.
    turn: ControlTurn,
    backlog: Backlog,
    /// Lost pieces that wait for retransmission.
    repairs: Repairs,
    /// The contents of the current frame that must be sent again if it is lost.
    items: Vec<Item>,
}

impl Link {
    /// Returns a link without hops.
    #[must_use]
    pub fn new(spec: LinkSpec) -> Self {
        let frame_bytes = spec.carrier.frame_bytes(spec.capacity);
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

    /// Opens a stream. Returns `false` if the index is out of range or in use. Samples are dropped until the
    /// hop is up, so the caller need not know the hop's state.
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
            *slot = Some(Stream::new(spec, segment::stream_id(index.0, *generation), up));
            *generation = generation.wrapping_add(1);
        }
        self.seat(index);
        if up {
            self.discipline.join(index, terms);
        }
        true
    }

    /// Changes a stream's specification; queued samples stay queued.
    pub fn update_stream(&mut self, now: Instant, index: StreamIndex, spec: StreamSpec) {
        let blocked = self.blocked();
        let Some(stream) = self.stream_mut(index) else { return };
        let same =
            stream.spec.names == spec.names && stream.spec.terms(blocked) == spec.terms(blocked);
        let version = stream.version;
        stream.update(spec);
        let (changed, hop) = (stream.version != version, stream.spec.hop);
        if changed && self.is_mended(hop) {
            // The receiver waits for missing samples according to the last announcement, so it needs a new
            // one.
            if let Some(stream) = self.stream_mut(index) {
                stream.announced = false;
            }
        }
        if !same {
            self.join_anew(now, index);
        }
    }

    /// Closes a stream and drops its queued samples. Returns its final counters.
    pub fn close_stream(&mut self, index: StreamIndex) -> Option<StreamCounters> {
        let mut stream = self.streams.get_mut(index.0 as usize)?.take()?;
        self.repairs.forget(|key| key.stream == index);
        self.retiring.retain(|retiring| *retiring != index);
        self.discipline.leave(index);
        self.backlog.free_later(stream.drop_all(DropReason::NoRoute));
        // `announced` is also false while a lost announcement is repeated; the receiver may know the stream
        // all the same.
        if stream.number > 0 {
            self.notify_close(stream.spec.hop, Notice::Close(stream.id, stream.number));
        }
        self.closed.merge(&stream.counters);
        self.unseat(stream.home, &stream.counters);
        Some(stream.counters)
    }

    /// Returns the summed counters of all closed streams.
    #[must_use]
    pub const fn closed(&self) -> StreamCounters {
        self.closed
    }

    /// Returns `true` if [`Self::handle_sample`] would accept a sample now; `false` for an unknown stream.
    #[must_use]
    pub fn has_room(&self, now: Instant, index: StreamIndex) -> bool {
        self.stream(index).is_some_and(|stream| stream.has_room() || stream.head_has_expired(now))
    }

    /// Queues a sample on a stream. Returns `false` if it was dropped; the stream's counters give the reason.
    pub fn handle_sample(&mut self, now: Instant, index: StreamIndex, sample: Sample) -> bool {
        self.handle_waiting(now, now, index, sample)
    }

    /// Like [`Self::handle_sample`], for a sample that has been queued for the link since `since`.
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

    /// Counts samples that were dropped before they reached the queue, so that the stream's sums agree.
    pub fn handle_dropped(&mut self, index: StreamIndex, reason: DropReason, samples: u64) {
        if let Some(stream) = self.stream_mut(index) {
            stream.counters.offered = stream.counters.offered.saturating_add(samples);
            stream.counters.drops.add(reason, samples);
        }
    }

    /// Queues a control message for a hop. Control messages keep their order and precede data within
    /// control's share of the link. A message beyond the queue's bound is dropped and counted.
    pub fn handle_control(&mut self, node: NodeId, message: Bytes) {
        let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
        if neighbour.control.len() >= CONTROL_WAITING_MAX {
            self.control_dropped += 1;
            return;
        }
        neighbour.control.push_back(message);
    }

    /// Processes timeouts: takes down silent hops and drops samples that can no longer arrive in time.
    /// [`Self::poll_frame`] drops such samples as well.
    ///
    /// Each call starts an iteration, which drops at most [`MISSES_PER_TURN`] samples. If more remain, the
    /// next iteration is due at once, and no data is sent before it.
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
        // Forget a hop that never answers; the transport will discover it again.
        let silent = |(node, it): (&NodeId, &Neighbour)| it.hop.is_forgotten(now).then_some(*node);
        let gone: Vec<_> = self.neighbours.iter().filter_map(silent).collect();
        gone.into_iter().for_each(|node| self.part(node));
        self.backlog.begin_turn(now);
        self.open_gates(now);
        self.drop_hopeless(now);
        self.drop_missed(now);
    }

    /// Returns the next event, if any.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// Returns the latest instant for the next calls of [`Self::handle_timeout`] and [`Self::poll_frame`].
    ///
    /// The value is valid only after `poll_frame` has returned `None`. It is relative to the time of that
    /// call, so work that became due since then is due immediately.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let now = self.polled_at;
        if self.backlog.is_due() {
            return now;
        }
        let paced = self.pacer.ready_at();
        let mut next = self.discipline.next_wake(now).unwrap_or(Instant::FAR);
        // Background streams may have to wait longer than live ones.
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

    /// Returns the counters of a stream.
    #[must_use]
    pub fn counters(&self, index: StreamIndex) -> Option<StreamCounters> {
        self.stream(index).map(|stream| stream.counters)
    }

    /// Returns the ages of a stream's samples on arrival at the link and on departure.
    #[must_use]
    pub fn ages(&self, index: StreamIndex) -> Option<StreamAges> {
        self.stream(index).map(|stream| stream.ages)
    }

    /// Returns the specification of a stream.
    #[must_use]
    pub fn spec_of(&self, index: StreamIndex) -> Option<&StreamSpec> {
        self.stream(index).map(|stream| &stream.spec)
    }

    /// Returns `true` if no sample of the stream is queued, in flight or due for repair. Also `true` for an
    /// unknown stream.
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

    /// Iterates over the streams with their specifications, counters and numbers of queued samples.
    pub fn streams(
        &self,
    ) -> impl Iterator<Item = (StreamIndex, &StreamSpec, StreamCounters, usize)> {
        self.streams.iter().enumerate().filter_map(|(place, stream)| {
            let stream = stream.as_ref()?;
            Some((index_of(place), &stream.spec, stream.counters, stream.waiting()))
        })
    }

    /// Returns the number of frames sent and their bytes on the wire.
    #[must_use]
    pub const fn sent(&self) -> (u64, u64) {
        (self.frames, self.wire_bytes)
    }

    /// Returns the number of frames lost on carriers that keep order, while the hop was up.
    #[must_use]
    pub const fn frames_lost(&self) -> u64 {
        self.frames_lost
    }

    /// Returns the time for which a full frame keeps the link busy.
    #[must_use]
    pub fn frame_time(&self) -> Duration {
        self.pacer.wire_time(on_wire(self.frame_bytes))
    }

    /// Returns the longest time for which traffic already on the link can delay a stream, however early its
    /// deadline is.
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
