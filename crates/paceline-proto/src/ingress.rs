//! The way in: one source's samples, picked for each of the streams that leave here.

use crate::control::{OutputPlan, Target};
use crate::form::{Form, Rate};
use crate::reason::DropReason;
use crate::sample::{Encoding, Kind, Sample, Timestamp};
use crate::temporal::TemporalScaler;
use crate::video::DecodeGate;
use bytes::Bytes;
use paceline_sched::{Duration, Instant};

/// Numbers and stamps a publisher's samples.
#[derive(Clone, Debug, Default)]
pub struct Stamper {
    next_seq: u64,
}

impl Stamper {
    /// The sample that `payload` makes, captured now.
    pub fn stamp(
        &mut self,
        now: Instant,
        captured: Timestamp,
        kind: Kind,
        encoding: Encoding,
        payload: Bytes,
    ) -> Sample {
        let seq = self.next_seq;
        self.next_seq += 1;
        Sample { seq, captured, born: now, kind, encoding, payload, attachment: None }
    }
}

/// Names an output of a source: its way and the form in which samples leave.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct OutputKey {
    /// The next hop, or the subscribers here.
    pub target: Target,
    /// In which form samples leave.
    pub form: Form,
}

impl OutputKey {
    /// The name of the output that `plan` asks for.
    #[must_use]
    pub const fn of(plan: &OutputPlan) -> Self {
        Self { target: plan.target, form: plan.form }
    }
}

impl OutputPlan {
    /// The part of [`Self::scale`] that is left to the port: size and sound, and for video the rate as
    /// well, since only what nothing depends on may be left out ([`crate::video::Thinner`]).
    /// [`Form::FULL`] if the port has nothing to do.
    #[must_use]
    pub const fn at_port(&self) -> Form {
        let rate = if self.kind.is_video() { self.scale.rate } else { Rate::All };
        Form { rate, ..self.scale }
    }
}

/// One output: what it takes of the source, and the port that takes it.
#[derive(Debug)]
pub struct Output<P> {
    /// Its name.
    pub key: OutputKey,
    /// What the port still has to do before samples leave ([`OutputPlan::at_port`]).
    pub scale: Form,
    /// Where samples go: the shell's ring, the simulator's queue.
    pub port: P,
    temporal: TemporalScaler,
    gate: DecodeGate,
}

impl<P> Output<P> {
    /// True if this is the output that `plan` asks for: it then stays, with its port and its phase.
    pub fn is_for(&self, plan: &OutputPlan) -> bool {
        self.key == OutputKey::of(plan) && self.scale == plan.at_port()
    }
}

/// One source's samples on their way in: temporal scaling → what can be decoded → the port's
/// scaling → stream.
///
/// A source is a publisher of this node, or a stream that arrives here. Everything runs on the thread
/// that brings the sample; what it decides on was installed before, so that nothing is looked up.
#[derive(Debug)]
pub struct Ingress<P> {
    outputs: Vec<Output<P>>,
    period: Option<Duration>,
}

impl<P> Ingress<P> {
    /// A source without outputs, whose publisher declared `period`, if it did.
    #[must_use]
    pub const fn new(period: Option<Duration>) -> Self {
        Self { outputs: Vec::new(), period }
    }

    /// Makes `plans` the outputs of this source: those that stay keep their port and phase, `open`
    /// makes the ports of new ones, and those that go are handed to `close`.
    pub fn install(
        &mut self,
        plans: &[OutputPlan],
        mut open: impl FnMut(&OutputPlan) -> Option<P>,
        mut close: impl FnMut(OutputKey, P),
    ) {
        let mut old = core::mem::take(&mut self.outputs);
        for plan in plans {
            if let Some(place) = old.iter().position(|output| output.is_for(plan)) {
                self.outputs.push(old.swap_remove(place));
            } else if let Some(port) = open(plan) {
                let (key, scale) = (OutputKey::of(plan), plan.at_port());
                // What is left to the port is not done here.
                let rate = if scale.rate == Rate::All { plan.scale.rate } else { Rate::All };
                let temporal = TemporalScaler::new(rate, self.period);
                // What is pulled was chosen as a whole: a page may begin inside a group.
                let gate = DecodeGate::starting(plan.background);
                self.outputs.push(Output { key, scale, port, temporal, gate });
            }
        }
        for output in old {
            close(output.key, output.port);
        }
    }

    /// Hands `sample` to every output whose temporal scaling takes it. The last one gets the sample
    /// itself, so that a source with one output copies nothing.
    ///
    /// `take` gives it to the output's port and says whether that took it, or dropped and counted it.
    /// Where a sample of video needs something that did not pass, because the output is new or because
    /// it was dropped or [lost](Self::handle_lost), `take` gets the reason instead, to be counted.
    pub fn offer(
        &mut self,
        sample: Sample,
        take: impl FnMut(&mut Output<P>, Result<Sample, DropReason>) -> bool,
    ) {
        self.offer_to(|_| true, sample, take);
    }

    /// As [`Self::offer`], but only to the outputs to these targets. The others do not notice that there was a sample.
    pub fn offer_to(
        &mut self,
        targets: impl Fn(Target) -> bool,
        sample: Sample,
        mut take: impl FnMut(&mut Output<P>, Result<Sample, DropReason>) -> bool,
    ) {
        let (seq, captured, kind) = (sample.seq, sample.captured.nanos, sample.kind);
        let mut hand = |output: &mut Output<P>, sample| {
            if !take(output, sample) {
                output.gate.broke(kind);
            }
        };
        let mut last: Option<&mut Output<P>> = None;
        for output in self.outputs.iter_mut().filter(|output| targets(output.key.target)) {
            if !output.temporal.take(seq, captured) {
                output.gate.broke(kind);
            } else if !output.gate.admit(kind) {
                hand(output, Err(DropReason::Undecodable));
            } else if let Some(taker) = last.replace(output) {
                hand(taker, Ok(sample.clone()));
            }
        }
        if let Some(taker) = last {
            hand(taker, Ok(sample));
        }
    }

    /// Samples were lost on their way here, of `kind` if that is known. No output passes video that may
    /// need them, up to the next sample that begins anew. It counts nothing.
    pub fn handle_lost(&mut self, kind: Option<Kind>) {
        for output in &mut self.outputs {
            match kind {
                Some(kind) => output.gate.broke(kind),
                None => output.gate.lost(),
            }
        }
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Output<P>] {
        &self.outputs
    }

    /// The outputs, to be changed.
    pub fn outputs_mut(&mut self) -> &mut [Output<P>] {
        &mut self.outputs
    }

    /// Takes all outputs away, to close their ports.
    pub fn drain(&mut self) -> impl Iterator<Item = Output<P>> + '_ {
        self.outputs.drain(..)
    }
}

#[cfg(test)]
#[path = "ingress/tests.rs"]
mod tests;
