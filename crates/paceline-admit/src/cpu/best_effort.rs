//! A regulator of best effort: it may use the processor time that contracts have not been granted.
//!
//! Each sample is charged its [cost](CpuCost). The charges conform to a burst σ and a rate ρ: within any time t, the samples
//! that pass cost at most
//!
//! σ + the cost of one sample + ρ · t
//!
//! A sample passes while the unpaid charges of earlier samples are at most σ. A sample that costs more than σ therefore passes
//! too, and delays those behind it. The alternative, room for the whole cost within σ, would let streams of small samples keep
//! every large one out.
//!
//! The state is one instant: that at which all that has passed is paid for (the generic cell rate algorithm, ITU-T I.371,
//! annex A). So threads share a regulator without a lock.
//!
//! Papers: Cruz 1991 (burst and rate of a regulated stream); Christie 1995, §4.1.2 and §4.3.2 (small packets of best effort
//! exhaust a router's processor, which its admission test does not count).

use super::{CpuBudget, CpuCost, narrow};
use core::sync::atomic::{AtomicU64, Ordering};
use paceline_sched::{Duration, Instant};

/// The number of nanoseconds in a second, and the binary digits behind the point of [`BestEffortRegulator::stretch`].
const SECOND: u64 = 1_000_000_000;
const FRACTION_BITS: u32 = 32;
/// The value of [`BestEffortRegulator::stretch`] without a rate: nothing is ever paid for.
const NEVER: u64 = u64::MAX;

/// A burst and a rate of processor time, as in a (σ, ρ) regulator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProcessorShare {
    /// The burst σ in nanoseconds of one processor.
    pub burst_nanos: u64,
    /// The rate ρ in nanoseconds of one processor per second.
    pub nanos_per_s: u64,
}

/// Limits the processor time of best-effort samples. All threads of a node share one.
///
/// # Examples
/// ```
/// use paceline_admit::cpu::{BestEffortRegulator, CpuBudget, CpuCost};
/// use paceline_sched::{Duration, Instant};
///
/// // 0.5 ms per sample, and half of a processor: 1,000 samples per second, after a burst.
/// let cost = CpuCost { sample_nanos: 500_000, byte_picos: 0 };
/// let regulator = BestEffortRegulator::new(CpuBudget { cost, nanos_per_s: 500_000_000 });
/// let now = Instant::from_millis(5);
/// let passed = (0..10).filter(|_| regulator.take(now, 64)).count();
/// assert_eq!(passed, 3, "the third begins at the end of the burst of 1 ms");
/// assert!(regulator.take(now + Duration::from_millis(1), 64));
///
/// // A contract is granted all of it.
/// regulator.set_rate(now + Duration::from_millis(2), 0);
/// assert!(!regulator.take(now + Duration::from_secs(60), 64));
/// ```
#[derive(Debug)]
pub struct BestEffortRegulator {
    cost: CpuCost,
    /// The burst σ in nanoseconds of processor time.
    burst: u64,
    /// The rate ρ in nanoseconds per second.
    rate: AtomicU64,
    /// The time that pays for a nanosecond of processor time at ρ, in units of 2^-32 ns, rounded up.
    stretch: AtomicU64,
    /// The instant at which all that has passed is paid for, in nanoseconds; unused without a rate.
    paid_at: AtomicU64,
    /// The processor time that was unpaid when the rate became 0, in nanoseconds.
    frozen: AtomicU64,
}

impl BestEffortRegulator {
    /// The burst σ of a node: the processor time that best effort may use at once. Small, because the samples of a contract may wait for
    /// it; large enough for 100 samples of 10 µs that arrive in one frame.
    pub const BURST: Duration = Duration::from_millis(1);

    /// Creates a regulator that gives best effort all of `budget`.
    #[must_use]
    pub fn new(budget: CpuBudget) -> Self {
        Self::with_burst(budget, Self::BURST)
    }

    /// Like [`Self::new`], with a burst σ of this much time of one processor instead of [`Self::BURST`].
    #[must_use]
    pub fn with_burst(budget: CpuBudget, burst: Duration) -> Self {
        let CpuBudget { cost, nanos_per_s } = budget;
        Self {
            cost,
            burst: burst.as_nanos(),
            rate: AtomicU64::new(nanos_per_s),
            stretch: AtomicU64::new(stretch_of(nanos_per_s)),
            paid_at: AtomicU64::new(0),
            frozen: AtomicU64::new(0),
        }
    }

