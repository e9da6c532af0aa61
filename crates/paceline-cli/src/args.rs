//! Reading values from the command line. Each message names the allowed range and the mend; the
//! field and the value are put before it.

mod link;
mod node;

pub(crate) use link::LinkSpec;
pub(crate) use node::NodeArgs;

use paceline::{Kind, Proxy};
use paceline_media::Size;
use std::time::Duration;

const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 1_000_000.0;

/// A number in a range.
fn number(text: &str, min: f64, max: f64, unit: &str, mend: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => Err(format!("must be a number from {min} to {max} ({unit}); {mend}")),
    }
}

/// A whole number in a range.
fn whole(text: &str, min: u64, max: u64, mend: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(value),
        _ => Err(format!("must be a whole number from {min} to {max}; {mend}")),
    }
}

/// Samples per second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    number(text, RATE_MIN, RATE_MAX, "Hz", "leave it out for every sample")
}

/// The time between two samples, in milliseconds.
pub(crate) fn period(text: &str) -> Result<f64, String> {
    number(text, 1_000.0 / RATE_MAX, 1_000.0 / RATE_MIN, "ms", "33.3 gives 30 samples a second")
}

/// A delay bound in milliseconds.
pub(crate) fn within(text: &str) -> Result<Duration, String> {
    let mend = "give the longest time from publish to delivery, or leave it out";
    number(text, 0.001, 86_400_000.0, "ms", mend).map(|ms| Duration::from_secs_f64(ms / 1_000.0))
}

/// A time to wait in seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    number(text, 0.0, 1e9, "s", "give a time such as 5 or 0.5").map(Duration::from_secs_f64)
}

/// A time to wait in seconds, not zero.
pub(crate) fn some_seconds(text: &str) -> Result<Duration, String> {
    number(text, 0.001, 1e9, "s", "give a time such as 5 or 0.5").map(Duration::from_secs_f64)
}

/// A time to wait in milliseconds.
pub(crate) fn wait_millis(text: &str) -> Result<Duration, String> {
    whole(text, 1, 60_000, "1000 reaches every node that answers").map(Duration::from_millis)
}

/// One sample in n.
pub(crate) fn every(text: &str) -> Result<u32, String> {
    let max = u64::from(u32::MAX);
    let n = whole(text, 1, max, "1 takes every sample, 3 takes one in three")?;
    u32::try_from(n).map_err(|error| error.to_string())
}

/// How many samples.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    whole(text, 1, u64::MAX, "leave it out for no limit")
}

/// How many samples wait for a slow reader.
pub(crate) fn queue(text: &str) -> Result<usize, String> {
    let samples = whole(text, 1, 65_536, "64 is usual")?;
    usize::try_from(samples).map_err(|error| error.to_string())
}

/// A piece of a file in bytes.
pub(crate) fn chunk(text: &str) -> Result<usize, String> {
    let bytes = whole(text, 1, 16 * 1024 * 1024, "1024 is usual")?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

/// A JPEG quality.
pub(crate) fn quality(text: &str) -> Result<u8, String> {
    let quality = whole(text, 1, 100, "80 is usual")?;
    u8::try_from(quality).map_err(|error| error.to_string())
}

/// A picture size.
pub(crate) fn size(text: &str) -> Result<Size, String> {
    text.parse().map_err(|error: paceline_media::MediaError| error.to_string())
}

/// A test card: its size and rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CardSpec {
    /// Width and height in pixels.
    pub(crate) size: Size,
    /// Pictures per second.
    pub(crate) hz: f64,
}

/// Reads `WxH@HZ` or `WxH`, which is at 30 Hz.
pub(crate) fn card(text: &str) -> Result<CardSpec, String> {
    let (pixels, hz) = match text.split_once('@') {
        Some((pixels, hz)) => {
            let mend = "write WIDTHxHEIGHT@HZ, such as 640x480@30";
            let hz = number(hz, RATE_MIN, RATE_MAX, "Hz", mend)
                .map_err(|error| format!("rate '{hz}': {error}"))?;
            (pixels, hz)
        }
        None => (text, 30.0),
    };
    Ok(CardSpec { size: size(pixels)?, hz })
}

/// A kind of sample.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "data" => Ok(Kind::Data),
        "state" => Ok(Kind::State),
        "picture" => Ok(Kind::Picture),
        "audio" => Ok(Kind::Audio),
        "video" => Ok(Kind::VideoI),
        _ => {
            Err("must be data, state, picture, audio or video; leave it out to go by the encoding"
                .to_owned())
        }
    }
}

/// Where scaling is done.
pub(crate) fn proxy(text: &str) -> Result<Proxy, String> {
    match text {
        "publisher" => Ok(Proxy::Publisher),
        "subscriber" => Ok(Proxy::Subscriber),
        _ => Err("must be publisher or subscriber; publisher keeps the links free".to_owned()),
    }
}

#[cfg(test)]
mod tests;
