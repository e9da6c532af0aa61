//! Traffic beyond a stream's contract, sent by the previous hop or the publisher.
//!
//! The output contract of the previous hop is the stream's own contract, bunched by at most the upstream
//! delay U. A conforming sample is ahead of its period by no more than U plus the jitter. A link that sends
//! as early as possible causes such bunching. The discipline therefore derives periods and deadlines from the
//! contract's clock, as if the sample had not arrived earlier. It reshapes the stream: samples are not
//! dropped and lose none of their time.
//!
//! Excess is not dropped either. A sample that arrives too early waits for its period, like a bunched one. A
//! sample longer than declared waits until the stream's contract covers its size. Until then both compete
//! with best effort ([`paceline_sched::Scheduler::handle_long`]), so they delay only later samples of their
//! own stream. They are counted here for monitoring.
//!
//! A scaled stream has no declared size of its own: its bytes are not policed, only its rate. The bytes of
//! video are not policed either. Shedding drops the least useful pictures first (`link/shed.rs`), while a
//! delay could lose any picture.

use super::spec::StreamSpec;
use crate::budget::{counted, uncounted};
use crate::plan::Demand;
use paceline_sched::{Contract, Duration, Instant};

/// The maximum debt of one sample, so that a stream that made one mistake does not rank behind best effort
/// for days.
const OVER_MAX: Duration = Duration::from_secs(60);

/// The traffic that a stream's contract allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// The longest allowed payload, in bytes.
    longest: usize,
    /// The start of the next sample's period.
    next: Instant,
}

impl Allowance {
    pub(super) fn new(spec: &StreamSpec) -> Self {
        let scaled = spec.form.size.is_some() || spec.form.audio.is_some();
        let whole = !scaled && !spec.kind.is_video();
        let held = |demand: &Demand| demand.declared && whole && spec.contract.is_some();
        let bytes = spec.demand.filter(held);
        let longest = bytes.map_or(usize::MAX, |demand| uncounted(demand.bytes));
        Self { longest, next: Instant::ZERO }
    }

    /// Checks a sample with arrival time `arrived`. Returns whether it is too early and whether it is too
    /// long.
    pub(super) fn take(
        &mut self,
        contract: &Contract,
        upstream: Duration,
        (arrived, bytes): (Instant, usize),
    ) -> (bool, bool) {
        let slack = contract.jitter.saturating_add(upstream.max(contract.deadline));
        let early = self.next.since(arrived) > slack;
        self.next = self.next.max(arrived) + contract.period + self.over(contract, bytes);
        (early, bytes > self.longest)
    }

    /// Returns the time that the stream must wait for the bytes of a sample beyond the declared size.
    pub(super) fn over(&self, contract: &Contract, bytes: usize) -> Duration {
        if bytes <= self.longest {
            return Duration::ZERO;
        }
        let wire = |bytes: usize| u64::try_from(counted(bytes as u128)).unwrap_or(u64::MAX);
        let declared = wire(self.longest);
        contract.period.mul_div(wire(bytes) - declared, declared).min(OVER_MAX)
    }
}
