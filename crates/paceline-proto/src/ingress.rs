//! Ingress: distributes one source's samples to the streams that leave this node.

use crate::bits::BitLimit;
use crate::capture::CaptureGrid;
use crate::form::{Form, Rate};
use crate::plan::{OutputPlan, Target};
use crate::reason::DropReason;
use crate::receive::Lost;
use crate::sample::{Encoding, Kind, RawSample, Timestamp};
use crate::temporal::TemporalScaler;
use crate::video::{DecodeGate, Group, GroupBudget, Next};
use bytes::Bytes;
use paceline_admit::cpu::BestEffortRegulator;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;

/// Assigns sequence numbers and timestamps to a publisher's samples.
#[derive(Clone, Debug, Default)]
pub struct Stamper {
    next_seq: u64,
    grid: CaptureGrid,
}

impl Stamper {
    /// Returns the stamper of a publisher; `period` is its declared period, if any.
    #[must_use]
    pub fn new(period: Option<Duration>) -> Self {
        Self { next_seq: 0, grid: CaptureGrid::new(period) }
    }

    /// Returns the number of samples so far.
    #[must_use]
    pub const fn stamped(&self) -> u64 {
        self.next_seq
    }

    /// Returns a sample of `payload` with the next sequence number, published at `now`.
    pub fn stamp(
        &mut self,
        now: Instant,
        captured: Timestamp,
        kind: Kind,
        encoding: Encoding,
        payload: Bytes,
    ) -> RawSample {
        let seq = self.next_seq;
        self.next_seq += 1;
        let doubt = Duration::ZERO;
        RawSample {
            seq,
            captured,
            shift: self.grid.shift(captured.nanos),
            published_at: now,
            doubt,
            kind,
            encoding,
            payload,
            attachment: None,
        }
    }
}

/// Identifies an output of a source by its target and form.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct OutputKey {
    /// The next hop, or the local subscribers.
    pub target: Target,
    /// The form in which samples leave.
    pub form: Form,
}

impl OutputKey {
    /// Returns the key of the output that `plan` requests.
    #[must_use]
    pub const fn of(plan: &OutputPlan) -> Self {
        Self { target: plan.target, form: plan.form }
    }
}

/// An output of a source, with its port.
#[derive(Debug)]
pub struct Output<P> {
    /// The key of the output.
    pub key: OutputKey,
    /// The scaling that the port performs ([`OutputPlan::at_port`]).
    pub scale: Form,
    /// The destination of samples, for instance a ring of the shell or a queue of the simulator.
    pub port: P,
    temporal: TemporalScaler,
    bits: Option<BitLimit>,
    gate: DecodeGate,
    /// The next sample waits in the group of pictures.
    defers: bool,
    /// Its samples have a contract, so the regulator of best effort does not charge them.
    is_granted: bool,
    /// The forms that replace it ([`OutputPlan::until`]): a stream may be replaced again before a sample of its successor
    /// has arrived.
    until: Vec<Form>,
    /// The first sample that it does not take.
    end: Option<u64>,
    /// The first sample that it takes: the output that it replaces took those before.
    begin: u64,
}

/// The greatest number of forms of which the first sample ends an output.
const UNTIL_MAX: usize = 16;

impl<P> Output<P> {
    /// Returns `true` if this is the output that `plan` requests; it then keeps its port and phase.
    pub fn is_for(&self, plan: &OutputPlan) -> bool {
        self.key == OutputKey::of(plan) && self.scale == plan.at_port()
    }

    /// Returns true if the output takes the sample `seq`, unless its temporal scaling leaves it out: outputs that it replaces,
    /// and its successor, take others.
    fn covers(&self, seq: u64) -> bool {
        self.begin <= seq && self.end.is_none_or(|end| seq < end)
    }

    /// Returns true if `lost` may be samples that the output would have taken. The others are those of outputs that it
    /// replaces, and of its successor.
    pub fn loses(&self, lost: &Lost) -> bool {
        lost.begun.is_none_or(|(seq, _)| self.covers(seq))
    }

    fn follow(&mut self, plan: &OutputPlan) {
        self.is_granted = plan.is_granted;
        match plan.until {
            Some(form) if self.until.contains(&form) => {}
            Some(form) => {
                // Any of them ends it. The first ones to be forgotten are those of requests long ago.
                self.until.truncate(UNTIL_MAX - 1);
                self.until.insert(0, form);
            }
            None => (self.until, self.end) = (Vec::new(), None),
        }
        if plan.aligned {
            self.temporal.align();
        }
    }
}

/// The sample with the highest sequence number so far.
#[derive(Clone, Copy, Debug)]
struct Newest {
    seq: u64,
    number: u64,
    captured: u64,
}

