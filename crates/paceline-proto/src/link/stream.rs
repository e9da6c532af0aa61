//! The queue of a stream on a link.

mod allowance;
mod spec;

pub use spec::StreamSpec;

use super::classes::Home;
use super::passages::Passages;
use crate::budget::counted;
use crate::reason::{DropReason, StreamAges, StreamCounters};
use crate::sample::{Kind, RawSample};
use crate::video::DecodeGate;
use allowance::Allowance;
use bytes::Bytes;
use core::ops::Deref;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The number of given-up samples that a stream remembers; more than the frames in flight can refer to.
const GIVEN_UP_MAX: usize = 128;
/// The initial capacity of a queue, in samples.
const ROOM: usize = 64;

/// Returns the bytes of a sample on the wire, as admission counts them.
pub(super) fn on_wire(sample: &RawSample) -> u64 {
    u64::try_from(counted(sample.payload.len() as u128)).unwrap_or(u64::MAX)
}

/// A sample in a stream's queue.
#[derive(Debug)]
pub(super) struct Queued {
    /// The time at which the link, or the ring in front of it, accepted the sample.
    pub(super) since: Instant,
    pub(super) sample: RawSample,
    /// The time that the stream must wait for its bytes beyond the contract.
    pub(super) over: Duration,
}

impl Deref for Queued {
    type Target = RawSample;

    fn deref(&self) -> &RawSample {
        &self.sample
    }
}

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) spec: StreamSpec,
    /// Its number on the wire.
    pub(super) id: u32,
    /// The number of the frame that ended the last sent sample.
    pub(super) last_frame: Option<u64>,
    pub(super) queue: VecDeque<Queued>,
    pub(super) queue_bytes: usize,
    /// The bytes of the queue on the wire, as admission counts them.
    pub(super) queue_on_wire: u64,
    /// The number of demoted samples, which are the last in the queue (`demoted.rs`).
    pub(super) demoted: usize,
    /// The number of samples from before the contract, which are the first in the queue.
    pub(super) before_contract: usize,
    /// The instant at which the stream got its contract, if it was best effort before.
    pub(super) contract_since: Instant,
    pub(super) limit: usize,
    /// Admits new samples that are decodable once all queued ones are sent.
    pub(super) gate: DecodeGate,
    /// The value of `counters.offered` when a sample last missed its deadline.
    pub(super) last_miss: Option<u64>,
    /// The head has missed its deadline here and stays queued, or a recent head did.
    pub(super) late: bool,
    /// A window was violated since the stream became short of time.
    pub(super) violated: bool,
    /// The arrival time of the head if the queue was empty then.
    pub(super) head_came: Option<Instant>,
    /// Sent bytes of the head.
    pub(super) head_sent: usize,
    /// Sending of the head has begun. Differs from `head_sent > 0` for an empty sample.
    pub(super) head_begun: bool,
    /// The number on this stream of the head if its sending has begun, else of the next sample to begin.
    pub(super) number: u64,
    /// The number of the first sample since the hop came up.
    pub(super) first: u64,
    pub(super) announced: bool,
    /// The number of changes to the announced properties.
    pub(super) version: u32,
    /// The numbers of samples that are not retransmitted any more.
    given_up: VecDeque<u64>,
    pub(super) suspended: bool,
    /// The hop is up. While it is down, nothing is queued.
    pub(super) up: bool,
    pub(super) counters: StreamCounters,
    /// The traffic allowed by the contract, to count the excess (`stream/allowance.rs`).
    allowance: Allowance,
    pub(super) ages: StreamAges,
    /// Present while the stream is traced.
    pub(super) passages: Option<Box<Passages>>,
    /// Its class.
    pub(super) home: Option<Home>,
    /// The window position of the next expected sample (`windows.rs`).
    pub(super) next_place: Option<u64>,
    /// The policers of its class have admitted the head.
    pub(super) passed: bool,
    /// The head waits for the policers of its class.
    pub(super) held: bool,
}

/// The outcome of offering a sample to a stream.
pub(super) enum Offer {
    /// It was queued behind others.
    Waits,
    /// It is the new head.
    IsHead,
    /// It replaced the head.
    ReplacedHead,
    /// It was dropped.
    Dropped,
}

impl Stream {
    pub(super) fn new(spec: StreamSpec, id: u32, up: bool) -> Self {
        let (limit, allowance) = (spec.waiting_max(), Allowance::new(&spec));
        Self {
            allowance,
            last_frame: None,
            queue: VecDeque::with_capacity(limit.min(ROOM)),
            queue_bytes: 0,
            queue_on_wire: 0,
            demoted: 0,
            before_contract: 0,
            contract_since: Instant::ZERO,
            limit,
            gate: DecodeGate::starting(spec.background),
            last_miss: None,
            late: false,
            violated: false,
            head_came: None,
            head_sent: 0,
            head_begun: false,
            number: 0,
            first: 0,
            announced: false,
            version: 0,
            given_up: VecDeque::new(),
            next_place: None,
            suspended: false,
            up,
            id,
            counters: StreamCounters::default(),
            ages: StreamAges::default(),
            passages: None,
            home: None,
            passed: false,
            held: false,
            spec,
        }
    }

