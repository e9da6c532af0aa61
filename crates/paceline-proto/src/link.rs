//! A link: one directed connection from a node, with its scheduler.
//!
//! A link queues the samples of its streams and lets its discipline choose the next one. It cuts samples into
//! segments, packs segments into frames, and sends only as many frames as the hops' credit allows. Order and
//! loss are decided here and in no layer below.
//!
//! The owner passes input through the `handle_*` methods. It then calls [`Link::poll_frame`] and
//! [`Link::poll_event`] until both return nothing, and calls again when the instant returned by
//! [`Link::poll_timeout`] has passed. Two ends, each a link and the [`Receiver`](crate::receive::Receiver) of the
//! other one:
//!
//! ```
//! use paceline_proto::link::{Link, LinkSpec, StreamSpec};
//! use paceline_proto::receive::{Received, Receiver};
//! use paceline_proto::wire::frame::FrameBuf;
//! use paceline_proto::{Form, Kind, NodeId, PublisherId, RawSample};
//! use paceline_sched::Instant;
//! use paceline_sched::discipline::StreamIndex;
//!
//! let (mut now, ids) = (Instant::from_millis(1_000), [NodeId(1), NodeId(2)]);
//! let mut ends = [0, 1].map(|_| (Link::new(LinkSpec::default()), Receiver::new()));
//! for (me, other) in [(0, 1), (1, 0)] {
//!     ends[me].0.add_hop(now, ids[other], 7); // the epoch of this connection, not zero
//! }
//! let (stream, publisher) = (StreamIndex(0), PublisherId { node: ids[0], index: 0 });
//! ends[0].0.open_stream(stream, StreamSpec::best_effort(publisher, ids[1], Form::FULL, Kind::Data));
//!
//! let mut received = Vec::new();
//! for round in 0..20 {
//!     if round == 10 {
//!         let sample = RawSample { published_at: now, payload: "pose".into(), ..RawSample::default() };
//!         assert!(ends[0].0.handle_sample(now, stream, sample)); // the hop is up by now
//!     }
//!     for (me, other) in [(0, 1), (1, 0)] {
//!         ends[me].0.handle_timeout(now);
//!         let mut frame = FrameBuf::default();
//!         while ends[me].0.poll_frame(now, &mut frame).is_some() {
//!             let (link, receiver) = &mut ends[other];
//!             let epoch = link.epoch(ids[me]);
//!             let heard = receiver.handle_frame(now, epoch, frame.to_bytes(), |item| {
//!                 if let Received::Sample { sample, .. } = item {
//!                     received.push(sample.payload);
//!                 }
//!             });
//!             link.handle_heard(now, ids[me], &heard.unwrap());
//!         }
//!         while ends[me].0.poll_event().is_some() {}
//!     }
//!     // A driver sleeps until new input, or until the earlier of the two instants.
//!     now = ends[0].0.poll_timeout().min(ends[1].0.poll_timeout()).max(now);
//! }
//! assert_eq!(received, ["pose"]);
//! let counters = ends[0].0.counters(stream).unwrap();
//! assert_eq!((counters.offered, counters.drops.total()), (1, 0));
//! ```
//!
//! The owner assigns stream indexes. They are small and dense, and may be reused only after [`Link::close_stream`].
//!
//! Invariant: a sample that was offered to a stream is sent, waits in its queue, or is counted with one
//! [`DropReason`].
//!
//! A link is composed of values with state and methods of their own: `pacing` (the wire, its capacity and the
//! next instant for a frame), `hops` (handshake, acknowledgement, data in flight), `repairs` (lost pieces),
//! `classes` (the tree, its class_streams and policers), `backlog` (late samples) and `streams` (the queues). The
//! decisions that need several of them stay on [`Link`], first of all the loop that fills a frame (`fill`).

mod answers;
mod backlog;
mod capacity;
mod classes;
mod contents;
mod control;
mod demoted;
mod depth;
mod expired;
mod expiry;
mod fill;
mod groups;
mod heads;
mod hop_state;
mod hops;
mod limits;
mod loss_meter;
mod measure;
mod pacing;
mod passages;
mod policing;
mod repairs;
mod resend;
mod retire;
mod retransmit;
mod seating;
mod shed;
mod stated;
mod stream;
mod streams;
mod succession;
mod windows;

