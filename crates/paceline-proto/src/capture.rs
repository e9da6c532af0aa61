//! The capture grid: numbers the instants at which a publisher with a declared period captures, so that thinned
//! streams that belong together take the same ones.

use paceline_sched::Duration;

/// The samples over which the phase of the captures is averaged.
const AVERAGED: i128 = 64;
/// A capture that is this many periods too early and before the last one is a step of the clock; after the last one it
/// belongs to a burst, unless many captures stay so early.
const STEP: i128 = 16;
/// The cost of a correction of the numbers, and the most that is saved for it; each sample saves 1. So the numbers count
/// the samples of a publisher that does not keep its period.
const CORRECTION: u8 = 8;
const SAVED_MAX: u8 = 32;

/// Numbers the captures of a publisher.
///
/// Number m is the capture nearest to m periods since 1970, on average. So publishers with equal periods that capture at the
/// same instants give these the same numbers, whenever they began. The numbers rise by one from sample to sample: jitter
/// below half a period does not change them, and captures that were left out count.
#[derive(Clone, Debug, Default)]
pub struct CaptureGrid {
    period: Option<Duration>,
    last: Option<Last>,
    saved: u8,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    number: i128,
    /// Its capture time in nanoseconds.
    at: i128,
    /// The consecutive captures that were [`STEP`] periods too early.
    early: i128,
    /// The average of the captures' distance from their instants, in nanoseconds.
    phase: i128,
    /// The averaged samples.
    count: i128,
}

impl Last {
    /// Returns the capture at `at` as the first one on the grid.
    const fn first(at: i128, period: i128) -> Self {
        let number = nearest(at, period);
        Self { number, at, early: 0, phase: at - number * period, count: 1 }
    }

    /// Returns the next capture, at `at`, and true if its number was corrected.
    fn next(self, at: i128, period: i128, corrects: bool) -> (Self, bool) {
        let number = self.number + 1;
        let distance = at - number * period;
        let ahead = nearest(distance - self.phase, period);
        let early = if ahead <= -STEP { self.early + 1 } else { 0 };
        let stepped = at < self.at || early >= AVERAGED;
        if ahead <= -STEP && stepped && corrects {
            return (Self::first(at, period), true);
        }
        if ahead < 0 || ahead > 0 && !corrects {
            // A burst, or a publisher that does not keep its period.
            return (Self { number, at, early, ..self }, false);
        }
        let count = (self.count + 1).min(AVERAGED);
        let distance = distance - ahead * period;
        let next = Self {
            number: number + ahead,
            at,
            early: 0,
            phase: self.phase + (distance - self.phase) / count,
            count,
        };
        // The average has passed the middle between two instants.
        let nearer = nearest(next.phase, period);
        if nearer == 0 || !corrects {
            return (next, ahead > 0);
        }
        let (number, phase) = (next.number + nearer, next.phase - nearer * period);
        (Self { number, phase, ..next }, true)
    }
}

/// Returns the multiple of `period` that is nearest to `at`.
const fn nearest(at: i128, period: i128) -> i128 {
    (at + period / 2).div_euclid(period)
}

impl CaptureGrid {
    /// Returns the grid of a publisher with this period; without one, nothing is numbered.
    #[must_use]
    pub fn new(period: Option<Duration>) -> Self {
        let period = period.filter(|period| !period.is_zero());
        Self { period, last: None, saved: SAVED_MAX }
    }

    /// Returns the shift of the next sample, captured at `captured_ns`: the difference between its number and the nearest
    /// instant. It is zero unless the capture is more than half a period off, and without a period.
    pub fn shift(&mut self, captured_ns: u64) -> i32 {
        let Some(period) = self.period.map(|period| i128::from(period.as_nanos())) else {
            return 0;
        };
        let at = i128::from(captured_ns);
        self.saved = (self.saved + 1).min(SAVED_MAX);
        let (next, corrected) = match self.last {
            Some(last) => last.next(at, period, self.saved >= CORRECTION),
            None => (Last::first(at, period), false),
        };
        if corrected {
            self.saved -= CORRECTION;
        }
        self.last = Some(next);
        let shift = next.number - nearest(at, period);
        i32::try_from(shift.clamp(i32::MIN.into(), i32::MAX.into())).unwrap_or_default()
    }