    /// Replaces the specification. Queued samples stay, even if the new limit is lower.
    pub(super) fn update(&mut self, spec: StreamSpec) {
        self.limit = spec.waiting_max();
        if (self.spec.contract, self.spec.demand) != (spec.contract, spec.demand) {
            self.allowance = Allowance::new(&spec);
        }
        let mends = |spec: &StreamSpec| (spec.retransmit, spec.upstream, spec.contract);
        if mends(&self.spec) != mends(&spec) {
            self.version += 1;
        }
        if spec.contract.is_none() {
            (self.demoted, self.before_contract) = (0, 0);
        }
        self.spec = spec;
    }

    /// Returns `true` if the head misses its deadline here when it leaves at `leaves`.
    pub(super) fn head_is_late(&self, leaves: Instant) -> bool {
        let Some((head, contract)) = self.head().zip(self.spec.contract) else { return false };
        head.published_at + self.spec.upstream + contract.deadline < leaves
    }

    /// Returns `true` if the head of a [patient](StreamSpec::is_patient) stream can no longer meet the delay
    /// bound, where sending it takes `service`.
    pub(super) fn is_hopeless(&self, now: Instant, service: Duration) -> bool {
        let Some((head, contract)) = self.head().zip(self.spec.contract) else { return false };
        let StreamSpec { upstream, slack, .. } = self.spec;
        head.published_at + upstream + contract.deadline + slack < now + service
    }

    /// Returns `true` if a newer sample replaces all queued ones.
    const fn newest_only(&self) -> bool {
        self.spec.contract.is_none() && self.spec.kind.is_replaced() && !self.spec.background
    }

    /// Returns `true` if the stream makes room by shedding (`shed.rs`). Live video sheds; pulled video waits
    /// for room.
    pub(super) const fn sheds(&self) -> bool {
        self.spec.kind.is_video() && !self.spec.background
    }

