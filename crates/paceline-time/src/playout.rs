//! Synchronised playout: the streams of a group leave at the same instant, their capture time plus the group's delay.
//!
//! Where the errors of both clocks are known, the instant is one of UTC, so groups on several hosts agree within the
//! errors of their clocks ([`until_release`]). Elsewhere the streams of one publishing node still agree with each
//! other, because all of them refer to the same origin ([`Origins`]).

use crate::TimeBounds;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// Origins are the minimum of one to two spans of this length.
const SPAN: Duration = Duration::from_secs(10);
/// A difference that is larger than the known one by more is a step of the publisher's clock.
const STEP: i64 = 1_000_000_000;
/// The limit of publishing nodes with an origin; beyond it, all start again.
const ORIGINS_MAX: usize = 4_096;

/// Returns the time from now until `captured` plus `delay` by a clock whose present time is inside `utc`; negative if
/// that has passed. All are nanoseconds, `captured` since 1970.
///
/// `None` if all of `captured` is in the future, or if its error or that of the clock is above one second: then the
/// clocks determine nothing.
///
/// ```
/// use paceline_time::TimeBounds;
/// use paceline_time::playout::until_release;
///
/// let captured = TimeBounds::new(5_000_000_000, 1_000);
/// let now = TimeBounds::new(5_030_000_000, 50_000);
/// assert_eq!(until_release(captured, 100_000_000, now), Some(70_000_000));
/// assert_eq!(until_release(TimeBounds::new(9_000_000_000, 1_000), 100_000_000, now), None);
/// ```
#[must_use]
pub fn until_release(captured: TimeBounds, delay: u64, utc: TimeBounds) -> Option<i64> {
    let wide = 2 * STEP.unsigned_abs();
    if captured.earliest > utc.latest
        || captured.latest - captured.earliest > wide
        || utc.latest - utc.earliest > wide
    {
        return None;
    }
    let left = i128::from(captured.middle().saturating_add(delay)) - i128::from(utc.middle());
    i64::try_from(left).ok()
}

/// The differences between this host's monotonic clock and the clocks of publishing nodes.
///
/// The difference of a node is the smallest one of publish and capture time of all its streams. So the stream whose
/// capture and publish are closest together determines it, and a stream that needs longer for coding is not shifted
/// against it. Clock skew moves the difference, so the last 10 to 20 s count.
///
/// ```
/// use paceline_sched::{Duration, Instant};
/// use paceline_time::playout::Origins;
///
/// let mut origins = Origins::default();
/// let delay = Duration::from_millis(100);
/// // Sound is published 5 ms after capture, and a picture of the same time 40 ms after it.
/// let sound = origins.release(1, Instant::from_millis(2_005), 7_000_000_000, delay);
/// let picture = origins.release(1, Instant::from_millis(2_040), 7_000_000_000, delay);
/// assert_eq!(sound, picture);
/// ```
#[derive(Clone, Debug)]
pub struct Origins<N> {
    nodes: BTreeMap<N, Origin>,
}

impl<N> Default for Origins<N> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new() }
    }
}

/// The difference of one node: the minimum of this span and of the one before.
#[derive(Clone, Copy, Debug)]
struct Origin {
    span: u64,
    this: i64,
    before: i64,
}

impl<N: Ord + Copy> Origins<N> {
    /// Returns the release time of a sample that `node` captured at `stamp_nanos` of its clock, and published at
    /// `published` of this host's clock.
    pub fn release(
        &mut self,
        node: N,
        published: Instant,
        stamp_nanos: u64,
        delay: Duration,
    ) -> Instant {
        let stamp = signed(stamp_nanos);
        let difference = signed(published.as_nanos()).saturating_sub(stamp);
        let span = published.as_nanos() / SPAN.as_nanos();
        if self.nodes.len() >= ORIGINS_MAX && !self.nodes.contains_key(&node) {
            self.nodes.clear();
        }
        let fresh = Origin { span, this: difference, before: difference };
        let origin = self.nodes.entry(node).or_insert(fresh);
        if difference.saturating_sub(origin.this.min(origin.before)).saturating_abs() > STEP {
            *origin = fresh;
        }
        match span.saturating_sub(origin.span) {
            0 => origin.this = origin.this.min(difference),
            1 => *origin = Origin { span, this: difference, before: origin.this },
            _ => *origin = fresh,
        }
        let at = stamp.saturating_add(origin.this.min(origin.before));
        let at = at.saturating_add(signed(delay.as_nanos()));
        Instant::from_nanos(u64::try_from(at).unwrap_or_default())
    }
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DELAY: Duration = Duration::from_millis(150);

