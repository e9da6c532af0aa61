//! Reads durations, sizes and rates: text with a number and a unit.

use paceline_sched::units::{self, Quantity, UnitError};
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::de::DeValue;

/// The longest duration: one day.
const NANOS_MAX: u64 = 24 * 3_600_000_000_000;
/// The range of a duration that an error message states.
pub(super) const AGE: &str = "must be from 1ms to 24h, such as \"10s\"; leave it out for 24h";

/// Reads a duration from 1 ms to 24 h. `rule` states the range and a fix.
pub(super) fn time(value: &DeValue<'_>, rule: &str) -> Result<Duration, String> {
    let range = 1_000_000..=NANOS_MAX;
    amount(value, Quantity::Duration, &range, rule).map(Duration::from_nanos)
}

/// Reads a size in bytes from `range`. `rule` states the range and a fix.
pub(super) fn size(
    value: &DeValue<'_>,
    range: &RangeInclusive<u64>,
    rule: &str,
) -> Result<u64, String> {
    amount(value, Quantity::Size, range, rule)
}

/// Reads a quantity from `range`, in its smallest unit. `rule` states the range and a fix.
pub(super) fn amount(
    value: &DeValue<'_>,
    quantity: Quantity,
    range: &RangeInclusive<u64>,
    rule: &str,
) -> Result<u64, String> {
    let text = written(value).ok_or_else(|| rule.to_owned())?;
    units::in_range(&text, quantity, range).map_err(|error| {
        let range = matches!(error, UnitError::Range { .. });
        if range { rule.to_owned() } else { error.to_string() }
    })
}

/// Returns the text of a value. A bare number counts as text, so that the error can suggest a unit.
pub(super) fn written(value: &DeValue<'_>) -> Option<String> {
    let integer = || Some(value.as_integer()?.as_str().replace('_', ""));
    let float = || Some(value.as_float()?.as_str().replace('_', ""));
    value.as_str().map(str::to_owned).or_else(integer).or_else(float)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Duration, String> {
        time(&DeValue::String(text.into()), AGE)
    }

    #[test]
    fn times_have_units() {
        for (text, millis) in
            [("1ms", 1), ("1.5s", 1_500), ("10s", 10_000), ("5 min", 300_000), ("24h", 86_400_000)]
        {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["0s", "25h", "0.5ms"] {
            assert_eq!(read(wrong), Err(AGE.to_owned()), "{wrong}");
        }
        for wrong in ["", "s", "-1s", "1 day", "99999999999999999999h"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("(allowed: ns, us, ms, s, min, h)"), "{wrong}: {error}");
        }
        assert!(read("10").unwrap_err().starts_with("needs a unit: 10ms, 0.01s (allowed: "));
        assert_eq!(time(&DeValue::Boolean(true), AGE), Err(AGE.to_owned()));
    }
}