/// The ingress of one source: temporal scaling, then the decode gate, then the port's scaling, then the
/// stream.
///
/// A source is a publisher of this node, or a stream that arrives here. All steps run on the thread that
/// delivers the sample. They use state that was installed beforehand, so nothing is looked up.
#[derive(Debug)]
pub struct Ingress<P> {
    outputs: Vec<Output<P>>,
    period: Option<Duration>,
    group: Group,
    newest: Option<Newest>,
    /// Charges the samples without a contract; `None` on a node that does not know their cost.
    processor: Option<Arc<BestEffortRegulator>>,
}

impl<P> Ingress<P> {
    /// Returns a source without outputs. `period` is the publisher's declared period, if any.
    #[must_use]
    pub fn new(period: Option<Duration>) -> Self {
        Self { outputs: Vec::new(), period, group: Group::default(), newest: None, processor: None }
    }

    /// Charges the samples of outputs without a contract to `regulator`, which the sources of a node share. By default they are
    /// not charged.
    pub fn set_processor(&mut self, regulator: Option<&Arc<BestEffortRegulator>>) {
        self.processor = regulator.cloned();
    }

    /// Returns the time from `now` until the [regulator](Self::set_processor) lets a sample of every output pass, unless other
    /// samples pass before; [`Duration::MAX`] if contracts have all of its time.
    #[must_use]
    pub fn processor_wait(&self, now: Instant) -> Duration {
        let mut regulator = self.processor.iter();
        let charges = self.outputs.iter().any(|output| !output.is_granted);
        let wait = regulator.find(|_| charges).map(|it| it.wait(now).unwrap_or(Duration::MAX));
        wait.unwrap_or(Duration::ZERO)
    }

    /// Counts the stored pictures against `budget`, which the sources of a node share. By default each source
    /// has its own.
    pub fn set_group_budget(&mut self, budget: &GroupBudget) {
        self.group.set_budget(budget);
    }

    /// Makes `plans` the outputs of this source. Existing outputs keep their ports and phases. `open` creates
    /// the ports of new outputs, and `close` receives those of removed ones.
    pub fn install(
        &mut self,
        plans: &[OutputPlan],
        mut open: impl FnMut(&OutputPlan) -> Option<P>,
        mut close: impl FnMut(OutputKey, P),
    ) {
        let mut old = core::mem::take(&mut self.outputs);
        for plan in plans {
            if let Some(place) = old.iter().position(|output| output.is_for(plan)) {
                let mut output = old.swap_remove(place);
                output.follow(plan);
                self.outputs.push(output);
            } else if let Some(port) = open(plan) {
                let (key, scale) = (OutputKey::of(plan), plan.at_port());
                // The port scales the rate of video, so it is not scaled here.
                let rate = if scale.rate == Rate::ALL { plan.scale.rate } else { Rate::ALL };
                let mut temporal = TemporalScaler::new(rate, self.period);
                if let Some(Newest { number, captured, .. }) = self.newest {
                    temporal.begin_after(number, captured);
                }
                // A pull selects samples explicitly, and its page may begin inside a group of pictures.
                let gate = DecodeGate::starting(plan.background);
                let (defers, is_granted) = (false, plan.is_granted);
                let (until, end, begin) = (Vec::new(), None, 0);
                let bits = rate.bits_per_s.map(BitLimit::new);
                let mut output = Output {
                    key,
                    scale,
                    port,
                    temporal,
                    bits,
                    gate,
                    defers,
                    is_granted,
                    until,
                    end,
                    begin,
                };
                output.follow(plan);
                self.outputs.push(output);
            }
        }
        for output in old {
            close(output.key, output.port);
        }
    }

    /// Lets outputs to these targets join a video in the middle of its current group of pictures, and stores
    /// `sample` in the group. Call this before [`Self::offer_to`] with the same sample and targets.
    ///
    /// `join` delivers units of the group to the output's port, and returns the port's treatment of `sample`.
    pub fn join(
        &mut self,
        targets: impl Fn(Target) -> bool,
        sample: &RawSample,
        mut join: impl FnMut(&mut P, &Group) -> Next,
    ) {
        if !sample.kind.is_video() {
            return;
        }
        for output in self.outputs.iter_mut().filter(|output| targets(output.key.target)) {
            match join(&mut output.port, &self.group) {
                Next::Follow => output.gate.join(),
                Next::Skip | Next::Wait(_) => {}
                Next::Defer => output.defers = true,
            }
        }
        self.group.add(sample);
    }

    /// Returns true if an output ends with the first newer sample of another form ([`OutputPlan::until`]).
    pub fn is_replaced(&self) -> bool {
        self.outputs.iter().any(|output| !output.until.is_empty() && output.end.is_none())
    }

