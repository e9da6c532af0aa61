//! The command line of `paceline sub`.

use super::sink::{AskedRate, is_stdout};
use crate::args::{self, NodeArgs, WishArgs};
use paceline::{History, Pattern, Proxy, Retransmit};
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
Once a second it shows rate, size, age at delivery (p50, p99, max), late and dropped samples. --out \
writes the payloads one after the other: JPEG pictures make an .mjpeg file, H.264 a .264 file; a name \
that ends in .y4m makes a Y4M file, .wav a WAV file, .png and .jpg keep the newest picture; any other name gets the \
payloads as they are. Text and JSON samples end with a line break each. A terminal is shown text only.";

/// `paceline sub`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub(crate) struct SubArgs {
    /// A tag, or a pattern in which * stands for one part and ** for any number: robot/**
    #[arg(value_parser = Pattern::new)]
    pub(crate) pattern: Pattern,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
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
        AskedRate { max_hz: self.wish.max_hz, every: self.wish.every }
    }
}
