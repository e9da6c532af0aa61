//! The trend of a capacity that falls, for warnings before it is too little.
//!
//! The estimate falls in steps of up to a fifth, each when a queue has grown or probes have shown less. A forecast from the last
//! two of these is late on a fast fall. So the conservative end is kept in steps of [`STEP`], and falls over 0.3 s, 0.5 s, 1 s, 2 s
//! and so on are looked for. A fall must go on until now, and most of it must not have happened at once, unless that is little.
//! Falls within a few seconds count only with a queue: without one, measurements that differ look the same.

use super::{CapacityEstimate, CapacityState};
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The resolution of the history.
const STEP: Duration = Duration::from_millis(100);
/// The steps over which a fall is looked for.
const SPANS: [usize; 7] = [QUICK, 5, 10, 20, CALM / 2, CALM, 160];
/// Over so few steps, a fall by at most [`QUICK_MOST`] with a queue is the beginning of a fast fall, and not a step.
const QUICK: usize = 3;
const QUICK_MOST: u64 = 45;
/// Over fewer steps than this, a fall needs a queue.
const CALM: usize = 80;
/// From this number of steps on, a fall may have happened at once if it is at most [`AT_ONCE`] percent of the capacity before.
const LONG: usize = 20;
const AT_ONCE: u64 = 25;
/// The steps that are at once.
const ONCE: usize = 3;
const STEPS_MAX: usize = 161;
/// A smaller fall, in percent of the capacity before it, is noise.
const FALLS: u64 = 10;
/// At most this part of the fall may happen at once, in percent: more is a step, not a trend.
const JUMP: u64 = 65;
/// The capacity may have risen meanwhile by at most this part of the fall, in percent.
const RISES: u64 = 40;
/// The last half of the time has at least this part of the fall, in percent: otherwise the fall has ended.
const LASTS: u64 = 25;

/// A fall of a measured capacity that is expected to go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CapacityFall {
    /// The capacity for contracts now, in bits per second.
    pub bits_per_s: u64,
    /// The bits per second that it loses in each second.
    pub loses_per_s: u64,
    /// The least capacity for contracts, whatever is measured; 0 unless it is configured.
    pub least_bits_per_s: u64,
}

impl CapacityFall {
    /// Returns the expected capacity for contracts in bits per second after a time, at least the configured minimum.
    ///
    /// ```
    /// use paceline_proto::capacity::CapacityFall;
    /// use paceline_sched::Duration;
    ///
    /// let (bits_per_s, loses_per_s, least_bits_per_s) = (8_000_000, 2_000_000, 1_000_000);
    /// let fall = CapacityFall { bits_per_s, loses_per_s, least_bits_per_s };
    /// assert_eq!(fall.after(Duration::from_millis(1_500)), 5_000_000);
    /// assert_eq!(fall.after(Duration::from_secs(9)), 1_000_000);
    /// ```
    #[must_use]
    pub fn after(&self, time: Duration) -> u64 {
        let lost = u128::from(self.loses_per_s) * u128::from(time.as_nanos()) / 1_000_000_000;
        let left = self.bits_per_s.saturating_sub(u64::try_from(lost).unwrap_or(u64::MAX));
        left.max(self.least_bits_per_s)
    }
}

/// The conservative end of a measured capacity over the last 16 s.
#[derive(Clone, Debug, Default)]
pub(super) struct FallTrend {
    /// The last value of each step in bits per second, and whether a queue has grown in it.
    lows: VecDeque<(u64, bool)>,
    /// The number of the last step since the epoch of the clock.
    last: u64,
}

impl FallTrend {
    /// Notes an estimate. Returns true once in each step.
    pub(super) fn note(&mut self, now: Instant, found: &CapacityEstimate) -> bool {
        match found.state {
            // Nothing is known of the capacity.
            CapacityState::Unknown | CapacityState::Outage => {
                self.lows.clear();
                return false;
            }
            CapacityState::Measuring | CapacityState::Stable | CapacityState::Falling => {}
        }
        let (step, falling) =
            (now.as_nanos() / STEP.as_nanos(), found.state == CapacityState::Falling);
        let Some(before) = self.lows.back_mut() else {
            (self.last, self.lows) = (step, VecDeque::from([(found.low, falling)]));
            return true;
        };
        if step <= self.last {
            *before = (found.low, before.1 || falling);
            return false;
        }
        let (before, passed) = ((before.0, false), step - self.last);
        self.last = step;
        let missed = usize::try_from(passed - 1).unwrap_or(STEPS_MAX).min(STEPS_MAX);
        self.lows.extend(core::iter::repeat_n(before, missed).chain([(found.low, falling)]));
        let excess = self.lows.len().saturating_sub(STEPS_MAX);
        self.lows.drain(..excess);
        true
    }

    /// Returns the bits per second that are lost in each second, by the fastest fall that goes on; `None` without one.
    pub(super) fn loses_per_s(&self) -> Option<u64> {
        SPANS.iter().filter_map(|span| self.fall_over(*span)).max()
    }