pub use crate::budget::RepairShare;
pub use crate::classes::{
    CLASSES_MAX, ClassError, ClassPolice, ClassTree, DEFAULT, LinkClass, Match, NAME_BYTES_MAX,
    Unguaranteed,
};
pub use backlog::MISSES_PER_TURN;
pub use classes::ClassView;
pub use groups::GroupMembers;
pub use hops::{Fates, Hop, HopChange};
pub use passages::{PASSAGES_MAX, Passage};
pub use repairs::RepairCounters;
pub use retire::RETIRE_MAX;
pub use stream::StreamSpec;

use crate::carrier::Carrier;
use crate::ids::NodeId;
use crate::reason::{DropReason, StreamAges, StreamCounters};
use crate::sample::RawSample;
use answers::AnswerShare;
use backlog::Backlog;
use bytes::Bytes;
use classes::ClassStreams;
use contents::{Item, Notice};
use control::ControlTurn;
use depth::Depth;
use groups::Groups;
use hops::Hops;
use measure::Measure;
use paceline_sched::discipline::{Discipline, StreamIndex};
use paceline_sched::{Capacity, Duration, Instant, Policy, Scheduler};
use pacing::{Pacer, Wire};
use policing::Entry;
use repairs::Repairs;
use stated::Stated;
use std::collections::VecDeque;
use std::sync::Arc;
use stream::{Offer, Queued};
use streams::Streams;
use succession::Successions;

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

/// A directed link from a node, with its scheduler.
#[derive(Debug)]
pub struct Link {
    policy: Policy,
    pacer: Pacer,
    discipline: Discipline,
    /// The classes, if any; the discipline is then a hierarchy.
    class_streams: Option<ClassStreams>,
    streams: Streams,
    /// Streams suspended for lack of credit. May contain streams that have since resumed.
    suspended: Vec<StreamIndex>,
    /// Streams that are being replaced by others.
    retiring: Vec<StreamIndex>,
    successions: Successions,
    hops: Hops,
    events: VecDeque<LinkEvent>,
    frames: u64,
    wire_bytes: u64,
    control_dropped: u64,
    frames_lost: u64,
    /// The time of the last call of `poll_frame`.
    polled_at: Instant,
    /// Interleaves control messages with samples.
    turn: ControlTurn,
    answers: AnswerShare,
    backlog: Backlog,
    /// Lost pieces that wait for retransmission.
    repairs: Repairs,
    depth: Depth,
    /// The contents of the current frame that must be sent again if it is lost.
    items: Vec<Item>,
    /// The same for the other receivers of a frame to a multicast group.
    copied: Vec<Vec<Item>>,
    groups: Groups,
    /// Frames carry stamps and their answers, so that the neighbours can prove transit times.
    proves: bool,
    /// Frames carry stamps, so that the neighbours notice when they read them late.
    stamps: bool,
    /// The measurement of the capacity, if nobody knows it.
    measure: Option<Box<Measure>>,
    /// The stated capacity, if a measurement may contradict it.
    stated: Option<Stated>,
}

impl Link {
    /// Returns a link without hops.
    #[must_use]
    pub fn new(spec: LinkSpec) -> Self {
        let LinkSpec { capacity, policy, classes, carrier } = spec;
        let (discipline, class_streams) = classes::discipline(policy, classes.as_ref());
        Self {
            policy,
            pacer: Pacer::new(Wire::new(capacity, carrier)),
            discipline,
            class_streams,
            streams: Streams::default(),
            suspended: Vec::new(),
            retiring: Vec::new(),
            successions: Successions::default(),
            hops: Hops::default(),
            events: VecDeque::new(),
            frames: 0,
            wire_bytes: 0,
            control_dropped: 0,
            frames_lost: 0,
            polled_at: Instant::ZERO,
            turn: ControlTurn::default(),
            answers: AnswerShare::default(),
            backlog: Backlog::default(),
            repairs: Repairs::default(),
            depth: Depth::default(),
            items: Vec::new(),
            copied: Vec::new(),
            groups: Groups::default(),
            proves: false,
            stamps: false,
            measure: None,
            stated: None,
        }
    }

    /// Sets whether frames carry stamps, with which the neighbours measure the time until they read them. By default they do
    /// not.
    pub const fn set_stamping(&mut self, stamps: bool) {
        self.stamps = stamps;
    }

    /// Sets whether frames carry stamps and answers to those of the neighbours, which prove the transit times of samples. By
    /// default they do not.
    pub const fn set_proving(&mut self, proves: bool) {
        self.proves = proves;
    }