    /// Returns the burst and the rate of now.
    #[must_use]
    pub fn share(&self) -> ProcessorShare {
        let nanos_per_s = self.rate.load(Ordering::Relaxed);
        ProcessorShare { burst_nanos: self.burst, nanos_per_s }
    }

    /// Charges a sample of `bytes` bytes at `now` and returns true if it may pass. Otherwise it is to be dropped, and costs
    /// nothing here.
    ///
    /// `now` may decrease between calls: an earlier instant finds more unpaid charges, and never fewer.
    #[must_use]
    pub fn take(&self, now: Instant, bytes: u64) -> bool {
        let cost = self.cost.of_sample(bytes);
        let now = now.as_nanos();
        // Nothing else depends on this state, so the order of other memory does not matter.
        let take = |paid_at: u64| {
            let stretch = self.stretch.load(Ordering::Relaxed);
            let unpaid = paid_at.saturating_sub(now);
            let passes = stretch != NEVER && unpaid <= burst_time(self.burst, stretch);
            passes.then(|| paid_at.max(now).saturating_add(time_of(cost, stretch)))
        };
        self.paid_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Returns the time from `now` until a sample may pass, if no other one passes before; `None` without a rate.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let stretch = self.stretch.load(Ordering::Relaxed);
        let unpaid = self.paid_at.load(Ordering::Relaxed).saturating_sub(now.as_nanos());
        (stretch != NEVER)
            .then(|| Duration::from_nanos(unpaid.saturating_sub(burst_time(self.burst, stretch))))
    }

    /// Sets the rate ρ, in nanoseconds of one processor per second, from `now` on. Unpaid charges stay the same processor time.
    ///
    /// Call it from one thread. A sample that another thread charges during the call may be charged at either rate.
    pub fn set_rate(&self, now: Instant, nanos_per_s: u64) {
        let before = self.rate.swap(nanos_per_s, Ordering::Relaxed);
        let now = now.as_nanos();
        let stretch = stretch_of(nanos_per_s);
        // A thread may see the new value of one of the two and the old one of the other. The order is such that it then finds
        // too much unpaid rather than too little.
        if nanos_per_s == 0 && before > 0 {
            self.stretch.store(stretch, Ordering::Relaxed);
            let unpaid = self.paid_at.load(Ordering::Relaxed).saturating_sub(now);
            self.frozen.store(scaled(unpaid, before, SECOND), Ordering::Relaxed);
        } else if before == 0 {
            let unpaid = scaled(self.frozen.load(Ordering::Relaxed), SECOND, nanos_per_s.max(1));
            self.paid_at.store(now.saturating_add(unpaid), Ordering::Relaxed);
            self.stretch.store(stretch, Ordering::Relaxed);
        } else if nanos_per_s > before {
            self.stretch.store(stretch, Ordering::Relaxed);
            self.rescale(now, (before, nanos_per_s));
        } else if nanos_per_s < before {
            self.rescale(now, (before, nanos_per_s));
            self.stretch.store(stretch, Ordering::Relaxed);
        }
    }

    /// Converts the time that pays for the unpaid charges to another rate.
    fn rescale(&self, now: u64, (before, after): (u64, u64)) {
        let longer = |paid_at: u64| {
            Some(now.saturating_add(scaled(paid_at.saturating_sub(now), before, after)))
        };
        // The closure always returns a value, so this cannot fail.
        let _ = self.paid_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, longer);
    }
}

/// Returns `amount · factor / divisor`, rounded up.
fn scaled(amount: u64, factor: u64, divisor: u64) -> u64 {
    narrow((u128::from(amount) * u128::from(factor)).div_ceil(u128::from(divisor.max(1))))
}

/// Returns the time that pays for a nanosecond at this rate, in units of 2^-32 ns, rounded up.
fn stretch_of(nanos_per_s: u64) -> u64 {
    let wide = u128::from(SECOND) << FRACTION_BITS;
    if nanos_per_s == 0 { NEVER } else { narrow(wide.div_ceil(u128::from(nanos_per_s))) }
}

/// Returns the time that pays for `charge` nanoseconds, rounded up.
fn time_of(charge: u64, stretch: u64) -> u64 {
    let wide = u128::from(charge) * u128::from(stretch);
    narrow(wide.div_ceil(1 << FRACTION_BITS))
}

/// Returns the time that pays for the burst, rounded down.
fn burst_time(burst: u64, stretch: u64) -> u64 {
    let wide = u128::from(burst) * u128::from(stretch);
    narrow(wide >> FRACTION_BITS)
}

#[cfg(test)]
mod tests;
