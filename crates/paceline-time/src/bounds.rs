//! An instant of UTC as an interval that contains it.

/// An instant of UTC that is known up to an error: it is not before `earliest` and not after `latest`.
///
/// Both are nanoseconds since 1970-01-01T00:00:00 UTC, without leap seconds.
///
/// ```
/// use paceline_time::{TimeOrder, TimeBounds};
///
/// let first = TimeBounds::new(1_000, 200);
/// assert_eq!(first.order(TimeBounds::new(2_000, 200)), TimeOrder::Before);
/// assert_eq!(first.order(TimeBounds::new(1_300, 200)), TimeOrder::Unknown);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeBounds {
    /// The earliest possible instant, in nanoseconds.
    pub earliest: u64,
    /// The latest possible instant, in nanoseconds; at least `earliest`.
    pub latest: u64,
}

impl TimeBounds {
    /// Returns the interval of `nanos` plus or minus `error`, both in nanoseconds. It saturates.
    #[must_use]
    pub const fn new(nanos: u64, error: u64) -> Self {
        Self { earliest: nanos.saturating_sub(error), latest: nanos.saturating_add(error) }
    }

    /// Returns the interval of a time stamp with an error byte: at most 2^error microseconds; 255 is unknown, and the
    /// interval is then unlimited.
    #[must_use]
    pub const fn of_stamp(nanos: u64, error: u8) -> Self {
        let micros = if error < 63 { 1 << error } else { u64::MAX };
        Self::new(nanos, 1_000_u64.saturating_mul(micros))
    }

    /// Returns the part of the interval that is not after `now`, for a time that has passed; `None` if all of it is
    /// in the future, so that one of the two bounds is wrong.
    #[must_use]
    pub const fn until(self, now: Self) -> Option<Self> {
        if self.earliest > now.latest {
            return None;
        }
        let latest = if self.latest < now.latest { self.latest } else { now.latest };
        Some(Self { earliest: self.earliest, latest })
    }

    /// Returns the middle of the interval, in nanoseconds.
    #[must_use]
    pub const fn middle(self) -> u64 {
        self.earliest + (self.latest - self.earliest) / 2
    }

    /// Returns the order of two instants; [`TimeOrder::Unknown`] if their intervals overlap.
    #[must_use]
    pub const fn order(self, other: Self) -> TimeOrder {
        if self.latest < other.earliest {
            TimeOrder::Before
        } else if other.latest < self.earliest {
            TimeOrder::After
        } else {
            TimeOrder::Unknown
        }
    }
}

/// The order of two instants that are known up to errors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimeOrder {
    /// The first is before the second.
    Before,
    /// The first is after the second.
    After,
    /// The bounds do not decide it.
    Unknown,
}
