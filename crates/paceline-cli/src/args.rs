//! Parsers of command-line values. Each error message names the allowed range and a fix; clap puts
//! the flag and the value before it.

mod history;
mod link;
mod source;
mod timing;

pub(crate) use history::{BufferSpec, history};
pub(crate) use link::{
    LinkSpec, MediumSpec, TlsSpec, access, endpoint, link_capacity, medium_capacity,
    plain_endpoint, policy,
};
pub(crate) use paceline_tool::args::{
    RequestedRate, WishArgs, audio, bytes_in, capacity, every, quality, rate, size, some_duration,
    whole, within,
};
pub(crate) use source::SourceSpec;
pub(crate) use timing::{FreshSpec, TimingArgs, fresh};

use paceline::Kind;
use paceline::contract::{Proxy, Retransmit};
use paceline::status::PublisherId;
use paceline::text::is_plain;
use paceline_media::Size;
use paceline_sched::Duration as Span;
use paceline_sched::units;
use paceline_tool::args::{DURATION_MAX, duration_in, hertz, number};
use std::time::Duration;

/// The largest number of samples that one pull may request.
const PULLED_MAX: u32 = 65_536;

/// Parses the time between two samples, such as `33.3ms`; returns milliseconds.
pub(crate) fn period(text: &str) -> Result<f64, String> {
    let range = Span::from_micros(1)..=Span::from_secs(1_000);
    let period = duration_in(text, &range, "33.3ms gives 30 samples per second", false)?;
    Ok(period.as_secs_f64() * 1_000.0)
}

/// Parses a duration such as `5s`; zero is allowed.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    duration_in(text, &(Span::ZERO..=DURATION_MAX), "for example 5s", true)
}

/// Parses the idle time of a reservation.
pub(crate) fn idle(text: &str) -> Result<Duration, String> {
    let fix = "for example 30s; without --idle an unused reservation stays";
    duration_in(text, &(Span::from_secs(1)..=DURATION_MAX), fix, true)
}

/// Parses a refresh interval from 0.5 s to 60 s.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    duration_in(text, &(Span::from_millis(500)..=Span::from_secs(60)), "for example 1s", true)
}

/// Parses a waiting time for nodes, from 1 ms to 60 s.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    let fix = "1s reaches every node that answers";
    duration_in(text, &(Span::from_millis(1)..=Span::from_secs(60)), fix, false)
}

/// Parses a size such as `10MB`; returns bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    units::size(text).map_err(|error| error.to_string())
}

/// Parses a number of samples, at least 1.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    whole(text, 1, u64::MAX, "leave it out for no limit")
}

/// Parses the capacity of a subscriber's queue in samples.
pub(crate) fn queue(text: &str) -> Result<usize, String> {
    let samples = whole(text, 1, 65_536, "leave it out for 1024")?;
    usize::try_from(samples).map_err(|error| error.to_string())
}

/// Parses the length of a measuring window in samples.
pub(crate) fn window(text: &str) -> Result<usize, String> {
    let samples = whole(text, 1, 100_000, "leave it out for the default")?;
    usize::try_from(samples).map_err(|error| error.to_string())
}

/// Parses the size of the printed part of a payload, such as `128B`.
pub(crate) fn length(text: &str) -> Result<usize, String> {
    let bytes = bytes_in(text, &(0..=1 << 30), "omit it for 128B")?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

/// Parses the size of a file chunk such as `1kB`, at most 16 MiB.
pub(crate) fn chunk(text: &str) -> Result<usize, String> {
    let bytes = bytes_in(text, &(1..=16 * 1024 * 1024), "for example 1kB")?;
    usize::try_from(bytes).map_err(|error| error.to_string())
}

/// Parses the validity of a certificate in days, from 1 to 3650.
pub(crate) fn days(text: &str) -> Result<u32, String> {
    let days = whole(text, 1, 3_650, "the default is 365")?;
    u32::try_from(days).map_err(|error| error.to_string())
}

/// The error message for an invalid name.
pub(crate) const NAME: &str =
    "must be text of 1 to 255 bytes without line breaks or other control characters";

/// Parses the display name of a node.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let fits = (1..=255).contains(&text.len()) && is_plain(text);
    fits.then(|| text.to_owned()).ok_or_else(|| NAME.to_owned())
}

/// The size and rate of a test card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CardSpec {
    /// The width and height in pixels.
    pub(crate) size: Size,
    /// The rate in pictures per second.
    pub(crate) hz: f64,
}

/// Parses `WxH@HZ`, or `WxH` with a default rate of 30 Hz.
pub(crate) fn card(text: &str) -> Result<CardSpec, String> {
    let (pixels, hz) = match text.split_once('@') {
        Some((pixels, hz)) => {
            let fix = "write WIDTHxHEIGHT@HZ, such as 640x480@30";
            let hz = hertz(hz, fix).map_err(|error| format!("rate '{hz}': {error}"))?;
            (pixels, hz)
        }
        None => (text, 30.0),
    };
    Ok(CardSpec { size: size(pixels)?, hz })
}

/// Parses the number of samples to pull, at most [`PULLED_MAX`].
pub(crate) fn pulled(text: &str) -> Result<u32, String> {
    let max = u64::from(PULLED_MAX);
    let n = whole(text, 1, max, "1 is the newest; pull older samples with --seq or --from")?;
    u32::try_from(n).map_err(|error| error.to_string())
}

/// The speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    /// A multiple of the original speed.
    Times(f64),
    /// As fast as the receiver accepts samples.
    Max,
}

/// Parses a multiple of the original speed, or `max`.
pub(crate) fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    number(text, 0.01, 1_000.0, "times", "1 is the original speed; max is the subscribers' pace")
        .map(Speed::Times)
}

/// The format in which telemetry is published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Telemetry {
    /// The bytes of the file, unchanged.
    Raw,
    /// JSON.
    Json,
}

/// Parses `raw` or `json`.
pub(crate) fn telemetry(text: &str) -> Result<Telemetry, String> {
    match text {
        "raw" => Ok(Telemetry::Raw),
        "json" => Ok(Telemetry::Json),
        _ => Err("must be raw or json; raw keeps the bytes of the file".to_owned()),
    }
}

/// Parses a sample kind.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    match text {
        "data" => Ok(Kind::Data),
        "state" => Ok(Kind::State),
        "picture" => Ok(Kind::Picture),
        "audio" => Ok(Kind::Audio),
        "video" => Ok(Kind::VideoI),
        _ => {
            Err("must be data, state, picture, audio or video; leave it out to derive it from the \
                 encoding"
                .to_owned())
        }
    }
}

/// Parses a publisher's id in the format that `ls --json` prints.
pub(crate) fn publisher(text: &str) -> Result<PublisherId, String> {
    text.parse().map_err(|_| {
        "must be a node's id, a dot and a number, such as 00112233aabbccdd.0; ls --json prints it"
            .to_owned()
    })
}

/// Parses a retransmission policy.
pub(crate) fn retransmit(text: &str) -> Result<Retransmit, String> {
    text.parse()
        .map_err(|_| "must be none, selective or go-back-n; the default is selective".to_owned())
}

/// Parses the location of the proxy.
pub(crate) fn proxy(text: &str) -> Result<Proxy, String> {
    text.parse().map_err(|_| {
        "must be publisher, subscriber, auto or node:NAME with a name that ls shows, of 1 to 255 bytes; publisher \
         saves bandwidth on links"
            .to_owned()
    })
}

#[cfg(test)]
mod tests;
