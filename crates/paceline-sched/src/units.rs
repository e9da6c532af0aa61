//! Durations, sizes and rates as text: a number with its unit, such as `200ms`, `10MB` or `2mbit`.
//!
//! The command line, configuration and scenario files, and JSON input all use this parser.
//!
//! ```
//! use paceline_sched::{Duration, units};
//!
//! assert_eq!(units::duration("200ms"), Ok(Duration::from_millis(200)));
//! assert_eq!(units::size("1.5MB"), Ok(1_500_000));
//! assert_eq!(units::rate("2mbit"), Ok(2_000_000));
//! assert_eq!(
//!     units::duration("200").unwrap_err().to_string(),
//!     "needs a unit: 200ms, 0.2s (allowed: ns, us, ms, s, min, h)"
//! );
//! ```

use crate::time::Duration;
use alloc::borrow::ToOwned as _;
use alloc::string::String;
use core::fmt;
use core::ops::RangeInclusive;

/// The name of a unit and its size in base units.
pub type Unit = (&'static str, u64);

/// Units of time in nanoseconds.
pub const TIMES: &[Unit] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Units of size in bytes.
pub const SIZES: &[Unit] =
    &[("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];
/// Units of rate in bits per second. The units of bits may end in `/s`.
pub const RATES: &[Unit] = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("B/s", 8),
    ("kB/s", 8_000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
];

/// Units that users write and the unit to use instead. Case does not matter.
const INSTEAD: &[(Quantity, &str, &str)] = &[
    (Quantity::Duration, "usec", "us"),
    (Quantity::Duration, "msec", "ms"),
    (Quantity::Duration, "sec", "s"),
    (Quantity::Duration, "secs", "s"),
    (Quantity::Duration, "second", "s"),
    (Quantity::Duration, "seconds", "s"),
    (Quantity::Duration, "m", "min"),
    (Quantity::Duration, "mins", "min"),
    (Quantity::Duration, "minutes", "min"),
    (Quantity::Duration, "hours", "h"),
    (Quantity::Size, "b", "B"),
    (Quantity::Size, "bytes", "B"),
    (Quantity::Size, "k", "kB"),
    (Quantity::Size, "m", "MB"),
    (Quantity::Size, "g", "GB"),
    (Quantity::Rate, "bps", "bit"),
    (Quantity::Rate, "kbps", "kbit"),
    (Quantity::Rate, "k", "kbit"),
    (Quantity::Rate, "mbps", "mbit"),
    (Quantity::Rate, "mb/s", "mbit"),
    (Quantity::Rate, "m", "mbit"),
    (Quantity::Rate, "gbps", "gbit"),
    (Quantity::Rate, "g", "gbit"),
];

/// A kind of quantity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quantity {
    /// A duration in nanoseconds, rounded down.
    Duration,
    /// A size in bytes, which must be whole.
    Size,
    /// A rate in bits per second, rounded down.
    Rate,
}

impl Quantity {
    /// Returns the units, the smallest first.
    #[must_use]
    pub const fn units(self) -> &'static [Unit] {
        match self {
            Self::Duration => TIMES,
            Self::Size => SIZES,
            Self::Rate => RATES,
        }
    }

    /// Returns the unit that an error suggests for a bare number, and another one for the same value.
    const fn suggested(self) -> (Unit, Unit) {
        match self {
            Self::Duration => (("ms", 1_000_000), ("s", 1_000_000_000)),
            Self::Size => (("B", 1), ("kB", 1_000)),
            Self::Rate => (("mbit", 1_000_000), ("kbit", 1_000)),
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Duration => "200ms",
            Self::Size => "10MB",
            Self::Rate => "2mbit",
        }
    }
}

/// The reasons for rejecting a text as a quantity.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum UnitError {
    /// The text does not start with a decimal number, or the number is too long.
    Number(Quantity),
    /// The number has no unit.
    Missing {
        /// The number in the text.
        number: String,
        /// The expected kind of quantity.
        quantity: Quantity,
        /// True if an error suggests seconds first, because the value is usually seconds.
        seconds: bool,
    },
    /// The unit does not exist, or belongs to another kind of quantity.
    Unknown {
        /// The unit in the text.
        unit: String,
        /// The expected kind of quantity.
        quantity: Quantity,
    },
    /// The value is out of range.
    Range {
        /// The smallest value in base units.
        min: u64,
        /// The largest value in base units.
        max: u64,
        /// The expected kind of quantity.
        quantity: Quantity,
    },
}

