//! Traffic beyond a stream's contract, sent by the previous hop or the publisher.
//!
//! The output contract of the previous hop is the stream's own contract, bunched by at most the upstream
//! delay U. A conforming sample is ahead of its period by no more than U plus the jitter. A link that sends
//! as early as possible causes such bunching. The discipline therefore derives periods and deadlines from the
//! contract's clock, as if the sample had not arrived earlier. It reshapes the stream: samples are not
//! dropped and lose none of their time.
//!
//! Excess is not dropped either. A sample that arrives too early waits for its period, like a bunched one. A
//! sample longer than declared, or beyond the publisher's envelope, waits until the stream's contract covers its
//! size. Until then both compete with best effort ([`paceline_sched::Scheduler::handle_long`]), so they delay only later samples of their
//! own stream. They are counted here for monitoring.
//!
//! The bytes of video without an envelope are not policed. Shedding drops the least useful pictures first
//! (`link/shed.rs`), while a delay could lose any picture.

use super::spec::StreamSpec;
use crate::budget::{counted, uncounted};
use crate::plan::Demand;
use paceline_sched::police::{Conformance, Constraint, PolicedUnit, Policer};
use paceline_sched::{Contract, Duration, Instant};

/// The maximum debt of one sample, so that a stream that made one mistake does not rank behind best effort
/// for days.
const OVER_MAX: Duration = Duration::from_secs(60);

/// The traffic that a stream's contract allows.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// The longest allowed payload, in bytes.
    longest: usize,
    /// The start of the next sample's period.
    next: Instant,
    /// The publisher's envelope, bunched on the path to this link.
    long_term: Option<LongTerm>,
}

/// A leaky bucket of bytes on the wire. Traffic beyond it shifts the bucket's time, so a sample is charged for its
/// own excess only.
#[derive(Clone, Debug)]
struct LongTerm {
    policer: Policer,
    /// The earliest time of the next charge.
    latest: Instant,
    burst: u64,
}

impl LongTerm {
    fn new(demand: &Demand, upstream: Duration) -> Option<Self> {
        let bunched = u128::from(demand.bytes_per_s) * u128::from(upstream.as_nanos());
        let bunched = u64::try_from(bunched.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
        let burst = demand.burst.saturating_add(bunched);
        let bits = demand.bytes_per_s.saturating_mul(8);
        let constraint = Constraint::leaky(PolicedUnit::Bytes, burst, bits).ok()?;
        Some(Self { policer: Policer::new(constraint), latest: Instant::ZERO, burst })
    }

    /// Charges a sample, and returns how long it must wait until the envelope covers it.
    fn take(&mut self, arrived: Instant, bytes: usize) -> Duration {
        let wire = u64::try_from(counted(bytes as u128)).unwrap_or(u64::MAX).min(self.burst);
        let from = arrived.max(self.latest);
        let waits = match self.policer.check(from, wire) {
            Conformance::Conforms => Duration::ZERO,
            Conformance::At(at) => at.since(from).min(OVER_MAX),
            Conformance::Never => OVER_MAX,
        };
        self.latest = from + waits;
        self.policer.charge(self.latest, wire);
        waits
    }
}

impl Allowance {
    pub(super) fn new(spec: &StreamSpec) -> Self {
        let held = |demand: &Demand| demand.declared && spec.contract.is_some();
        let demand = spec.demand.filter(held);
        let whole = demand.filter(|demand| demand.varies || !spec.kind.is_video());
        let longest = whole.map_or(usize::MAX, |demand| uncounted(demand.bytes));
        let long_term = demand.filter(|demand| demand.varies);
        let long_term = long_term.and_then(|demand| LongTerm::new(&demand, spec.upstream));
        Self { longest, next: Instant::ZERO, long_term }
    }

    /// Checks a sample with arrival time `arrived`. Returns whether it is too early, and the time that the stream
    /// must wait for the bytes beyond its declaration.
    pub(super) fn take(
        &mut self,
        contract: &Contract,
        upstream: Duration,
        (arrived, bytes): (Instant, usize),
    ) -> (bool, Duration) {
        let slack = contract.jitter.saturating_add(upstream.max(contract.deadline));
        let early = self.next.since(arrived) > slack;
        let long_term = self.long_term.as_mut().map(|it| it.take(arrived, bytes));
        let over = self.over(contract, bytes).max(long_term.unwrap_or_default());
        self.next = self.next.max(arrived) + contract.period + over;
        (early, over)
    }

    /// Returns the time that the stream must wait for the bytes of a sample beyond the declared size.
    fn over(&self, contract: &Contract, bytes: usize) -> Duration {
        if bytes <= self.longest {
            return Duration::ZERO;
        }
        let wire = |bytes: usize| u64::try_from(counted(bytes as u128)).unwrap_or(u64::MAX);
        let declared = wire(self.longest);
        contract.period.mul_div(wire(bytes) - declared, declared).min(OVER_MAX)
    }
}
