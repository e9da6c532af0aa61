//! The exact count of the samples of a periodic stream, below its arrival curve.
//!
//! Paper: Baruah, Rosier & Howell, "Algorithms and complexity concerning the preemptive scheduling of periodic,
//! real-time tasks on one processor", Real-Time Systems 1990 (the demand bound function).

use paceline_sched::{Duration, LossTolerance};

/// At most one sample of `bytes` per `period`, at most `early` before its period: at most
/// ⌊(t + early)/period⌋ + 1 samples in any closed interval of length t.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Staircase {
    pub(crate) bytes: u64,
    pub(crate) period: Duration,
    pub(crate) early: Duration,
    /// The period with which a discipline re-spaces bunched samples and computes virtual deadlines, at most `period`.
    pub(crate) clock: Duration,
}

impl Staircase {
    /// Returns a staircase above both.
    ///
    /// Step k of it, at k T − J, is no later than that of each: T is the least period, and J at least J′ − (T′ − T)
    /// for each T′ and J′. So the result depends neither on the order nor on repetitions, and is never below that of
    /// fewer staircases.
    pub(crate) fn join(&self, other: &Self) -> Self {
        let period = self.period.min(other.period);
        let early = |of: &Self| of.early.saturating_sub(of.period.saturating_sub(period));
        Self {
            bytes: self.bytes.max(other.bytes),
            period,
            early: early(self).max(early(other)),
            clock: self.clock.min(other.clock),
        }
    }

