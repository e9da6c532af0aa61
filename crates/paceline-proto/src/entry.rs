//! Policing of streams where they enter a node: the limits of rules hold for all that arrives, not only for declarations.
//!
//! A stream has a bucket for its samples, and streams of the same identity and rules share one for their bytes: the generic
//! cell rate algorithm in integers (ITU-T I.371, annex A). Both have room for the samples that a path may hold back and
//! deliver at once, so a publisher within its limits loses nothing. A stream with a contract was counted before it was
//! granted. It has bytes of its own, so that best effort of the same identity costs it nothing, and leaves the others less.

use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The time for which a stream may exceed its limits, after as long below them.
const BURST: Duration = Duration::from_secs(5);
/// The clock of a publisher may be fast by one part in so many.
const DRIFT: u64 = 1_000;
/// The payers whose buckets are kept. A bucket is dropped when it is full again.
const PAYERS_MAX: usize = 4_096;

/// The limits of the samples of one stream that enters this node, by the rules for one identity: the publisher's, or that of
/// a relay.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntryLimit {
    /// The identity, and its rules that grant the tag. All their streams share the bytes.
    pub payer: Arc<str>,
    /// The samples of the stream, in millihertz; `None` does not limit.
    pub millihertz: Option<u64>,
    /// The bytes of all streams of the payer, in bytes per second; `None` does not limit.
    pub bytes_per_s: Option<u64>,
    /// A contract was granted for the stream.
    pub contracted: bool,
}

/// A bucket: the instant at which all that has passed is paid for.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket(Instant);

impl Bucket {
    fn has_room(self, now: Instant) -> bool {
        self.0.since(now) <= BURST
    }

    fn take(&mut self, now: Instant, cost: Duration) {
        self.0 = self.0.max(now) + cost;
    }
}

/// The limits of a stream, and their use.
#[derive(Debug, Default)]
pub struct EntryLimits {
    limits: Vec<EntryLimit>,
    samples: Bucket,
    bytes: Bucket,
}

impl EntryLimits {
    /// Sets the limits; all of them hold. Their use continues.
    pub fn set(&mut self, limits: Vec<EntryLimit>) {
        self.limits = limits;
    }
}

/// The bytes of the payers whose streams enter this node.
#[derive(Debug, Default)]
pub struct EntryPolice {
    payers: BTreeMap<Arc<str>, Bucket>,
}

impl EntryPolice {
    /// Charges a sample of `bytes` that arrives at `now`. Returns false if it exceeds a limit of its stream; then it costs
    /// nothing.
    pub fn admits(&mut self, now: Instant, stream: &mut EntryLimits, bytes: u64) -> bool {
        let fits = |limit: &EntryLimit| {
            let payer = self.payers.get(&limit.payer).copied().unwrap_or_default();
            let own = if limit.contracted { stream.bytes } else { payer };
            (limit.millihertz.is_none() || stream.samples.has_room(now))
                && (limit.bytes_per_s.is_none() || own.has_room(now))
        };
        if stream.limits.is_empty() {
            return true;
        }
        if !stream.limits.iter().all(fits) {
            return false;
        }
        let samples = stream.limits.iter().filter_map(|limit| limit.millihertz).min();
        if let Some(millihertz) = samples {
            stream.samples.take(now, cost(1_000, millihertz));
        }
        let own = stream.limits.iter().filter_map(|limit| limit.bytes_per_s).min();
        if let Some(bytes_per_s) = own {
            stream.bytes.take(now, cost(bytes, bytes_per_s));
        }
        for limit in &stream.limits {
            if let Some(bytes_per_s) = limit.bytes_per_s {
                self.take(now, &limit.payer, cost(bytes, bytes_per_s));
            }
        }
        true
    }

    fn take(&mut self, now: Instant, payer: &Arc<str>, cost: Duration) {
        if let Some(bucket) = self.payers.get_mut(payer) {
            return bucket.take(now, cost);
        }
        if self.payers.len() >= PAYERS_MAX {
            self.payers.retain(|_, bucket| bucket.0 > now);
        }
        let mut bucket = Bucket::default();
        bucket.take(now, cost);
        self.payers.insert(payer.clone(), bucket);
    }
}

