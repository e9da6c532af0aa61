//! The command line of `paceline sub`.

use crate::args::{self, TimingArgs, WishArgs};
use crate::config::NodeArgs;
use crate::payload::is_stdout;
use paceline::contract::{Proxy, Retransmit};
use paceline::pull::History;
use paceline::{Pattern, SubscriberBuilder, Tag};
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
Examples:
  paceline sub robot/camera --max-hz 5 --size 160x120 --within 200ms --loss 1/10
  paceline sub robot/camera --max-hz 30 --min-hz 5 --importance 20 --within 200ms
  paceline sub 'robot/**' --json --count 100 --timeout 30s --log debug
  paceline sub robot/pose --isolated --name operator \
--link name=radio,connect=tcp/10.0.0.2:7600,capacity=2mbit
  paceline sub robot/pose --config operator.toml --require-encrypted
  paceline sub robot/camera --max-hz 10 --play
  paceline sub robot/camera --out drive.mp4 --sound robot/microphone
  paceline sub robot/pose --config tablet.toml --policy policy.toml --token tablet.jwt

Once per second it prints rate, size, age at delivery (p50, p99, max), late and dropped samples. --out writes the \
payloads one after the other: JPEG pictures make an .mjpeg file, H.264 a .264 file. A name that ends in .y4m makes a \
Y4M file, .wav a WAV file, and .opus an Ogg file. .mp4, .mkv and .ts make a \
film, with the sound of --sound, that can be played whenever the command ends. .png and .jpg keep the newest picture. Any other name receives the payloads \
unchanged. A line break ends each text and JSON sample. A terminal shows only text.

paceline sub robot/camera --max-hz 10 --within 200ms --dry-run
--dry-run reserves nothing, so another subscriber may take the bandwidth first. The answer is valid for this place: \
run it on the subscriber's host, with its --link flags. It waits for a publisher for --timeout, 2.5 s by default. \
--with answers for both streams, and --take-offer repeats the request with the offer of a refusal. Exits with 0 if every matching publisher would grant the request, with 3 otherwise.";

/// Arguments of `paceline sub`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub(crate) struct SubArgs {
    /// A tag, or a pattern in which * stands for one part and ** for any number: robot/**
    #[arg(value_parser = Pattern::new)]
    pub(crate) pattern: Pattern,
    #[command(flatten)]
    pub(crate) wish: WishArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    /// Prints whether each publisher would grant this, and an alternative; subscribes to nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exits with code 3 as soon as a publisher is refused, instead of waiting for room
    #[arg(long)]
    pub(crate) require: bool,
    /// Refuses a path on which a link is not encrypted (quic/ and tls/ are, as is everything within a host)
    #[arg(long)]
    pub(crate) require_encrypted: bool,
    /// Retransmission of samples lost on QUIC links: none, selective or go-back-n
    #[arg(long, value_name = "HOW", value_parser = args::retransmit, default_value = "selective")]
    pub(crate) retransmit: Retransmit,
    /// Priority level on links with the policy static-priority; the lowest is served first. Defaults to the order of
    /// the delay bounds
    #[arg(long, value_name = "LEVEL", requires = "within")]
    pub(crate) priority: Option<u32>,
    /// Ties the contract to that of an opposite stream: both or neither. A program on this host publishes TAG, and one on
    /// the publisher's host subscribes to it with a contract
    #[arg(long, value_name = "TAG", value_parser = Tag::new, conflicts_with = "idle")]
    pub(crate) with: Option<Tag>,
    /// Reserves a second path, without the links of the first one, that takes over when it fails: both or neither
    #[arg(long, conflicts_with_all = ["idle", "with"])]
    pub(crate) spare: bool,
    /// Releases the reservation after this time without a sample of the publisher, at least 1s; the next sample requests
    /// it again
    #[arg(long, value_name = "TIME", value_parser = args::idle)]
    pub(crate) idle: Option<Duration>,
    /// Accepts what a refusal offers: the request is reduced to it, at most three times
    #[arg(long)]
    pub(crate) take_offer: bool,
    /// Node that reduces rate and size: publisher, subscriber, node:NAME or auto
    #[arg(long, value_name = "WHERE", value_parser = args::proxy, default_value = "publisher")]
    pub(crate) proxy: Proxy,
    /// Number of samples that may wait here; the oldest is dropped when it is reached
    #[arg(long, value_name = "N", value_parser = args::queue, default_value = "1024")]
    pub(crate) queue: usize,
    /// Buffers received samples for others to pull: N samples, or samples=N,bytes=10MB,age=60s
    #[arg(long, value_name = "LIMITS", value_parser = args::history)]
    pub(crate) history: Option<History>,
    /// Writes the payloads to a file, or to standard output with -
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Replaces an existing --out file
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Also writes the sound of this tag to the film that --out names
    #[arg(long, value_name = "TAG", value_parser = Tag::new, requires = "out")]
    pub(crate) sound: Option<Tag>,
    /// Shows pictures and video in a window of ffplay
    #[arg(long, conflicts_with = "out")]
    pub(crate) play: bool,
    /// Ends after this many samples
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(crate) count: Option<u64>,
    /// Gives up after this time, such as 30s; exits with code 3 if fewer than --count samples arrived (default 1)
    #[arg(long, value_name = "TIME", value_parser = args::some_duration)]
    pub(crate) timeout: Option<Duration>,
    /// Reads number and time from test cards, into card_frame and card_us
    #[arg(long, requires = "json")]
    pub(crate) read_card: bool,
    /// Prints one line of JSON per sample, and a summary
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

impl SubArgs {
    /// Adds the request to `builder`.
    pub(super) fn apply<'a>(&self, builder: SubscriberBuilder<'a>) -> SubscriberBuilder<'a> {
        let builder = self.wish.apply(builder.proxy(self.proxy.clone()));
        let mut builder = self.timing.apply(builder.retransmit(self.retransmit));
        if let Some(level) = self.priority {
            builder = builder.priority(level);
        }
        if let Some(tag) = &self.with {
            builder = builder.with_tag(tag.as_str());
        }
        if let Some(idle) = self.idle {
            builder = builder.idle(idle);
        }
        if self.spare {
            builder = builder.spare();
        }
        if self.require_encrypted {
            builder = builder.require_encrypted();
        }
        builder
    }

    /// Returns true if payloads are written to standard output.
    pub(crate) fn to_stdout(&self) -> bool {
        is_stdout(self.out.as_deref())
    }
}
