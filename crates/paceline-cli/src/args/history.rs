//! Parses `--history` and `--buffer`: the limits of a pull buffer.

use paceline::Pattern;
use paceline::pull::{History, LimitsError};
use std::str::FromStr;
use std::time::Duration;

const KEYS: &str = "samples, bytes, age";
/// Units of size and their factors in bytes.
const BYTES: [(&str, u64); 5] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
/// Units of time and their factors in milliseconds.
const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];
const MEND: &str = "write 100, or samples=100,bytes=10MB,age=60s";

/// The limits that the text names so far.
#[derive(Clone, Debug, Default)]
struct Written {
    samples: Option<usize>,
    bytes: Option<u64>,
    age: Option<Duration>,
}

/// A pull buffer of a node: its pattern and its limits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BufferSpec {
    /// The pattern to which the buffer subscribes.
    pub(crate) pattern: Pattern,
    pub(crate) history: History,
}

/// Splits a value into its number and its unit.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text.split_at(end)
}

/// Returns `number` times `factor`, or `None` unless the product is a whole number of 64 bits.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 12)?;
    let parts = 10u128.pow(digits);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let whole: u64 = whole.parse().ok()?;
    let all = (u128::from(whole) * parts + fraction).checked_mul(u128::from(factor))?;
    u64::try_from(all / parts).ok().filter(|_| all.is_multiple_of(parts))
}

fn in_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    scaled(number, *factor)
}

/// Parses a number of bytes with a unit, such as `10MB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    in_units(text, &BYTES)
        .ok_or_else(|| format!("bytes '{text}': write a number with B, kB, MB or GB, like 10MB"))
}

/// Parses a duration with a unit, such as `60s`, `500ms`, `10min` or `2h`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    in_units(text, &TIMES).map(Duration::from_millis).ok_or_else(|| {
        format!("'{text}' is no time: write a number with ms, s, min or h, like 60s")
    })
}

fn samples(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("samples '{text}': must be a whole number; {MEND}"))
}

fn once<T>(place: &mut Option<T>, key: &str, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{key} is there twice; {MEND}")),
    }
}

impl Written {
    fn history(self) -> Result<History, LimitsError> {
        let mut history = History::new();
        if let Some(samples) = self.samples {
            history = history.samples(samples);
        }
        if let Some(bytes) = self.bytes {
            history = history.bytes(bytes);
        }
        if let Some(age) = self.age {
            history = history.age(age);
        }
        history.limits()?;
        Ok(history)
    }

    fn set(&mut self, item: &str) -> Result<(), String> {
        let age = |text: &str| time(text).map_err(|error| format!("age {error}"));
        match item.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((_, "")) => Err(format!("'{item}' has no value; {MEND}")),
            Some(("samples", value)) => once(&mut self.samples, "samples", samples(value)?),
            Some(("bytes", value)) => once(&mut self.bytes, "bytes", bytes(value)?),
            Some(("age", value)) => once(&mut self.age, "age", age(value)?),
            Some((key, _)) => Err(format!("key '{key}' is not known: the keys are {KEYS}")),
            // An item without a key is identified by its unit.
            None if split_unit(item).1.is_empty() => {
                once(&mut self.samples, "samples", samples(item)?)
            }
            None if TIMES.iter().any(|(unit, _)| *unit == split_unit(item).1) => {
                once(&mut self.age, "age", age(item)?)
            }
            None => once(&mut self.bytes, "bytes", bytes(item)?),
        }
    }
}

/// Parses the limits of a pull buffer.
pub(crate) fn history(text: &str) -> Result<History, String> {
    let mut written = Written::default();
    text.split(',').try_for_each(|item| written.set(item.trim()))?;
    written.history().map_err(|error| error.to_string())
}

impl FromStr for BufferSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pattern = |text: &str| Pattern::new(text).map_err(|error| error.to_string());
        let Some((tag, limits)) = text.split_once('=') else {
            return Ok(Self { pattern: pattern(text)?, history: History::new() });
        };
        Ok(Self { pattern: pattern(tag)?, history: history(limits)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(samples: usize, bytes: u64, seconds: u64) -> History {
        let history = History::new().samples(samples).bytes(bytes);
        history.age(Duration::from_secs(seconds))
    }

    #[test]
    fn limits_are_known_by_key_or_by_unit() {
        assert_eq!(history("100"), Ok(History::new().samples(100)));
        for text in ["100,10MB,60s", "samples=100,bytes=10MB,age=60s", "1min , 100, 10000kB"] {
            assert_eq!(history(text), Ok(all(100, 10_000_000, 60)), "{text}");
        }
        assert_eq!(history("1.5MB"), Ok(History::new().bytes(1_500_000)));
        let age = History::new().age(Duration::from_secs(1_800));
        assert_eq!(history("age=0.5h"), Ok(age));
    }

    #[test]
    fn wrong_limits_name_what_is_wrong() {
        for (text, part) in [
            ("", "samples ''"),
            ("0", "0 samples"),
            ("-1", "bytes '-1'"),
            ("1TB", "1000000000000 bytes"),
            ("bytes=0B", "0 bytes"),
            ("bytes=10", "bytes '10': write a number with B, kB, MB or GB"),
            ("1.5", "samples '1.5'"),
            ("age=60", "age '60' is no time"),
            ("age=0s", "age 0"),
            ("age=2000h", "a day"),
            ("colour=red", "key 'colour' is not known: the keys are samples, bytes, age"),
            ("100,200", "samples is there twice"),
            ("bytes=", "'bytes=' has no value"),
            ("99999999999999999999", "samples '99999999999999999999'"),
        ] {
            let error = history(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_buffer_is_a_pattern_and_limits() {
        let buffer: BufferSpec = "robot/**=samples=100,bytes=1kB,age=60s".parse().unwrap();
        assert_eq!(buffer.pattern.as_str(), "robot/**");
        assert_eq!(buffer.history, all(100, 1_000, 60));
        assert_eq!("a".parse::<BufferSpec>().unwrap().history, History::new());
        assert!("a//b=100".parse::<BufferSpec>().unwrap_err().contains("empty chunk"));
        assert!("a=".parse::<BufferSpec>().unwrap_err().contains("samples ''"));
    }
}
