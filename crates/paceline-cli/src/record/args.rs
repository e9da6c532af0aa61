//! The command line of `paceline record`.

use crate::args::{self, NodeArgs, WishArgs};
use crate::show::micros;
use crate::stats::round3;
use paceline::{
    Form, LossTolerance, Node, Pattern, Proxy, Rate, Retransmit, SubscribeError, SubscriberBuilder,
};
use paceline_record::{Asked, Compression};
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
The file opens in Foxglove and in the mcap tools. Each publisher's samples are a channel under their tag; qos/events \
tells what was asked, granted, refused, delivered and dropped. A recorder is a subscriber: it costs a link what it \
asks for, and without --max-hz, --every or --size that is every sample. Ctrl-C and SIGTERM finish the file; what was \
written a second before a crash can be read.";

/// `paceline record`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub(crate) struct RecordArgs {
    /// Tags, or patterns in which * stands for one part and ** for any number: robot/**
    #[arg(value_name = "PATTERN", required = true, value_parser = Pattern::new)]
    pub(super) patterns: Vec<Pattern>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// Replaces the file if it is there already
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) wish: WishArgs,
    /// Ends with code 3 as soon as any publisher is refused, instead of waiting for room
    #[arg(long)]
    pub(super) require: bool,
    /// What is done about samples lost on links over UDP: none, selective or go-back-n
    #[arg(long, value_name = "HOW", value_parser = args::retransmit, default_value = "selective")]
    retransmit: Retransmit,
    /// Where rate and size are reduced: publisher or subscriber
    #[arg(long, value_name = "WHERE", value_parser = args::proxy, default_value = "publisher")]
    proxy: Proxy,
    /// How many samples wait for the disk before new ones are dropped
    #[arg(long, value_name = "N", value_parser = args::queue, default_value = "4096")]
    pub(super) queue: usize,
    /// Ends after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = args::some_seconds)]
    pub(super) duration: Option<Duration>,
    /// Ends when the file has this many bytes: 100MB, 2GB
    #[arg(long, value_name = "BYTES", value_parser = args::bytes)]
    pub(super) max_bytes: Option<u64>,
    /// How the file is compressed: lz4 or none
    #[arg(long, value_name = "HOW", value_parser = compression, default_value = "lz4")]
    pub(super) compression: Compression,
    /// Prints one line of JSON a second
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) node: NodeArgs,
}

fn compression(text: &str) -> Result<Compression, String> {
    match text {
        "lz4" => Ok(Compression::Lz4),
        "none" => Ok(Compression::None),
        _ => Err("must be lz4 or none; none is for what is compressed already".to_owned()),
    }
}

/// What is asked for of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    /// As the file says it.
    pub(super) asked: Asked,
    /// The step of the sequence numbers that come; unknown where a rate is asked for, or was changed.
    pub(super) step: Option<u64>,
    /// The loss tolerance, x/y.
    pub(super) loss: Option<(u32, u32)>,
}

impl Wish {
    /// What a subscription asks for once it was changed. What still comes as it was asked for before is not told
    /// from what comes as it is asked for now: numbers that are missing are not known any more.
    pub(super) fn changed(
        form: Form,
        within: Option<Duration>,
        loss: Option<LossTolerance>,
    ) -> Self {
        let (every, max_hz) = match form.rate {
            Rate::All => (None, None),
            Rate::Every(n) => (Some(n.get()), None),
            Rate::Max(millihertz) => (None, Some(f64::from(millihertz.get()) / 1_000.0)),
        };
        let asked = Asked {
            form: form.to_string(),
            every,
            max_hz,
            width: form.size.map(|size| size.width),
            height: form.size.map(|size| size.height),
            within_us: within.map(micros),
            loss: loss.map(|loss| format!("{}/{}", loss.x(), loss.y())),
        };
        Self { asked, step: None, loss: loss.map(|loss| (loss.x(), loss.y())) }
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let Asked { mut form, within_us, loss, .. } = self.asked.clone();
        if let Some(us) = within_us {
            form.push_str(&format!(" within {} ms", crate::show::millis(us)));
        }
        if let Some(loss) = loss {
            form.push_str(&format!(" loss {loss}"));
        }
        form
    }
}

impl RecordArgs {
    /// Asks for what is wanted of a pattern.
    pub(super) fn ask<'a>(
        &self,
        node: &'a Node,
        pattern: &Pattern,
    ) -> Result<SubscriberBuilder<'a>, SubscribeError> {
        let builder = node.subscriber(pattern.as_str())?.proxy(self.proxy);
        Ok(self.wish.apply(builder)?.retransmit(self.retransmit))
    }

    /// What is asked for of each pattern at first.
    pub(super) fn wish(&self) -> Wish {
        let wish = &self.wish;
        let step = match (wish.every, wish.max_hz) {
            (_, Some(_)) => None,
            (Some(n), None) => Some(u64::from(n)),
            (None, None) => Some(1),
        };
        let mut form = match (wish.every, wish.max_hz) {
            (Some(n), _) => format!("1 in {n}"),
            (None, Some(hz)) => format!("{} Hz", round3(hz)),
            (None, None) => "all".to_owned(),
        };
        if let Some(size) = wish.size {
            form.push_str(&format!(" at {size}"));
        }
        if let Some((rate, channels)) = wish.audio {
            form.push_str(&format!(" at {rate}x{channels}"));
        }
        let asked = Asked {
            form,
            every: wish.every,
            max_hz: wish.max_hz,
            width: wish.size.map(|size| size.width),
            height: wish.size.map(|size| size.height),
            within_us: wish.within.map(micros),
            loss: wish.loss.map(|loss| format!("{}/{}", loss.x(), loss.y())),
        };
        Wish { asked, step, loss: wish.loss.map(|loss| (loss.x(), loss.y())) }
    }

    /// The patterns, for people.
    pub(super) fn patterns_in_words(&self) -> String {
        let names: Vec<&str> = self.patterns.iter().map(Pattern::as_str).collect();
        names.join(", ")
    }
}
