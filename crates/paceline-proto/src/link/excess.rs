//! What comes beyond a stream's contract: the hop before, or the publisher, sends more than it may.
//!
//! The output contract of the hop before is the stream's own contract, bunched up by what the hops before may hold a
//! sample up, U: of samples that keep it, none is ahead of its period by more than U and the jitter. A link
//! that sends whenever it can lets them bunch up so, and therefore the discipline gives each its period and deadline by
//! the contract's clock, as if it had not come earlier: reshaped, never dropped, never short of its time.
//!
//! What is more is not dropped either. A sample that comes too soon waits for its period like one that is bunched up; one
//! that is longer than declared waits until the stream may have sent so much. Until then both take turns
//! with best effort ([`Scheduler::handle_long`]), so they cost time only those behind them in their own stream. They are
//! counted here, so that somebody can be told.
//!
//! What is scaled has no declared size of its own: its bytes are not policed, their number is. Nor are those of
//! video, which loses what is needed least where it is too much (`shed.rs`): put off, it would lose anything.

use super::stream::{Stream, StreamSpec};
use super::{Link, StreamIndex};
use crate::control::{Demand, counted, uncounted};
use crate::sample::Sample;
use paceline_sched::{Contract, Duration, Instant, Scheduler};

/// The longest debt of one sample: a stream that made one mistake is not ranked behind best effort for days.
const OVER_MAX: Duration = Duration::from_secs(60);

/// What a stream is held to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// The longest payload.
    longest: usize,
    /// When the period of the next sample comes.
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

    /// Looks at a sample that counts as arrived at `arrived`: whether it came too soon, and whether it is too long.
    fn take(
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

    /// How long the stream has to wait for what a sample is longer than declared.
    fn over(&self, contract: &Contract, bytes: usize) -> Duration {
        if bytes <= self.longest {
            return Duration::ZERO;
        }
        let wire = |bytes: usize| u64::try_from(counted(bytes as u128)).unwrap_or(u64::MAX);
        let declared = wire(self.longest);
        contract.period.mul_div(wire(bytes) - declared, declared).min(OVER_MAX)
    }
}

impl Stream {
    /// Counts a sample that comes, if that is more than may.
    pub(super) fn count_excess(&mut self, now: Instant, sample: &Sample) {
        let Some(contract) = self.spec.contract.as_ref().filter(|_| self.up) else { return };
        let (upstream, bytes) = (self.spec.upstream, sample.payload.len());
        let arrived = (sample.born + upstream).min(now);
        let (early, long) = self.allowance.take(contract, upstream, (arrived, bytes));
        // One that is both is counted once.
        self.counters.excess.long += u64::from(long);
        self.counters.excess.early += u64::from(early && !long);
    }
}

impl Link {
    /// Tells the discipline if the head that it was just told of is longer than declared.
    pub(super) fn announce_length(&mut self, index: StreamIndex) {
        let Some(stream) = self.stream(index) else { return };
        let (Some(contract), Some(head)) = (&stream.spec.contract, stream.head()) else { return };
        let over = stream.allowance.over(contract, head.payload.len());
        if !over.is_zero() {
            self.discipline.handle_long(index, over);
        }
    }
}
