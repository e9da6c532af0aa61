//! Temporal scaling: selects the samples of a source that a stream carries.

use crate::form::Rate;
use paceline_sched::Duration;

/// Selects samples at exactly the requested rate and evenly spread, with jitter up to 7/16 of the source's
/// interval.
///
/// [`Rate::Every`] counts sequence numbers. [`Rate::Max`] advances along ideal instants, one requested
/// interval apart. It takes the first sample that is no more than 7/16 of a source interval before the next
/// instant. For example 30 → 20 Hz takes two of three samples, 30 → 10 Hz one in three, and 30 → 29 Hz drops
/// one per second.
///
/// An [aligned](Self::align) scaler takes the samples at fixed points of the source: one in n takes the multiples of n. So
/// aligned scalers on several nodes take the same samples. Any other scaler begins with the first sample that it sees.
///
/// If the publisher declared its period, a sample's time is sequence number × period, so jitter has no
/// effect. Otherwise it is the capture time. A step of the clock costs one or two samples; the series then
/// continues.
///
/// Paper: seed 000 §2.1 (a proxy that scales in time), made exact.
#[derive(Clone, Debug)]
pub struct TemporalScaler {
    rate: Rate,
    declared: Option<Duration>,
    aligned: bool,
    /// The next sequence number (one in n) or the next ideal instant in nanoseconds (maximum rate).
    due: Option<u64>,
    last: Option<Last>,
    interval: u64,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    seq: u64,
    captured_ns: u64,
    at: u64,
}

/// A gap of at least this many intervals is a pause or a clock step; the interval estimate ignores it.
const PAUSE: u64 = 16;

impl TemporalScaler {
    /// Creates a scaler; `period` is the source's declared period, if any.
    #[must_use]
    pub const fn new(rate: Rate, period: Option<Duration>) -> Self {
        Self { rate, declared: period, aligned: false, due: None, last: None, interval: 0 }
    }

    /// Takes the samples at fixed points of the source from now on. A maximum rate is aligned only if the period of the
    /// source is declared.
    pub const fn align(&mut self) {
        let known = matches!(self.rate, Rate::All | Rate::Every(_)) || self.declared.is_some();
        self.aligned |= known;
    }

    /// Returns true if the sample `seq`, captured at `captured_ns`, belongs to the scaled stream.
    ///
    /// Call this once for each sample of the source, in order. Missing samples do no harm.
    pub fn take(&mut self, seq: u64, captured_ns: u64) -> bool {
        match self.rate {
            Rate::All => true,
            Rate::Every(n) if self.aligned => Self::take_aligned(seq, (n.get().into(), 0, 1)),
            Rate::Every(n) => self.take_at(seq, u64::from(n.get()), 0),
            Rate::Max(millihertz) => {
                let asked = 1_000_000_000_000 / u64::from(millihertz.get());
                let at = self.source_time(seq, captured_ns);
                let slack = self.interval / 16 * 7;
                match self.aligned {
                    true => Self::take_aligned(at, (asked, slack, self.interval)),
                    false => self.take_at(at, asked, slack),
                }
            }
        }
    }

    /// Takes each point that is the first one no more than `slack` before a multiple of `step`, for a source with the
    /// interval `each`. It does not replace a lost one, because another stream may have carried that.
    fn take_aligned(at: u64, (step, slack, each): (u64, u64, u64)) -> bool {
        let multiple = |at: u64| at.saturating_add(slack) / step.max(1);
        at.checked_sub(each).is_none_or(|before| multiple(before) < multiple(at))
    }

    /// Takes the first point no more than `slack` before the next point of a series with the interval `step`.
    fn take_at(&mut self, at: u64, step: u64, slack: u64) -> bool {
        let Some(due) = self.due else {
            self.due = Some(at.saturating_add(step));
            return true;
        };
        if at.saturating_add(slack) < due {
            return false;
        }
        let next = due.saturating_add(step);
        // More than a step behind: the source paused or is slower than requested, so start a new series.
        let behind = next.saturating_add(slack) <= at;
        self.due = Some(if behind { at.saturating_add(step) } else { next });
        true
    }

    /// Returns the sample's time on the source's own scale, and updates the interval estimate.
    fn source_time(&mut self, seq: u64, captured_ns: u64) -> u64 {
        if let Some(period) = self.declared {
            self.interval = period.as_nanos();
            return seq.saturating_mul(period.as_nanos());
        }
        let mut at = captured_ns;
        if let Some(last) = self.last
            && seq > last.seq
        {
            let samples = seq - last.seq;
            let gap = captured_ns.checked_sub(last.captured_ns);
            // After a backward step the gap is unknown, so assume the estimated interval for each sample.
            let passed = gap.unwrap_or_else(|| self.interval.saturating_mul(samples));
            at = last.at.saturating_add(passed);
            self.learn(gap.map(|gap| gap / samples));
        }
        self.last = Some(Last { seq, captured_ns, at });
        at
    }