    /// Returns a staircase above the sum of both, with at most `most` bytes per step.
    pub(crate) fn plus(&self, other: &Self, most: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes).min(most), ..self.join(other) }
    }

    /// Returns the staircase after a delay between 0 and `delay`.
    pub(crate) fn delayed(self, delay: Duration) -> Self {
        Self { early: self.early.saturating_add(delay), ..self }
    }

    /// Returns the staircase of samples that are bunched and then re-spaced. Samples that wait are as near to each
    /// other as the discipline's clock permits.
    pub(crate) fn spaced_again(self) -> Self {
        Self { period: self.clock, ..self }
    }

    /// Returns the staircase with `whole`/`part` times the period and jitter, both rounded to more traffic.
    pub(crate) fn slower(self, part: u64, whole: u64) -> Self {
        let longer = |time: Duration| time.mul_div(whole, part.max(1));
        Self {
            period: longer(self.period),
            early: longer(self.early).saturating_add(Duration::from_nanos(1)),
            clock: longer(self.clock),
            ..self
        }
    }

    /// Returns the least staircase that is nowhere above this one and `relaxed`, or this one if neither is above the
    /// other.
    pub(crate) fn relaxed(&self, relaxed: &Self) -> Self {
        if relaxed.join(self) == *self { *relaxed } else { *self }
    }

    /// Returns the largest number of samples in any closed interval of length `time`, in nanoseconds.
    fn samples(&self, time: u64) -> u64 {
        time.saturating_add(self.early.as_nanos()) / self.period.as_nanos().max(1) + 1
    }

    /// Returns the most bytes in any closed interval of length `time`, in nanoseconds.
    pub(crate) fn bytes_in(&self, time: u64) -> u128 {
        u128::from(self.bytes) * u128::from(self.samples(time))
    }

    /// Returns the most bytes with virtual deadlines in any closed interval of length `time`, in nanoseconds, of a
    /// stream whose windows tolerate `loss`. Returns `None` if samples may come more than a period early: then a
    /// sample may have an earlier virtual deadline than its predecessor.
    ///
    /// The services of the worst case are those of [`crate::owed`]. Those of the first `m` samples are due with them.
    /// Service `j` of a later window, from 0, is due `clock`·x/(m − j) after its sample.
    pub(crate) fn owed_in(&self, time: u64, loss: LossTolerance) -> Option<u128> {
        let (x, y) = (u64::from(loss.x()), u64::from(loss.y()));
        let m = y.saturating_sub(x);
        if self.early > self.period || m == 0 {
            return None;
        }
        let came = self.samples(time);
        let Some(later) = came.checked_sub(m + 1) else {
            return Some(u128::from(self.bytes) * u128::from(came));
        };
        // The services of earlier windows are due before the first sample of the last one comes.
        let (windows, last) = (later / y, later % y);
        let begun = m + windows * y;
        let late = u128::from(self.clock.as_nanos()) * u128::from(x);
        let is_due = |j: u64| {
            let after = (begun + j).saturating_mul(self.period.as_nanos());
            let since = time.saturating_sub(after.saturating_sub(self.early.as_nanos()));
            u128::from(since) * u128::from(m - j) >= late
        };
        // Later services of a window are due later, so bisection finds their number.
        let (mut due, mut not) = (0, last.saturating_add(1).min(m));
        while due < not {
            let middle = due + (not - due) / 2;
            if is_due(middle) { due = middle + 1 } else { not = middle }
        }
        Some(u128::from(self.bytes) * u128::from(m + windows * m + due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn staircase() -> impl Strategy<Value = Staircase> {
        (1..50_u64, 1..40_u64, 0..90_u64, 0..5_u64).prop_map(|(bytes, period, early, less)| {
            let ns = Duration::from_nanos;
            let clock = ns(period.saturating_sub(less).max(1));
            Staircase { bytes, period: ns(period), early: ns(early), clock }
        })
    }

    proptest! {
        #[test]
        fn a_joint_staircase_is_above_each(
            one in staircase(), other in staircase(), third in staircase(), delay in 0..60_u64,
        ) {
            let joint = one.join(&other);
            let sum = one.plus(&other, u64::MAX);
            let later = one.delayed(Duration::from_nanos(delay));
            for time in 0..300 {
                prop_assert!(joint.bytes_in(time) >= one.bytes_in(time).max(other.bytes_in(time)));
                prop_assert!(sum.bytes_in(time) >= one.bytes_in(time) + other.bytes_in(time));
                prop_assert_eq!(later.bytes_in(time), one.bytes_in(time + delay));
                prop_assert!(one.spaced_again().bytes_in(time) >= one.bytes_in(time));
            }
            prop_assert_eq!(joint.join(&one), joint);
            prop_assert_eq!(joint.join(&third), one.join(&other.join(&third)));
            prop_assert_eq!(joint.relaxed(&one), one);
            prop_assert_eq!(one.relaxed(&joint), one);
        }

        #[test]
        fn no_window_owes_more_in_any_order_of_service(
            stairs in staircase(),
            (x, more) in (1..6_u32, 1..6_u32),
            missed in 0..6_u32,
            served in proptest::collection::vec(any::<bool>(), 60),
        ) {
            let y = x + more;
            let stairs = Staircase { early: stairs.early.min(stairs.period), ..stairs };
            let (period, early) = (stairs.period.as_nanos(), stairs.early.as_nanos());
            // A window that has any state that its misses permit, and then samples that come as early as possible.
            let missed = missed.min(x);
            let (mut left, mut owes) = (y - missed, y - x);
            let mut due = Vec::new();
            for (number, serve) in (0..).zip(served) {
                let came = (number * period).saturating_sub(early);
                let spread = u64::from(left) * stairs.clock.as_nanos();
                if owes > 0 && (serve || owes == left) {
                    // ⌈k′ T/m′⌉ − T: at whole nanoseconds, a service is due no earlier.
                    let due_after = spread.div_ceil(u64::from(owes)) - stairs.clock.as_nanos();
                    due.push(came + due_after);
                    owes -= 1;
                }
                left -= 1;
                if left == 0 {
                    (left, owes) = (y, y - x);
                }
            }
            let loss = LossTolerance::new(x, y).unwrap();
            for time in 0..40 * period {
                let count = due.iter().filter(|at| **at <= time).count() as u64;
                let most = stairs.owed_in(time, loss).unwrap();
                prop_assert!(most >= u128::from(count * stairs.bytes), "at {}: {}", time, count);
                prop_assert!(most <= stairs.bytes_in(time));
            }
        }
    }
}