    pub(super) fn has_room(&self) -> bool {
        !self.up
            || self.newest_only()
            || self.sheds()
            || self.gives_way()
            || self.queue.len() < self.limit && self.queue_bytes < self.spec.waiting_bytes_max()
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn offer(&mut self, now: Instant, sample: Queued) -> Offer {
        self.counters.offered += 1;
        if !self.up {
            self.counters.drops.add(DropReason::LinkDown, 1);
            return Offer::Dropped;
        }
        let mut replaced = false;
        if self.newest_only() {
            let begun = usize::from(self.head_begun);
            while self.queue.len() > begun {
                replaced |= self.queue.len() == 1;
                self.passed &= self.queue.len() > 1;
                self.drop_last(DropReason::Superseded);
            }
        } else if !self.has_room() {
            self.counters.drops.add(DropReason::QueueFull, 1);
            self.gate.broke(sample.kind);
            return Offer::Dropped;
        }
        if !self.gate.admit(sample.kind) {
            self.counters.drops.add(DropReason::Undecodable, 1);
            return Offer::Dropped;
        }
        let age = sample.age(now).as_nanos();
        self.ages.enter(age);
        if let Some(passages) = &mut self.passages {
            passages.came(sample.seq, age);
        }
        self.queue_bytes += sample.payload.len();
        self.queue_on_wire += on_wire(&sample);
        self.queue.push_back(sample);
        if self.queue.len() == 1 {
            self.head_came = Some(now);
        }
        match (self.queue.len(), replaced) {
            (1, true) => Offer::ReplacedHead,
            (1, false) => Offer::IsHead,
            _ => Offer::Waits,
        }
    }

    pub(super) fn drop_last(&mut self, reason: DropReason) {
        if let Some(sample) = self.queue.pop_back() {
            self.count_out(&sample);
            self.before_contract = self.before_contract.min(self.queue.len());
            self.counters.drops.add(reason, 1);
            self.gate.broke(sample.kind);
        }
    }

    /// Subtracts a sample that was removed from the queue.
    pub(super) fn count_out(&mut self, sample: &RawSample) {
        self.queue_bytes -= sample.payload.len();
        self.queue_on_wire -= on_wire(sample);
    }

    /// Returns the bytes of the last queued sample on the wire.
    pub(super) fn last_on_wire(&self) -> u64 {
        self.queue.back().map_or(0, |sample| on_wire(sample))
    }

    /// Returns the bytes of the head on the wire.
    pub(super) fn head_on_wire(&self) -> u64 {
        self.head().map_or(0, on_wire)
    }

    pub(super) fn head(&self) -> Option<&RawSample> {
        self.queue.front().map(|queued| &queued.sample)
    }

    /// Returns the sequence number of the last queued sample.
    pub(super) fn newest(&self) -> Option<u64> {
        self.queue.back().map(|queued| queued.sample.seq)
    }

    /// Returns the number of unsent bytes of the head.
    pub(super) fn head_left(&self) -> usize {
        self.head().map_or(0, |sample| sample.payload.len() - self.head_sent)
    }

    /// Returns the arrival time of the head that scheduling uses: at most publish time plus the upstream part
    /// of its delay bound. So time lost upstream, by scaling or on an earlier hop, is not granted again.
    pub(super) fn head_arrived(&self, now: Instant) -> Option<Instant> {
        let nominal = |sample: &RawSample| (sample.published_at + self.spec.upstream).min(now);
        self.head().map(nominal)
    }

    /// Cuts the next piece of at most `len` bytes off the head. Returns `true` with the last piece.
    pub(super) fn cut(&mut self, len: usize) -> Option<(Bytes, bool)> {
        let sample = self.queue.front()?;
        let end = (self.head_sent + len).min(sample.payload.len());
        let piece = sample.payload.slice(self.head_sent..end);
        let last = end == sample.payload.len();
        self.head_sent = end;
        self.head_begun = true;
        self.counters.bytes += piece.len() as u64;
        Some((piece, last))
    }

    /// Removes the fully sent head, whose last byte leaves at `ends`.
    pub(super) fn finish_head(&mut self, ends: Instant) {
        if let Some((seq, age)) = self.head().map(|head| (head.seq, head.age(ends).as_nanos())) {
            self.ages.leave(age);
            if let Some(passages) = &mut self.passages {
                passages.left(seq, age);
            }
        }
        self.pop_head();
        self.counters.sent += 1;
    }

    /// Drops the head. Returns its number if its sending had begun.
    pub(super) fn drop_head(&mut self, reason: DropReason) -> Option<u64> {
        let begun = self.head_begun.then_some(self.number);
        self.counters.aborted += u64::from(self.head_begun);
        if let Some(kind) = self.pop_head() {
            self.counters.drops.add(reason, 1);
            self.gate_after(0, kind);
        }
        begun
    }

    fn pop_head(&mut self) -> Option<Kind> {
        let sample = self.queue.pop_front()?;
        if self.queue.is_empty() {
            // Reset the ring's start, so that a stream without backlog reuses the same memory.
            self.queue.clear();
        }
        self.count_out(&sample);
        self.number += u64::from(self.head_begun);
        self.head_sent = 0;
        self.head_begun = false;
        self.demoted = self.demoted.min(self.queue.len());
        self.before_contract = self.before_contract.saturating_sub(1);
        self.head_changed();
        Some(sample.kind)
    }

    /// Takes the stream down after its hop: removes and returns all queued samples, so that the caller can
    /// free them in portions.
    ///
    /// Numbering continues when the hop is back, so that the receiver detects samples that were lost in
    /// transit.
    pub(super) fn take_down(&mut self) -> VecDeque<Queued> {
        let gone = self.drop_all(DropReason::LinkDown);
        (self.up, self.announced, self.suspended) = (false, false, false);
        self.first = self.number;
        (self.last_miss, self.violated, self.last_frame) = (None, false, None);
        (self.passed, self.held, self.next_place) = (false, false, None);
        gone
    }

    /// Removes all queued samples in constant time and counts them as dropped. Returns them.
    pub(super) fn drop_all(&mut self, reason: DropReason) -> VecDeque<Queued> {
        self.counters.drops.add(reason, self.queue.len() as u64);
        self.counters.aborted += u64::from(self.head_begun);
        self.number += u64::from(self.head_begun);
        (self.queue_bytes, self.queue_on_wire) = (0, 0);
        (self.head_sent, self.head_begun) = (0, false);
        (self.demoted, self.before_contract) = (0, 0);
        self.head_changed();
        self.given_up.clear();
        self.gate = DecodeGate::starting(self.spec.background);
        core::mem::take(&mut self.queue)
    }

    pub(super) fn has_given_up(&self, number: u64) -> bool {
        self.given_up.contains(&number)
    }

    pub(super) fn note_given_up(&mut self, number: u64) {
        if self.given_up.len() >= GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(number);
    }

    /// Counts an arriving sample if it exceeds the contract. Returns the time that the stream must wait for its bytes
    /// beyond the contract.
    pub(super) fn count_excess(&mut self, now: Instant, sample: &RawSample) -> Duration {
        let Some(contract) = self.spec.contract.as_ref().filter(|_| self.up) else {
            return Duration::ZERO;
        };
        let (upstream, bytes) = (self.spec.upstream, sample.payload.len());
        let arrived = (sample.published_at + upstream).min(now);
        let (early, over) = self.allowance.take(contract, upstream, (arrived, bytes));
        let long = !over.is_zero();
        // A sample that is both early and long is counted once.
        self.counters.excess.long += u64::from(long);
        self.counters.excess.early += u64::from(early && !long);
        over
    }

    /// Returns the time that the stream must wait for the bytes of its head beyond the contract.
    pub(super) fn head_over(&self) -> Duration {
        let head = self.queue.front().filter(|_| self.spec.contract.is_some());
        head.map_or(Duration::ZERO, |head| head.over)
    }
}
