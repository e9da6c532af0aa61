//! Samples of one publisher keep their order in the time buffer, whatever their measured times.
#![cfg(test)]

use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::order::{BufferLimits, Handled, LateArrival, Placement, TimeBuffer, Timed};
use proptest::prelude::*;

const SOURCES: usize = 4;
/// Nothing is before this.
const START: u64 = 1_000_000;

/// One sample: its true time, and the time that the receiver has measured.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    source: u8,
    number: u64,
    truth: u64,
}

/// A step: the source, the time since the last step, and the measurement.
#[derive(Clone, Debug)]
struct Step {
    source: u8,
    gap: u64,
    /// The age of the sample at its arrival.
    age: u64,
    /// The estimate minus the true time.
    off: i64,
    /// The bounds are so much wider than the error on each side; `None` if there are none.
    more: Option<(u64, u64)>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let more = prop::option::weighted(0.8, (0u64..2_000, 0u64..2_000));
    let step = (0u8..4, 0u64..300, 0u64..4_000, -3_000i64..3_000, more);
    let step = step.prop_map(|(source, gap, age, off, more)| Step { source, gap, age, off, more });
    prop::collection::vec(step, 1..200)
}

fn limits() -> impl Strategy<Value = BufferLimits> {
    (1usize..40, 1usize..400, 1u64..5_000, 500u16..=1_000).prop_map(
        |(entries, bytes, hold, factor_permille)| BufferLimits {
            entries,
            bytes,
            hold: Duration::from_micros(hold),
            factor_permille,
        },
    )
}

fn policy() -> impl Strategy<Value = LateArrival> {
    prop::sample::select(vec![LateArrival::Deliver, LateArrival::Flag, LateArrival::Drop])
}

/// A run of the buffer, with the checks of each sample that leaves.
struct Run {
    buffer: TimeBuffer<u8, Item>,
    late: LateArrival,
    /// The next number of each source, and its newest true time.
    made: [(u64, u64); SOURCES],
    /// The last number of each source that has left.
    left: [Option<u64>; SOURCES],
    last: u64,
    delivered: u64,
    dropped: u64,
}

impl Run {
    fn new(limits: BufferLimits, late: LateArrival) -> Self {
        Self {
            buffer: TimeBuffer::new(limits, late).unwrap(),
            late,
            made: [(0, START); SOURCES],
            left: [None; SOURCES],
            last: 0,
            delivered: 0,
            dropped: 0,
        }
    }

    fn make(&mut self, source: u8, truth: u64) -> Item {
        let made = &mut self.made[usize::from(source)];
        // The samples of a source were published one after the other.
        let truth = truth.max(made.1 + 1);
        *made = (made.0 + 1, truth);
        Item { source, number: made.0, truth }
    }

    /// Lets samples leave. With true bounds, a placement in order is true, too.
    fn drain(&mut self, now: Instant, are_true: bool) -> Result<(), TestCaseError> {
        while let Some((item, place)) = self.buffer.poll(now) {
            let left = &mut self.left[usize::from(item.source)];
            prop_assert!(left.is_none_or(|left| left < item.number), "{:?} after {:?}", item, left);
            *left = Some(item.number);
            if are_true && place == Placement::InOrder && self.late != LateArrival::Deliver {
                prop_assert!(self.last < item.truth, "{:?} after {}", item, self.last);
            }
            if place != Placement::Late {
                self.last = item.truth;
            }
            self.delivered += 1;
        }
        Ok(())
    }

    fn finish(mut self, now: Instant, count: usize) -> Result<(), TestCaseError> {
        self.drain(now + BufferLimits::HOLD_MAX, true)?;
        prop_assert!(self.buffer.is_empty() && self.buffer.bytes() == 0);
        prop_assert_eq!(self.buffer.next_release(), None);
        prop_assert_eq!(self.delivered + self.dropped, count as u64);
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_sample_passes_an_earlier_one_of_its_publisher(
        limits in limits(),
        late in policy(),
        steps in steps(),
    ) {
        let mut run = Run::new(limits, late);
        let mut now = 2 * START;
        for step in &steps {
            now += step.gap * 1_000;
            let at = Instant::from_nanos(now);
            run.drain(at, true)?;
            let item = run.make(step.source, now - step.age * 100);
            let nanos = item.truth.saturating_add_signed(step.off);
            let (below, above) = step.more.unwrap_or((u64::MAX, u64::MAX));
            let bounds = TimeBounds {
                earliest: nanos.min(item.truth).saturating_sub(below),
                latest: nanos.max(item.truth).saturating_add(above),
            };
            let timed = Timed { clock: 0, source: Some(step.source), nanos, bounds, bytes: 10, item };
            match run.buffer.handle(at, timed) {
                Handled::Buffered => {}
                Handled::Drop(_) => {
                    prop_assert_eq!(late, LateArrival::Drop);
                    run.dropped += 1;
                }
            }
            run.drain(at, true)?;
            prop_assert!(run.buffer.next_release().is_none_or(|next| next > at));
        }
        run.finish(Instant::from_nanos(now), steps.len())?;
    }

    #[test]
    fn the_order_holds_for_any_times_and_bounds(
        limits in limits(),
        late in policy(),
        steps in prop::collection::vec((0u8..4, 0u64..2_000, any::<u64>(), any::<u64>(), any::<u64>(), 0u8..10), 1..200),
    ) {
        let mut run = Run::new(limits, late);
        let mut now = 0;
        for (source, gap, nanos, one, other, pass) in &steps {
            now += gap * 1_000;
            let at = Instant::from_nanos(now);
            run.drain(at, false)?;
            let item = run.make(*source, now);
            let bounds = TimeBounds { earliest: *one.min(other), latest: *one.max(other) };
            if *pass == 0 {
                run.buffer.pass(at, *source, 10, item);
            } else {
                let timed = Timed { clock: 0, source: Some(*source), nanos: *nanos, bounds, bytes: 10, item };
                run.dropped += u64::from(run.buffer.handle(at, timed) != Handled::Buffered);
            }
            run.drain(at, false)?;
        }
        let count = run.delivered + run.dropped + run.buffer.len() as u64;
        prop_assert_eq!(count, steps.len() as u64);
        run.drain(Instant::from_nanos(now) + BufferLimits::HOLD_MAX, false)?;
        prop_assert!(run.buffer.is_empty());
    }
}

#[test]
fn an_estimate_that_a_later_sample_refutes_moves_before_it() {
    let limits = BufferLimits::holding(Duration::from_millis(50));
    let mut buffer = TimeBuffer::new(limits, LateArrival::Flag).unwrap();
    let now = Instant::from_millis(1_000);
    let mut handle = |source, nanos, error, item| {
        let bounds = TimeBounds::new(nanos, error);
        let timed = Timed { clock: 0, source: Some(source), nanos, bounds, bytes: 1, item };
        assert_eq!(buffer.handle(now, timed), Handled::Buffered);
    };
    // The first sample of source 1 has no bound, and is estimated 30 ms too late.
    handle(1, 900_000_000, u64::MAX, "first");
    handle(2, 880_000_000, 1_000, "other");
    handle(1, 871_000_000, 1_000, "second");
    let mut left = Vec::new();
    while let Some((item, place)) = buffer.poll(now + limits.hold) {
        left.push((item, place));
    }
    let order = [
        ("first", Placement::InOrder),
        // By their numbers, although the bounds overlap.
        ("second", Placement::InOrder),
        ("other", Placement::InOrder),
    ];
    assert_eq!(left, order);
}