impl UnitError {
    /// Suggests seconds for a bare number, where the value is usually seconds.
    #[must_use]
    pub fn or_seconds(mut self) -> Self {
        if let Self::Missing { quantity: Quantity::Duration, seconds, .. } = &mut self {
            *seconds = true;
        }
        self
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quantity = match self {
            Self::Number(quantity) => {
                write!(f, "must be a number with a unit, such as {}", quantity.example())?;
                quantity
            }
            Self::Missing { number, quantity, seconds } => {
                let (mut first, mut other) = quantity.suggested();
                // A duration below 1 is usually of seconds.
                let unclear = *quantity == Quantity::Duration && number.starts_with("0.");
                if *seconds || unclear {
                    (first, other) = (other, first);
                }
                write!(f, "needs a unit: {number}{}", first.0)?;
                match scaled(number, first.1).map(|(value, _)| Decimal(value, other.1)) {
                    Some(same) if unclear => {
                        write!(f, " ({same}{}) or {number}{}?", other.0, other.0)?;
                    }
                    Some(same) => write!(f, ", {same}{}", other.0)?,
                    None => {}
                }
                quantity
            }
            Self::Unknown { unit, quantity } => {
                write!(f, "unknown unit '{unit}'")?;
                let instead = INSTEAD
                    .iter()
                    .find(|(of, name, _)| of == quantity && name.eq_ignore_ascii_case(unit));
                if let Some((.., name)) = instead {
                    write!(f, ": write {name}")?;
                }
                quantity
            }
            Self::Range { min, max, quantity } => {
                let (min, max) = (In(*min, quantity.units()), In(*max, quantity.units()));
                return write!(f, "must be from {min} to {max}");
            }
        };
        f.write_str(" (allowed: ")?;
        for (number, (name, _)) in quantity.units().iter().enumerate() {
            let join = if number == 0 { "" } else { ", " };
            write!(f, "{join}{name}")?;
        }
        f.write_str(")")
    }
}

impl core::error::Error for UnitError {}

/// Parses a duration such as `200ms`, `0.5 s` or `10min`, rounded down to nanoseconds.
///
/// # Errors
/// Errors if the text is not a number with a unit of time.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    parse(text, Quantity::Duration).map(Duration::from_nanos)
}

