//! Traffic constraints: the validated parameters of a policer, and the bound that they define.

use super::bucket::Meter;
use crate::time::Duration;
use core::fmt;

mod error;

pub use error::ConstraintError;

const NANOS_PER_S: u64 = 1_000_000_000;

/// The unit that a constraint counts.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum PolicedUnit {
    /// Bytes; rates are in bits per second.
    Bytes,
    /// Packets of any length; rates are in packets per second.
    Packets,
}

impl PolicedUnit {
    /// Returns the cost of a packet of `len` bytes in this unit.
    #[must_use]
    pub const fn cost(self, len: u64) -> u64 {
        match self {
            Self::Bytes => len,
            Self::Packets => 1,
        }
    }

    /// Returns the duration of one byte or packet in ticks, where a nanosecond has `rate` ticks.
    const fn ticks(self) -> u128 {
        match self {
            Self::Bytes => 8 * NANOS_PER_S as u128,
            Self::Packets => NANOS_PER_S as u128,
        }
    }

    pub(super) const fn meter(self, burst: u64, rate: u64) -> Meter {
        let unit = self.ticks();
        Meter { burst: burst as u128 * unit, unit, rate }
    }
}

impl fmt::Display for PolicedUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Packets => "packets",
        })
    }
}

/// The parameters of a moving window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Moving {
    /// Xmin: the shortest time between two packets; 0 for none. At most `average`.
    pub spacing: Duration,
    /// Xavg: the average time between packets over the interval. Not 0, at most `interval`.
    pub average: Duration,
    /// I: the interval to which the average applies, wherever it begins.
    pub interval: Duration,
    /// Smax: the largest packet in bytes; 1 if the unit is packets.
    pub largest: u64,
}

impl Moving {
    /// Returns N = ⌊I/Xavg⌋: the largest number of packets in any interval of I.
    #[must_use]
    pub fn packets(&self) -> u32 {
        let packets = self.interval.as_nanos().checked_div(self.average.as_nanos()).unwrap_or(0);
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
}

/// The parameters of two buckets; a packet must conform to both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Dual {
    /// M: the burst above the peak rate, in bytes or packets. At least the largest packet, at most
    /// `burst`.
    pub peak_burst: u64,
    /// p: the peak rate, in bit/s or packets/s. At least `rate`.
    pub peak_rate: u64,
    /// b: the burst above the sustained rate, in bytes or packets.
    pub burst: u64,
    /// r: the sustained rate, in bit/s or packets/s.
    pub rate: u64,
}

/// The kind of a constraint, with its parameters in its unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rule {
    /// A leaky bucket: σ + ρ t.
    Leaky {
        /// σ, in bytes or packets.
        burst: u64,
        /// ρ, in bit/s or packets/s.
        rate: u64,
    },
    /// A jumping window: B per window.
    Jumping {
        /// B, in bytes or packets.
        burst: u64,
        /// T, the length of a window.
        window: Duration,
    },
    /// A moving window: Xmin, Xavg, I, Smax.
    Moving(Moving),
    /// A dual bucket: p, M, r, b.
    Dual(Dual),
}

/// A bound on the traffic of a stream, with valid parameters.
///
/// As text: `leaky:22500B,10mbit`, `jumping:22500B,18ms`, `moving:2ms,10ms,1s,1500B`,
/// `dual:1500B,100mbit,22500B,10mbit`; in packets `leaky:32p,2500p/s`. Parsing the formatted text
/// returns the same constraint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Constraint {
    unit: PolicedUnit,
    rule: Rule,
}

impl Constraint {
    /// The highest rate: 10^18 bit/s or packets/s.
    pub const RATE_MAX: u64 = 1_000_000_000_000_000_000;
    /// The largest number of packets in a moving window's interval; its policer then stores 128 KiB of
    /// instants.
    pub const MOVING_PACKETS_MAX: u32 = 16_384;

    /// Returns a leaky bucket: in any interval of length t at most `burst` + `rate` t.
    ///
    /// # Errors
    /// [`ConstraintError`] if the burst or the rate is 0, or the rate is above [`Self::RATE_MAX`].
    pub const fn leaky(unit: PolicedUnit, burst: u64, rate: u64) -> Result<Self, ConstraintError> {
        if let Err(error) = check_burst("burst", unit, burst) {
            return Err(error);
        }
        if let Err(error) = check_rate("rate", unit, rate) {
            return Err(error);
        }
        Ok(Self { unit, rule: Rule::Leaky { burst, rate } })
    }

    /// Returns a jumping window: at most `burst` in each window.
    ///
    /// Windows begin at multiples of `window` since the clock's origin, independent of arrivals. Two
    /// adjacent windows together permit twice the burst within a nanosecond (seed 003, figure 10).
    ///
    /// # Errors
    /// [`ConstraintError`] if the burst or the window is 0.
    pub const fn jumping(
        unit: PolicedUnit,
        burst: u64,
        window: Duration,
    ) -> Result<Self, ConstraintError> {
        if let Err(error) = check_burst("burst", unit, burst) {
            return Err(error);
        }
        if window.is_zero() {
            return Err(ConstraintError::ZeroTime { what: "window" });
        }
        Ok(Self { unit, rule: Rule::Jumping { burst, window } })
    }

