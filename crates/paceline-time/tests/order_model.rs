//! The time buffer against a model that sorts a list.

use paceline_sched::{Duration, Instant};
use paceline_time::order::{BufferLimits, Handled, LateArrival, Placement, TimeBuffer, Timed};
use paceline_time::{TimeBounds, TimeOrder};
use proptest::prelude::*;

/// The model: a list that is sorted before each release.
struct List {
    limits: BufferLimits,
    entries: Vec<(u64, usize, TimeBounds, usize, Instant)>,
    last: Option<TimeBounds>,
}

impl List {
    fn release(&mut self, count: usize, out: &mut Vec<(usize, Placement)>) {
        for (_, id, bounds, _, _) in self.entries.drain(..count) {
            let decided = self.last.is_none_or(|last| last.order(bounds) == TimeOrder::Before);
            out.push((id, if decided { Placement::InOrder } else { Placement::Unknown }));
            self.last = Some(bounds);
        }
    }

    fn step(&mut self, now: Instant, out: &mut Vec<(usize, Placement)>) {
        self.entries.sort_by_key(|(nanos, id, ..)| (*nanos, *id));
        let (len, limits) = (self.entries.len(), self.limits);
        let part = |of: usize| {
            (0..=of).find(|n| n * 1_000 >= of * usize::from(limits.factor_permille)).unwrap_or(of)
        };
        let mut leave = 0;
        if len >= limits.entries {
            leave = part(len);
        }
        let bytes: usize = self.entries.iter().map(|entry| entry.3).sum();
        if bytes >= limits.bytes {
            let enough = part(bytes);
            let sums = self.entries.iter().scan(0, |sum, entry| {
                *sum += entry.3;
                Some(*sum)
            });
            leave = leave.max(sums.take_while(|sum| *sum < enough).count() + 1);
        }
        let expired =
            |entry: &(u64, usize, TimeBounds, usize, Instant)| now >= entry.4 + limits.hold;
        if let Some(last) = self.entries.iter().rposition(expired) {
            leave = leave.max(last + 1);
        }
        self.release(leave.min(len), out);
    }
}

fn limits() -> impl Strategy<Value = BufferLimits> {
    (1usize..12, 1usize..2_000, 1u64..40, 500u16..=1_000).prop_map(
        |(entries, bytes, hold, factor_permille)| BufferLimits {
            entries,
            bytes,
            hold: Duration::from_millis(hold),
            factor_permille,
        },
    )
}

proptest! {
    #[test]
    fn it_releases_what_a_sorted_list_releases(
        limits in limits(),
        late in prop::sample::select(vec![LateArrival::Deliver, LateArrival::Flag, LateArrival::Drop]),
        // A late entry leaves as the first one of all; only those of the instant 0 would precede it.
        steps in prop::collection::vec((0u64..20, 1u64..400, 0u64..30, 1usize..400), 1..120),
    ) {
        let mut buffer = TimeBuffer::new(limits, late).unwrap();
        let mut list = List { limits, entries: Vec::new(), last: None };
        let mut now = Instant::from_millis(1);
        let (mut released, mut expected, mut lates, mut watermark) = (Vec::new(), Vec::new(), 0, 0);
        let mut sum = 0;
        for (id, (gap, nanos, error, bytes)) in steps.iter().copied().enumerate() {
            now += Duration::from_millis(gap);
            while let Some((id, place)) = buffer.poll(now) {
                released.push((id, place));
            }
            list.step(now, &mut expected);
            prop_assert_eq!(&released, &expected);
            for (id, _) in &released[sum..] {
                let (_, nanos, error, _) = steps[*id];
                watermark = watermark.max(TimeBounds::new(nanos, error).earliest);
            }
            sum = released.len();
            let bounds = TimeBounds::new(nanos, error);
            let is_late = bounds.latest < watermark;
            let timed = Timed { clock: 0, source: None, nanos, bounds, bytes, item: id };
            match buffer.handle(now, timed) {
                Handled::Buffered if is_late => {
                    prop_assert!(late != LateArrival::Drop);
                    let place = if late == LateArrival::Flag { Placement::Late } else { Placement::InOrder };
                    prop_assert_eq!(buffer.poll(now), Some((id, place)), "it leaves at once");
                    lates += 1;
                }
                Handled::Buffered => list.entries.push((nanos, id, bounds, bytes, now)),
                Handled::Drop(_) => {
                    prop_assert!(is_late && late == LateArrival::Drop);
                    lates += 1;
                }
            }
            while let Some((id, place)) = buffer.poll(now) {
                released.push((id, place));
            }
            list.step(now, &mut expected);
            prop_assert_eq!(&released, &expected);
            prop_assert!(buffer.len() < limits.entries && buffer.bytes() < limits.bytes);
            let due = buffer.next_release();
            prop_assert_eq!(due, list.entries.iter().map(|entry| entry.4 + limits.hold).min());
        }
        now += limits.hold;
        while let Some((id, place)) = buffer.poll(now) {
            released.push((id, place));
        }
        prop_assert!(buffer.is_empty() && buffer.next_release().is_none());
        prop_assert_eq!(released.len() + lates, steps.len(), "each sample leaves exactly once");
    }
}

#[test]
fn limits_out_of_range_are_named() {
    let good = BufferLimits::holding(Duration::from_millis(50));
    let day = Duration::from_secs(86_400);
    for (limits, message) in [
        (BufferLimits { entries: 0, ..good }, "time buffer of 0 samples: must be from 1 to 65536"),
        (BufferLimits { bytes: 0, ..good }, "time buffer of 0 bytes: must be from 1 to 134217728"),
        (BufferLimits { hold: Duration::ZERO, ..good }, "hold of 0 ms: must be from 1 µs to 60 s"),
        (BufferLimits { hold: day, ..good }, "hold of 86400000 ms: must be from 1 µs to 60 s"),
        (BufferLimits { factor_permille: 499, ..good }, "release factor of 499 thousandths"),
        (BufferLimits { factor_permille: 1_001, ..good }, "release factor of 1001 thousandths"),
    ] {
        let error = TimeBuffer::<u8, ()>::new(limits, LateArrival::Flag).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn unlimited_bounds_never_make_a_sample_late() {
    let limits = BufferLimits { entries: 1, ..BufferLimits::holding(Duration::from_millis(50)) };
    let mut buffer = TimeBuffer::new(limits, LateArrival::Drop).unwrap();
    let now = Instant::from_millis(5);
    for nanos in [u64::MAX, 0, 3_600_000_000_000, 7, 7] {
        let bounds = TimeBounds::of_stamp(nanos, 255);
        let timed = Timed { clock: 0, source: None, nanos, bounds, bytes: 1, item: nanos };
        assert_eq!(buffer.handle(now, timed), Handled::Buffered);
        let (item, place) = buffer.poll(now).unwrap();
        assert_eq!(item, nanos);
        assert!(place == Placement::Unknown || nanos == u64::MAX);
    }
}
