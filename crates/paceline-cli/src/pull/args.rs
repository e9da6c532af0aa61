//! The command line of `paceline pull`.

use super::range::{self, Moment, Times};
use crate::args;
use crate::args::RequestedRate;
use crate::config::NodeArgs;
use crate::payload::is_stdout;
use clap::ArgGroup;
use paceline::Tag;
use paceline::pull::ORDERED_SAMPLES;
use paceline::status::PublisherId;
use paceline_media::Size;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
Pulls samples from the buffers of pub --history, sub --history and node --buffer. The default is the newest sample. \
Ranges include both ends, and either end may be left out: 100..200, 100.., ..200. --from and --to are capture times \
by the publisher's clock: 2026-01-31T12:00:00Z, a time ago such as -10s, or a time since 1970 such as 1700000000s \
or, as sub --json prints it, 1700000000123456789ns.";

/// Arguments of `paceline pull`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = AFTER,
    group(ArgGroup::new("selection").args(["newest", "nth", "seq"]))
)]
pub(crate) struct PullArgs {
    /// The tag whose samples to pull
    #[arg(value_parser = Tag::new)]
    pub(crate) tag: Tag,
    /// Pulls the newest N samples of each publisher
    #[arg(long, value_name = "N", value_parser = args::pulled)]
    pub(crate) newest: Option<u32>,
    /// Pulls only the N-th newest sample of each publisher; 1 is the newest
    #[arg(long, value_name = "N", value_parser = args::pulled)]
    pub(crate) nth: Option<u32>,
    /// Pulls samples with these sequence numbers
    #[arg(long, value_name = "A..B", value_parser = range::seqs, allow_hyphen_values = true)]
    pub(crate) seq: Option<RangeInclusive<u64>>,
    /// Pulls samples captured at this time or later, such as -10s
    #[arg(long, value_name = "TIME", value_parser = range::moment, allow_hyphen_values = true,
          conflicts_with = "selection")]
    from: Option<Moment>,
    /// Pulls samples captured at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = range::moment, allow_hyphen_values = true,
          conflicts_with = "selection")]
    to: Option<Moment>,
    /// Uses only the buffers of this node, given by name or id
    #[arg(long, value_name = "NODE")]
    pub(crate) at: Option<String>,
    /// Orders a buffer at this node, given by name or id, and pulls from it; it ends one minute after its last use
    #[arg(long, value_name = "NODE", conflicts_with = "at")]
    pub(crate) hold_at: Option<String>,
    /// The number of samples that --hold-at keeps, 1 to 10000
    #[arg(long, value_name = "N", value_parser = ordered,
          default_value_t = ORDERED_SAMPLES, requires = "hold_at")]
    pub(crate) samples: u32,
    /// Pulls only samples of this publisher, given by its id from ls --json
    #[arg(long, value_name = "ID", value_parser = args::publisher)]
    pub(crate) publisher: Option<PublisherId>,
    /// Scales pictures to this size, at most the publisher's
    #[arg(long, value_name = "WxH", value_parser = args::size)]
    pub(crate) size: Option<Size>,
    /// Converts sound to this sample rate and number of channels, such as 8000x1
    #[arg(long, value_name = "RATExCHANNELS", value_parser = args::audio)]
    pub(crate) audio: Option<(u32, u8)>,
    /// Takes one sample in N
    #[arg(long, value_name = "N", value_parser = args::every)]
    pub(crate) every: Option<u32>,
    /// Takes at most this many samples per second of capture time, evenly spaced
    #[arg(long, value_name = "HZ", value_parser = args::rate)]
    pub(crate) max_hz: Option<f64>,
    /// Writes the payloads to a file, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replaces an existing --out file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Gives up after this time, such as 30s; exits with code 3 if samples are missing
    #[arg(long, value_name = "TIME", value_parser = args::some_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Prints one line of JSON per sample, and a summary
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

fn ordered(text: &str) -> Result<u32, String> {
    let n = args::whole(text, 1, 10_000, "a node keeps at most 10000 samples of a buffer")?;
    u32::try_from(n).map_err(|error| error.to_string())
}

impl PullArgs {
    /// Returns true if payloads are written to standard output.
    pub(super) fn to_stdout(&self) -> bool {
        is_stdout(self.out.as_deref())
    }

    /// Returns the requested range of capture times, if there is one.
    pub(super) const fn times(&self) -> Option<Times> {
        match (self.from, self.to) {
            (None, None) => None,
            (first, last) => Some(Times { first, last }),
        }
    }

    pub(super) const fn requested_rate(&self) -> RequestedRate {
        RequestedRate { max_hz: self.max_hz, every: self.every }
    }
}
