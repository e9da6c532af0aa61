//! The clock filter of one server (RFC 5905, section 10).
//!
//! It keeps the last 8 measurements and uses the one with the smallest error at present, because delays are only ever
//! added by queues. The RFC's text sorts by delay, its example code by delay and dispersion; this is the latter.

use super::growth;

/// The number of measurements that a filter keeps (NSTAGE).
pub const STAGES: usize = 8;

/// One measurement of UTC against the host's raw clock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Measurement {
    /// The instant of the raw clock for which it holds, in nanoseconds.
    pub raw: u64,
    /// UTC in nanoseconds since 1970, minus the raw clock, at that instant.
    pub offset: i64,
    /// The round-trip delay to the server, in nanoseconds.
    pub delay: u64,
    /// The largest error of `offset` at that instant, in nanoseconds: half the delay plus the root distance of the
    /// server plus the errors of reading both clocks.
    pub error: u64,
}

impl Measurement {
    /// Returns the largest error at the instant `raw`, in nanoseconds, for a clock that deviates by at most `phi`
    /// picoseconds per second from the frequency at which the offset is extrapolated.
    #[must_use]
    pub fn error_at(&self, raw: u64, phi: u64) -> u64 {
        self.error.saturating_add(growth(raw.saturating_sub(self.raw), phi))
    }
}

/// The clock filter of one server.
#[derive(Clone, Debug, Default)]
pub struct ClockFilter {
    stages: [Option<Measurement>; STAGES],
    next: usize,
}

impl ClockFilter {
    /// Adds a measurement, which replaces the oldest.
    pub fn push(&mut self, measurement: Measurement) {
        self.shift(Some(measurement));
    }

    /// Adds an empty measurement, which replaces the oldest. Use it when a server is silent, so that old measurements
    /// do not count forever.
    pub fn push_silence(&mut self) {
        self.shift(None);
    }

    fn shift(&mut self, stage: Option<Measurement>) {
        if let Some(place) = self.stages.get_mut(self.next) {
            *place = stage;
        }
        self.next = (self.next + 1) % STAGES;
    }

    /// Removes all measurements.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the number of measurements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stages.iter().flatten().count()
    }

    /// Returns true if there is no measurement.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the measurement with the smallest error at the instant `raw`; of equal ones, the newest. `phi` is the
    /// growth of errors in picoseconds per second.
    #[must_use]
    pub fn best(&self, raw: u64, phi: u64) -> Option<Measurement> {
        let all = self.stages.iter().flatten();
        all.min_by_key(|one| (one.error_at(raw, phi), u64::MAX - one.raw)).copied()
    }

    /// Returns the jitter in nanoseconds: the root mean square of the differences of the offsets from that of `best`,
    /// each extrapolated at the frequency `rate` in picoseconds per second.
    #[must_use]
    pub fn jitter(&self, best: &Measurement, rate: i64) -> u64 {
        let others = self.stages.iter().flatten().filter(|one| one.raw != best.raw);
        let squares = others.map(|one| {
            let age = i128::from(best.raw) - i128::from(one.raw);
            let moved = age * i128::from(rate) / 1_000_000_000_000;
            let off = i128::from(best.offset) - i128::from(one.offset) - moved;
            off.unsigned_abs().min(1 << 60).pow(2)
        });
        let (sum, count) =
            squares.fold((0_u128, 0_u128), |(sum, count), one| (sum + one, count + 1));
        u64::try_from(sum.checked_div(count).unwrap_or_default().isqrt()).unwrap_or(u64::MAX)
    }
}
