//! Parses durations with a unit.

use std::time::Duration;

/// Units and their factors in milliseconds.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];
/// The longest duration: one day.
const MILLIS_MAX: u64 = 24 * 3_600_000;
/// The rule that an error message states.
pub(super) const RULE: &str = "must be text with a whole number and a unit (ms, s, min or h), from \
     1ms to 24h; \"10s\" is one, or leave it out for 24h";

/// Parses durations such as `500ms`, `10s`, `5 min` or `1h`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).map(|(_, scale)| *scale);
    let millis = number.parse::<u64>().ok().zip(scale).and_then(|(n, scale)| n.checked_mul(scale));
    match millis {
        Some(millis @ 1..=MILLIS_MAX) => Ok(Duration::from_millis(millis)),
        _ => Err(RULE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, millis) in [("1ms", 1), ("10s", 10_000), ("5 min", 300_000), ("24h", 86_400_000)]
        {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in ["", "10", "s", "0s", "-1s", "1.5s", "25h", "1 day", "99999999999999999999h"] {
            assert_eq!(time(wrong), Err(RULE.to_owned()), "{wrong}");
        }
    }
}