/// Parses a duration from `range`.
///
/// # Errors
/// Errors if the text is not a number with a unit of time, or out of range.
pub fn duration_in(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, UnitError> {
    let range = range.start().as_nanos()..=range.end().as_nanos();
    in_range(text, Quantity::Duration, &range).map(Duration::from_nanos)
}

/// Parses a size in bytes such as `10MB` or `1.5kB`. Units are powers of 1000.
///
/// # Errors
/// Errors if the text is not a whole number of bytes with a unit of size.
pub fn size(text: &str) -> Result<u64, UnitError> {
    parse(text, Quantity::Size)
}

/// Parses a size in bytes from `range`.
///
/// # Errors
/// Errors if the text is not a whole number of bytes with a unit of size, or out of range.
pub fn size_in(text: &str, range: &RangeInclusive<u64>) -> Result<u64, UnitError> {
    in_range(text, Quantity::Size, range)
}

/// Parses a rate such as `2mbit`, `1.5 Mbit/s` or `250kB/s`; returns bits per second, rounded down.
///
/// # Errors
/// Errors if the text is not a number with a unit of rate.
pub fn rate(text: &str) -> Result<u64, UnitError> {
    parse(text, Quantity::Rate)
}

/// Parses a rate in bits per second from `range`.
///
/// # Errors
/// Errors if the text is not a number with a unit of rate, or out of range.
pub fn rate_in(text: &str, range: &RangeInclusive<u64>) -> Result<u64, UnitError> {
    in_range(text, Quantity::Rate, range)
}

/// Parses a quantity in base units from `range`.
///
/// # Errors
/// Errors if the text is not a number with a unit of the quantity, or out of range.
pub fn in_range(
    text: &str,
    quantity: Quantity,
    range: &RangeInclusive<u64>,
) -> Result<u64, UnitError> {
    let value = parse(text, quantity)?;
    let (min, max) = (*range.start(), *range.end());
    range.contains(&value).then_some(value).ok_or(UnitError::Range { min, max, quantity })
}

fn parse(text: &str, quantity: Quantity) -> Result<u64, UnitError> {
    let (number, unit) = split(text.trim());
    // Tells a bare number and a foreign unit apart from text that is no number.
    scaled(number, 1).ok_or(UnitError::Number(quantity))?;
    if unit.is_empty() {
        let number = number.to_owned();
        return Err(UnitError::Missing { number, quantity, seconds: false });
    }
    let Some(size) = find(unit, quantity.units()) else {
        return Err(UnitError::Unknown { unit: unit.to_owned(), quantity });
    };
    let (value, exact) = scaled(number, size).ok_or(UnitError::Number(quantity))?;
    if quantity == Quantity::Size && !exact {
        return Err(UnitError::Number(quantity));
    }
    Ok(value)
}

/// Splits a text into its number and its unit.
#[must_use]
pub fn split(text: &str) -> (&str, &str) {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (number, unit) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
    (number, unit.trim_start())
}

/// Returns the size of a unit. Units of bits may be in either case, and may end in `/s`; `µs` is `us`.
fn find(unit: &str, units: &[Unit]) -> Option<u64> {
    let unit = if unit == "µs" { "us" } else { unit };
    let bits = unit.strip_suffix("/s").unwrap_or(unit);
    let same =
        |name: &str| name == unit || (name.ends_with("bit") && name.eq_ignore_ascii_case(bits));
    units.iter().find(|(name, _)| same(name)).map(|(_, size)| *size)
}

/// Parses a number with one of `units`, of which the result must be whole.
pub(crate) fn whole(text: &str, units: &[Unit]) -> Option<u64> {
    let (number, unit) = split(text);
    scaled(number, find(unit, units)?).filter(|(_, exact)| *exact).map(|(value, _)| value)
}

/// Returns a decimal number such as `1.5` times `scale`, rounded down, and whether that is exact.
///
/// Returns `None` if `number` is not a decimal number or the result is too large.
#[must_use]
pub fn scaled(number: &str, scale: u64) -> Option<(u64, bool)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || number.ends_with('.') || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let ten_to = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().ok()? };
    let total = whole.parse::<u128>().ok()?.checked_mul(ten_to)?.checked_add(parts)?;
    let total = total.checked_mul(u128::from(scale))?;
    Some((u64::try_from(total / ten_to).ok()?, total % ten_to == 0))
}

/// A value in base units, formatted in the largest of its units that divides it.
#[derive(Clone, Copy, Debug)]
pub struct In(pub u64, pub &'static [Unit]);

impl fmt::Display for In {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, units) = *self;
        let fits = |(_, size): &&Unit| value == 0 || value % size == 0;
        let largest = units.iter().filter(fits).max_by_key(|(_, size)| *size);
        let zero = units.iter().min_by_key(|(_, size)| *size);
        match if value == 0 { zero } else { largest } {
            Some((name, size)) => write!(f, "{}{name}", value / size),
            None => write!(f, "{value}"),
        }
    }
}

/// A value divided by a unit, as a decimal number.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, unit) = *self;
        let (mut rest, mut scale) = (value % unit, unit);
        write!(f, "{}", value / unit)?;
        if rest > 0 {
            f.write_str(".")?;
        }
        while rest > 0 && scale > 1 {
            scale /= 10;
            write!(f, "{}", rest / scale)?;
            rest %= scale;
        }
        Ok(())
    }
}

/// Returns the present name of a field that carried its unit before, such as `within` for
/// `within_ms`, and an example of its value.
#[must_use]
pub fn renamed<'k>(name: &str, known: &[&'k str]) -> Option<(&'k str, &'static str)> {
    const SUFFIXES: [(&str, Quantity); 7] = [
        ("_bytes_per_s", Quantity::Rate),
        ("_bits_per_s", Quantity::Rate),
        ("_bytes", Quantity::Size),
        ("_ns", Quantity::Duration),
        ("_us", Quantity::Duration),
        ("_ms", Quantity::Duration),
        ("_s", Quantity::Duration),
    ];
    let bare =
        |(suffix, quantity): &(&str, Quantity)| Some((name.strip_suffix(suffix)?, *quantity));
    let (bare, quantity) = SUFFIXES.iter().find_map(bare)?;
    let present = known.iter().find(|known| **known == bare)?;
    Some((present, quantity.example()))
}

#[cfg(test)]
#[path = "units/tests.rs"]
mod tests;
