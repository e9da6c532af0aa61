//! The map from the host's raw clock to UTC, and a reading of it.

use crate::bounds::TimeBounds;
use crate::ntp::{FREQUENCY_MAX, PHI, drift, growth};
use core::fmt;

/// The state of a clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ClockStatus {
    /// It has never followed a server: readings are those of the system clock, and their error is unknown.
    #[default]
    Unsynchronised,
    /// It follows a majority of its servers.
    Synchronised,
    /// No majority answers at present. The bound grows with time, and remains correct.
    Holdover,
    /// The host was suspended, its system clock stepped, a leap second passed, or the servers contradict the clock. The
    /// error is unknown until 4 new answers of a majority.
    Disrupted,
}

impl ClockStatus {
    /// All states, in the order of their codes.
    pub const ALL: [Self; 4] =
        [Self::Unsynchronised, Self::Synchronised, Self::Holdover, Self::Disrupted];

    /// Returns the position in [`Self::ALL`].
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Unsynchronised => 0,
            Self::Synchronised => 1,
            Self::Holdover => 2,
            Self::Disrupted => 3,
        }
    }

    /// Returns the state at this position of [`Self::ALL`].
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        usize::try_from(code).ok().and_then(|code| Self::ALL.get(code)).copied()
    }

    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unsynchronised => "unsynchronised",
            Self::Synchronised => "synchronised",
            Self::Holdover => "holdover",
            Self::Disrupted => "disrupted",
        }
    }
}

impl fmt::Display for ClockStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A reading of a clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockReading {
    /// The clock's time in nanoseconds since 1970-01-01T00:00:00 UTC, without leap seconds. While the clock slews after
    /// a large correction, it can lie outside of the bounds.
    pub nanos: u64,
    /// The interval that contains the true time; of unlimited length if the error is unknown.
    pub bounds: TimeBounds,
    /// The state of the clock.
    pub status: ClockStatus,
    /// The number of the clock's steps: 0 before the first synchronisation. Readings of one epoch are comparable
    /// without their bounds, because the clock never stepped between them.
    pub epoch: u64,
}

/// The bounds of a time whose error is unknown.
pub(crate) const UNKNOWN: TimeBounds = TimeBounds { earliest: 0, latest: u64::MAX };

impl ClockReading {
    /// The error byte of a reading whose error is unknown.
    pub const UNKNOWN_ERROR: u8 = 255;

    /// Returns a reading of the system clock, whose error is unknown.
    #[must_use]
    pub const fn unsynchronised(wall: u64) -> Self {
        Self { nanos: wall, bounds: UNKNOWN, status: ClockStatus::Unsynchronised, epoch: 0 }
    }

    /// Returns the largest difference of [`Self::nanos`] from the true time, in nanoseconds; `u64::MAX` if it is unknown.
    #[must_use]
    pub const fn error(&self) -> u64 {
        if self.bounds.latest == u64::MAX {
            return u64::MAX;
        }
        let (before, after) =
            (self.nanos.abs_diff(self.bounds.earliest), self.nanos.abs_diff(self.bounds.latest));
        if before > after { before } else { after }
    }

    /// Returns the error as a power of two: the true time is at most 2^n microseconds off. 255 if it is unknown.
    ///
    /// ```
    /// use paceline_time::{ClockReading, ClockStatus, TimeBounds};
    ///
    /// let bounds = TimeBounds::new(1_000_000_000, 70_000);
    /// let reading =
    ///     ClockReading { nanos: 1_000_000_000, bounds, status: ClockStatus::Synchronised, epoch: 1 };
    /// // 70 µs is more than 2^6 µs and less than 2^7 µs.
    /// assert_eq!(reading.error_byte(), 7);
    /// assert_eq!(ClockReading::unsynchronised(0).error_byte(), 255);
    /// ```
    #[must_use]
    pub fn error_byte(&self) -> u8 {
        let error = self.error();
        if error == u64::MAX {
            return Self::UNKNOWN_ERROR;
        }
        let micros = error.div_ceil(1_000);
        // The smallest n with 2^n >= micros.
        let bits = micros.saturating_sub(1).checked_ilog2().map_or(0, |log| log + 1);
        u8::try_from(bits).unwrap_or(Self::UNKNOWN_ERROR)
    }
}

/// A line: the clock advances by 1 + `rate` from `utc` at the raw clock's `from`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Line {
    from: u64,
    utc: u64,
    rate: i64,
}

impl Line {
    /// Returns the time at `raw`; before the beginning of the line, that of its beginning. It never decreases.
    fn at(&self, raw: u64) -> u64 {
        let passed = i64::try_from(raw.saturating_sub(self.from)).unwrap_or(i64::MAX);
        let passed = passed.saturating_add(drift(passed, self.rate));
        self.utc.saturating_add_signed(passed)
    }
}

/// A map from the raw clock to UTC, with a bound.
///
/// It begins with a slew, which corrects the clock, and continues at the estimated frequency.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ClockPage {
    pub(crate) status: ClockStatus,
    pub(crate) epoch: u64,
    /// The line of the slew.
    from: u64,
    utc: u64,
    slew: i64,
    /// The instant of the raw clock at which the slew ends.
    turn: u64,
    /// The frequency of UTC compared with the raw clock, minus 1, in picoseconds per second.
    pub(crate) rate: i64,
    /// The lowest and the highest offset of UTC from the raw clock at the instant `mark`.
    pub(crate) mark: u64,
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// The largest error of `rate`, in picoseconds per second.
    pub(crate) phi: u64,
    /// The time of an announced leap second, from which on the bounds do not hold.
    pub(crate) leap_at: Option<u64>,
}

