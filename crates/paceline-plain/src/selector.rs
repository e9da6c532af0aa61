//! Parses the parameters of a query (after the `?`): a time range or a number of samples.

use zenoh::time::NTP64;

/// A selection of buffered samples.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Asked {
    /// The newest `n` samples.
    Newest(u32),
    /// Samples captured in this inclusive range, in nanoseconds since 1970.
    Between(u64, u64),
}

const RANGE: &str = "write _time=[FROM..TO] or _time=[FROM;DURATION], with times such as now(-10s) \
                     or 2024-01-31T12:00:00Z, and ]…[ for omitted bounds";
/// Zenoh's time units, each in nanoseconds.
const UNITS: [(&str, f64); 7] = [
    ("u", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3_600e9),
    ("d", 86_400e9),
    ("w", 604_800e9),
];

/// Parses the parameters of a query at `now`, in nanoseconds since 1970. Without parameters it
/// selects the newest sample.
pub(crate) fn read(parameters: &str, now: u64) -> Result<Asked, String> {
    let value = |name: &str| {
        let mut pairs = parameters.split(';').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    if let Some(at) = find_time(parameters) {
        return range(at, now).ok_or_else(|| format!("_time={at}: {RANGE}"));
    }
    let Some(most) = value("_max") else { return Ok(Asked::Newest(1)) };
    match most.parse() {
        Ok(n @ 1..) => Ok(Asked::Newest(n)),
        _ => Err(format!("_max={most}: must be a whole number above 0")),
    }
}

/// Returns the range after `_time=`. A range with a duration contains a semicolon itself.
fn find_time(parameters: &str) -> Option<&str> {
    let start = if parameters.starts_with("_time=") { 0 } else { parameters.find(";_time=")? + 1 };
    let value = parameters.get(start + "_time=".len()..)?;
    let end = value.get(1..).and_then(|rest| rest.find([']', '[']));
    Some(end.and_then(|end| value.get(..end + 2)).unwrap_or(value))
}

fn range(text: &str, now: u64) -> Option<Asked> {
    let mut inner = text.chars();
    let (open, close) = (inner.next()?, inner.next_back()?);
    let inner = inner.as_str();
    let (from, to) = match inner.split_once("..") {
        Some((from, to)) => {
            let from = if from.is_empty() { 0 } else { time(from, now)? };
            let to = if to.is_empty() { u64::MAX } else { time(to, now)? };
            (from, to)
        }
        None => {
            let (from, length) = inner.split_once(';')?;
            let from = time(from, now)?;
            (from, shifted(from, duration(length)?)?)
        }
    };
    let from = match open {
        '[' => from,
        ']' => from.checked_add(1)?,
        _ => return None,
    };
    let to = match close {
        ']' => to,
        '[' => to.checked_sub(1)?,
        _ => return None,
    };
    Some(Asked::Between(from, to)).filter(|_| from <= to)
}

fn time(text: &str, now: u64) -> Option<u64> {
    match text.strip_prefix("now(").and_then(|text| text.strip_suffix(')')) {
        Some("") => Some(now),
        Some(offset) => shifted(now, duration(offset)?),
        None => NTP64::parse_rfc3339(text).ok().map(|time| time.as_nanos()),
    }
}

/// Parses a positive or negative duration, in nanoseconds.
fn duration(text: &str) -> Option<i64> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let (_, factor) =
        UNITS.iter().find(|(name, _)| *name == unit || unit.is_empty() && *name == "s")?;
    let nanos = number.parse::<f64>().ok()? * factor;
    #[expect(clippy::cast_possible_truncation, reason = "checked in the same expression")]
    (nanos.abs() < 9e18).then_some(nanos as i64)
}

fn shifted(time: u64, by: i64) -> Option<u64> {
    time.checked_add_signed(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_706_702_400_000_000_000; // 2024-01-31T12:00:00Z
    const S: u64 = 1_000_000_000;

    #[test]
    fn time_ranges_use_zenohs_syntax() {
        for (text, from, to) in [
            ("_time=[now(-10s)..]", NOW - 10 * S, u64::MAX),
            ("_time=[..]", 0, u64::MAX),
            ("_time=[now(-1m)..now()]", NOW - 60 * S, NOW),
            ("_time=]now(-1.5s)..now()[", NOW - S - S / 2 + 1, NOW - 1),
            ("_time=[now(-1h);10s]", NOW - 3_600 * S, NOW - 3_590 * S),
            ("a=b;_time=[now(-2);500ms];c=d", NOW - 2 * S, NOW - S - S / 2),
            ("_time=[2024-01-31T11:59:00Z..2024-01-31T12:00:00Z]", NOW - 60 * S, NOW),
        ] {
            assert_eq!(read(text, NOW), Ok(Asked::Between(from, to)), "{text}");
        }
    }

    #[test]
    fn the_default_selection_is_the_newest() {
        assert_eq!(read("", NOW), Ok(Asked::Newest(1)));
        assert_eq!(read("a=b;_max=20", NOW), Ok(Asked::Newest(20)));
        for wrong in ["_max=0", "_max=-1", "_max=x", "_max="] {
            let error = read(wrong, NOW).unwrap_err();
            assert!(error.contains(wrong) && error.contains("above 0"), "{error}");
        }
    }

    #[test]
    fn an_invalid_range_error_shows_the_syntax() {
        for wrong in [
            "_time=",
            "_time=[",
            "_time=now()",
            "_time=[now()]",
            "_time=[now(-1x)..]",
            "_time=[yesterday..]",
            "_time=[now()..now(-1s)]",
            "_time=(now()..)",
            "_time=[now(-1e300s)..]",
            "_time=[now(-9e9w)..]",
            "_time=ä..ö",
        ] {
            let error = read(wrong, NOW).unwrap_err();
            assert!(error.contains("write _time=[FROM..TO]"), "{wrong}: {error}");
        }
    }
}
