//! Instants and durations as unsigned nanoseconds, with saturating arithmetic.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point on a monotonic clock, in nanoseconds since an origin that the caller chooses.
///
/// Time is always passed as an argument; nothing here can read a clock. Arithmetic saturates, so an
/// instant near the end of the range stays comparable instead of wrapping.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);
    /// An instant later than every event, used for "never".
    pub const FAR: Self = Self(u64::MAX);

    /// Returns the instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the instant `millis` milliseconds after the origin.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by.0))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Duration(u64);

impl Duration {
    /// A duration of zero.
    pub const ZERO: Self = Self(0);
    /// The longest duration, about 584 years.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns a duration of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns a duration of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Returns a duration of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Returns a duration of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the duration in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration in whole microseconds, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns `self + other`, at most [`Duration::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns `self - other`, at least zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns `self × num ÷ den`, rounded down, at most [`Duration::MAX`].
    ///
    /// Returns [`Duration::MAX`] if `den` is 0.
    #[must_use]
    pub const fn mul_div(self, num: u64, den: u64) -> Self {
        if den == 0 {
            return Self::MAX;
        }
        // The product usually fits in 64 bits, and a 64-bit division is several times faster.
        if let Some(product) = self.0.checked_mul(num) {
            return Self(product / den);
        }
        let wide = self.0 as u128 * num as u128 / den as u128;
        if wide > u64::MAX as u128 {
            return Self::MAX;
        }
        #[expect(clippy::cast_possible_truncation, reason = "compared with u64::MAX above")]
        Self(wide as u64)
    }

    /// Returns the smaller of two durations.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        if self.0 < other.0 { self } else { other }
    }

    /// Returns the larger of two durations.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if self.0 > other.0 { self } else { other }
    }

    /// Returns true for [`Duration::ZERO`].
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<core::time::Duration> for Duration {
    /// Converts a duration, saturating at [`Duration::MAX`] (584 years).
    fn from(value: core::time::Duration) -> Self {
        Self(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(value: Duration) -> Self {
        Self::from_nanos(value.0)
    }
}

impl fmt::Display for Duration {
    /// Formats the duration as whole nanoseconds, or as µs, ms or s with up to three decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..=999 => return write!(f, "{} ns", self.0),
            1_000..=999_999 => (1_000, "µs"),
            1_000_000..=999_999_999 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, milli) = (self.0 / unit, self.0 % unit * 1_000 / unit);
        match milli {
            0 => write!(f, "{whole} {name}"),
            _ if milli % 100 == 0 => write!(f, "{whole}.{} {name}", milli / 100),
            _ if milli % 10 == 0 => write!(f, "{whole}.{:02} {name}", milli / 10),
            _ => write!(f, "{whole}.{milli:03} {name}"),
        }
    }
}

/// Returns sixteen times the jitter of RFC 3550, section 6.4.1, after a change of the transit time, all in nanoseconds.
/// A change of 1 s or more is a jump of the time stamps, which is no jitter.
#[must_use]
pub const fn jitter_step(scaled: u64, change: u64) -> u64 {
    const JUMP: u64 = 1_000_000_000;
    if change < JUMP { scaled - ((scaled + 8) >> 4) + change } else { scaled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Instant::ZERO - Duration::from_nanos(1), Instant::ZERO);
        assert_eq!(Instant::FAR + Duration::from_secs(1), Instant::FAR);
        assert_eq!(Instant::ZERO.since(Instant::from_millis(5)), Duration::ZERO);
        assert_eq!(Duration::from_secs(u64::MAX), Duration::MAX);
        assert_eq!(Duration::from_nanos(7).mul_div(3, 2), Duration::from_nanos(10));
        assert_eq!(Duration::from_nanos(7).mul_div(3, 0), Duration::MAX);
        assert_eq!(Duration::MAX.mul_div(2, 1), Duration::MAX);
    }

    #[test]
    fn lengths_print_in_the_unit_a_reader_expects() {
        assert_eq!(Duration::from_nanos(999).to_string(), "999 ns");
        assert_eq!(Duration::from_nanos(1_500).to_string(), "1.5 µs");
        assert_eq!(Duration::from_millis(200).to_string(), "200 ms");
        assert_eq!(Duration::from_nanos(33_333_333).to_string(), "33.333 ms");
        assert_eq!(Duration::from_millis(1_250).to_string(), "1.25 s");
    }
}
