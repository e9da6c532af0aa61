//! The command line of `paceline record`.

use crate::args::{self, RequestedRate, WishArgs};
use crate::config::NodeArgs;
use paceline::contract::{Form, Proxy, Retransmit};
use paceline::delivery::Otherwise;
use paceline::{LossTolerance, Node, Pattern, SubscriberBuilder};
use paceline_record::{Asked, Compression};
use paceline_tool::show::micros;
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
The file opens in Foxglove and in the mcap tools. The samples of each publisher are a channel under their tag. The \
channel qos/events contains the requests, grants, refusals, deliveries and drops. A recorder is a subscriber: it \
uses as much of a link as it requests. Without --max-hz, --every or --size it requests every sample. Ctrl-C and \
SIGTERM finish the file. After a crash, all data older than one second is readable.";

/// Arguments of `paceline record`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub(crate) struct RecordArgs {
    /// Tags, or patterns in which * stands for one part and ** for any number: robot/**
    #[arg(value_name = "PATTERN", required = true, value_parser = Pattern::new)]
    pub(super) patterns: Vec<Pattern>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// Replaces an existing file
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) wish: WishArgs,
    /// Exits with code 3 as soon as a publisher is refused, instead of waiting for room
    #[arg(long)]
    pub(super) require: bool,
    /// Records only commands that are provably younger than TIME, and each decision: silence, the next command, and
    /// the counts of released and stale ones
    #[arg(long, value_name = "TIME", value_parser = args::within)]
    pub(super) fresh: Option<Duration>,
    /// Retransmission of samples lost on QUIC links: none, selective or go-back-n
    #[arg(long, value_name = "HOW", value_parser = args::retransmit, default_value = "selective")]
    retransmit: Retransmit,
    /// Node that reduces rate and size: publisher, subscriber, node:NAME or auto
    #[arg(long, value_name = "WHERE", value_parser = args::proxy, default_value = "publisher")]
    proxy: Proxy,
    /// Number of samples that may wait for the disk; new ones are dropped when it is reached
    #[arg(long, value_name = "N", value_parser = args::queue, default_value = "4096")]
    pub(super) queue: usize,
    /// Ends after this time, such as 10min
    #[arg(long, value_name = "TIME", value_parser = args::some_duration)]
    pub(super) duration: Option<Duration>,
    /// Ends when the file has this size: 100MB, 2GB
    #[arg(long, value_name = "SIZE", value_parser = args::bytes)]
    pub(super) max_bytes: Option<u64>,
    /// Compression of the file: lz4 or none
    #[arg(long, value_name = "HOW", value_parser = compression, default_value = "lz4")]
    pub(super) compression: Compression,
    /// Prints one line of JSON per second
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) node: NodeArgs,
}

fn compression(text: &str) -> Result<Compression, String> {
    match text {
        "lz4" => Ok(Compression::Lz4),
        "none" => Ok(Compression::None),
        _ => Err("must be lz4 or none; none is for data that is already compressed".to_owned()),
    }
}

/// The requested service of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// The request in the file's format.
    pub(super) asked: Asked,
    /// Step of the expected sequence numbers; `None` if a rate was requested, or the request has changed.
    pub(super) step: Option<u64>,
    /// Loss tolerance x/y.
    pub(super) loss: Option<(u32, u32)>,
    /// True if samples are requested as they are published.
    pub(super) unchanged: bool,
}

impl Wish {
    /// Returns the request after a change. Its step is `None`: samples of the old and the new request cannot
    /// be distinguished, so gaps can no longer be detected.
    pub(super) fn changed(
        form: Form,
        within: Option<Duration>,
        loss: Option<LossTolerance>,
        fresh: Option<Duration>,
    ) -> Self {
        let RequestedRate { every, max_hz } = RequestedRate::of(form.rate);
        let asked = Asked {
            form: form.to_string(),
            every,
            max_hz,
            width: form.size.map(|size| size.width),
            height: form.size.map(|size| size.height),
            within_us: within.map(micros),
            loss: loss.map(|loss| format!("{}/{}", loss.x(), loss.y())),
            fresh_us: fresh.map(micros),
        };
        let loss = loss.map(|loss| (loss.x(), loss.y()));
        Self { asked, step: None, loss, unchanged: !form.converts() }
    }

    /// Describes the request in words.
    pub(super) fn words(&self) -> String {
        let Asked { mut form, within_us, loss, .. } = self.asked.clone();
        if let Some(us) = within_us {
            form.push_str(&format!(" within {} ms", paceline_tool::show::millis(us)));
        }
        if let Some(loss) = loss {
            form.push_str(&format!(" loss {loss}"));
        }
        form
    }
}

impl RecordArgs {
    /// Builds the subscription to a pattern.
    pub(super) fn ask<'a>(&self, node: &'a Node, pattern: &Pattern) -> SubscriberBuilder<'a> {
        let builder = node.subscriber(pattern.as_str()).proxy(self.proxy.clone());
        let builder = self.wish.apply(builder).retransmit(self.retransmit);
        match self.fresh {
            Some(limit) => builder.fresh_within(limit, Otherwise::Hold),
            None => builder,
        }
    }

    /// Returns the initial request, the same for each pattern.
    pub(super) fn wish(&self) -> Wish {
        let wish = &self.wish;
        let step = match (wish.every, wish.max_hz) {
            (_, Some(_)) => None,
            (Some(n), None) => Some(u64::from(n)),
            (None, None) => Some(1),
        };
        let mut form = wish.requested_rate().words();
        if let Some(size) = wish.size() {
            form.push_str(&format!(" at {size}"));
        }
        if let Some((rate, channels)) = wish.audio {
            form.push_str(&format!(" at {rate}x{channels}"));
        }
        let asked = Asked {
            form,
            every: wish.every,
            max_hz: wish.max_hz,
            width: wish.size().map(|size| size.width),
            height: wish.size().map(|size| size.height),
            within_us: wish.within.map(micros),
            loss: wish.loss.map(|loss| format!("{}/{}", loss.x(), loss.y())),
            fresh_us: self.fresh.map(micros),
        };
        let unchanged = wish.sizes.is_empty()
            && wish.audio.is_none()
            && wish.bitrate.is_none()
            && wish.quality.is_none();
        Wish { asked, step, loss: wish.loss.map(|loss| (loss.x(), loss.y())), unchanged }
    }

    /// Lists the patterns for messages.
    pub(super) fn patterns_in_words(&self) -> String {
        let names: Vec<&str> = self.patterns.iter().map(Pattern::as_str).collect();
        names.join(", ")
    }
}
