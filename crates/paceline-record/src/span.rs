//! Due times of the messages of a replay, with a time range, a speed and repetition.

const NANOS: u64 = 1_000_000_000;

/// A time range of a recording and its replay speed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReplaySpan {
    begin: u64,
    end: u64,
    /// The speed in thousandths; `None` sends messages as fast as they are accepted.
    speed: Option<u64>,
    pass: u64,
}

/// An invalid time range.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SpanError {
    /// The range ends before it starts.
    #[error("--from {}s is not before --to {}s; give an earlier --from or a later --to", seconds(*.from), seconds(*.to))]
    Backward {
        /// The start, in nanoseconds from the start of the recording.
        from: u64,
        /// The end, in nanoseconds from the start of the recording.
        to: u64,
    },
    /// The range starts after the end of the recording.
    #[error("--from {}s: the recording lasts {} s; give an earlier --from", seconds(*.from), seconds(*.lasts))]
    Behind {
        /// The start, in nanoseconds from the start of the recording.
        from: u64,
        /// The duration of the recording in nanoseconds.
        lasts: u64,
    },
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn seconds(nanos: u64) -> f64 {
    (nanos / (NANOS / 1_000)) as f64 / 1e3
}

impl ReplaySpan {
    /// Creates a span of a recording whose first and last message have these times. `from` and `to`
    /// are nanoseconds after the first message. `speed` is in thousandths of the original. Each
    /// further pass starts `gap` nanoseconds after the last message of the previous one.
    ///
    /// # Errors
    /// [`SpanError`].
    pub fn new(
        (first, last): (u64, u64),
        (from, to): (u64, Option<u64>),
        speed: Option<u64>,
        gap: u64,
    ) -> Result<Self, SpanError> {
        if let Some(to) = to.filter(|to| *to <= from) {
            return Err(SpanError::Backward { from, to });
        }
        let begin = first.saturating_add(from);
        if begin > last {
            return Err(SpanError::Behind { from, lasts: last.saturating_sub(first) });
        }
        let end = to.map_or(last, |to| first.saturating_add(to).min(last));
        let pass = (end - begin).saturating_add(gap);
        Ok(Self { begin, end, speed: speed.map(|speed| speed.max(1)), pass })
    }

    /// Returns true if a message of this time is within the range.
    #[must_use]
    pub const fn has(&self, time: u64) -> bool {
        self.begin <= time && time <= self.end
    }

    /// Returns true if a message of this time is before the range.
    #[must_use]
    pub const fn is_before(&self, time: u64) -> bool {
        time < self.begin
    }

    /// Returns the due time of a message in pass `pass`, in nanoseconds after the start of the
    /// replay. It is 0 without a speed.
    #[must_use]
    pub fn due(&self, pass: u64, time: u64) -> u64 {
        let Some(speed) = self.speed else { return 0 };
        let passed =
            u128::from(pass) * u128::from(self.pass) + u128::from(time.saturating_sub(self.begin));
        u64::try_from(passed * 1_000 / u128::from(speed)).unwrap_or(u64::MAX)
    }

    /// Returns the duration of the range in the recording, in nanoseconds.
    #[must_use]
    pub const fn lasts(&self) -> u64 {
        self.end - self.begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: u64 = 1_700_000_000 * NANOS;

    #[test]
    fn times_are_preserved_scaled_and_repeated() {
        let ends = (FIRST, FIRST + 10 * NANOS);
        let whole = ReplaySpan::new(ends, (0, None), Some(1_000), 100).unwrap();
        assert_eq!(whole.due(0, FIRST + 7), 7);
        assert_eq!(whole.due(2, FIRST), 2 * (10 * NANOS + 100));
        let part = ReplaySpan::new(ends, (2 * NANOS, Some(5 * NANOS)), Some(2_000), NANOS).unwrap();
        assert!(!part.has(FIRST + 2 * NANOS - 1) && part.has(FIRST + 2 * NANOS));
        assert!(part.has(FIRST + 5 * NANOS) && !part.has(FIRST + 5 * NANOS + 1));
        assert_eq!(part.due(0, FIRST + 4 * NANOS), NANOS);
        assert_eq!(part.due(1, FIRST + 4 * NANOS), NANOS + 2 * NANOS);
        let quick = ReplaySpan::new(ends, (0, None), None, 0).unwrap();
        assert_eq!(quick.due(3, FIRST + 9 * NANOS), 0);
    }

    #[test]
    fn empty_parts_are_refused() {
        let ends = (FIRST, FIRST + 10 * NANOS);
        let wrong =
            |from, to| ReplaySpan::new(ends, (from, to), Some(1_000), 0).unwrap_err().to_string();
        assert_eq!(
            wrong(5 * NANOS, Some(5 * NANOS)),
            "--from 5s is not before --to 5s; give an earlier --from or a later --to"
        );
        assert_eq!(
            wrong(10 * NANOS + 1_000_000, None),
            "--from 10.001s: the recording lasts 10 s; give an earlier --from"
        );
    }

    proptest! {
        #[test]
        fn due_times_never_go_back(
            times in prop::collection::vec(0u64..20 * NANOS, 1..50),
            from in 0u64..10 * NANOS,
            speed in 1u64..1_000_000,
            gap in 0u64..NANOS,
        ) {
            let mut times = times;
            times.sort_unstable();
            let span = ReplaySpan::new((0, 20 * NANOS), (from, None), Some(speed), gap).unwrap();
            let mut before = 0;
            for pass in 0..3 {
                for time in times.iter().filter(|time| span.has(**time)) {
                    let due = span.due(pass, *time);
                    prop_assert!(due >= before, "{due} after {before}");
                    before = due;
                }
            }
        }
    }
}
