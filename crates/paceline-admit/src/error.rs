//! What is no demand, by name.

use core::fmt;
use paceline_sched::Duration;
use paceline_sched::police::ConstraintError;

/// Why a demand was not accepted as one: nothing of it was tested, nothing is held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DemandError {
    /// A parameter of the traffic is no parameter of a policer.
    Constraint(ConstraintError),
    /// The period is 0.
    ZeroPeriod,
    /// The deadline is 0.
    ZeroDeadline,
    /// The deadline is longer than what bounds are computed for.
    DeadlineTooLong {
        /// What was asked for.
        deadline: Duration,
        /// The longest one.
        max: Duration,
    },
    /// A number is above its range.
    TooMuch {
        /// Which one.
        what: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        max: u64,
        /// In what.
        unit: &'static str,
    },
    /// The longest packet is none, or more than may be sent at once.
    Packet {
        /// The packet in bytes.
        packet: u64,
        /// What may be sent at once, in bytes.
        burst: u64,
    },
    /// Fewer packets than the rate makes, were all of them as long as they may be.
    TooFewPackets {
        /// What was said.
        packets_per_s: u64,
        /// What the rate makes.
        least: u64,
    },
}

impl fmt::Display for DemandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constraint(error) => error.fmt(f),
            Self::ZeroPeriod => f.write_str("period is 0: give the time between two samples"),
            Self::ZeroDeadline => f.write_str("deadline is 0: give the time a sample may take"),
            Self::DeadlineTooLong { deadline, max } => {
                write!(f, "deadline of {deadline}: at most {max}; ask for best effort instead")
            }
            Self::TooMuch { what, value, max, unit } => {
                write!(f, "{what} of {value} {unit}: at most {max} {unit}")
            }
            Self::Packet { packet, burst } => write!(
                f,
                "packet of {packet} bytes: must be from 1 to the {burst} bytes that may be sent at once"
            ),
            Self::TooFewPackets { packets_per_s, least } => write!(
                f,
                "{packets_per_s} packets/s: the rate makes at least {least}; packets may be shorter than \
                 their greatest length, never longer"
            ),
        }
    }
}

impl core::error::Error for DemandError {}
