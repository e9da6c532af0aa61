//! `--seq`, `--from` and `--to`: inclusive ranges, of which either end may be omitted.

use paceline_sched::units::{self, UnitError};
use std::ops::RangeInclusive;
use std::time::Duration;

const SEQ_FIX: &str = "write two sequence numbers such as 100..200, 100.. or ..200";
const TIME_FIX: &str = "write 2026-01-31T12:00:00Z, a time ago such as -10s, or a time since 1970 \
     such as 1700000000s; --at selects a node";
const DAY_S: u64 = 86_400;
/// Bare numbers with this many digits are nanoseconds; seconds since 1970 never have as many.
const NANOS_DIGITS: usize = 16;

/// Parses a range of sequence numbers.
pub(super) fn seqs(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = ends(text, SEQ_FIX)?;
    let seq = |text: &str| {
        text.parse::<u64>().map_err(|_| format!("'{text}' is not a sequence number; {SEQ_FIX}"))
    };
    let first = first.map_or(Ok(0), seq)?;
    let last = last.map_or(Ok(u64::MAX), seq)?;
    if first > last {
        return Err(format!("{first} is after {last}: write {last}..{first}"));
    }
    Ok(first..=last)
}

/// A time as the user wrote it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Moment {
    /// Nanoseconds since 1970.
    At(u64),
    /// A duration before the start of the command.
    Ago(Duration),
}

/// A range of capture times as the user wrote it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Times {
    pub(super) first: Option<Moment>,
    pub(super) last: Option<Moment>,
}

impl Times {
    /// Returns the ends in nanoseconds since 1970, relative to `now`.
    pub(super) fn nanos(self, now: u64) -> Result<RangeInclusive<u64>, String> {
        let at = |moment| match moment {
            Moment::At(nanos) => nanos,
            Moment::Ago(ago) => {
                now.saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX))
            }
        };
        let first = self.first.map_or(0, at);
        let last = self.last.map_or(u64::MAX, at);
        if first > last {
            let (first, last) = (rfc3339_of(first), rfc3339_of(last));
            return Err(format!(
                "from {first} to {last}: the first time is after the second; exchange them"
            ));
        }
        Ok(first..=last)
    }
}

fn ends<'a>(text: &'a str, fix: &str) -> Result<(Option<&'a str>, Option<&'a str>), String> {
    let Some((first, last)) = text.split_once("..") else {
        return Err(format!("'{text}' is not a range; {fix}"));
    };
    let end = |text: &'a str| (!text.trim().is_empty()).then(|| text.trim());
    match (end(first), end(last)) {
        (None, None) => Err(format!("a range needs at least one end; {fix}")),
        ends => Ok(ends),
    }
}

/// The earliest time since 1970 that is accepted as a duration, in nanoseconds: the year 2001. A shorter one
/// was meant to be before now.
const EARLIEST: u64 = 1_000_000_000_000_000_000;

/// Parses a capture time.
pub(super) fn moment(text: &str) -> Result<Moment, String> {
    let refuse = || format!("'{text}' is not a time; {TIME_FIX}");
    let (number, _) = units::split(text);
    if number == text && !text.is_empty() {
        let unit = if text.len() >= NANOS_DIGITS { "ns" } else { "s" };
        return Err(format!("needs a unit: {text}{unit}; {TIME_FIX}"));
    }
    if let Some(ago) = text.strip_prefix('-') {
        let ago = units::duration(ago).map_err(|error| {
            let missing = matches!(error, UnitError::Missing { .. });
            if missing { format!("needs a unit: -{ago}s; {TIME_FIX}") } else { refuse() }
        })?;
        return Ok(Moment::Ago(Duration::from_nanos(ago.as_nanos())));
    }
    let found = if text.contains('T') {
        rfc3339(text)
    } else {
        let since = units::duration(text).ok().map(|since| since.as_nanos());
        if since.is_some_and(|nanos| nanos < EARLIEST) {
            return Err(format!(
                "'{text}' is {text} after 1970-01-01; write -{text} for {text} ago"
            ));
        }
        since
    };
    found.map(Moment::At).ok_or_else(refuse)
}

/// Parses decimal digits; rejects signs and blanks.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns the nanoseconds of a decimal fraction; truncates further digits.
fn fraction(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let nine: String = text.chars().chain("000000000".chars()).take(9).collect();
    all_digits.then(|| nine.parse().ok())?
}

