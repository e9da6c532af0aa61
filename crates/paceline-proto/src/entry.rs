//! Policing of streams where they enter a node: the limits of a rule hold for what arrives, not only for what is declared.
//!
//! A stream has one bucket for its samples, and an identity one for the bytes of all its streams: the generic cell rate
//! algorithm in integers (ITU-T I.371, annex A). Both have room for what a path may hold back and deliver at once, so a
//! publisher within its limits loses nothing.

use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The time for which a stream may exceed its limits, after as long below them.
const BURST: Duration = Duration::from_secs(5);
/// The identities whose buckets are kept. A bucket is dropped when it is full again.
const IDENTITIES_MAX: usize = 4_096;

/// The limits of the samples of one stream that enters this node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EntryLimit {
    /// The identity that publishes, as rules name it. All its streams share the bytes.
    pub identity: Arc<str>,
    /// The samples of the stream, in millihertz; `None` does not limit.
    pub millihertz: Option<u64>,
    /// The bytes of all streams of the identity, in bytes per second; `None` does not limit.
    pub bytes_per_s: Option<u64>,
}

impl EntryLimit {
    /// Returns the limits that hold if both do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        Self {
            millihertz: least(self.millihertz, other.millihertz),
            bytes_per_s: least(self.bytes_per_s, other.bytes_per_s),
            ..self
        }
    }
}

/// A bucket: the instant at which all that has passed is paid for.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryBucket(Instant);

impl EntryBucket {
    fn has_room(self, now: Instant) -> bool {
        self.0.since(now) <= BURST
    }

    fn take(&mut self, now: Instant, cost: Duration) {
        self.0 = self.0.max(now) + cost;
    }
}

/// The buckets of the identities whose streams enter this node.
#[derive(Debug, Default)]
pub struct EntryPolice {
    identities: BTreeMap<Arc<str>, EntryBucket>,
}

impl EntryPolice {
    /// Charges a sample of `bytes` that arrives at `now` in a stream with the bucket `stream`. Returns false if it exceeds the
    /// limits; then it costs nothing, so the limit of the rest is what remains.
    pub fn admits(
        &mut self,
        now: Instant,
        limit: &EntryLimit,
        stream: &mut EntryBucket,
        bytes: u64,
    ) -> bool {
        let sample = limit.millihertz.map(|limit| cost(1_000, limit));
        let payload = limit.bytes_per_s.map(|limit| cost(bytes, limit));
        let of_identity = self.identities.get(&limit.identity).copied().unwrap_or_default();
        if sample.is_some() && !stream.has_room(now)
            || payload.is_some() && !of_identity.has_room(now)
        {
            return false;
        }
        if let Some(cost) = sample {
            stream.take(now, cost);
        }
        if let Some(cost) = payload {
            self.take(now, &limit.identity, cost);
        }
        true
    }

    fn take(&mut self, now: Instant, identity: &Arc<str>, cost: Duration) {
        if let Some(bucket) = self.identities.get_mut(identity) {
            return bucket.take(now, cost);
        }
        if self.identities.len() >= IDENTITIES_MAX {
            self.identities.retain(|_, bucket| bucket.0 > now);
        }
        let mut bucket = EntryBucket::default();
        bucket.take(now, cost);
        self.identities.insert(identity.clone(), bucket);
    }
}

/// Returns the time that `units` take at `per_s` units per second; a limit of 0 allows one piece per burst.
fn cost(units: u64, per_s: u64) -> Duration {
    if per_s == 0 {
        return BURST.mul_div(2, 1);
    }
    let nanos = u128::from(units) * 1_000_000_000 / u128::from(per_s);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4).min(u64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit(millihertz: Option<u64>, bytes_per_s: Option<u64>) -> EntryLimit {
        EntryLimit { identity: "member".into(), millihertz, bytes_per_s }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(1_000 + millis)
    }

    #[test]
    fn a_flood_passes_at_its_limit_after_the_burst() {
        let (limit, mut police) = (limit(Some(10_000), None), EntryPolice::default());
        let mut stream = EntryBucket::default();
        let mut passed = |from: u64, to: u64| {
            (from..to).filter(|ms| police.admits(at(*ms), &limit, &mut stream, 9)).count()
        };
        assert_eq!(passed(0, 10_000), 100 + 50, "1,000 Hz for 10 s");
        assert_eq!(passed(10_000, 20_000), 100);
    }

    #[test]
    fn streams_of_an_identity_share_its_bytes() {
        let (limit, mut police) = (limit(None, Some(1_000)), EntryPolice::default());
        let mut streams = [EntryBucket::default(); 4];
        let mut passed = 0;
        for ms in 0..100_000 {
            let stream = &mut streams[usize::try_from(ms % 4).unwrap()];
            passed += u64::from(police.admits(at(ms), &limit, stream, 100)) * 100;
        }
        assert!((100_000..=105_100).contains(&passed), "{passed}");
        let other = EntryLimit { identity: "other".into(), ..limit };
        assert!(police.admits(at(100_000), &other, &mut streams[0], 100));
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
            let honest = limit(Some(millihertz), None);
            let (mut police, mut stream) = (EntryPolice::default(), EntryBucket::default());
            let mut last = at(0);
            for number in 0..2_000u64 {
                let sent = number * 1_000_000_000_000 / millihertz;
                let delay = held[(sent / 7_000_000_000) as usize % held.len()] * 1_000_000;
                // The path keeps order.
                last = last.max(Instant::from_nanos(1_000_000_000 + sent + delay));
                prop_assert!(police.admits(last, &honest, &mut stream, 1), "sample {number}");
            }
            let rate = limit(None, Some(1_000));
            let mut now = 0;
            let passed: Vec<(u64, u64)> = flood.iter().filter_map(|&(gap, bytes)| {
                now += gap;
                police.admits(at(now), &rate, &mut stream, bytes).then_some((now, bytes))
            }).collect();
            for (first, (begin, _)) in passed.iter().enumerate() {
                let mut sum = 0;
                for (end, bytes) in &passed[first..] {
                    sum += bytes;
                    // One burst, and the piece that fills it.
                    prop_assert!(sum <= (end - begin) + 5_000 + 2_000, "{sum} in {}", end - begin);
                }
            }
        }
    }
}
