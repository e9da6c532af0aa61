//! Samples of one publisher keep their order, whatever their measured times.

use super::{Staged, SyncGroup};
use crate::Sample;
use crate::deliver::TimeBuffering;
use crate::deliver::queue::{Needed, Unread};
use paceline_proto::{Encoding, Kind, NodeId, PublisherId, RawSample, Tag, Timestamp};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::spacing::Depth;
use std::sync::Arc;

const PUBLISHERS: u32 = 3;
const MILLI: u64 = 1_000_000;
/// UTC minus the monotonic clock.
const UTC: u64 = 1_795_737_600_000_000_000;

/// Random numbers (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

fn unread(index: u32, seq: u64, captured: Timestamp) -> Unread {
    let delivery = Sample {
        tag: Tag::new("a").unwrap(),
        publisher: PublisherId { node: NodeId(1), index },
        seq,
        captured,
        age: std::time::Duration::ZERO,
        late: false,
        actuation: None,
        placement: None,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        payload: vec![0; 10].into(),
        attachment: None,
    };
    let (since, requested) = (Instant::ZERO, std::time::Duration::ZERO);
    Unread { delivery, since, requested, needed: Needed::default(), until: None }
}

/// Delivers samples of three publishers whose ages are measured with errors of up to 20 ms, of which a third has no bound,
/// by clocks whose errors change and are unknown for some samples. Returns the number of samples that left.
fn run(staged: &mut Staged, seed: u64) -> u64 {
    let mut rng = Rng(seed);
    let (mut now, mut next, mut last) = (1_000 * MILLI, [0; 3], [None; 3]);
    let mut left = 0;
    let mut drain = |staged: &mut Staged, now: u64, error: u64| {
        let utc = || Some(TimeBounds::new(UTC + now + error / 3, error));
        while let Some(unread) = staged.poll(Instant::from_nanos(now), utc) {
            let Sample { publisher, seq, .. } = unread.delivery;
            let last = &mut last[publisher.index as usize];
            assert!(last.is_none_or(|last| last < seq), "seed {seed}: {seq} after {last:?}");
            *last = Some(seq);
            left += 1;
        }
    };
    for _ in 0..2_000 {
        now += rng.below(2 * MILLI);
        let error = 1 + rng.below(8 * MILLI);
        drain(staged, now, error);
        let index = rng.below(u64::from(PUBLISHERS));
        let at = usize::try_from(index).unwrap();
        let age = rng.below(30 * MILLI);
        let captured = Timestamp { nanos: UTC + now - age, error: 10 };
        let doubt = match rng.below(3) {
            0 => RawSample::UNPROVEN,
            _ => Duration::from_nanos(20 * MILLI + rng.below(MILLI)),
        };
        let measured = now - age + rng.below(20 * MILLI);
        let published_at = Instant::from_nanos(measured.min(now));
        let sample =
            RawSample { seq: next[at], captured, published_at, doubt, ..RawSample::default() };
        let clocks = (rng.below(2) == 0).then(|| {
            let captured = TimeBounds::of_stamp(captured.nanos, captured.error);
            (captured, TimeBounds::new(UTC + now + error / 3, error))
        });
        let arrived = Instant::from_nanos(now);
        let unread = unread(u32::try_from(index).unwrap(), next[at], captured);
        next[at] += 1;
        if rng.below(50) == 0 {
            staged.handle_latched(arrived, unread);
        } else {
            staged.handle(arrived, &sample, clocks, unread);
        }
        drain(staged, now, error);
        if let Some(release) = staged.next_release() {
            // Every other time the thread wakes up too late.
            now = now.max(release.as_nanos().min(now + rng.below(2 * MILLI)));
        }
    }
    drain(staged, now + 10_000 * MILLI, 1);
    left
}

#[test]
fn no_sample_leaves_before_an_earlier_one_of_its_publisher() {
    let ms = Duration::from_millis;
    for seed in 0..20 {
        let group = Arc::new(SyncGroup::new(&format!("order-{seed}"), ms(40)));
        let depth = Depth::default();
        for mut staged in [
            Staged::ordered(TimeBuffering::by_time(std::time::Duration::from_millis(20))).unwrap(),
            Staged::delayed(ms(40), ms(2)),
            Staged::spaced(depth),
            Staged::together(group.clone()),
        ] {
            assert_eq!(run(&mut staged, seed), 2_000);
        }
    }
}

#[test]
fn a_sample_whose_age_has_no_bound_keeps_its_place() {
    let order = TimeBuffering::by_time(std::time::Duration::from_millis(50));
    let mut staged = Staged::ordered(order).unwrap();
    let now = Instant::from_millis(10_000);
    for (seq, doubt) in [(0, RawSample::UNPROVEN), (1, Duration::from_millis(1))] {
        let published_at = now - Duration::from_millis(9 - seq);
        let sample = RawSample { seq, published_at, doubt, ..RawSample::default() };
        assert!(staged.handle(now, &sample, None, unread(0, seq, Timestamp::default())));
    }
    // Another publisher's sample, after both.
    let published_at = now - Duration::from_millis(2);
    let sample = RawSample { seq: 0, published_at, ..RawSample::default() };
    staged.handle(now, &sample, None, unread(1, 0, Timestamp::default()));
    let left = std::iter::from_fn(|| staged.poll(now + Duration::from_millis(50), || None));
    let left: Vec<_> =
        left.map(|unread| (unread.delivery.publisher.index, unread.delivery.seq)).collect();
    assert_eq!(left, [(0, 0), (0, 1), (1, 0)]);
}
