//! The command lines of `hz`, `bw`, `delay`, `echo` and `trace`.

use crate::args::{self, NodeArgs, WishArgs};
use crate::exit;
use paceline::{Node, Pattern, Rate, SubscribeError, SubscriberBuilder};
use std::time::Duration;

const AFTER: &str = "\
Unless a rate or size is said it takes every sample where no link with a capacity is on the way, and else what a \
subscription behind the same links takes already: that costs them nothing. What nobody takes there it does not \
ask for; --max-hz or --every does. Each second: the lines of `ros2 topic`, and what was asked for, granted and \
delivered.";

const AFTER_ECHO: &str = "\
Text and JSON are printed as they are, pictures, sound and video in one line, everything else as hexadecimal \
digits; each sample is followed by ---. What is taken of a tag follows the rules of `paceline hz`.";

const AFTER_TRACE: &str = "\
Of each sample its age, how far that may be off, and what each part of the way took of it; at the end mean, median, \
p99 and the longest of each part. Ten samples unless --count or --duration is said; the first that comes finds the \
way and is not counted. The nodes of the way are asked once a second. What is taken of the tag follows the rules of \
`paceline hz`.";

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

/// Arguments of `paceline hz`, `bw` and `delay`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub(crate) struct MeterArgs {
    /// Number of samples to measure over, 1 to 100000; defaults to 10000, for bw to 100
    #[arg(long, short, value_name = "N", value_parser = args::window)]
    pub(crate) window: Option<usize>,
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// Arguments of `paceline echo`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_ECHO, allow_negative_numbers = true)]
pub(crate) struct EchoArgs {
    /// Ends after one sample
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,
    /// Prints only this field of JSON payloads: position.x, or points.0.x
    #[arg(long, value_name = "PATH")]
    pub(crate) field: Option<String>,
    /// Size of the printed part of payloads that are neither text nor JSON
    #[arg(long, short = 'l', value_name = "SIZE", value_parser = args::length, default_value = "128B")]
    pub(crate) truncate_length: usize,
    /// Prints all bytes
    #[arg(long, short, conflicts_with = "truncate_length")]
    pub(crate) full_length: bool,
    #[command(flatten)]
    pub(crate) look: LookArgs,
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
            return Err(exit::usage(
                "TAG must be one tag, without * and **; ls shows the tags there are",
            ));
        }
        Ok(())
    }
}

impl LookArgs {
    /// Returns true if flags state the rate or size. Otherwise both follow from the other subscriptions.
    pub(crate) const fn says_form(&self) -> bool {
        self.wish.says_form()
    }

    /// Builds a subscription to `tag` from the flags; `form` supplies the rate and size that they leave open.
    pub(crate) fn ask<'a>(
        &self,
        node: &'a Node,
        tag: &str,
        form: paceline::Form,
    ) -> Result<SubscriberBuilder<'a>, SubscribeError> {
        // An observer reports losses and must not cause retransmissions.
        let mut builder = node.subscriber(tag)?.retransmit(paceline::Retransmit::None);
        builder = match form.rate {
            Rate::All => builder,
            Rate::Every(n) => builder.every(n.get())?,
            Rate::Max(millihertz) => builder.max_hz(f64::from(millihertz.get()) / 1_000.0)?,
        };
        if let Some(size) = form.size {
            builder = builder.size(size.width, size.height)?;
        }
        if let Some(audio) = form.audio {
            builder = builder.audio(audio.rate, audio.channels)?;
        }
        self.wish.apply(builder)
    }

    /// Returns true if samples of several tags can arrive.
    pub(crate) fn names_several(&self) -> bool {
        self.patterns.len() > 1 || self.patterns.iter().any(|pattern| !pattern.is_tag())
    }
}

impl EchoArgs {
    /// Returns the number of samples to print, `None` for no limit.
    pub(crate) const fn count(&self) -> Option<u64> {
        if self.once { Some(1) } else { self.look.count }
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match &self.field {
            Some(path) if path.split('.').any(str::is_empty) => Err(exit::usage(format!(
                "--field '{path}': must be names joined by points, such as position.x or points.0.x"
            ))),
            _ => Ok(()),
        }
    }
}
