//! The loss on a measured link, and the share of the link that its repairs need.
//!
//! A repair costs as much as the frame that was lost, and may be lost too. So the share is a multiple of the loss, with a part for
//! losses that have not been seen yet. It grows at once, and shrinks with the mean of ten seconds.

use crate::budget::RepairShare;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The time of one count.
const COUNT: Duration = Duration::from_secs(1);
/// The counts that are kept.
const COUNTS: usize = 10;
/// The frames without which nothing is known: of all counts, and of the last two.
const KNOWN: u64 = 200;
const KNOWN_NOW: u64 = 50;
/// The share for the loss of one frame in a thousand, in thousandths, beyond the least share.
const PER_LOSS: u64 = 3;
/// A smaller change of the share is not worth new tests of all contracts, in thousandths.
const SAME: u64 = 10;

/// Frames that have arrived, and lost ones.
type Count = (u64, u64);

/// The losses of the last seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct LossMeter {
    counts: VecDeque<Count>,
    /// The totals at the beginning of the present count, and its time.
    before: Count,
    begun: Option<Instant>,
}

impl LossMeter {
    /// Notes the totals so far. Returns the share that repairs need if it should change from `present`.
    pub(super) fn note(
        &mut self,
        now: Instant,
        (arrived, lost): Count,
        present: RepairShare,
    ) -> Option<RepairShare> {
        let begun = *self.begun.get_or_insert(now);
        if now.since(begun) < COUNT {
            return None;
        }
        self.begun = Some(now);
        let before = std::mem::replace(&mut self.before, (arrived, lost));
        let count = (arrived.saturating_sub(before.0), lost.saturating_sub(before.1));
        if self.counts.len() >= COUNTS {
            self.counts.pop_front();
        }
        self.counts.push_back(count);
        let wanted = self.wanted()?;
        let (is, was) = (wanted.per_mille(), present.per_mille());
        let less = is + SAME < was || is < was && wanted == RepairShare::LEAST;
        let lower = less && self.counts.len() >= COUNTS;
        (is > was + SAME / 2 || lower).then_some(wanted)
    }

    /// Returns the share for the greater loss of all counts and of the last two; `None` if too few frames were sent.
    fn wanted(&self) -> Option<RepairShare> {
        let sum = |counts: &mut dyn Iterator<Item = &Count>| {
            counts.fold((0, 0), |(a, b), (arrived, lost)| (a + arrived, b + lost))
        };
        let loss = |(arrived, lost): Count| lost * 1_000 / (arrived + lost).max(1);
        let all = sum(&mut self.counts.iter());
        let last = sum(&mut self.counts.iter().rev().take(2));
        let is_known = |(arrived, lost): Count, least| arrived + lost >= least;
        let now = if is_known(last, KNOWN_NOW) { loss(last) } else { 0 };
        is_known(all, KNOWN).then(|| {
            RepairShare::new(RepairShare::LEAST.per_mille() + PER_LOSS * loss(all).max(now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts 1,000 frames each second with these losses. Returns the share after each.
    fn shares(losses: &[u64]) -> Vec<u64> {
        let (mut meter, mut share) = (LossMeter::default(), RepairShare::MOST);
        let (mut arrived, mut lost) = (0, 0);
        meter.note(Instant::from_millis(1), (0, 0), share);
        let after = (2..).zip(losses).map(|(second, losses)| {
            (arrived, lost) = (arrived + 1_000 - losses, lost + losses);
            let now = Instant::from_millis(1 + (second - 1) * 1_000);
            share = meter.note(now, (arrived, lost), share).unwrap_or(share);
            share.per_mille()
        });
        after.collect()
    }

    #[test]
    fn the_share_shrinks_after_ten_seconds_and_grows_at_once() {
        let quiet = shares(&[0; 12]);
        assert_eq!((quiet[8], quiet[9], quiet[11]), (100, 60, 60));
        let mut losses = [0; 24];
        losses[12] = 20;
        let once = shares(&losses);
        assert_eq!((once[11], once[12]), (60, 90), "half of the last two seconds, 1 %");
        assert_eq!(once[22], 60, "forgotten");
        assert_eq!(shares(&[400; 12]), [100; 12], "at most");
    }

    #[test]
    fn few_frames_change_nothing() {
        let (mut meter, share) = (LossMeter::default(), RepairShare::MOST);
        for second in 1..100 {
            let totals = (second * 15, 0);
            assert_eq!(meter.note(Instant::from_millis(second * 1_000), totals, share), None);
        }
    }

    proptest! {
        #[test]
        fn the_share_stays_in_range_and_covers_a_constant_loss(
            losses in prop::collection::vec(0..1_000_u64, 1..40),
            constant in 0..1_000_u64,
        ) {
            for share in shares(&losses) {
                prop_assert!((60..=100).contains(&share));
            }
            let last = shares(&[constant; 20])[19];
            prop_assert!(last >= (constant * 11 / 10).min(100), "{last} for {constant}");
        }
    }
}
