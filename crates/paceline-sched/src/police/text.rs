//! The text form of constraints, for configurations.

use super::{
    Action, Combined, Constraint, ConstraintError, Dual, Moving, Police, PolicedUnit, Rule,
};
use crate::time::Duration;
use crate::units::{self, In};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

const LEAKY: &str = "leaky:BURST,RATE, for example leaky:22500B,10mbit";
const JUMPING: &str = "jumping:BURST,WINDOW, for example jumping:22500B,18ms";
const MOVING: &str = "moving:XMIN,XAVG,INTERVAL,LARGEST, for example moving:2ms,10ms,1s,1500B";
const DUAL: &str =
    "dual:PEAKBURST,PEAKRATE,BURST,RATE, for example dual:1500B,100mbit,22500B,10mbit";

/// The units of a parameter.
type Units = &'static [units::Unit];

/// Bytes are always formatted in this unit, so that values are easy to compare.
const WHOLE_BYTES: Units = &[("B", 1)];
const PACKETS: Units = &[("p", 1)];
const PACKETS_PER_S: Units = &[("p/s", 1)];
/// The units in which rates and times are formatted.
const BITS_PER_S: Units =
    &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];
const SHORT_TIMES: Units = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// The reasons for rejecting a text as a constraint, an action or a [`Police`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TextError {
    /// The kind of constraint is unknown.
    Kind {
        /// The name in the text.
        name: String,
    },
    /// The number of parameters is wrong.
    Parameters {
        /// The number found.
        found: usize,
        /// The expected form of this kind.
        form: &'static str,
    },
    /// A parameter is not a number with a unit of its kind.
    Quantity {
        /// The name of the parameter.
        what: &'static str,
        /// The text of the parameter.
        text: String,
        /// The expected form of such a parameter.
        form: &'static str,
    },
    /// Some parameters count bytes and others packets.
    Mixed {
        /// The expected form of this kind.
        form: &'static str,
    },
    /// The action is unknown or missing.
    Action {
        /// The name in the text.
        name: String,
    },
    /// The parameters are out of range.
    Refused(ConstraintError),
}

impl From<ConstraintError> for TextError {
    fn from(error: ConstraintError) -> Self {
        Self::Refused(error)
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { name } => write!(
                f,
                "policer '{name}' is not known: must be leaky, jumping, moving or dual, for \
                 example leaky:22500B,10mbit"
            ),
            Self::Parameters { found, form } => {
                write!(f, "policer has {found} parameters: write {form}")
            }
            Self::Quantity { what, text, form } => write!(f, "{what} '{text}': must be {form}"),
            Self::Mixed { form } => write!(
                f,
                "policer counts bytes and packets at once: write {form}, or all of it in \
                 packets; join two policers with + to limit both"
            ),
            Self::Action { name } => write!(
                f,
                "action '{name}' is not known: end with else delay, else drop or else demote"
            ),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TextError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Kind { .. }
            | Self::Parameters { .. }
            | Self::Quantity { .. }
            | Self::Mixed { .. }
            | Self::Action { .. } => None,
        }
    }
}

/// Parses the parameters of one policer and checks that all use the same unit.
struct Reader {
    form: &'static str,
    unit: Option<PolicedUnit>,
}

impl Reader {
    fn counts(&mut self, unit: PolicedUnit) -> Result<(), TextError> {
        if self.unit.is_some_and(|known| known != unit) {
            return Err(TextError::Mixed { form: self.form });
        }
        self.unit = Some(unit);
        Ok(())
    }

    fn amount(&mut self, what: &'static str, text: &str) -> Result<u64, TextError> {
        self.counted(
            what,
            text,
            [units::SIZES, PACKETS],
            "a whole number of bytes or packets with its \
             unit: B, kB, MB, GB or p; for example 22500B",
        )
    }

    fn rate(&mut self, what: &'static str, text: &str) -> Result<u64, TextError> {
        let form = "a whole number of bits or packets per second with its unit: bit, kbit, mbit, \
                    gbit, B/s, kB/s, MB/s, GB/s or p/s; for example 10mbit";
        self.counted(what, text, [units::RATES, PACKETS_PER_S], form)
    }

    fn counted(
        &mut self,
        what: &'static str,
        text: &str,
        units_of: [Units; 2],
        form: &'static str,
    ) -> Result<u64, TextError> {
        for (unit, known) in [PolicedUnit::Bytes, PolicedUnit::Packets].into_iter().zip(units_of) {
            if let Some(value) = units::whole(text, known) {
                self.counts(unit)?;
                return Ok(value);
            }
        }
        Err(TextError::Quantity { what, text: text.to_string(), form })
    }

    fn unit(&self) -> PolicedUnit {
        self.unit.unwrap_or(PolicedUnit::Bytes)
    }
}

fn time(what: &'static str, text: &str) -> Result<Duration, TextError> {
    let form =
        "a whole number of nanoseconds with a unit: ns, us, ms, s, min or h; for example 18ms";
    let wrong = || TextError::Quantity { what, text: text.to_string(), form };
    units::whole(text, units::TIMES).map(Duration::from_nanos).ok_or_else(wrong)
}