    /// Ends the outputs that samples in `form` replace, of which `seq` has arrived. Returns the outputs that have already
    /// taken it, and the first sample that they do not take.
    pub fn replace(&mut self, form: Form, seq: u64) -> Vec<(OutputKey, u64)> {
        let newest = self.newest.map(|newest| newest.seq).filter(|newest| *newest >= seq);
        let end = newest.map_or(seq, |newest| newest.saturating_add(1));
        let all = self.outputs.iter_mut();
        let replaced = all.filter(|output| output.until.contains(&form) && output.end.is_none());
        let ended = replaced.map(|output| {
            output.end = Some(end);
            (output.key, end)
        });
        let ended: Vec<_> = ended.collect();
        if newest.is_some() { ended } else { Vec::new() }
    }

    /// Returns the outputs that samples in `form` will replace, of which none has arrived. Losses in that form are not theirs.
    pub fn waiting_for(&self, form: Form) -> impl Iterator<Item = OutputKey> {
        let waits = move |output: &&Output<P>| output.until.contains(&form) && output.end.is_none();
        self.outputs.iter().filter(waits).map(|output| output.key)
    }

    /// Leaves out the samples that replaced outputs of other forms have taken.
    pub fn begin(&mut self, taken: &[(OutputKey, u64)]) {
        for (key, first) in taken {
            let same = self.outputs.iter_mut().filter(|output| output.key == *key);
            same.for_each(|output| output.begin = *first);
        }
    }

    /// Passes `sample` to every output whose temporal scaling selects it. The last output receives the sample
    /// itself, so that a source with one output copies nothing.
    ///
    /// `take` passes the sample to the output's port. It returns `false` if the port dropped and counted the
    /// sample.
    ///
    /// Instead of a sample that exceeds the bit rate, `take` receives the drop reason, to count it; and so for video that
    /// cannot be decoded, because it references a sample that did not pass: the output is new, or the reference was dropped
    /// or [lost](Self::handle_lost). And so for a sample without a contract beyond the [processor time](Self::set_processor) of
    /// best effort at `now`: before it is copied, scaled or queued.
    pub fn offer(
        &mut self,
        now: Instant,
        sample: RawSample,
        take: impl FnMut(&mut Output<P>, Result<RawSample, DropReason>) -> bool,
    ) {
        self.offer_to(|_| true, (now, sample), take);
    }

    /// Like [`Self::offer`], but only for outputs to these targets. Other outputs are not affected.
    pub fn offer_to(
        &mut self,
        targets: impl Fn(Target) -> bool,
        (now, sample): (Instant, RawSample),
        mut take: impl FnMut(&mut Output<P>, Result<RawSample, DropReason>) -> bool,
    ) {
        let (seq, kind) = (sample.seq, sample.kind);
        let (at, bytes) = (sample.published_at, sample.payload.len() as u64);
        let (number, captured) = (sample.number(self.period), sample.captured.nanos);
        if self.newest.is_none_or(|newest| newest.seq <= seq) {
            self.newest = Some(Newest { seq, number, captured });
        }
        let size = sample.bytes() as u64;
        let processor = self.processor.as_deref();
        let is_busy = |output: &Output<P>| {
            !output.is_granted && processor.is_some_and(|processor| !processor.take(now, size))
        };
        let mut hand = |output: &mut Output<P>, sample| {
            if !take(output, sample) {
                output.gate.broke(kind);
            }
        };
        let mut last: Option<&mut Output<P>> = None;
        for output in self.outputs.iter_mut().filter(|output| targets(output.key.target)) {
            if std::mem::take(&mut output.defers) || !output.covers(seq) {
                continue;
            }
            if !output.temporal.take_sample(&sample) {
                output.gate.broke(kind);
            } else if !output.gate.admit(kind) {
                hand(output, Err(DropReason::Undecodable));
            } else if output.bits.as_mut().is_some_and(|limit| !limit.take(at, bytes)) {
                hand(output, Err(DropReason::OverBudget));
            } else if is_busy(output) {
                hand(output, Err(DropReason::ProcessorBusy));
            } else if let Some(taker) = last.replace(output) {
                hand(taker, Ok(sample.clone()));
            }
        }
        if let Some(taker) = last {
            hand(taker, Ok(sample));
        }
    }

    /// Records that samples were lost before they arrived, of `kind` if known. No output passes video that
    /// may reference them until the next I. Does not count the loss.
    pub fn handle_lost(&mut self, kind: Option<Kind>) {
        self.group.handle_lost(kind);
        for output in &mut self.outputs {
            match kind {
                Some(kind) => output.gate.broke(kind),
                None => output.gate.lost(),
            }
        }
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[Output<P>] {
        &self.outputs
    }

    /// Returns the outputs for modification.
    pub fn outputs_mut(&mut self) -> &mut [Output<P>] {
        &mut self.outputs
    }

    /// Removes and returns all outputs, so that the caller can close their ports.
    pub fn drain(&mut self) -> impl Iterator<Item = Output<P>> + '_ {
        self.outputs.drain(..)
    }
}

#[cfg(test)]
#[path = "ingress/tests.rs"]
mod tests;