    /// Updates the interval estimate with the time between two samples.
    fn learn(&mut self, gap: Option<u64>) {
        let Some(gap) = gap else { return };
        let (known, pause) = (self.interval, self.interval.saturating_mul(PAUSE));
        if known == 0 || gap.saturating_mul(PAUSE) < known {
            // This is the first gap, or the estimate was taken from a pause.
            self.interval = gap;
        } else if gap < pause {
            self.interval = known / 8 * 7 + gap / 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;
    use proptest::prelude::*;

    fn max_hz(hertz: u32) -> Rate {
        Rate::Max(NonZeroU32::new(hertz * 1_000).unwrap())
    }

    fn taken(rate: Rate, period: Option<Duration>, times: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut scaler = TemporalScaler::new(rate, period);
        (0..).zip(times).filter(|&(seq, at)| scaler.take(seq, at)).map(|(seq, _)| seq).collect()
    }

    fn at_30_hz() -> impl Iterator<Item = u64> {
        (0..300u64).map(|k| 1_700_000_000_000_000_000 + k * 1_000_000_000 / 30)
    }

    #[test]
    fn thirty_to_ten_hz_keeps_one_in_three_and_to_twenty_two_in_three() {
        let period = Some(Duration::from_nanos(33_333_333));
        for declared in [period, None] {
            let ten = taken(max_hz(10), declared, at_30_hz());
            assert_eq!(ten, (0..100).map(|k| k * 3).collect::<Vec<_>>());
            let twenty = taken(max_hz(20), declared, at_30_hz());
            assert_eq!(twenty.len(), 200);
            assert!(twenty.windows(2).all(|pair| pair[1] - pair[0] <= 2));
            assert_eq!(taken(max_hz(30), declared, at_30_hz()).len(), 300);
            assert_eq!(taken(max_hz(60), declared, at_30_hz()).len(), 300);
            assert_eq!(taken(max_hz(29), declared, at_30_hz()).len(), 290);
        }
    }

    #[test]
    fn pauses_and_clock_steps_cost_at_most_two_samples() {
        let year = 365 * 86_400_000_000_000;
        for step in [-10 * year, -1, 1_000_000_000, 10 * year, i64::MAX] {
            let stepped = at_30_hz()
                .enumerate()
                .map(|(k, at)| if k < 100 { at } else { at.saturating_add_signed(step) });
            let got = taken(max_hz(10), None, stepped);
            let after = got.iter().filter(|&&seq| seq >= 100).count();
            // Capture times that saturate at the largest value give no information.
            let expected = if step == i64::MAX { 0..=68 } else { 66..=68 };
            assert!(expected.contains(&after), "{step}: {after}");
            // The same, with the step after the first sample.
            let late = at_30_hz()
                .enumerate()
                .map(|(k, at)| if k == 0 { at } else { at.saturating_add_signed(step) });
            let got = taken(max_hz(10), None, late).len();
            assert!(step == i64::MAX || (99..=104).contains(&got), "{step}: {got}");
        }
    }

    #[test]
    fn one_in_n_keeps_its_phase_across_losses() {
        let mut scaler = TemporalScaler::new(Rate::Every(NonZeroU32::new(3).unwrap()), None);
        let seen =
            [5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 17].into_iter().filter(|&s| scaler.take(s, 0));
        assert_eq!(seen.collect::<Vec<_>>(), [5, 8, 12, 14, 17]);
    }

    proptest! {
        #[test]
        fn aligned_scalers_take_the_same_samples_wherever_they_begin(
            asked in prop_oneof![
                (1..9_u32).prop_map(|n| Rate::Every(NonZeroU32::new(n).unwrap())),
                (1..40_u32).prop_map(max_hz),
            ],
            begin in 0..50_u64,
            lost in prop::collection::btree_set(0..300_u64, 0..20),
        ) {
            let period = Some(Duration::from_nanos(33_333_333));
            let taken = |begin: u64| {
                let mut scaler = TemporalScaler::new(asked, period);
                scaler.align();
                (begin..300).filter(|seq| !lost.contains(seq)).filter(|seq| scaler.take(*seq, 7)).collect::<Vec<_>>()
            };
            let (all, later) = (taken(0), taken(begin));
            prop_assert_eq!(all.into_iter().filter(|seq| *seq >= begin).collect::<Vec<_>>(), later);
        }

        #[test]
        fn the_rate_is_exact_under_jitter(asked in 1u32..=40, jitter in prop::collection::vec(0u64..14_000_000, 600)) {
            let base = 1_700_000_000_000_000_000u64;
            let times = jitter.iter().enumerate().map(|(k, j)| base + k as u64 * 33_333_333 + j);
            let got = taken(max_hz(asked), None, times).len() as i64;
            let want = i64::from(asked.min(30)) * 20;
            prop_assert!((got - want).abs() <= 2, "{} Hz gave {} of {}", asked, got, want);
        }
    }
}
