//! A stream's queue on a link.

use super::classes::StreamNames;
use super::excess::Allowance;
use super::passages::Passages;
use super::seats::Home;
use crate::control::{Demand, OutputPlan};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
use crate::reason::{DropReason, StreamAges, StreamCounters};
use crate::retransmit::Retransmit;
use crate::sample::{Kind, Sample};
use crate::video::DecodeGate;
use bytes::Bytes;
use core::ops::Deref;
use paceline_sched::curve::Curve;
use paceline_sched::discipline::{Class, Terms};
use paceline_sched::hfsc::Curves;
use paceline_sched::{Contract, Duration, Instant, Late};
use std::collections::VecDeque;
use std::sync::Arc;

/// Samples that a best-effort stream of data may have waiting.
const WAITING_MAX: usize = 256;
/// Samples that a contracted stream may have waiting, however long its deadline and the way before this link.
const CONTRACTED_MAX: usize = 256;
/// Samples for which a stream has room from the beginning.
const ROOM: usize = 64;
/// Bytes that any stream may have waiting, unless a single sample is larger.
pub(super) const WAITING_BYTES_MAX: usize = 4 << 20;

/// What a stream is when it is opened on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// The next hop.
    pub hop: NodeId,
    /// Whose samples.
    pub publisher: PublisherId,
    /// In which form they leave.
    pub form: Form,
    /// What they are: a picture or state replaces an older one that still waits.
    pub kind: Kind,
    /// What was promised; `None` for best effort.
    pub contract: Option<Contract>,
    /// The part of the delay bound that belongs to what lies before this link.
    pub upstream: Duration,
    /// How much later than within its part of the delay bound a sample may leave here and still be worth it.
    pub slack: Duration,
    /// It is served when no live sample waits, without a contract; nothing of it replaces another.
    pub background: bool,
    /// How long a sample may wait here before its first byte is sent; `None` if it may wait for any time.
    pub max_wait: Option<Duration>,
    /// What is done about loss where frames may be lost.
    pub retransmit: Retransmit,
    /// What it asks of the link under its contract, for disciplines that share by rates or curves.
    pub demand: Option<Demand>,
    /// What its class is chosen by; without them only by its contract.
    pub names: Option<Arc<StreamNames>>,
}

impl StreamSpec {
    /// A best-effort stream of what is not scaled.
    #[must_use]
    pub const fn best_effort(publisher: PublisherId, hop: NodeId, form: Form, kind: Kind) -> Self {
        Self {
            hop,
            publisher,
            form,
            kind,
            contract: None,
            upstream: Duration::ZERO,
            slack: Duration::ZERO,
            background: false,
            max_wait: None,
            retransmit: Retransmit::Selective,
            demand: None,
            names: None,
        }
    }

    /// The stream that `plan` asks for towards `hop`.
    #[must_use]
    pub const fn of(publisher: PublisherId, hop: NodeId, plan: &OutputPlan) -> Self {
        let OutputPlan { form, kind, contract, upstream, slack, background, demand, .. } = plan;
        Self {
            hop,
            publisher,
            form: *form,
            kind: *kind,
            contract: *contract,
            upstream: *upstream,
            slack: *slack,
            background: *background,
            max_wait: plan.max_wait,
            retransmit: plan.retransmit,
            demand: *demand,
            names: None,
        }
    }

    /// The same stream with what its class is chosen by.
    #[must_use]
    pub fn with_names(mut self, names: Option<Arc<StreamNames>>) -> Self {
        self.names = names;
        self
    }

    /// The class in which the link's discipline serves it.
    pub(super) fn class(&self) -> Class {
        if self.background { Class::Background } else { self.contract.into() }
    }

    /// The terms on which it takes part in a link where a packet of others keeps the next one waiting for
    /// `blocked` at most: of a contract the rate that it asks of the link, and the curve that admission has
    /// counted with: its longest sample, and what the jitter lets come with it, within what others leave of
    /// the deadline, then the rate.
    pub(super) fn terms(&self, blocked: Duration) -> Terms {
        let mut terms = Terms::new(self.class());
        if let (Class::Contracted(contract), true) = (&mut terms.class, self.is_patient()) {
            contract.late = Late::Send;
        }
        let Some((contract, demand)) = self.contract.zip(self.demand) else { return terms };
        let terms = terms.with_rate(demand.bytes_per_s);
        let bits = demand.bytes_per_s.clamp(1, Terms::RATE_MAX) * 8;
        let early = u64::try_from(
            (u128::from(demand.bytes) * u128::from(contract.jitter.as_nanos()))
                .div_ceil(u128::from(contract.period.as_nanos().max(1))),
        );
        let burst = demand.bytes.saturating_add(early.unwrap_or(u64::MAX));
        let left = contract.deadline.saturating_sub(blocked).max(Duration::from_nanos(1));
        let curves = Curves {
            real_time: Curve::burst(burst, left, bits).ok(),
            link_share: Curve::linear(bits).ok(),
            upper_limit: None,
        };
        if self.background || curves.link_share.is_none() {
            terms
        } else {
            terms.with_curves(curves)
        }
    }

