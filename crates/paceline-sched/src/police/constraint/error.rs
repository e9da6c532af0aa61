//! Why a constraint was not accepted.

use super::{Constraint, Unit};
use crate::time::Duration;
use core::fmt;

/// Why a constraint, or a combination of some, was not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ConstraintError {
    /// A burst or a largest packet of nothing.
    ZeroBurst {
        /// Which.
        what: &'static str,
        /// What the constraint counts.
        unit: Unit,
    },
    /// A rate of nothing, or beyond the range.
    Rate {
        /// Which.
        what: &'static str,
        /// What the constraint counts.
        unit: Unit,
        /// In bit/s or packets/s.
        rate: u64,
    },
    /// A time of nothing.
    ZeroTime {
        /// Which.
        what: &'static str,
    },
    /// The least time between packets is above the average.
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
    /// The interval may hold more packets than a policer remembers.
    TooManyPackets {
        /// Xavg.
        average: Duration,
        /// I.
        interval: Duration,
    },
    /// Packets are counted, and the largest is not one packet.
    PacketIsOne {
        /// Smax.
        largest: u64,
    },
    /// The peak rate is below the sustained one.
    PeakBelowRate {
        /// What the constraint counts.
        unit: Unit,
        /// p.
        peak: u64,
        /// r.
        rate: u64,
    },
    /// More may burst above the peak rate than above the sustained one.
    PeakBurstAbove {
        /// What the constraint counts.
        unit: Unit,
        /// M.
        peak: u64,
        /// b.
        burst: u64,
    },
    /// The stream's largest packet can never pass.
    BelowPacket {
        /// What may pass at once, in bytes.
        allowed: u64,
        /// The largest packet in bytes.
        packet: u64,
    },
    /// More constraints than are asked together.
    TooMany {
        /// How many there are.
        policers: usize,
        /// How many there may be.
        most: usize,
    },
}

/// How rates in a unit are written.
const fn per_second(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bit/s",
        Unit::Packets => "packets/s",
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
                "{what} is {rate} {}: must be from 1 to {}; leave the policer out for traffic \
                 without a limit",
                per_second(unit),
                Constraint::RATE_MAX
            ),
            Self::ZeroTime { what } => {
                write!(f, "{what} is 0: must be 1 ns or more; give it with its unit, as 18ms")
            }
            Self::SpacingAboveAverage { spacing, average } => write!(
                f,
                "least time between packets is {spacing}: must be from 0 to the average of \
                 {average}; lower it or raise the average"
            ),
            Self::AverageAboveInterval { average, interval } => write!(
                f,
                "interval is {interval}: must be at least the average time between packets, \
                 {average}; raise it, or nothing could ever be sent"
            ),
            Self::TooManyPackets { average, interval } => write!(
                f,
                "an interval of {interval} with a packet each {average} may hold more than {} \
                 packets: shorten the interval, or take a leaky bucket, which needs no memory of \
                 packets",
                Constraint::MOVING_PACKETS_MAX
            ),
            Self::PacketIsOne { largest } => write!(
                f,
                "largest packet is {largest} packets: must be 1 where packets are counted; give \
                 it in bytes to limit its size"
            ),
            Self::PeakBelowRate { unit, peak, rate } => write!(
                f,
                "peak rate is {peak} {unit}: must be from the sustained {rate} to {max}; raise \
                 it, or take a leaky bucket",
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
                write!(f, "{policers} policers at once: must be from 0 to {most}; leave some out")
            }
        }
    }
}

impl core::error::Error for ConstraintError {}