/// Parses `2026-01-31T12:00:00Z`, with or without fractional seconds; returns nanoseconds since 1970.
fn rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-');
    let mut part = |len: usize| digits(date.next().filter(|text| text.len() == len)?);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let (time, part) = match time.split_once('.') {
        Some((time, part)) => (time, fraction(part)?),
        None => (time, 0),
    };
    let mut time = time.splitn(3, ':');
    let mut two = || digits(time.next().filter(|text| text.len() == 2)?);
    let (hour, minute, second) = (two()?, two()?, two()?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    let seconds = days * DAY_S + hour * 3_600 + minute * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Formats nanoseconds since 1970 as RFC 3339.
pub(crate) fn rfc3339_of(nanos: u64) -> String {
    let (seconds, part) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let (mut days, second) = (seconds / DAY_S, seconds % DAY_S);
    let mut year = 1970;
    while let Some(rest) = days.checked_sub(days_in(year)) {
        (days, year) = (rest, year + 1);
    }
    let mut month = 1;
    while let Some(rest) = days.checked_sub(days_in_month(year, month)) {
        (days, month) = (rest, month + 1);
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{part:09}Z", days + 1)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_in(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let known = year >= 1970 && (1..=12).contains(&month);
    if !known || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    let months = (1..month).map(|month| days_in_month(year, month));
    Some((1970..year).map(days_in).chain(months).sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_of_a_range_may_be_left_out() {
        assert_eq!(seqs("3..7"), Ok(3..=7));
        assert_eq!(seqs("3.."), Ok(3..=u64::MAX));
        assert_eq!(seqs("..7"), Ok(0..=7));
        assert_eq!(seqs("5..5"), Ok(5..=5));
        for (text, part) in [
            ("7..3", "7 is after 3: write 3..7"),
            ("..", "at least one end"),
            ("7", "'7' is not a range"),
            ("a..b", "'a' is not a sequence number"),
            ("-1..3", "'-1' is not a sequence number"),
            ("1..99999999999999999999", "is not a sequence number"),
        ] {
            assert!(seqs(text).unwrap_err().contains(part), "{text}: {:?}", seqs(text));
        }
    }

    #[test]
    fn times_are_calendar_times_since_1970_or_ago() {
        for (text, nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T04:00:00Z", 1_795_233_600_000_000_000),
            ("2024-02-29T23:59:59.25Z", 1_709_251_199_250_000_000),
            ("1700000000s", 1_700_000_000_000_000_000),
            ("1700000000.000000001s", 1_700_000_000_000_000_001),
            ("1700000000.00000000199999999s", 1_700_000_000_000_000_001),
            ("1700000000123456789ns", 1_700_000_000_123_456_789),
        ] {
            assert_eq!(moment(text), Ok(Moment::At(nanos)), "{text}");
        }
        assert_eq!(moment("-10s"), Ok(Moment::Ago(Duration::from_secs(10))));
        for wrong in [
            "2023-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-1-1T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "yesterday",
            "1.s",
            "+5s",
            "robot",
            "99999999999999999999s",
        ] {
            let error = moment(wrong).unwrap_err();
            assert!(
                error.contains("is not a time; write 2026-01-31T12:00:00Z"),
                "{wrong}: {error}"
            );
        }
        for (bare, fix) in [
            ("1700000000", "needs a unit: 1700000000s; "),
            ("1700000000123456789", "needs a unit: 1700000000123456789ns; "),
            ("-10", "needs a unit: -10s; "),
        ] {
            assert!(moment(bare).unwrap_err().starts_with(fix), "{bare}");
        }
    }

    #[test]
    fn printed_times_can_be_requested() {
        for nanos in
            [0, 1_709_251_199_250_000_000, 1_795_233_600_000_000_001, 951_782_400 * 1_000_000_000]
        {
            let text = rfc3339_of(nanos);
            assert_eq!(moment(&text), Ok(Moment::At(nanos)), "{text}");
        }
        assert_eq!(rfc3339_of(951_782_400 * 1_000_000_000), "2000-02-29T00:00:00.000000000Z");
    }

    #[test]
    fn ranges_of_times_are_seen_from_now() {
        let now = 100_000_000_000;
        let nanos = |text: &str| {
            let (first, last) = ends(text, TIME_FIX)?;
            let (first, last) = (first.map(moment).transpose()?, last.map(moment).transpose()?);
            Times { first, last }.nanos(now)
        };
        assert_eq!(nanos("-10s.."), Ok(90_000_000_000..=u64::MAX));
        assert_eq!(nanos("-10s..-500ms"), Ok(90_000_000_000..=99_500_000_000));
        let years = 1_500_000_001_000_000_000..=1_500_000_002_000_000_000;
        assert_eq!(nanos("1500000001s..1500000002s"), Ok(years));
        assert_eq!(nanos("..1 day"), Err("'1 day' is not a time; ".to_owned() + TIME_FIX));
        let error = nanos("1500000002s..1500000001s").unwrap_err();
        let parts = ["2017-07-14T02:40:02", "to 2017-07-14T02:40:01", "exchange them"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(nanos("10s..").unwrap_err().contains("write -10s for 10s ago"));
        assert!(nanos("-5s..-10s").unwrap_err().contains("exchange them"));
        assert!(nanos("-5s..1970-01-01T00:00:01Z").unwrap_err().contains("exchange them"));
    }
}
