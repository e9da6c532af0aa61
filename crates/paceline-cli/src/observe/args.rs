//! The command lines of `watch` and `trace`.

use super::Measure;
use crate::args::{self, WishArgs};
use crate::config::NodeArgs;
use paceline::{Node, Pattern, SubscriberBuilder};
use paceline_tool::exit;
use std::time::Duration;

const AFTER_WATCH: &str = "\
paceline watch robot/camera --hz
paceline watch 'robot/**' --print --once

Without a requested rate or size, it receives every sample if no link on the path has a capacity. Otherwise it \
receives the same samples as a subscription behind the same links, which adds no load to them; --max-hz or --every \
requests samples that no such subscription receives. --hz, --bw and --delay print the lines of `ros2 topic` once \
per second, and the requested, granted and delivered rate. --print prints text and JSON unchanged, one line for a \
picture, sound or video, and hexadecimal digits for all other payloads; --- follows each sample.";

const AFTER_TRACE: &str = "\
Prints the age of each sample, the uncertainty of the age, and the time in each part of the path. At the end it \
prints mean, median, p99 and maximum of each part. Ends after ten samples unless --count or --duration is given. The \
first sample finds the path and is not counted. The nodes of the path are queried once per second. It requests the \
same samples as `paceline watch`.";

/// Default number of bytes to print of a binary payload.
const BYTES: usize = 128;

/// Arguments that all observing commands share.
#[derive(Debug, clap::Args)]
pub(crate) struct LookArgs {
    /// Tags, or patterns in which * stands for one part and ** for any number: robot/**
    #[arg(value_name = "TAG", required = true, value_parser = Pattern::new)]
    pub(crate) patterns: Vec<Pattern>,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    /// Ends after this many samples, counted over all tags
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(crate) count: Option<u64>,
    /// Ends after this time, such as 10s; exits with code 3 if no sample arrived
    #[arg(long, value_name = "TIME", value_parser = args::some_duration)]
    pub(crate) duration: Option<Duration>,
    /// Prints lines of JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

/// Arguments of `paceline watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_WATCH, allow_negative_numbers = true)]
#[command(group = clap::ArgGroup::new("output").required(true))]
pub(crate) struct WatchArgs {
    /// Measures the rate, like `ros2 topic hz`
    #[arg(long, group = "output")]
    hz: bool,
    /// Measures the bandwidth in bytes per second, like `ros2 topic bw`
    #[arg(long, group = "output")]
    bw: bool,
    /// Measures the age at delivery, like `ros2 topic delay`
    #[arg(long, group = "output")]
    delay: bool,
    /// Prints the samples, like `ros2 topic echo`
    #[arg(long, group = "output")]
    print: bool,
    #[command(flatten)]
    pub(crate) meter: MeterFlags,
    #[command(flatten)]
    pub(crate) echo: EchoFlags,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// Flags of a measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct MeterFlags {
    /// Number of samples to measure over, 1 to 100000; defaults to 10000, for bandwidth to 100
    #[arg(long, short, value_name = "N", value_parser = args::window)]
    pub(crate) window: Option<usize>,
}

/// Flags of printed samples.
#[derive(Debug, clap::Args)]
pub(crate) struct EchoFlags {
    /// Ends after one sample
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// Prints only this field of JSON payloads: position.x, or points.0.x
    #[arg(long, value_name = "PATH")]
    pub(crate) field: Option<String>,
    /// Number of bytes to print of payloads that are neither text nor JSON; defaults to 128B
    #[arg(long, short = 'l', value_name = "SIZE", value_parser = args::length)]
    truncate_length: Option<usize>,
    /// Prints all bytes
    #[arg(long, short, conflicts_with = "truncate_length")]
    full_length: bool,
}

/// Arguments of `paceline trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_TRACE, allow_negative_numbers = true)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

impl TraceArgs {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.look.names_several() {
            return Err(exit::usage("TAG must be one tag, without * and **; ls lists the tags"));
        }
        Ok(())
    }
}

impl LookArgs {
    /// Returns true if flags state the rate or size. Otherwise both follow from the other subscriptions.
    pub(crate) fn has_form(&self) -> bool {
        self.wish.has_form()
    }

    /// Builds a subscription to `tag` from the flags; `form` supplies the rate and size that they leave open.
    pub(crate) fn ask<'a>(
        &self,
        node: &'a Node,
        tag: &str,
        form: paceline::contract::Form,
    ) -> SubscriberBuilder<'a> {
        // An observer reports losses and must not cause retransmissions.
        let mut builder = node.subscriber(tag).retransmit(paceline::contract::Retransmit::None);
        builder = builder.rate(form.rate);
        if let Some(size) = form.size {
            builder = builder.size(size.width, size.height);
        }
        if let Some(audio) = form.audio {
            builder = builder.audio(audio.rate, audio.channels);
        }
        // A stream that is shared has the same bit rate, of coded samples or of whole ones.
        if let Some(bits) = form.bitrate.or(form.rate.bits_per_s) {
            builder = builder.bitrate(bits.get());
        }
        self.wish.apply(builder)
    }

    /// Returns true if samples of several tags can arrive.
    pub(crate) fn names_several(&self) -> bool {
        self.patterns.len() > 1 || self.patterns.iter().any(|pattern| !pattern.is_tag())
    }
}

impl WatchArgs {
    /// Returns the quantity to measure; `None` if samples are printed instead.
    pub(crate) fn measure(&self) -> anyhow::Result<Option<Measure>> {
        let measure = match (self.hz, self.bw, self.delay) {
            (true, _, _) => Some(Measure::Rate),
            (_, true, _) => Some(Measure::Bandwidth),
            (_, _, true) => Some(Measure::Delay),
            (false, false, false) => None,
        };
        match measure {
            None if self.meter.window.is_some() => {
                Err(exit::usage("--window measures samples: leave it out, or --print"))
            }
            Some(_) => match self.echo.flag() {
                Some(flag) => Err(exit::usage(format!("{flag} needs --print"))),
                None => Ok(measure),
            },
            None => Ok(None),
        }
    }
}

impl EchoFlags {
    /// Returns the first of these flags that was given.
    fn flag(&self) -> Option<&'static str> {
        let flags = [
            ("--once", self.once),
            ("--field", self.field.is_some()),
            ("--truncate-length", self.truncate_length.is_some()),
            ("--full-length", self.full_length),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    /// Returns the number of samples to print, `None` for no limit.
    pub(crate) const fn count(&self, look: &LookArgs) -> Option<u64> {
        if self.once { Some(1) } else { look.count }
    }

    /// Returns the number of bytes to print of a binary payload.
    pub(crate) fn bytes_max(&self) -> usize {
        if self.full_length { usize::MAX } else { self.truncate_length.unwrap_or(BYTES) }
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match &self.field {
            Some(path) if path.split('.').any(str::is_empty) => Err(exit::usage(format!(
                "--field '{path}': must be names joined by dots, such as position.x or points.0.x"
            ))),
            _ => Ok(()),
        }
    }
}
