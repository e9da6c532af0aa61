//! Parses `--history` and `--buffer`: the limits of a pull buffer.

use paceline::Pattern;
use paceline::pull::{History, LimitsError};
use paceline_sched::units::{self, TIMES};
use std::str::FromStr;
use std::time::Duration;

const KEYS: &str = "samples, bytes, age";
const FIX: &str = "write 100, or samples=100,bytes=10MB,age=60s";

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

fn age(text: &str) -> Result<Duration, String> {
    let age = units::duration(text).map_err(|error| error.or_seconds().to_string());
    age.map(|age| Duration::from_nanos(age.as_nanos())).map_err(|error| named("age", text, &error))
}

fn bytes(text: &str) -> Result<u64, String> {
    super::bytes(text).map_err(|error| named("bytes", text, &error))
}

fn named(key: &str, text: &str, error: &str) -> String {
    format!("{key} '{text}': {error}")
}

fn samples(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("samples '{text}': must be a whole number; {FIX}"))
}

fn once<T>(place: &mut Option<T>, key: &str, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{key} is given twice; {FIX}")),
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
        match item.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some((_, "")) => Err(format!("'{item}' has no value; {FIX}")),
            Some(("samples", value)) => once(&mut self.samples, "samples", samples(value)?),
            Some(("bytes", value)) => once(&mut self.bytes, "bytes", bytes(value)?),
            Some(("age", value)) => once(&mut self.age, "age", age(value)?),
            Some((key, _)) => Err(format!("key '{key}' is not known: the keys are {KEYS}")),
            // An item without a key is identified by its unit.
            None if units::split(item).1.is_empty() => {
                once(&mut self.samples, "samples", samples(item)?)
            }
            None if TIMES.iter().any(|(unit, _)| *unit == units::split(item).1) => {
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
    fn invalid_limits_are_refused_with_the_reason() {
        for (text, part) in [
            ("", "samples ''"),
            ("0", "0 samples"),
            ("-1", "bytes '-1'"),
            ("1TB", "1000000000000 bytes"),
            ("bytes=0B", "0 bytes"),
            ("bytes=10", "bytes '10': needs a unit: 10B, 0.01kB (allowed: B, kB, MB, GB, TB)"),
            ("1.5", "samples '1.5'"),
            ("age=60", "age '60': needs a unit: 60s, 60000ms (allowed: ns, us, ms, s, min, h)"),
            ("age=0s", "age 0"),
            ("age=2000h", "a day"),
            ("colour=red", "key 'colour' is not known: the keys are samples, bytes, age"),
            ("100,200", "samples is given twice"),
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