impl FromStr for Constraint {
    type Err = TextError;
    /// Parses one of the forms listed at [`Constraint`].
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let form = match name.trim() {
            "leaky" => LEAKY,
            "jumping" => JUMPING,
            "moving" => MOVING,
            "dual" => DUAL,
            name => return Err(TextError::Kind { name: name.to_string() }),
        };
        let parameters: Vec<&str> = rest.split(',').map(str::trim).collect();
        let mut read = Reader { form, unit: None };
        match (name.trim(), parameters.as_slice()) {
            ("leaky", &[burst, rate]) => {
                let (burst, rate) = (read.amount("burst", burst)?, read.rate("rate", rate)?);
                Ok(Self::leaky(read.unit(), burst, rate)?)
            }
            ("jumping", &[burst, window]) => {
                let (burst, window) = (read.amount("burst", burst)?, time("window", window)?);
                Ok(Self::jumping(read.unit(), burst, window)?)
            }
            ("moving", &[spacing, average, interval, largest]) => {
                let moving = Moving {
                    spacing: time("least time between packets", spacing)?,
                    average: time("average time between packets", average)?,
                    interval: time("interval", interval)?,
                    largest: read.amount("largest packet", largest)?,
                };
                Ok(Self::moving(read.unit(), moving)?)
            }
            ("dual", &[peak_burst, peak_rate, burst, rate]) => {
                let dual = Dual {
                    peak_burst: read.amount("burst at the peak rate", peak_burst)?,
                    peak_rate: read.rate("peak rate", peak_rate)?,
                    burst: read.amount("burst", burst)?,
                    rate: read.rate("rate", rate)?,
                };
                Ok(Self::dual(read.unit(), dual)?)
            }
            (_, parameters) => {
                let found = if rest.trim().is_empty() { 0 } else { parameters.len() };
                Err(TextError::Parameters { found, form })
            }
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (amounts, rates) = match self.unit() {
            PolicedUnit::Bytes => (WHOLE_BYTES, BITS_PER_S),
            PolicedUnit::Packets => (PACKETS, PACKETS_PER_S),
        };
        let (amount, rate) = (|value| In(value, amounts), |value| In(value, rates));
        let time = |time: Duration| In(time.as_nanos(), SHORT_TIMES);
        match self.rule() {
            Rule::Leaky { burst, rate: per_s } => {
                write!(f, "leaky:{},{}", amount(burst), rate(per_s))
            }
            Rule::Jumping { burst, window } => {
                write!(f, "jumping:{},{}", amount(burst), time(window))
            }
            Rule::Moving(Moving { spacing, average, interval, largest }) => {
                let (spacing, average, interval) = (time(spacing), time(average), time(interval));
                write!(f, "moving:{spacing},{average},{interval},{}", amount(largest))
            }
            Rule::Dual(Dual { peak_burst, peak_rate, burst, rate: per_s }) => {
                let (peak_burst, peak_rate) = (amount(peak_burst), rate(peak_rate));
                write!(f, "dual:{peak_burst},{peak_rate},{},{}", amount(burst), rate(per_s))
            }
        }
    }
}

impl fmt::Display for Combined {
    /// Formats the constraints, joined by ` + `; `none` without any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.constraints().len() == 0 {
            return f.write_str("none");
        }
        for (index, constraint) in self.constraints().enumerate() {
            let join = if index == 0 { "" } else { " + " };
            write!(f, "{join}{constraint}")?;
        }
        Ok(())
    }
}

impl FromStr for Combined {
    type Err = TextError;
    /// Parses constraints joined by `+`, or `none`.
    fn from_str(text: &str) -> Result<Self, TextError> {
        if text.trim() == "none" {
            return Ok(Self::default());
        }
        let constraints: Result<Vec<Constraint>, _> =
            text.split('+').map(|text| text.trim().parse()).collect();
        Ok(Self::new(&constraints?)?)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delay => "delay",
            Self::Drop => "drop",
            Self::Demote => "demote",
        })
    }
}

impl FromStr for Action {
    type Err = TextError;
    /// Parses `delay`, `drop` or `demote`.
    fn from_str(text: &str) -> Result<Self, TextError> {
        match text {
            "delay" => Ok(Self::Delay),
            "drop" => Ok(Self::Drop),
            "demote" => Ok(Self::Demote),
            name => Err(TextError::Action { name: name.to_string() }),
        }
    }
}

impl fmt::Display for Police {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} else {}", self.policers, self.action)
    }
}

impl FromStr for Police {
    type Err = TextError;
    /// Parses constraints and an action: `leaky:22500B,10mbit + leaky:32p,2500p/s else drop`.
    fn from_str(text: &str) -> Result<Self, TextError> {
        let (policers, action) = text.split_once(" else ").unwrap_or((text, ""));
        Ok(Self { policers: policers.parse()?, action: action.trim().parse()? })
    }
}