    /// Returns the fall per second over the last steps.
    fn fall_over(&self, steps: usize) -> Option<u64> {
        let begin = self.lows.len().checked_sub(steps + 1)?;
        let part = super::samples::part;
        if steps < CALM && !self.lows.range(begin..).any(|(_, falling)| *falling) {
            return None;
        }
        let lows = || self.lows.range(begin..).map(|(low, _)| *low);
        let (first, middle, last) = (lows().next()?, lows().nth(steps / 2)?, lows().next_back()?);
        let fall = first.checked_sub(last).filter(|fall| *fall >= part(first, FALLS).max(1))?;
        let nanos = STEP.as_nanos().saturating_mul(steps as u64);
        let per_s = u128::from(fall) * 1_000_000_000 / u128::from(nanos.max(1));
        let per_s = u64::try_from(per_s).unwrap_or(u64::MAX);
        if steps == QUICK {
            return (fall <= part(first, QUICK_MOST)).then_some(per_s);
        }
        let rises: u64 =
            lows().zip(lows().skip(1)).map(|(one, next)| next.saturating_sub(one)).sum();
        let at_once =
            lows().zip(lows().skip(ONCE)).map(|(one, next)| one.saturating_sub(next)).max();
        let at_once = at_once.unwrap_or(fall);
        let small = steps >= LONG && at_once <= part(first, AT_ONCE);
        let goes_on = middle.saturating_sub(last) >= part(fall, LASTS);
        let steady = (at_once <= part(fall, JUMP) || small) && rises <= part(fall, RISES);
        (goes_on && steady).then_some(per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the trend after values in kbit/s, one in 100 ms.
    fn after(kbits: impl IntoIterator<Item = u64>, state: CapacityState) -> FallTrend {
        let mut trend = FallTrend::default();
        for (step, kbit) in (10..).zip(kbits) {
            let low = kbit * 1_000;
            let found = CapacityEstimate { estimate: low, low, high: low, pace: low, state };
            assert!(trend.note(Instant::from_millis(step * 100), &found));
        }
        trend
    }

    #[test]
    fn a_ramp_is_a_trend_at_any_speed() {
        let ramp = |per_step: u64, steps: u64, state| {
            after((0..steps).map(|step| 20_000 - step * per_step), state).loses_per_s()
        };
        let (falling, stable) = (CapacityState::Falling, CapacityState::Stable);
        assert_eq!(ramp(900, 4, falling), Some(9_000_000), "20 to 2 in 2 s, after 0.3 s");
        assert_eq!(ramp(900, 6, falling), Some(9_000_000));
        assert_eq!(ramp(180, 21, falling), Some(1_800_000));
        assert_eq!(ramp(20, 170, stable), Some(200_000), "90 s");
        assert_eq!((ramp(900, 6, stable), ramp(180, 21, stable)), (None, None), "without a queue");
        assert_eq!(ramp(0, 100, falling), None);
        // The estimate falls in steps of a tenth, one in 0.7 s.
        let stairs = (0..40).map(|step| 20_000 - step / 7 * 2_000);
        let slope = after(stairs, falling).loses_per_s().unwrap();
        assert!((2_000_000..6_000_000).contains(&slope), "{slope}");
    }

    #[test]
    fn a_step_a_fall_that_has_ended_and_a_flapping_capacity_are_no_trends() {
        let repeat = core::iter::repeat_n::<u64>;
        for after_step in 1..60 {
            let step = repeat(20_000, 30).chain(repeat(2_000, after_step));
            assert_eq!(after(step, CapacityState::Falling).loses_per_s(), None, "{after_step}");
        }
        let over = (0..10).map(|step| 20_000 - step * 1_800).chain(repeat(3_800, 12));
        assert_eq!(after(over, CapacityState::Falling).loses_per_s(), None);
        let flapping = (0..40).map(|step| if step % 2 == 0 { 20_000 } else { 2_000 });
        assert_eq!(after(flapping, CapacityState::Falling).loses_per_s(), None);
    }

    #[test]
    fn an_outage_begins_anew_and_pauses_repeat_the_last_value() {
        let mut trend = after((0..10).map(|step| 20_000 - step * 900), CapacityState::Falling);
        assert!(trend.loses_per_s().is_some());
        let state = CapacityState::Outage;
        let mut found = CapacityEstimate { estimate: 1, low: 1, high: 1, pace: 0, state };
        assert!(!trend.note(Instant::from_millis(2_000), &found));
        assert_eq!(trend.loses_per_s(), None);
        found.state = CapacityState::Stable;
        trend.note(Instant::from_millis(3_000), &found);
        trend.note(Instant::from_millis(900_000), &found);
        assert_eq!((trend.lows.len(), trend.loses_per_s()), (STEPS_MAX, None));
    }

    proptest! {
        #[test]
        fn noise_is_no_trend_and_memory_is_bounded(
            noise in prop::collection::vec(9_100..10_000_u64, 1..400),
        ) {
            let trend = after(noise, CapacityState::Falling);
            prop_assert_eq!(trend.loses_per_s(), None);
            prop_assert!(trend.lows.len() <= STEPS_MAX);
        }
    }
}
