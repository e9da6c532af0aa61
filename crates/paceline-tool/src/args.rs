//! Parsers of command-line values. Each error message names the allowed range and a fix; clap puts
//! the flag and the value before it.

mod wish;

pub use wish::{BitRates, RequestedRate, WishArgs};

use paceline::Capacity;
use paceline_media::Size;
use paceline_media::audio::{CHANNELS_MAX, RATE_MAX as RATE_MAX_AUDIO, RATE_MIN as RATE_MIN_AUDIO};
use paceline_sched::Duration as Span;
use paceline_sched::units::{self, UnitError};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The lowest rate of samples in Hz.
pub const RATE_MIN: f64 = 0.001;
/// The highest rate of samples in Hz.
pub const RATE_MAX: f64 = 1_000_000.0;
/// The longest duration of a command: 32 years.
pub const DURATION_MAX: Span = Span::from_secs(1_000_000_000);

/// Parses a number from `min` to `max`.
pub fn number(text: &str, min: f64, max: f64, unit: &str, fix: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => Err(format!("must be a number from {min} to {max} ({unit}); {fix}")),
    }
}

/// Parses a whole number from `min` to `max`.
pub fn whole(text: &str, min: u64, max: u64, fix: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => Err(format!("must be a whole number from {min} to {max}; {fix}")),
    }
}

/// Parses a rate in samples per second, such as `10`, `10Hz` or `29.97 hz`.
pub fn rate(text: &str) -> Result<f64, String> {
    hertz(text, "leave it out for every sample")
}

/// Parses a rate like [`rate`]; `fix` follows an error.
pub fn hertz(text: &str, fix: &str) -> Result<f64, String> {
    let unit = text.len().checked_sub(2).and_then(|at| text.split_at_checked(at));
    let number_of = unit.filter(|(_, unit)| unit.eq_ignore_ascii_case("hz"));
    let digits = number_of.map_or(text, |(digits, _)| digits.trim_end());
    number(digits, RATE_MIN, RATE_MAX, "Hz", fix)
}

/// Parses a bit rate of pictures or sound such as `500kbit`.
pub fn bitrate(text: &str) -> Result<u32, String> {
    let bits = capacity(text)?.bits_per_s();
    let bits = u32::try_from(bits).ok().filter(|bits| *bits >= 1_000);
    bits.ok_or_else(|| format!("{text:?}: must be from 1kbit to 4gbit, for example 500kbit"))
}

/// Parses a bit rate such as `500kbit`, or the highest and the lowest accepted one such as `2mbit..300kbit`.
pub fn bitrates(text: &str) -> Result<BitRates, String> {
    let Some((most, least)) = text.split_once("..") else {
        return Ok(BitRates { most: bitrate(text)?, least: None });
    };
    let (most, least) = (bitrate(most)?, bitrate(least)?);
    if least >= most {
        return Err(format!(
            "{text:?}: the second bit rate must be below the first, for example 2mbit..300kbit"
        ));
    }
    Ok(BitRates { most, least: Some(least) })
}

/// Parses a delay bound such as `200ms`.
pub fn within(text: &str) -> Result<Duration, String> {
    let fix = "give the longest time from publish to delivery, or leave it out";
    duration_in(text, &(Span::from_micros(1)..=Span::from_secs(86_400)), fix, false)
}

/// Parses a duration of at least 1 ms, such as `5s`.
pub fn some_duration(text: &str) -> Result<Duration, String> {
    duration_in(text, &(Span::from_millis(1)..=DURATION_MAX), "for example 5s", true)
}

/// Parses a duration of whole seconds from `MIN` to `MAX`; returns seconds.
pub fn seconds<const MIN: u32, const MAX: u32>(text: &str) -> Result<u32, String> {
    let range = Span::from_secs(u64::from(MIN))..=Span::from_secs(u64::from(MAX));
    let read = duration_in(text, &range, "for example 30s", true)?;
    if read.subsec_nanos() > 0 {
        return Err("must be whole seconds, for example 30s".to_owned());
    }
    u32::try_from(read.as_secs()).map_err(|error| error.to_string())
}

/// Parses a duration in a range. `fix` follows an error about the range; `seconds` is true if a
/// bare number most likely means seconds.
pub fn duration_in(
    text: &str,
    range: &RangeInclusive<Span>,
    fix: &str,
    seconds: bool,
) -> Result<Duration, String> {
    let read = units::duration_in(text, range);
    read.map(|span| Duration::from_nanos(span.as_nanos())).map_err(|error| {
        if matches!(error, UnitError::Range { .. }) {
            format!("{error}; {fix}")
        } else if seconds {
            error.or_seconds().to_string()
        } else {
            error.to_string()
        }
    })
}

/// Parses a size in a range; `fix` follows an error about the range.
pub fn bytes_in(text: &str, range: &RangeInclusive<u64>, fix: &str) -> Result<u64, String> {
    units::size_in(text, range).map_err(|error| {
        let range = matches!(error, UnitError::Range { .. });
        if range { format!("{error}; {fix}") } else { error.to_string() }
    })
}

/// Parses the n of "one sample in n".
pub fn every(text: &str) -> Result<u32, String> {
    let max = u64::from(u32::MAX);
    let n = whole(text, 1, max, "1 takes every sample, 3 takes one in three")?;
    u32::try_from(n).map_err(|error| error.to_string())
}

/// Parses a JPEG quality from 1 to 100.
pub fn quality(text: &str) -> Result<u8, String> {
    let quality = whole(text, 1, 100, "the default is 80")?;
    u8::try_from(quality).map_err(|error| error.to_string())
}

/// Parses a picture size, `WxH`.
pub fn size(text: &str) -> Result<Size, String> {
    text.parse().map_err(|error: paceline_media::MediaError| error.to_string())
}

/// Parses `RATExCHANNELS`: samples per second and the number of channels.
pub fn audio(text: &str) -> Result<(u32, u8), String> {
    let fix = "write RATExCHANNELS, such as 8000x1";
    let (rate, channels) = text.split_once(['x', 'X']).ok_or_else(|| format!("has no x; {fix}"))?;
    let (min, max) = (u64::from(RATE_MIN_AUDIO), u64::from(RATE_MAX_AUDIO));
    let rate = whole(rate, min, max, fix).map_err(|error| format!("rate '{rate}': {error}"))?;
    let channels = whole(channels, 1, u64::from(CHANNELS_MAX), fix)
        .map_err(|error| format!("channels '{channels}': {error}"))?;
    let rate = u32::try_from(rate).map_err(|error| error.to_string())?;
    Ok((rate, u8::try_from(channels).map_err(|error| error.to_string())?))
}

/// Parses a capacity: a decimal number and a unit, such as `2mbit`, `1.5 Mbit/s` or `250kB/s`.
pub fn capacity(text: &str) -> Result<Capacity, String> {
    text.parse::<Capacity>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