    #[test]
    fn wrong_clocks_determine_nothing() {
        let now = TimeBounds::new(5_000_000_000, 1_000);
        for captured in [
            TimeBounds::new(5_000_100_000, 1_000),
            TimeBounds::new(u64::MAX, 0),
            TimeBounds::new(5_000_000_000, 1_100_000_000),
            TimeBounds::new(5_000_000_000, u64::MAX),
        ] {
            assert_eq!(until_release(captured, 1_000, now), None, "{captured:?}");
        }
        let unknown = TimeBounds { earliest: 0, latest: u64::MAX };
        assert_eq!(until_release(now, 1_000, unknown), None);
        let past = until_release(TimeBounds::new(1_000, 1_000), 1_000, now);
        assert_eq!(past, Some(-4_999_998_000), "a time of 1970 is late, not held");
    }

    #[test]
    fn a_step_of_the_clock_starts_the_origin_again() {
        let mut origins = Origins::default();
        let at = |millis| Instant::from_millis(millis);
        origins.release(1, at(1_000), 500_000_000_000, DELAY);
        // An hour ahead, an hour back, and to zero.
        for stamp in [4_100_000_000_000, 400_000_000_000, 0] {
            assert_eq!(origins.release(1, at(1_010), stamp, DELAY), at(1_010) + DELAY);
        }
    }

    proptest! {
        /// Two receivers whose clocks are inside their bounds release a sample within the sum of the bounds.
        #[test]
        fn the_mismatch_is_at_most_the_sum_of_the_errors(
            now in 1_000_000_000_000u64..2_000_000_000_000,
            age in 0u64..100_000_000,
            bounds in prop::array::uniform2((0u64..5_000_000, -100i64..=100)),
        ) {
            let captured = TimeBounds::new(now - age, 1_000_000);
            // Each clock is off by a part of its bound.
            let releases = bounds.map(|(bound, part)| {
                let off = i64::try_from(bound).unwrap() * part / 100;
                let utc = TimeBounds::new(now.saturating_add_signed(off), bound);
                until_release(captured, 150_000_000, utc).unwrap()
            });
            let mismatch = releases[0].abs_diff(releases[1]);
            prop_assert!(mismatch <= bounds[0].0 + bounds[1].0);
        }

        /// Streams of one node with different times from capture to publish: samples of the same capture time leave
        /// together once the fastest stream is known, and none waits longer than the delay after publish.
        #[test]
        fn streams_of_a_node_stay_together(
            coding in prop::collection::vec(0u64..80, 2..5),
            skew_ppm in 0u64..200,
            steps in 50u64..400,
        ) {
            let mut origins = Origins::default();
            let mut worst = 0;
            for step in 0..steps {
                let captured = 100_000 + 10 * step;
                let stamp = (captured * 1_000 + captured * skew_ppm / 1_000) * 1_000;
                let releases: Vec<Instant> = coding
                    .iter()
                    .map(|coding| {
                        let published = Instant::from_millis(captured + coding);
                        let at = origins.release(7, published, stamp, DELAY);
                        assert!(at <= published + DELAY);
                        at
                    })
                    .collect();
                if step > 0 {
                    let (first, last) = (releases.iter().min(), releases.iter().max());
                    worst = worst.max(last.unwrap().since(*first.unwrap()).as_nanos());
                }
            }
            // The skew within one span, once per span.
            prop_assert!(worst <= skew_ppm * 20_000, "{worst}");
        }
    }
}
