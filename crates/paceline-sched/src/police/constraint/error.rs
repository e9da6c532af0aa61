//! The errors of constraints.

use super::{Constraint, PolicedUnit};
use crate::time::Duration;
use core::fmt;

/// The reasons for rejecting a constraint or a combination of constraints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ConstraintError {
    /// A burst or a largest packet is 0.
    ZeroBurst {
        /// The name of the parameter.
        what: &'static str,
        /// The unit of the constraint.
        unit: PolicedUnit,
    },
    /// A rate is 0 or above the range.
    Rate {
        /// The name of the parameter.
        what: &'static str,
        /// The unit of the constraint.
        unit: PolicedUnit,
        /// The rate in bit/s or packets/s.
        rate: u64,
    },
    /// A time is 0.
    ZeroTime {
        /// The name of the parameter.
        what: &'static str,
    },
    /// The shortest time between packets is above the average.
    SpacingAboveAverage {
        /// Xmin.
        spacing: Duration,
        /// Xavg.
        average: Duration,
    },
    /// The interval is too short for one packet.
    AverageAboveInterval {
        /// Xavg.
        average: Duration,
        /// I.
        interval: Duration,
    },
    /// The interval has more packets than a policer can store.
    TooManyPackets {
        /// Xavg.
        average: Duration,
        /// I.
        interval: Duration,
    },
    /// The unit is packets, and the largest packet is not 1.
    PacketIsOne {
        /// Smax.
        largest: u64,
    },
    /// The peak rate is below the sustained rate.
    PeakBelowRate {
        /// The unit of the constraint.
        unit: PolicedUnit,
        /// p.
        peak: u64,
        /// r.
        rate: u64,
    },
    /// The burst above the peak rate is larger than the burst above the sustained rate.
    PeakBurstAbove {
        /// The unit of the constraint.
        unit: PolicedUnit,
        /// M.
        peak: u64,
        /// b.
        burst: u64,
    },
    /// The stream's largest packet never conforms.
    BelowPacket {
        /// The most that can pass at once, in bytes.
        allowed: u64,
        /// The largest packet in bytes.
        packet: u64,
    },
    /// There are too many constraints.
    TooMany {
        /// The number of constraints.
        policers: usize,
        /// The largest permitted number.
        most: usize,
    },
}

/// Returns the name of a rate in this unit.
const fn per_second(unit: PolicedUnit) -> &'static str {
    match unit {
        PolicedUnit::Bytes => "bit/s",
        PolicedUnit::Packets => "packets/s",
    }
}

impl fmt::Display for ConstraintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroBurst { what, unit } => write!(
                f,
                "{what} is 0 {unit}: must be from 1 to {}; give at least the largest packet",
                u64::MAX
            ),
            Self::Rate { what, unit, rate } => write!(
                f,
                "{what} is {rate} {}: must be from 1 to {}; omit the policer for traffic without a \
                 limit",
                per_second(unit),
                Constraint::RATE_MAX
            ),
            Self::ZeroTime { what } => {
                write!(
                    f,
                    "{what} is 0: must be 1 ns or more; write it with its unit, for example 18ms"
                )
            }
            Self::SpacingAboveAverage { spacing, average } => write!(
                f,
                "least time between packets is {spacing}: must be from 0 to the average of \
                 {average}; lower it or raise the average"
            ),
            Self::AverageAboveInterval { average, interval } => write!(
                f,
                "interval is {interval}: must be at least the average time between packets, \
                 {average}; raise it; below that no packet could ever be sent"
            ),
            Self::TooManyPackets { average, interval } => write!(
                f,
                "an interval of {interval} with a packet each {average} may hold more than {} \
                 packets: shorten the interval, or use a leaky bucket, which stores no packet \
                 history",
                Constraint::MOVING_PACKETS_MAX
            ),
            Self::PacketIsOne { largest } => write!(
                f,
                "largest packet is {largest} packets: must be 1 where packets are counted; give \
                 it in bytes to limit its size"
            ),
            Self::PeakBelowRate { unit, peak, rate } => write!(
                f,
                "peak rate is {peak} {unit}: must be from the sustained {rate} to {max}; raise it, \
                 or use a leaky bucket",
                unit = per_second(unit),
                max = Constraint::RATE_MAX
            ),
            Self::PeakBurstAbove { unit, peak, burst } => write!(
                f,
                "burst at the peak rate is {peak} {unit}: must be from 1 to {burst}, the burst \
                 at the sustained rate; lower it or raise that"
            ),
            Self::BelowPacket { allowed, packet } => write!(
                f,
                "at most {allowed} bytes pass at once: must be at least the largest packet of \
                 {packet} bytes, which would never pass; raise the burst"
            ),
            Self::TooMany { policers, most } => {
                write!(f, "{policers} policers at once: must be from 0 to {most}; remove some")
            }
        }
    }
}

impl core::error::Error for ConstraintError {}
