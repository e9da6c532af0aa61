//! The capacity of a link as configured: a number, or measured within a range.

use super::CapacityEstimator;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use paceline_sched::Capacity;
use paceline_sched::capacity::CapacitySyntax;
use paceline_sched::units::{self, In, Unit, UnitError};

/// The word for a measured capacity.
const AUTO: &str = "auto";
/// The separator of a range.
const TO: &str = "..";
/// The rate of a link of which nothing is known: 256 kbit/s.
const START: Capacity = match Capacity::from_bits_per_s(256_000) {
    Ok(start) => start,
    Err(_) => panic!("256 kbit/s is above the minimum"),
};
/// Values are written in bits, never in bytes.
const BITS: &[Unit] = &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000)];

/// The configured capacity of a link.
///
/// ```
/// use paceline_proto::capacity::LinkCapacity;
///
/// let radio: LinkCapacity = "auto 1mbit..50mbit".parse().unwrap();
/// assert_eq!(radio.to_string(), "auto 1mbit..50mbit");
/// assert_eq!(radio.guaranteed().unwrap().bits_per_s(), 1_000_000);
/// let error = "auto 50mbit..1mbit".parse::<LinkCapacity>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "capacity \"auto 50mbit..1mbit\": the minimum 50mbit is above the maximum 1mbit: \
///      exchange them: auto 1mbit..50mbit"
/// );
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkCapacity {
    /// A known capacity: `10mbit`.
    Fixed(Capacity),
    /// A measured capacity: `auto`, `auto 1mbit..50mbit`, `auto 1mbit..` or `auto ..50mbit`.
    Measured {
        /// The capacity that the link has at least: admission uses it until something is measured.
        min: Option<Capacity>,
        /// The capacity that is never exceeded.
        max: Option<Capacity>,
    },
}

impl LinkCapacity {
    /// The ends of a measured range in bits per second: 10 kbit/s to 2 Gbit/s. Faster links cannot be measured with the probes
    /// of [`CapacityEstimator`].
    pub const MEASURED: RangeInclusive<u64> = 10_000..=2_000_000_000;

    /// Returns the capacity that holds without a measurement; `None` if there is none.
    #[must_use]
    pub const fn guaranteed(&self) -> Option<Capacity> {
        match *self {
            Self::Fixed(capacity) => Some(capacity),
            Self::Measured { min, .. } => min,
        }
    }

    /// Returns the capacity to begin with: the fixed one, the minimum, or 256 kbit/s, within the maximum.
    #[must_use]
    pub fn first(&self) -> Capacity {
        match *self {
            Self::Fixed(capacity) => capacity,
            Self::Measured { min: Some(min), .. } => min,
            Self::Measured { min: None, max } => max.map_or(START, |max| max.min(START)),
        }
    }

    /// Returns true if the capacity is measured.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        matches!(self, Self::Measured { .. })
    }

    /// Returns a new estimator for a measured capacity; `None` for a fixed one.
    #[must_use]
    pub fn estimator(&self) -> Option<CapacityEstimator> {
        match *self {
            Self::Fixed(_) => None,
            Self::Measured { min, max } => Some(CapacityEstimator::new(min, max)),
        }
    }
}

impl From<Capacity> for LinkCapacity {
    fn from(capacity: Capacity) -> Self {
        Self::Fixed(capacity)
    }
}

fn written(capacity: Capacity) -> In {
    In(capacity.bits_per_s(), BITS)
}

impl fmt::Display for LinkCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = match *self {
            Self::Fixed(capacity) => return written(capacity).fmt(f),
            Self::Measured { min: None, max: None } => return f.write_str(AUTO),
            Self::Measured { min, max } => (min, max),
        };
        write!(f, "{AUTO} ")?;
        min.map_or(Ok(()), |min| written(min).fmt(f))?;
        f.write_str(TO)?;
        max.map_or(Ok(()), |max| written(max).fmt(f))
    }
}

/// The reasons for rejecting a text as the capacity of a link.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LinkCapacityError {
    /// The text is neither a rate nor `auto`.
    Fixed {
        /// The text.
        text: String,
        /// The reason.
        error: CapacitySyntax,
    },
    /// A range without its separator.
    Form {
        /// The text.
        text: String,
    },
    /// An end of the range is not a rate, or out of range.
    End {
        /// The text.
        text: String,
        /// The name of the end: minimum or maximum.
        end: &'static str,
        /// The reason.
        error: UnitError,
    },
    /// The minimum is above the maximum.
    Order {
        /// The text.
        text: String,
        /// The smaller end.
        least: Capacity,
        /// The greater end.
        most: Capacity,
    },
}

impl fmt::Display for LinkCapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { text, error } => {
                write!(f, "capacity \"{text}\": {error}, or \"auto\" to measure it")
            }
            Self::Form { text } => {
                write!(f, "capacity \"{text}\": needs a range after auto: auto 1mbit{TO}50mbit")
            }
            Self::End { text, end, error } => {
                let (min, max) = LinkCapacity::MEASURED.into_inner();
                let (min, max) = (In(min, BITS), In(max, BITS));
                write!(f, "capacity \"{text}\": the {end} {error}")?;
                if matches!(error, UnitError::Range { .. }) {
                    return f.write_str(", or \"auto\" without a range");
                }
                write!(f, "; use {min} to {max}")
            }
            Self::Order { text, least, most } => {
                let (least, most) = (written(*least), written(*most));
                write!(
                    f,
                    "capacity \"{text}\": the minimum {most} is above the maximum {least}: \
                     exchange them: auto {least}{TO}{most}"
                )
            }
        }
    }
}

