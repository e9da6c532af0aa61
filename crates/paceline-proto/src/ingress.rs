//! The way in: one source's samples, picked for each of the streams that leave here.

use crate::control::{OutputPlan, Target};
use crate::form::{Form, Size};
use crate::sample::{Encoding, Kind, Sample, Timestamp};
use crate::temporal::TemporalScaler;
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
        Sample { seq, captured, born: now, kind, encoding, payload }
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

/// One output: what it takes of the source, and the port that takes it.
#[derive(Debug)]
pub struct Output<P> {
    /// Its name.
    pub key: OutputKey,
    /// The size to scale pictures to before they leave; `None` leaves them as they are.
    pub size: Option<Size>,
    /// Where samples go: the shell's ring, the harness's queue.
    pub port: P,
    temporal: TemporalScaler,
}

/// One source's samples on their way in: filter → temporal scaling → spatial scaling → stream.
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
            let key = OutputKey { target: plan.target, form: plan.form };
            let same = |o: &Output<P>| o.key == key && o.size == plan.scale.size;
            if let Some(place) = old.iter().position(same) {
                self.outputs.push(old.swap_remove(place));
            } else if let Some(port) = open(plan) {
                let temporal = TemporalScaler::new(plan.scale.rate, self.period);
                self.outputs.push(Output { key, size: plan.scale.size, port, temporal });
            }
        }
        for output in old {
            close(output.key, output.port);
        }
    }

    /// Hands `sample` to every output whose temporal scaling takes it. The last one gets the sample
    /// itself, so that a source with one output copies nothing.
    pub fn offer(&mut self, sample: Sample, mut take: impl FnMut(&mut Output<P>, Sample)) {
        let (seq, captured) = (sample.seq, sample.captured.nanos);
        let mut takers = self
            .outputs
            .iter_mut()
            .filter_map(|output| output.temporal.take(seq, captured).then_some(output));
        let Some(mut taker) = takers.next() else { return };
        for next in takers {
            take(taker, sample.clone());
            taker = next;
        }
        take(taker, sample);
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