    /// Opens a stream. Returns `false` if the index is out of range or in use. Samples are dropped until the
    /// hop is up, so the caller need not know the hop's state.
    pub fn open_stream(&mut self, index: StreamIndex, spec: StreamSpec) -> bool {
        let (up, key) = (self.hops.is_up(spec.hop), (spec.publisher, spec.form));
        if !self.streams.open(index, spec, up) {
            return false;
        }
        self.groups.note_opened(index, key);
        self.note_moved(index, &Arc::default());
        self.seat(index);
        if up {
            self.join(index);
        }
        true
    }

    /// Changes a stream's specification; queued samples stay queued. If the stream gets a contract, they stay best
    /// effort, and the next sample replaces them.
    pub fn update_stream(&mut self, now: Instant, index: StreamIndex, spec: StreamSpec) {
        let home = self.streams.get(index).and_then(|stream| stream.home);
        let counted = self.counted(index);
        let (blocked, wire) = (self.blocked(home), &self.pacer.wire);
        let Some(stream) = self.streams.get_mut(index) else { return };
        let same = stream.spec.names == spec.names
            && stream.spec.terms(blocked, wire) == spec.terms(blocked, wire);
        let recounts = stream.spec.contract.is_some() != spec.contract.is_some();
        let version = stream.version;
        let gets_contract = stream.spec.contract.is_none() && spec.contract.is_some();
        let before = Arc::clone(&stream.spec.subscriptions);
        stream.update(spec);
        if gets_contract {
            stream.demote_queue(now);
        }
        let (changed, hop) = (stream.version != version, stream.spec.hop);
        if changed && self.hops.is_mended(hop) {
            // The receiver waits for missing samples according to the last announcement, so it needs a new
            // one.
            if let Some(stream) = self.streams.get_mut(index) {
                stream.announced = false;
            }
        }
        if !same {
            self.join_anew(now, index, counted);
        }
        if recounts {
            self.count_queues();
        }
        self.note_moved(index, &before);
    }

    /// Closes a stream and drops its queued samples. Returns its final counters.
    pub fn close_stream(&mut self, index: StreamIndex) -> Option<StreamCounters> {
        let mut stream = self.streams.take(index)?;
        self.groups.note_closed(index, (stream.spec.publisher, stream.spec.form));
        self.repairs.forget(|key| key.stream == index);
        self.retiring.retain(|retiring| *retiring != index);
        self.successions.remove(index);
        self.discipline.leave(index);
        self.backlog.free_later(stream.drop_all(DropReason::NoRoute));
        // `announced` is also false while a lost announcement is repeated; the receiver may know the stream
        // all the same.
        if stream.number > 0 {
            self.hops.notify_close(stream.spec.hop, Notice::Close(stream.id, stream.number));
        }
        self.streams.add_closed(&stream.counters);
        self.unseat(stream.home, &stream.counters);
        Some(stream.counters)
    }

    /// Returns the summed counters of all closed streams.
    #[must_use]
    pub const fn closed(&self) -> StreamCounters {
        self.streams.closed()
    }

    /// Returns `true` if [`Self::handle_sample`] would accept a sample now; `false` for an unknown stream.
    #[must_use]
    pub fn has_room(&self, now: Instant, index: StreamIndex) -> bool {
        self.streams
            .get(index)
            .is_some_and(|stream| stream.has_room() || stream.head_has_expired(now))
    }

    /// Returns the number of queued samples of a stream.
    #[must_use]
    pub fn queued(&self, index: StreamIndex) -> usize {
        self.streams.get(index).map_or(0, stream::Stream::waiting)
    }

    /// Queues a sample on a stream. Returns `false` if it was dropped; the stream's counters give the reason.
    pub fn handle_sample(&mut self, now: Instant, index: StreamIndex, sample: RawSample) -> bool {
        self.handle_waiting(now, now, index, sample)
    }

