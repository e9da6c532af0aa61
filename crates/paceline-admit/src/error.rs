//! The errors of invalid demands.

use core::fmt;
use paceline_sched::Duration;
use paceline_sched::police::ConstraintError;

/// Why a demand is invalid. Nothing was tested or reserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DemandError {
    /// A traffic parameter is invalid for a policer.
    Constraint(ConstraintError),
    /// The period is 0.
    ZeroPeriod,
    /// The deadline is 0.
    ZeroDeadline,
    /// The deadline exceeds the range of the bounds.
    DeadlineTooLong {
        /// The requested deadline.
        deadline: Duration,
        /// The longest deadline.
        max: Duration,
    },
    /// A number is out of range.
    TooMuch {
        /// The name of the parameter.
        what: &'static str,
        /// The value.
        value: u64,
        /// The maximum.
        max: u64,
        /// The unit.
        unit: &'static str,
    },
    /// The maximum packet length is 0 or exceeds the burst.
    Packet {
        /// The packet length in bytes.
        packet: u64,
        /// The burst in bytes.
        burst: u64,
    },
    /// The packet rate is too low for the bit rate and the maximum packet length.
    TooFewPackets {
        /// The requested packet rate.
        packets_per_s: u64,
        /// The minimum packet rate.
        least: u64,
    },
}

impl fmt::Display for DemandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constraint(error) => error.fmt(f),
            Self::ZeroPeriod => {
                f.write_str("period is 0: must be above 0; it is the time between two samples")
            }
            Self::ZeroDeadline => {
                f.write_str("deadline is 0: must be above 0; it is the time that a sample may take")
            }
            Self::DeadlineTooLong { deadline, max } => {
                write!(f, "deadline of {deadline}: must be at most {max}; try best effort instead")
            }
            Self::TooMuch { what, value, max, unit } => {
                write!(f, "{what} of {value} {unit}: must be at most {max} {unit}")
            }
            Self::Packet { packet, burst } => write!(
                f,
                "packet of {packet} bytes: must be from 1 to the {burst} bytes that may be sent at once"
            ),
            Self::TooFewPackets { packets_per_s, least } => write!(
                f,
                "{packets_per_s} packets/s: must be at least {least} at this rate; packets may be \
                 shorter than their maximum length, never longer"
            ),
        }
    }
}

impl core::error::Error for DemandError {}