    /// A sample that cannot leave within its part of the delay bound is not given up at once: it may still be in
    /// time where it goes. Where loss is tolerated it is, since others were promised what it would take; and of
    /// video, since it has its own order in which it gives up.
    pub(super) fn is_patient(&self) -> bool {
        let contract = self.contract.filter(|it| it.late == Late::Drop && it.loss.x() == 0);
        contract.is_some() && !self.slack.is_zero() && !self.kind.is_video()
    }

    /// Samples that may wait: of a contracted stream what fits between release and deadline, what the hops before
    /// may have let bunch up, and two.
    fn waiting_max(&self) -> usize {
        self.contract.map_or(WAITING_MAX, |contract| {
            let bunched = self.upstream.saturating_add(contract.jitter);
            let waits = contract.deadline.saturating_add(self.slack).saturating_add(bunched);
            let periods = waits.as_nanos() / contract.period.as_nanos().max(1);
            usize::try_from(periods).unwrap_or(CONTRACTED_MAX).clamp(2, CONTRACTED_MAX - 2) + 2
        })
    }
}

/// A sample in a stream's queue.
#[derive(Debug)]
pub(super) struct Queued {
    /// When the link, or the ring before it, took the sample.
    pub(super) since: Instant,
    pub(super) sample: Sample,
}

impl Deref for Queued {
    type Target = Sample;

    fn deref(&self) -> &Sample {
        &self.sample
    }
}

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) spec: StreamSpec,
    /// Its number on the wire.
    pub(super) id: u32,
    /// The frame that ended the last sample that was sent.
    pub(super) last_frame: Option<u64>,
    pub(super) queue: VecDeque<Queued>,
    pub(super) queue_bytes: usize,
    /// How many of the last that wait were demoted (`demoted.rs`).
    pub(super) demoted: usize,
    pub(super) limit: usize,
    /// What comes can be decoded once all that waits was sent.
    pub(super) gate: DecodeGate,
    /// How many had been offered when a sample last missed its deadline.
    pub(super) last_miss: Option<u64>,
    /// Its head was late here and waits all the same, or was a moment ago.
    pub(super) late: bool,
    /// A window was violated since the stream is short of time.
    pub(super) violated: bool,
    /// When the head came, if none was before it.
    pub(super) head_came: Option<Instant>,
    /// Bytes of the head that were sent, and whether anything was (a sample may be empty).
    pub(super) head_sent: usize,
    pub(super) head_begun: bool,
    /// The number of the head on this stream, if it has begun, else of the next to begin.
    pub(super) number: u64,
    /// The number of the first sample since the hop came up.
    pub(super) first: u64,
    pub(super) announced: bool,
    /// How often what it is has changed.
    pub(super) version: u32,
    /// The numbers of samples of which nothing is sent again.
    pub(super) given_up: VecDeque<u64>,
    pub(super) suspended: bool,
    /// Its hop is up; while it is not, nothing waits here.
    pub(super) up: bool,
    pub(super) counters: StreamCounters,
    /// What of it is more than its contract allows (`excess.rs`).
    pub(super) allowance: Allowance,
    pub(super) ages: StreamAges,
    /// Kept while somebody traces it.
    pub(super) passages: Option<Box<Passages>>,
    /// Its class.
    pub(super) home: Option<Home>,
    /// Which sample of those that were asked for comes next (`windows.rs`).
    pub(super) next_place: Option<u64>,
    /// Its head may go, as far as its class is concerned; or it waits for that.
    pub(super) passed: bool,
    pub(super) held: bool,
}

/// What a stream did with an offered sample.
pub(super) enum Offer {
    /// It waits behind others.
    Waits,
    /// It is the head now.
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
            demoted: 0,
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

