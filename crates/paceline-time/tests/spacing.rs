//! Properties of the spacing.

use paceline_sched::{Duration, Instant};
use paceline_time::spacing::{Anchor, Depth, Jitter, Release, Spacing};
use proptest::prelude::*;

/// Deterministic noise from 0 to `max`.
fn noise(seed: u64, max: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) % (max + 1)
}

/// Runs a stream with one sample per `period` and a variation of the delay up to `variation`, both in ns; the
/// publisher's clock is off by `ppm`. Samples stay in order.
fn run(
    anchor: Anchor,
    samples: u64,
    period: u64,
    variation: u64,
    ppm: i64,
) -> Vec<(u64, Instant, Release)> {
    let mut spacing = Spacing::new(anchor, Depth::default());
    let mut before = 0;
    let arrive = |i: u64| {
        let sent = 1_000_000_000 + i * period;
        let skew = (i * period) as i64 / 1_000_000 * ppm;
        let stamp = (77_000_000_000 + i * period).saturating_add_signed(skew);
        let arrived = (sent + 5_000_000 + noise(i, variation)).max(before);
        before = arrived;
        (stamp, Instant::from_nanos(arrived), spacing.handle(Instant::from_nanos(arrived), stamp))
    };
    (0..samples).map(arrive).collect()
}

fn jitter(steps: impl Iterator<Item = (u64, Instant)>) -> u64 {
    let mut jitter = Jitter::default();
    steps.for_each(|(stamp, at)| jitter.add(at, stamp));
    jitter.value().as_nanos()
}

#[test]
fn forty_milliseconds_of_variation_leave_no_jitter_and_few_late_samples() {
    for period in [500_000, 10_000_000] {
        let steps = run(Anchor::Adaptive, 20_000, period, 40_000_000, 0);
        let steady = &steps[2_000..];
        let late = steady.iter().filter(|(.., release)| release.late > Duration::ZERO).count();
        assert!(late * 100 <= steady.len(), "{late} late");
        let added = |(.., arrived, release): &(u64, Instant, Release)| release.at.since(*arrived);
        let longest = steady.iter().map(added).max().unwrap();
        assert!(longest <= Duration::from_millis(42), "{longest:?}");
        let before = jitter(steady.iter().map(|(stamp, arrived, _)| (*stamp, *arrived)));
        let after = jitter(steady.iter().map(|(stamp, _, release)| (*stamp, release.at)));
        assert!(after * 50 < before, "{before} {after}");
    }
}

#[test]
fn a_skewed_clock_of_the_publisher_is_followed() {
    for ppm in [-200, 200] {
        let steps = run(Anchor::Adaptive, 60_000, 10_000_000, 5_000_000, ppm);
        let steady = &steps[2_000..];
        let late = steady.iter().filter(|(.., release)| release.late > Duration::ZERO).count();
        assert!(late * 50 <= steady.len(), "{late} late");
        let longest =
            steady.iter().map(|(_, arrived, release)| release.at.since(*arrived)).max().unwrap();
        assert!(longest <= Duration::from_millis(9), "{longest:?}");
    }
}

#[test]
fn relative_spacing_adds_lateness_up() {
    let last = |anchor| {
        let steps = run(anchor, 3_000, 10_000_000, 40_000_000, 100);
        let (_, arrived, release) = steps[2_999];
        release.at.since(arrived)
    };
    // The publisher's clock is fast by 100 ppm: after 30 s, 3 ms have been added to each spacing.
    assert!(last(Anchor::Relative) > last(Anchor::Adaptive));
}

proptest! {
    #[test]
    fn any_time_stamps_give_releases_in_order_within_the_largest_depth(
        steps in prop::collection::vec((0u64..50_000_000, any::<u64>(), 0u8..10), 1..400),
        min in 0u64..50, more in 0u64..300,
    ) {
        let millis = Duration::from_millis;
        let depth = Depth { min: millis(min), max: millis(min + more), quantile_permille: 990 };
        let mut spacing = Spacing::new(Anchor::Adaptive, depth);
        let (mut now, mut stamp, mut before) = (Instant::from_millis(5_000), 1_700_000_000_000_000_000u64, Instant::ZERO);
        for (gap, wild, kind) in steps {
            now += Duration::from_nanos(gap);
            stamp = match kind {
                0 => wild,
                1 => stamp,
                2 => stamp.saturating_sub(wild % 3_600_000_000_000),
                3 => stamp.saturating_add(wild % 36_000_000_000_000),
                _ => stamp.saturating_add(gap),
            };
            let release = spacing.handle(now, stamp);
            prop_assert!(release.at >= now && release.at >= before);
            // Only a jump of the time stamps or a slow fall of the anchor may exceed the depth.
            let bound = depth.max.saturating_add(Duration::from_millis(1_300 + 2 * (min + more)));
            prop_assert!(release.at.since(now.max(before)) <= bound, "{:?}", release.at.since(now));
            before = release.at;
        }
    }
}
