//! The spacing that a contract expects of a thinned stream.

use paceline_sched::{Duration, Instant};

/// Selects samples at most one per period of a contract, early by at most its jitter (a staircase, as admission charges it),
/// and not closer to each other than whole captures, less the jitter of captures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spacing {
    /// The shortest gap, in nanoseconds.
    gap: u64,
    period: u64,
    jitter: u64,
    last: Option<Taken>,
}

/// The last selected sample, in nanoseconds of capture time.
#[derive(Clone, Copy, Debug)]
struct Taken {
    captured: u64,
    /// The ideal instant of the next sample.
    next: u64,
    arrival: Option<Instant>,
}

impl Spacing {
    /// Returns the spacing of a stream at one sample per `limit`, selected from samples that are `each` apart, of captures
    /// that jitter by at most `capture`.
    pub(crate) const fn new(limit: Duration, each: Duration, capture: Duration) -> Self {
        let (limit, each) = (limit.as_nanos(), each.as_nanos());
        let whole = match limit.checked_div(each) {
            Some(samples) => samples * each,
            None => limit,
        };
        // The period and the jitter of contracts.
        let period = limit / 20 * 19;
        let jitter = each.saturating_add(period / 10);
        Self { gap: whole.saturating_sub(capture.as_nanos()), period, jitter, last: None }
    }

    /// Returns true if a sample captured at `captured` nanoseconds is selected.
    ///
    /// A clock that was set back begins anew, and one that stands still selects a sample after two periods of arrival.
    pub(crate) fn take(&mut self, captured: u64, arrival: Option<Instant>) -> bool {
        let mut ideal = captured;
        if let Some(last) = self.last.filter(|last| last.captured <= captured) {
            let is_apart = captured - last.captured >= self.gap;
            let is_due = captured.saturating_add(self.jitter) >= last.next;
            if !(is_apart && is_due || self.stands(last.arrival, arrival)) {
                return false;
            }
            ideal = last.next.max(captured);
        }
        let next = ideal.saturating_add(self.period);
        self.last = Some(Taken { captured, next, arrival });
        true
    }

    fn stands(&self, last: Option<Instant>, arrival: Option<Instant>) -> bool {
        let passed = arrival.zip(last).map(|(arrival, last)| arrival.since(last));
        passed.is_some_and(|passed| passed.as_nanos() >= self.period.saturating_mul(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uneven_gaps_are_kept_and_an_instant_that_moved_is_not() {
        let (limit, each) = (Duration::from_millis(50), Duration::from_millis(40));
        let taken = |times: &[u64]| {
            let mut spacing = Spacing::new(limit, each, Duration::from_millis(17));
            times.iter().filter(|at| spacing.take(**at * 1_000_000, None)).count()
        };
        assert_eq!(taken(&[0, 40, 80, 120, 200, 240, 280, 320, 400]), 9, "four of five");
        assert_eq!(taken(&[0, 22, 40]), 2, "closer than its samples");
        assert_eq!(taken(&(0..40).map(|k| k * 40).collect::<Vec<_>>()), 34, "all of them");
        assert_eq!(taken(&[1_000, 0, 40]), 3, "a clock that was set back");
    }

    #[test]
    fn a_clock_that_stands_still_does_not_end_a_stream() {
        let mut spacing =
            Spacing::new(Duration::from_millis(50), Duration::from_millis(40), Duration::ZERO);
        let taken = (0..100).filter(|k| spacing.take(7, Some(Instant::from_millis(k * 40))));
        assert_eq!(taken.count(), 34, "every 120 ms");
    }

    proptest! {
        #[test]
        fn any_samples_fit_the_staircase_of_a_contract(
            limit in 1_000..1_000_000_000_u64,
            each in 1..1_000_000_000_u64,
            gaps in prop::collection::vec(0..600_000_000_u64, 1..200),
        ) {
            let [limit, each] = [limit, each].map(Duration::from_nanos);
            let mut spacing = Spacing::new(limit, each, Duration::ZERO);
            let mut at = 0;
            let times: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).filter(|at| spacing.take(*at, None)).collect();
            for (first, from) in times.iter().enumerate() {
                for (more, to) in times[first..].iter().enumerate() {
                    let least = (more as u64 * spacing.period).saturating_sub(spacing.jitter);
                    prop_assert!(to - from >= least, "{} samples in {} ns", more + 1, to - from);
                }
            }
        }
    }
}
