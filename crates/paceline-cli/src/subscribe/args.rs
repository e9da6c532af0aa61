//! The command line of `paceline sub`.

use super::sink::{AskedRate, is_stdout};
use crate::args::{self, NodeArgs};
use paceline::{History, LossTolerance, Pattern, Proxy, Retransmit};
use paceline_media::Size;
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
Once a second it shows rate, size, age at delivery (p50, p99, max), late and dropped samples. --out \
writes the payloads one after the other: JPEG pictures make an .mjpeg file, H.264 a .264 file; a name \
that ends in .y4m makes a Y4M file, .wav a WAV file, and .png keeps the newest PNG picture. Text and JSON samples end with a line break each.";

/// `paceline sub`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub(crate) struct SubArgs {
    /// A tag, or a pattern in which * stands for one part and ** for any number: robot/**
    #[arg(value_parser = Pattern::new)]
    pub(crate) pattern: Pattern,
    /// One sample in N
    #[arg(long, value_name = "N", value_parser = args::every)]
    pub(crate) every: Option<u32>,
    /// At most this many samples per second, evenly spread
    #[arg(long, value_name = "HZ", value_parser = args::rate, conflicts_with = "every")]
    pub(crate) max_hz: Option<f64>,
    /// Pictures of this size, at most the publisher's
    #[arg(long, value_name = "WxH", value_parser = args::size)]
    pub(crate) size: Option<Size>,
    /// Sound with this many samples per second and channels, such as 8000x1
    #[arg(long, value_name = "RATExCHANNELS", value_parser = args::audio)]
    pub(crate) audio: Option<(u32, u8)>,
    /// The delay bound in milliseconds, from publish to delivery
    #[arg(long, value_name = "MS", value_parser = args::within)]
    pub(crate) within: Option<Duration>,
    /// Of each Y samples at most X may be late or lost
    #[arg(long, value_name = "X/Y")]
    pub(crate) loss: Option<LossTolerance>,
    /// Ends with code 3 as soon as any publisher is refused, instead of waiting for room
    #[arg(long)]
    pub(crate) require: bool,
    /// What is done about samples lost on links over UDP: none, selective or go-back-n
    #[arg(long, value_name = "HOW", value_parser = args::retransmit, default_value = "selective")]
    pub(crate) retransmit: Retransmit,
    /// Where rate and size are reduced: publisher or subscriber
    #[arg(long, value_name = "WHERE", value_parser = args::proxy, default_value = "publisher")]
    pub(crate) proxy: Proxy,
    /// How many samples wait here before the oldest is dropped
    #[arg(long, value_name = "N", value_parser = args::queue, default_value = "1024")]
    pub(crate) queue: usize,
    /// Holds what comes here for others to pull: N samples, or samples=N,bytes=10MB,age=60s
    #[arg(long, value_name = "LIMITS", value_parser = args::history)]
    pub(crate) history: Option<History>,
    /// Writes the payloads to a file, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Ends after this many samples
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(crate) count: Option<u64>,
    /// Ends after this many seconds; with code 3 if --count samples, or one, did not come
    #[arg(long, value_name = "SECONDS", value_parser = args::some_seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Reads number and time off test cards, into card_frame and card_us
    #[arg(long, requires = "json")]
    pub(crate) read_card: bool,
    /// Prints one line of JSON for each sample, and a summary
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

impl SubArgs {
    /// True if standard output carries payloads.
    pub(crate) fn to_stdout(&self) -> bool {
        is_stdout(self.out.as_deref())
    }

    /// The rate that was asked for.
    pub(crate) const fn asked_rate(&self) -> AskedRate {
        AskedRate { max_hz: self.max_hz, every: self.every }
    }
}