/// The number of words of a page: [`ClockPage::to_words`].
pub const WORDS: usize = 12;

impl ClockPage {
    /// Returns this page in another state.
    #[must_use]
    pub const fn with_status(self, status: ClockStatus) -> Self {
        Self { status, ..self }
    }

    /// Returns the state of the clock.
    #[must_use]
    pub const fn status(&self) -> ClockStatus {
        self.status
    }

    /// Returns the clock's time at the instant `raw`, in nanoseconds since 1970. It never decreases.
    #[must_use]
    pub fn time(&self, raw: u64) -> u64 {
        let slew = Line { from: self.from, utc: self.utc, rate: self.slew };
        if raw <= self.turn {
            return slew.at(raw);
        }
        Line { from: self.turn, utc: slew.at(self.turn), rate: self.rate }.at(raw)
    }

    /// Returns the lowest and the highest offset of UTC from the raw clock at the instant `raw`.
    #[must_use]
    pub fn offsets(&self, raw: u64) -> (i64, i64) {
        let age = i128::from(raw) - i128::from(self.mark);
        let age = i64::try_from(age).unwrap_or(i64::MAX);
        let (moved, grown) = (drift(age, self.rate), growth(age.unsigned_abs(), self.phi));
        let low = self.low.saturating_add(moved).saturating_sub_unsigned(grown);
        // The movement is rounded down.
        (low, self.high.saturating_add(moved).saturating_add_unsigned(grown).saturating_add(1))
    }

    /// Returns the reading at the instant `raw`; `wall` is the system clock.
    #[must_use]
    pub fn read(&self, raw: u64, wall: impl FnOnce() -> u64) -> ClockReading {
        match self.status {
            ClockStatus::Unsynchronised => ClockReading::unsynchronised(wall()),
            ClockStatus::Disrupted => self.reading(raw, UNKNOWN, ClockStatus::Disrupted),
            status @ (ClockStatus::Synchronised | ClockStatus::Holdover) => {
                let (low, high) = self.offsets(raw);
                let earliest = raw.saturating_add_signed(low);
                let latest = raw.saturating_add_signed(high);
                if self.leap_at.is_some_and(|leap| latest >= leap) {
                    return self.reading(raw, UNKNOWN, ClockStatus::Disrupted);
                }
                self.reading(raw, TimeBounds { earliest, latest }, status)
            }
        }
    }

    fn reading(&self, raw: u64, bounds: TimeBounds, status: ClockStatus) -> ClockReading {
        ClockReading { nanos: self.time(raw), bounds, status, epoch: self.epoch }
    }

    /// Returns the page of a clock that has not started.
    pub(crate) fn unknown() -> Self {
        Self { phi: FREQUENCY_MAX + PHI, ..Self::default() }
    }

    /// Starts the clock, or steps it, at the instant `raw`: UTC is then `utc`.
    pub(crate) fn step(&mut self, raw: u64, utc: u64) {
        self.epoch += 1;
        (self.from, self.utc, self.turn) = (raw, utc, raw);
        self.slew = self.rate;
    }

    /// Corrects the clock from the instant `raw` on by `error` nanoseconds, at `speed` picoseconds per second at most,
    /// and sets its frequency.
    pub(crate) fn steer(&mut self, raw: u64, error: i64, rate: i64, speed: u64) {
        let utc = self.time(raw);
        (self.from, self.utc, self.rate) = (raw, utc, rate);
        // In one second if the speed suffices.
        let wanted = error.unsigned_abs().saturating_mul(1_000).min(speed).max(1);
        let takes = u128::from(error.unsigned_abs()) * 1_000_000_000_000 / u128::from(wanted);
        self.turn = raw.saturating_add(u64::try_from(takes).unwrap_or(u64::MAX));
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        self.slew = if error < 0 { rate - wanted } else { rate + wanted };
    }

    /// Returns the page as words, for [`Self::from_words`].
    #[must_use]
    pub const fn to_words(self) -> [u64; WORDS] {
        let leap_at = match self.leap_at {
            Some(leap) => leap,
            None => u64::MAX,
        };
        [
            self.status.code() as u64,
            self.epoch,
            self.from,
            self.utc,
            self.slew.cast_unsigned(),
            self.turn,
            self.rate.cast_unsigned(),
            self.mark,
            self.low.cast_unsigned(),
            self.high.cast_unsigned(),
            self.phi,
            leap_at,
        ]
    }

    /// Returns the page of these words. Any words make a page.
    #[must_use]
    pub fn from_words(words: [u64; WORDS]) -> Self {
        let [status, epoch, from, utc, slew, turn, rate, mark, low, high, phi, leap] = words;
        Self {
            status: ClockStatus::from_code(status).unwrap_or_default(),
            epoch,
            from,
            utc,
            slew: slew.cast_signed(),
            turn,
            rate: rate.cast_signed(),
            mark,
            low: low.cast_signed(),
            high: high.cast_signed(),
            phi,
            leap_at: (leap != u64::MAX).then_some(leap),
        }
    }
}