impl core::error::Error for LinkCapacityError {}

impl FromStr for LinkCapacity {
    type Err = LinkCapacityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let owned = || text.to_owned();
        let range = match trimmed.strip_prefix(AUTO) {
            Some("") => return Ok(Self::Measured { min: None, max: None }),
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim(),
            // Another word, such as "automatic".
            Some(_) | None => {
                let fixed = trimmed.parse().map(Self::Fixed);
                return fixed.map_err(|error| LinkCapacityError::Fixed { text: owned(), error });
            }
        };
        let form = || LinkCapacityError::Form { text: owned() };
        let (min, max) = range.split_once(TO).ok_or_else(form)?;
        if min.trim().is_empty() && max.trim().is_empty() {
            return Err(form());
        }
        let end = |part: &str, end| match part.trim() {
            "" => Ok(None),
            part => units::rate_in(part, &Self::MEASURED)
                .map(|bits| Capacity::from_bits_per_s(bits).ok())
                .map_err(|error| LinkCapacityError::End { text: owned(), end, error }),
        };
        let (min, max) = (end(min, "minimum")?, end(max, "maximum")?);
        if let (Some(most), Some(least)) = (min, max)
            && least < most
        {
            return Err(LinkCapacityError::Order { text: owned(), least, most });
        }
        Ok(Self::Measured { min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<LinkCapacity, LinkCapacityError> {
        text.parse()
    }

    fn bits(bits: u64) -> Option<Capacity> {
        Capacity::from_bits_per_s(bits).ok()
    }

    #[test]
    fn every_form_is_read() {
        let fixed = LinkCapacity::Fixed(bits(10_000_000).unwrap());
        let measured = |min, max| Ok(LinkCapacity::Measured { min, max });
        let (one, fifty) = (bits(1_000_000), bits(50_000_000));
        assert_eq!(parse(" 10 Mbit/s "), Ok(fixed));
        assert_eq!(parse("auto"), measured(None, None));
        assert_eq!(parse(" auto \t 1mbit .. 50mbit "), measured(one, fifty));
        assert_eq!(parse("auto 1mbit.."), measured(one, None));
        assert_eq!(parse("auto ..50mbit"), measured(None, fifty));
        assert_eq!(parse("auto 1mbit..1mbit"), measured(one, one));
        assert_eq!(parse("auto 1.5mbit..2mbit"), measured(bits(1_500_000), bits(2_000_000)));
    }

    #[test]
    fn errors_name_the_value_the_range_and_a_fix() {
        for text in ["auto 5mbit", "auto ..", "auto 1mbit-50mbit", "auto ."] {
            let error = parse(text).unwrap_err().to_string();
            let fix = "needs a range after auto: auto 1mbit..50mbit";
            assert_eq!(error, format!("capacity \"{text}\": {fix}"));
        }
        let error = parse("auto 9mbit..1.5mbit").unwrap_err().to_string();
        assert!(error.ends_with("exchange them: auto 1500kbit..9mbit"), "{error}");
        for text in ["auto 1kbit..1mbit", "auto 1mbit..3gbit"] {
            let error = parse(text).unwrap_err().to_string();
            let (range, fix) = ("must be from 10kbit to 2gbit", ", or \"auto\" without a range");
            assert!(error.contains(text) && error.ends_with(&format!("{range}{fix}")), "{error}");
        }
        for text in ["auto 1..2", "auto x..1mbit", "auto 1mbit..2ms"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(text) && error.ends_with("; use 10kbit to 2gbit"), "{error}");
        }
        for text in ["", "automatic", "auto1mbit..2mbit", "0mbit", "1..2", "10"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("capacity \"{text}\"")), "{error}");
            assert!(error.ends_with(", or \"auto\" to measure it"), "{error}");
        }
    }

    #[test]
    fn only_a_measured_capacity_has_an_estimator() {
        let fixed = parse("10mbit").unwrap();
        let measured = parse("auto 1mbit..50mbit").unwrap();
        assert!(fixed.estimator().is_none());
        let found = measured.estimator().unwrap().estimate();
        assert_eq!((found.low, found.high), (1_000_000, 50_000_000));
        assert_eq!(
            (fixed.guaranteed(), measured.guaranteed()),
            (bits(10_000_000), bits(1_000_000))
        );
        assert_eq!(parse("auto").unwrap().guaranteed(), None);
    }

    fn end() -> impl Strategy<Value = Option<Capacity>> {
        proptest::option::of((1_250_u64..=250_000_000).prop_map(|bytes| bits(bytes * 8).unwrap()))
    }

    fn any() -> impl Strategy<Value = LinkCapacity> {
        let fixed =
            (1..=u64::MAX / 8).prop_map(|bytes| LinkCapacity::Fixed(bits(bytes * 8).unwrap()));
        let measured = (end(), end()).prop_map(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => {
                LinkCapacity::Measured { min: Some(a.min(b)), max: Some(a.max(b)) }
            }
            (min, max) => LinkCapacity::Measured { min, max },
        });
        prop_oneof![fixed, measured]
    }

    proptest! {
        #[test]
        fn text_round_trips(capacity in any()) {
            prop_assert_eq!(capacity.to_string().parse(), Ok(capacity));
        }

        #[test]
        fn any_text_is_read_or_named(text in "(auto)?[ .0-9a-z/]{0,24}") {
            match parse(&text) {
                Ok(capacity) => prop_assert_eq!(parse(&capacity.to_string()), Ok(capacity)),
                Err(error) => {
                    let quoted = format!("\"{text}\"");
                    prop_assert!(error.to_string().contains(&quoted));
                }
            }
        }
    }
}