    /// Like [`Self::handle_sample`], for a sample that has been queued for the link since `since`.
    pub fn handle_waiting(
        &mut self,
        now: Instant,
        since: Instant,
        index: StreamIndex,
        sample: RawSample,
    ) -> bool {
        let Some(stream) = self.streams.get(index) else { return false };
        let before_contract = stream.precedes_contract(since);
        self.make_room(now, index);
        let demoted = match self.enters(now, index, &sample) {
            Entry::Conforms | Entry::Demoted if before_contract => true,
            Entry::Conforms => false,
            Entry::Demoted => true,
            Entry::Dropped => return false,
        };
        if !demoted {
            self.give_up_demoted(index);
        }
        self.count_up_to(index, &sample);
        let Some(stream) = self.streams.get_mut(index) else { return false };
        let over = stream.count_excess(now, &sample);
        let sample = Queued { since, sample, over };
        if stream.sheds() {
            let kept = self.handle_video(now, index, sample);
            if kept {
                self.count_queued(index);
            }
            return kept;
        }
        let offer = stream.offer(now, sample);
        if demoted && !matches!(offer, Offer::Dropped) {
            stream.demoted += 1;
            stream.before_contract += usize::from(before_contract);
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
        self.count_queued(index);
        true
    }

    /// Counts samples that were dropped before they reached the queue, so that the stream's sums agree.
    pub fn handle_dropped(&mut self, index: StreamIndex, reason: DropReason, samples: u64) {
        if let Some(stream) = self.streams.get_mut(index) {
            stream.counters.offered = stream.counters.offered.saturating_add(samples);
            stream.counters.drops.add(reason, samples);
        }
    }

    /// Counts samples that were offered to a stream while it was being closed, so that the sums of closed
    /// streams agree.
    pub fn handle_dropped_late(&mut self, reason: DropReason, samples: u64) {
        let mut counters = StreamCounters { offered: samples, ..StreamCounters::default() };
        counters.drops.add(reason, samples);
        self.streams.add_closed(&counters);
    }

    /// Queues a control message for a hop. Control messages precede data within control's share of the link and keep their
    /// order, but for many changes of records, which share it by node. Messages beyond the bounds of the queue are dropped
    /// and counted.
    pub fn handle_control(&mut self, node: NodeId, message: Bytes) {
        let Some(neighbour) = self.hops.get_mut(node) else { return };
        self.control_dropped += neighbour.control.push(message);
    }

    /// Processes timeouts: takes down silent hops and drops samples that can no longer arrive in time.
    /// [`Self::poll_frame`] drops such samples as well.
    ///
    /// Each call starts an iteration, which drops at most [`MISSES_PER_TURN`] samples. If more remain, the
    /// next iteration is due at once, and no data is sent before it.
    pub fn handle_timeout(&mut self, now: Instant) {
        for (node, change) in self.hops.handle_timeout(now) {
            self.apply(node, Some(change));
        }
        self.hops.lossy().into_iter().for_each(|node| self.mend(node));
        self.hops.forget_silent(now);
        self.hops.share_probes(now, &self.pacer.wire);
        self.check_stated(now);
        self.follow_capacity(now);
        self.backlog.begin_turn(now);
        self.open_gates(now);
        self.drop_hopeless(now);
        self.drop_missed(now);
        self.settle_successions();
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
        for at in waits.chain(self.class_streams.as_ref().and_then(ClassStreams::next_gate)) {
            next = next.min(at);
        }
        next.min(self.hops.next_wake(now, &self.pacer)).min(self.next_measurement())
    }

    /// Returns the counters of a stream.
    #[must_use]
    pub fn counters(&self, index: StreamIndex) -> Option<StreamCounters> {
        self.streams.get(index).map(|stream| stream.counters)
    }

    /// Returns the ages of a stream's samples on arrival at the link and on departure.
    #[must_use]
    pub fn ages(&self, index: StreamIndex) -> Option<StreamAges> {
        self.streams.get(index).map(|stream| stream.ages)
    }

    /// Returns the specification of a stream.
    #[must_use]
    pub fn spec_of(&self, index: StreamIndex) -> Option<&StreamSpec> {
        self.streams.get(index).map(|stream| &stream.spec)
    }

    /// Returns `true` if no sample of the stream is queued, in flight or due for repair. Also `true` for an
    /// unknown stream.
    #[must_use]
    pub fn is_settled(&self, index: StreamIndex) -> bool {
        self.streams.get(index).is_none_or(|stream| {
            let hop = self.hops.get(stream.spec.hop).map(|neighbour| &neighbour.hop);
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
        let streams = self.streams.iter();
        streams.map(|(index, it)| (index, &it.spec, it.counters, it.waiting()))
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
        self.pacer.wire.frame_time()
    }
}

#[cfg(test)]
#[path = "link/tests.rs"]
mod tests;