/// Returns the time that `units` take at `per_s` units per second; a limit of 0 allows one piece per burst.
fn cost(units: u64, per_s: u64) -> Duration {
    if per_s == 0 {
        return BURST.mul_div(2, 1);
    }
    let per_s = u128::from(per_s) * u128::from(DRIFT + 1);
    let nanos = u128::from(units) * 1_000_000_000 * u128::from(DRIFT) / per_s;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4).min(u64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(
        payer: &str,
        millihertz: Option<u64>,
        bytes_per_s: Option<u64>,
        contracted: bool,
    ) -> EntryLimits {
        let limit = EntryLimit { payer: payer.into(), millihertz, bytes_per_s, contracted };
        EntryLimits { limits: vec![limit], ..EntryLimits::default() }
    }

    fn limit(millihertz: Option<u64>, bytes_per_s: Option<u64>) -> EntryLimits {
        limits("member", millihertz, bytes_per_s, false)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(1_000 + millis)
    }

    #[test]
    fn a_flood_passes_at_its_limit_after_the_burst() {
        let (mut stream, mut police) = (limit(Some(10_000), None), EntryPolice::default());
        let mut passed = |from: u64, to: u64| {
            (from..to).filter(|ms| police.admits(at(*ms), &mut stream, 9)).count()
        };
        assert!((150..=151).contains(&passed(0, 10_000)), "1,000 Hz for 10 s");
        assert!((100..=101).contains(&passed(10_000, 20_000)));
    }

    #[test]
    fn streams_of_a_payer_share_its_bytes() {
        let mut police = EntryPolice::default();
        let mut streams = [(); 4].map(|()| limit(None, Some(1_000)));
        let mut passed = 0;
        for ms in 0..100_000 {
            let stream = &mut streams[usize::try_from(ms % 4).unwrap()];
            passed += u64::from(police.admits(at(ms), stream, 100)) * 100;
        }
        assert!((100_000..=105_300).contains(&passed), "{passed}");
        let mut other = limits("other", None, Some(1_000), false);
        assert!(police.admits(at(100_000), &mut other, 100));
    }

    #[test]
    fn best_effort_costs_a_contract_of_the_same_identity_nothing_and_gets_the_rest() {
        let mut police = EntryPolice::default();
        let mut promised = limits("member", None, Some(10_000), true);
        let mut other = limits("member", None, Some(10_000), false);
        let (mut kept, mut passed) = (0, 0);
        for ms in 0..100_000 {
            // 6,000 bytes per second, and 100,000.
            if ms % 100 == 0 {
                kept += u64::from(police.admits(at(ms), &mut promised, 600));
            }
            passed += u64::from(police.admits(at(ms), &mut other, 100)) * 100;
        }
        assert_eq!(kept, 1_000);
        assert!((400_000..=455_000).contains(&passed), "{passed}");
    }

    #[test]
    fn all_limits_hold_and_a_relay_pays_for_all_its_streams() {
        let mut police = EntryPolice::default();
        let of = |name: &str| {
            let mut stream = limits(name, None, Some(1_000_000), false);
            stream.limits.extend(limits("relay", None, Some(1_000), false).limits);
            stream
        };
        let mut streams = ["a", "b", "c"].map(of);
        let mut passed = 0;
        for ms in 0..30_000 {
            let stream = &mut streams[usize::try_from(ms % 3).unwrap()];
            passed += u64::from(police.admits(at(ms), stream, 100)) * 100;
        }
        assert!((30_000..=35_300).contains(&passed), "{passed}");
    }

    proptest! {
        /// However a path holds a stream back for up to 5 s, a publisher within its limits loses nothing; and whatever arrives,
        /// no window has more than the limit and one burst.
        #[test]
        fn honest_streams_pass_and_no_window_exceeds_the_limit(
            millihertz in 100u64..2_000_000,
            held in prop::collection::vec(0u64..5_000, 1..40),
            flood in prop::collection::vec((0u64..400, 0u64..2_000), 1..200),
        ) {
            let (mut police, mut honest) = (EntryPolice::default(), limit(Some(millihertz), None));
            let mut last = at(0);
            for number in 0..2_000u64 {
                // Its clock is fast by 0.1 %.
                let sent = number * 999_000_000_000 / millihertz;
                let delay = held[(sent / 7_000_000_000) as usize % held.len()] * 1_000_000;
                // The path keeps order.
                last = last.max(Instant::from_nanos(1_000_000_000 + sent + delay));
                prop_assert!(police.admits(last, &mut honest, 1), "sample {number}");
            }
            let (mut stream, mut now) = (limit(None, Some(1_000)), 0);
            let passed: Vec<(u64, u64)> = flood.iter().filter_map(|&(gap, bytes)| {
                now += gap;
                police.admits(at(now), &mut stream, bytes).then_some((now, bytes))
            }).collect();
            for (first, (begin, _)) in passed.iter().enumerate() {
                let mut sum = 0;
                for (end, bytes) in &passed[first..] {
                    sum += bytes;
                    // One burst, and the piece that fills it.
                    prop_assert!(sum <= (end - begin) * 1_001 / 1_000 + 5_000 + 2_010, "{sum} in {}", end - begin);
                }
            }
        }
    }
}