    /// It is something else from now on; what waits stays, also where less may wait than before.
    pub(super) fn update(&mut self, spec: StreamSpec) {
        self.limit = spec.waiting_max();
        if (self.spec.contract, self.spec.demand) != (spec.contract, spec.demand) {
            self.allowance = Allowance::new(&spec);
        }
        let mends = |spec: &StreamSpec| (spec.retransmit, spec.upstream, spec.contract);
        if mends(&self.spec) != mends(&spec) {
            self.version += 1;
        }
        self.spec = spec;
    }

    /// The head is late here if it leaves at `leaves`.
    pub(super) fn head_is_late(&self, leaves: Instant) -> bool {
        let Some((head, contract)) = self.head().zip(self.spec.contract) else { return false };
        head.born + self.spec.upstream + contract.deadline < leaves
    }

    /// True if the head of a stream that [is patient](StreamSpec::is_patient) can no longer be in time where it
    /// goes, if the link needs `service` for it.
    pub(super) fn is_hopeless(&self, now: Instant, service: Duration) -> bool {
        let Some((head, contract)) = self.head().zip(self.spec.contract) else { return false };
        let StreamSpec { upstream, slack, .. } = self.spec;
        head.born + upstream + contract.deadline + slack < now + service
    }

    /// A newer sample takes the place of those that still wait.
    const fn newest_only(&self) -> bool {
        self.spec.contract.is_none() && self.spec.kind.is_replaced() && !self.spec.background
    }

    /// It makes its own room (`shed.rs`): live video does, what is pulled waits for room.
    pub(super) const fn sheds(&self) -> bool {
        self.spec.kind.is_video() && !self.spec.background
    }

    pub(super) fn has_room(&self) -> bool {
        !self.up
            || self.newest_only()
            || self.sheds()
            || self.queue.len() < self.limit && self.queue_bytes < WAITING_BYTES_MAX
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
            self.queue_bytes -= sample.payload.len();
            self.counters.drops.add(reason, 1);
            self.gate.broke(sample.kind);
        }
    }

    pub(super) fn head(&self) -> Option<&Sample> {
        self.queue.front().map(|queued| &queued.sample)
    }

    /// Bytes of the head that are still to be sent.
    pub(super) fn head_left(&self) -> usize {
        self.head().map_or(0, |sample| sample.payload.len() - self.head_sent)
    }

    /// When the head counts as arrived: no later than the part of its delay bound that belongs to what
    /// lies before this link, so that time lost there (scaling, an earlier hop) is not granted again.
    pub(super) fn head_arrived(&self, now: Instant) -> Option<Instant> {
        let nominal = |sample: &Sample| (sample.born + self.spec.upstream).min(now);
        self.head().map(nominal)
    }

    /// Cuts the next piece of at most `len` bytes off the head; true if it was the last.
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

    /// The head was sent to its end; its last byte leaves at `ends`.
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

    /// The head is given up; its number if its sending had begun.
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
            // Begin at the front again: one that keeps up touches the same memory each time.
            self.queue.clear();
        }
        self.queue_bytes -= sample.payload.len();
        self.number += u64::from(self.head_begun);
        self.head_sent = 0;
        self.head_begun = false;
        self.demoted = self.demoted.min(self.queue.len());
        self.head_changed();
        Some(sample.kind)
    }

    /// The hop is gone: everything that waits is given up. Returns it, so that it can be freed little by little.
    ///
    /// The numbers go on when the hop is back, so that the next hop finds which samples were lost on the way.
    pub(super) fn take_down(&mut self) -> VecDeque<Queued> {
        let gone = self.drop_all(DropReason::LinkDown);
        (self.up, self.announced, self.suspended) = (false, false, false);
        self.first = self.number;
        (self.last_miss, self.violated, self.last_frame) = (None, false, None);
        (self.passed, self.held, self.next_place) = (false, false, None);
        gone
    }

    /// Everything that waits is given up, in one step however much it is. Returns it.
    pub(super) fn drop_all(&mut self, reason: DropReason) -> VecDeque<Queued> {
        self.counters.drops.add(reason, self.queue.len() as u64);
        self.counters.aborted += u64::from(self.head_begun);
        self.number += u64::from(self.head_begun);
        (self.queue_bytes, self.head_sent, self.head_begun, self.demoted) = (0, 0, false, 0);
        self.head_changed();
        self.given_up.clear();
        self.gate = DecodeGate::starting(self.spec.background);
        core::mem::take(&mut self.queue)
    }
}