    /// Returns a moving window: at most ⌊I/Xavg⌋ packets in any interval of I, none larger than Smax,
    /// Xmin apart.
    ///
    /// # Errors
    /// [`ConstraintError`] if Xavg, I or Smax is 0, or if Xmin ≤ Xavg ≤ I is not satisfied. Also if the
    /// interval has more than [`Self::MOVING_PACKETS_MAX`] packets, or if Smax is not 1 when the unit is
    /// packets.
    pub fn moving(unit: PolicedUnit, moving: Moving) -> Result<Self, ConstraintError> {
        let Moving { spacing, average, interval, largest } = moving;
        if average.is_zero() {
            return Err(ConstraintError::ZeroTime { what: "average time between packets" });
        }
        if interval.is_zero() {
            return Err(ConstraintError::ZeroTime { what: "interval" });
        }
        if spacing > average {
            return Err(ConstraintError::SpacingAboveAverage { spacing, average });
        }
        if average > interval {
            return Err(ConstraintError::AverageAboveInterval { average, interval });
        }
        if moving.packets() > Self::MOVING_PACKETS_MAX {
            return Err(ConstraintError::TooManyPackets { average, interval });
        }
        check_burst("largest packet", unit, largest)?;
        if unit == PolicedUnit::Packets && largest != 1 {
            return Err(ConstraintError::PacketIsOne { largest });
        }
        Ok(Self { unit, rule: Rule::Moving(moving) })
    }

    /// Returns a dual bucket: in any interval of length t at most M + p t and at most b + r t.
    ///
    /// # Errors
    /// [`ConstraintError`] if a parameter is 0, or a rate is above [`Self::RATE_MAX`]. Also if the peak
    /// rate is below the sustained rate, or the burst above the peak rate is larger than the burst above
    /// the sustained rate.
    pub fn dual(unit: PolicedUnit, dual: Dual) -> Result<Self, ConstraintError> {
        let Dual { peak_burst, peak_rate, burst, rate } = dual;
        check_burst("burst at the peak rate", unit, peak_burst)?;
        check_rate("peak rate", unit, peak_rate)?;
        check_burst("burst", unit, burst)?;
        check_rate("rate", unit, rate)?;
        if peak_rate < rate {
            return Err(ConstraintError::PeakBelowRate { unit, peak: peak_rate, rate });
        }
        if peak_burst > burst {
            return Err(ConstraintError::PeakBurstAbove { unit, peak: peak_burst, burst });
        }
        Ok(Self { unit, rule: Rule::Dual(dual) })
    }

    /// Returns a constraint of a rule that is already validated.
    pub(super) const fn checked(unit: PolicedUnit, rule: Rule) -> Self {
        Self { unit, rule }
    }

    /// Returns the unit.
    #[must_use]
    pub const fn unit(self) -> PolicedUnit {
        self.unit
    }

    /// Returns the kind and its parameters.
    #[must_use]
    pub const fn rule(self) -> Rule {
        self.rule
    }

    /// Returns the most that can pass at once, in the unit. A larger packet never conforms.
    #[must_use]
    pub const fn largest(self) -> u64 {
        match self.rule {
            Rule::Leaky { burst, .. } | Rule::Jumping { burst, .. } => burst,
            Rule::Moving(moving) => moving.largest,
            Rule::Dual(dual) => dual.peak_burst,
        }
    }

    /// Returns the same constraint if packets of `largest` bytes can ever pass it.
    ///
    /// Call this for constraints from a configuration, where the largest packet is known.
    ///
    /// # Errors
    /// [`ConstraintError::BelowPacket`] if such packets never conform.
    pub const fn for_packets_of(self, largest: u64) -> Result<Self, ConstraintError> {
        let allowed = self.largest();
        if self.unit.cost(largest) > allowed {
            return Err(ConstraintError::BelowPacket { allowed, packet: largest });
        }
        Ok(self)
    }

    /// Returns A*(t): the most traffic, in the unit, in any *closed* interval of length `t`; at most
    /// `u64::MAX`.
    ///
    /// The bound is tight. Instants are whole nanoseconds, so a half-open interval of length t contains
    /// at most as much as a closed one that is a nanosecond shorter. In closed intervals the jumping
    /// window's bound is (⌈t/T⌉ + 1) B; seed 003's 2B + ⌊t/T⌋ B is one B more at the multiples of T.
    #[must_use]
    pub fn bound(self, t: Duration) -> u64 {
        let nanos = t.as_nanos();
        match self.rule {
            Rule::Leaky { burst, rate } => self.sloped(burst, rate, nanos),
            Rule::Jumping { burst, window } => {
                let windows = u128::from(nanos).div_ceil(u128::from(window.as_nanos().max(1))) + 1;
                narrow(windows.saturating_mul(u128::from(burst)))
            }
            Rule::Moving(moving) => {
                let (interval, most) = (moving.interval.as_nanos().max(1), moving.packets());
                let begun = (nanos % interval).checked_div(moving.spacing.as_nanos());
                let begun = begun.map_or(u64::from(most), |spaces| spaces.saturating_add(1));
                let whole = u128::from(nanos / interval) * u128::from(most);
                let packets = whole + u128::from(begun.min(u64::from(most)));
                narrow(packets.saturating_mul(u128::from(moving.largest)))
            }
            Rule::Dual(dual) => {
                let peak = self.sloped(dual.peak_burst, dual.peak_rate, nanos);
                peak.min(self.sloped(dual.burst, dual.rate, nanos))
            }
        }
    }

    fn sloped(self, burst: u64, rate: u64, nanos: u64) -> u64 {
        let grown = u128::from(rate) * u128::from(nanos) / self.unit.ticks();
        narrow(grown + u128::from(burst))
    }
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

const fn check_burst(
    what: &'static str,
    unit: PolicedUnit,
    burst: u64,
) -> Result<(), ConstraintError> {
    if burst == 0 { Err(ConstraintError::ZeroBurst { what, unit }) } else { Ok(()) }
}

const fn check_rate(
    what: &'static str,
    unit: PolicedUnit,
    rate: u64,
) -> Result<(), ConstraintError> {
    if rate == 0 || rate > Constraint::RATE_MAX {
        return Err(ConstraintError::Rate { what, unit, rate });
    }
    Ok(())
}
