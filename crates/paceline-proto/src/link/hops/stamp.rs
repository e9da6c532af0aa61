//! The stamp of the other end to answer, which proves the age of its samples.

use crate::wire::frame::Echo;
use paceline_sched::{Duration, Instant};

/// A slower stamp does not replace one that is younger than this.
const STAYS: Duration = Duration::from_secs(1);
/// An older stamp is not sent back, because clocks run at different rates, unless new ones are rarer on a slow link.
const LASTS: Duration = Duration::from_secs(2);

/// The stamp that proves the shortest transit from the other end, and its arrival.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeardStamp(Option<(u32, Instant)>);

impl HeardStamp {
    /// Keeps a stamp, unless a recent one has arrived after a shorter time.
    pub(super) fn note(&mut self, now: Instant, stamp: u32) {
        let slower = self.0.is_some_and(|(best, arrived)| {
            let since = now.since(arrived);
            let lead = stamp.wrapping_sub(best);
            // An overtaken stamp is older.
            let overtaken = lead > u32::MAX / 2;
            let lead = Duration::from_micros(lead.into()).saturating_add(Echo::drift(since));
            since < STAYS && (overtaken || lead < since)
        });
        if !slower {
            self.0 = Some((stamp, now));
        }
    }

    /// Returns the answer to the stamp, if it has arrived lately: within 2 s, or `silence_max` if that is longer.
    pub(super) fn echo(&self, now: Instant, silence_max: Duration) -> Option<Echo> {
        let (stamp, arrived) = self.0?;
        let since = now.since(arrived);
        (since < LASTS.max(silence_max)).then_some(Echo { stamp, since })
    }
}