    /// Returns the number of a capture from its shift.
    #[must_use]
    pub fn number(captured_ns: u64, shift: i32, period: Duration) -> u64 {
        let nearest = nearest(captured_ns.into(), i128::from(period.as_nanos().max(1)));
        u64::try_from((nearest + i128::from(shift)).max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD: u64 = 33_333_333;
    const BASE: u64 = 1_700_000_000_000_000_000;

    fn numbers(period: u64, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let period = Duration::from_nanos(period);
        let mut grid = CaptureGrid::new(Some(period));
        let number = |at| CaptureGrid::number(at, grid.shift(at), period);
        times.into_iter().map(number).collect()
    }

    fn is_counted(numbers: &[u64]) -> bool {
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1)
    }

    #[test]
    fn captures_that_were_left_out_count_and_bursts_do_not() {
        let at = |k: u64| BASE + k * PERIOD;
        let begin = numbers(PERIOD, [at(0)])[0];
        let gaps = numbers(PERIOD, [0, 1, 3, 4, 90, 91].map(at));
        assert_eq!(gaps, [0, 1, 3, 4, 90, 91].map(|k| begin + k));
        let burst = numbers(PERIOD, [0, 1, 1, 1, 1, 5, 6].map(at));
        assert_eq!(burst, [0, 1, 2, 3, 4, 5, 6].map(|k| begin + k));
        let long = numbers(PERIOD, (0..60).map(|k| at(0) + k * 1_000));
        assert!(is_counted(&long), "{long:?}");
        let back = numbers(PERIOD, [1_000, 1_001, 0, 1].map(at));
        assert_eq!(back, [1_000, 1_001, 0, 1].map(|k| begin + k));
    }

    #[test]
    fn a_period_that_is_not_kept_is_counted_in_samples() {
        // A third of the declared rate, or every sample at the same time.
        for each in [3 * PERIOD, 0] {
            let numbers = numbers(PERIOD, (0..800).map(|k| BASE + k * each));
            let counted = numbers.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
            assert!(counted >= 690, "{counted}");
        }
    }

    #[test]
    fn a_period_that_is_nearly_kept_is_corrected_by_one_at_a_time() {
        for each in [PERIOD - 20_000, PERIOD + 20_000] {
            let times: Vec<u64> = (0..20_000).map(|k| BASE + k * each).collect();
            let numbers = numbers(PERIOD, times.iter().copied());
            let off = |(number, at): (&u64, &u64)| (number * PERIOD).abs_diff(*at);
            assert!(numbers.iter().zip(&times).all(|pair| off(pair) < PERIOD * 3 / 4));
            let steps: Vec<u64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps.iter().all(|step| *step <= 2));
            assert_eq!(steps.iter().filter(|step| **step != 1).count(), 12);
        }
    }

    proptest! {
        #[test]
        fn publishers_of_the_same_captures_give_them_the_same_numbers(
            phase in 0..PERIOD,
            jitter in prop::collection::vec(0..14_000_000_u64, 1_500),
            later in 1..500_usize,
        ) {
            let times: Vec<u64> =
                jitter.iter().zip(0..).map(|(jitter, k)| BASE + phase + k * PERIOD + jitter).collect();
            let (first, second) = (numbers(PERIOD, times.clone()), numbers(PERIOD, times[later..].to_vec()));
            let differ = first[later..].iter().zip(&second).map(|(one, other)| one.abs_diff(*other));
            // Near the middle between two instants the averages first have to agree.
            prop_assert!(differ.clone().all(|by| by <= 1));
            prop_assert!(differ.skip(900).all(|by| by == 0));
            let corrections = first.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
            prop_assert!(corrections <= 1_500 / 8, "{corrections}");
        }

        #[test]
        fn jitter_does_not_change_the_numbers(
            jitter in prop::collection::vec(0..14_000_000_u64, 200),
            phase in 0..PERIOD,
        ) {
            let mean = jitter.iter().sum::<u64>() / 200;
            let near = (phase + mean) % PERIOD;
            prop_assume!(near.abs_diff(PERIOD / 2) > 8_000_000);
            let times = jitter.iter().zip(0..).map(|(jitter, k)| BASE / PERIOD * PERIOD + phase + k * PERIOD + jitter);
            prop_assert!(is_counted(&numbers(PERIOD, times)));
        }

        #[test]
        fn any_times_have_numbers(times in prop::collection::vec(any::<u64>(), 0..50), period in any::<u64>()) {
            numbers(period, times);
        }
    }
}
