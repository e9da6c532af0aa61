//! The growth of the queueing delay: more is sent than the link delivers.
//!
//! The delay of the path grows while more is sent than the link delivers, whatever the constant part of the delay is (delay
//! gradient: Carlucci, De Cicco, Holmer and Mascolo, "Analysis and Design of the Google Congestion Control", 2016). A single
//! frame proves nothing: radios delay frames and acknowledgements. So acknowledgements form steps. Each step is represented by
//! its least delayed frame, which jitter affects least. The delay must grow over several steps, because a stall, or a longer
//! path, is one jump.

use super::rate;
use std::collections::VecDeque;

/// The number of steps that are remembered.
const STEPS_MAX: usize = 12;
/// The minimum number of steps over which the delay must grow.
const GROWS: usize = 3;
/// One step may have at most this part of the growth, in percent: more is a jump.
const JUMP: u64 = 60;
/// Growth of less than this part of the time, in percent, may be a drift of the clocks or noise.
const SLOPE: u64 = 2;
/// Steps further apart than this multiple of the usual length describe different periods.
const PAUSE: u64 = 20;

/// The least delayed frame of a step. All times are in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Step {
    /// The arrival of the frame.
    pub(super) arrived: u64,
    /// Its delay beyond that of the empty path.
    pub(super) queued: u64,
    /// The bytes that had arrived by then.
    pub(super) delivered: u64,
}

/// The steps of one length.
#[derive(Debug)]
pub(super) struct Trend {
    length: u64,
    begin: Option<u64>,
    best: Option<Step>,
    steps: VecDeque<Step>,
}

impl Trend {
    /// Returns a trend with steps of at least `length` nanoseconds.
    pub(super) const fn new(length: u64) -> Self {
        Self { length, begin: None, best: None, steps: VecDeque::new() }
    }

    /// Forgets all steps.
    pub(super) fn forget(&mut self) {
        self.begin = None;
        self.best = None;
        self.steps.clear();
    }

    /// Adds a frame. Returns `true` if it completes a step.
    pub(super) fn note(&mut self, frame: Step) -> bool {
        let begin = *self.begin.get_or_insert(frame.arrived);
        let last = self.steps.back().map_or(begin, |step| step.arrived);
        if frame.arrived.saturating_sub(last) > self.length.saturating_mul(PAUSE) {
            self.forget();
            self.begin = Some(frame.arrived);
        }
        if self.best.is_none_or(|best| frame.queued <= best.queued) {
            self.best = Some(frame);
        }
        if frame.arrived.saturating_sub(self.begin.unwrap_or(frame.arrived)) < self.length {
            return false;
        }
        if self.steps.len() >= STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.extend(self.best.take());
        self.begin = Some(frame.arrived);
        true
    }

    /// Returns the last step.
    pub(super) fn last(&self) -> Option<Step> {
        self.steps.back().copied()
    }

    /// Returns the rate of delivery in bits per second while the delay grew by `threshold` or more, up to now, over three
    /// steps or more. `None` if it does not grow, or if it jumped.
    pub(super) fn growth(&self, threshold: u64) -> Option<u64> {
        let last = self.last()?;
        let (mut next, mut largest, mut found) = (last, 0, None);
        for (count, step) in self.steps.iter().rev().skip(1).enumerate() {
            let Some(grown) = next.queued.checked_sub(step.queued) else { break };
            largest = grown.max(largest);
            next = *step;
            let total = last.queued - step.queued;
            let took = last.arrived.saturating_sub(step.arrived);
            let steady = u128::from(largest) * 100 <= u128::from(total) * u128::from(JUMP);
            let steep = u128::from(total) * 100 >= u128::from(took) * u128::from(SLOPE);
            if count + 1 >= GROWS && total >= threshold && steady && steep {
                found = found.or(Some(*step));
            }
        }
        let first = found?;
        let took = last.arrived.saturating_sub(first.arrived);
        Some(rate(last.delivered.saturating_sub(first.delivered), took))
    }

    /// Returns the rate of delivery over the last steps, if each of them found a queue of at least `queued`: then the link
    /// was busy throughout. `None` for less than four steps.
    pub(super) fn busy_rate(&self, queued: u64) -> Option<u64> {
        let last = self.last()?;
        let first = self.steps.iter().rev().nth(GROWS)?;
        let busy = self.steps.iter().rev().take(GROWS + 1).all(|step| step.queued >= queued);
        let took = last.arrived.saturating_sub(first.arrived);
        busy.then(|| rate(last.delivered.saturating_sub(first.delivered), took))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns a trend after frames of 1,000 bytes, one in 5 ms, with these queueing delays in milliseconds.
    fn after(queued: &[u64]) -> Trend {
        let mut trend = Trend::new(10 * MS);
        for (number, queued) in (0..).zip(queued) {
            let (arrived, delivered) = (number * 5 * MS, number * 1_000);
            trend.note(Step { arrived, queued: queued * MS, delivered });
        }
        trend
    }

    #[test]
    fn steady_growth_is_found_with_the_rate_of_delivery() {
        let growing: Vec<u64> = (0..12).map(|number| number * 4).collect();
        assert_eq!(after(&growing).growth(10 * MS), Some(1_600_000));
        assert_eq!(after(&growing).busy_rate(5 * MS), Some(1_600_000));
        assert_eq!(after(&growing[..6]).growth(10 * MS), None, "too few steps");
        assert_eq!(after(&growing).growth(60 * MS), None, "not enough");
    }

    #[test]
    fn jitter_and_jumps_are_not_growth() {
        let jitter: Vec<u64> = (0..40).map(|number| number * 7_919 % 30).collect();
        let jump: Vec<u64> = (0..40).map(|number| if number < 20 { 0 } else { 40 }).collect();
        let stall: Vec<u64> = (0..20).map(|number| 100_u64.saturating_sub(number * 5)).collect();
        for end in 1..=40 {
            assert_eq!(after(&jitter[..end]).growth(15 * MS), None, "{end}");
            assert_eq!(after(&jump[..end]).growth(15 * MS), None, "{end}");
            assert_eq!(after(&stall[..end.min(20)]).growth(15 * MS), None, "{end}");
        }
    }

    #[test]
    fn a_pause_begins_anew() {
        let mut trend = after(&[0, 0, 9, 9, 18, 18]);
        trend.note(Step { arrived: 10_000 * MS, queued: 27 * MS, delivered: 10_000 });
        trend.note(Step { arrived: 10_010 * MS, queued: 36 * MS, delivered: 11_000 });
        assert_eq!((trend.growth(10 * MS), trend.busy_rate(0)), (None, None));
    }

    #[test]
    fn memory_is_bounded() {
        let trend = after(&vec![0; 10_000]);
        assert!(trend.steps.len() <= STEPS_MAX);
    }
}
