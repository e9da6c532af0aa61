//! `paceline pub`: publishes a test card, a file or standard input on a tag.

mod adapt;
mod args;
mod card;
mod files;
mod heard;
mod links;
mod pace;
mod pictures;
mod pieces;
mod playback;
mod promises;
mod session;
mod sound;
mod source;
mod stored;
mod telemetry;
mod topic;
mod video;

pub(crate) use args::PubArgs;
pub(crate) use card::unix_micros;
pub(crate) use links::tell as tell_links;
pub(crate) use pace::Pacer;
pub(crate) use playback::Playback;
pub(crate) use topic::{Topic, Whole};

use crate::exit::{self, INTERRUPTED};
use crate::show;
use crate::stop::Stop;
use adapt::Adapter;
use paceline::pull::History;
use paceline::{Late, LossTolerance, Node, PublishError, Publisher, PublisherBuilder};
use session::Session;
use source::Origin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Limit of the wait for queued samples after the last one was published.
const SENT_WITHIN: Duration = Duration::from_secs(30);

/// Publishes until the source ends, `--count` is reached or a signal arrives.
pub(crate) fn run(args: &PubArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = telemetry::log_file(args) {
        return telemetry::run(args, file);
    }
    if let Some(flag) = args.telemetry_flag() {
        return Err(exit::usage(format!(
            "{flag}: only messages of .ulg files have times and forms of their own; leave it out"
        )));
    }
    let stop = Stop::on_signals()?;
    let source = source::open(args)?;
    let node = args.node.open()?;
    let mut publisher = declare(&node, args, &source.origin).map_err(declared)?;
    if args.json {
        tracing::info!(tag = %publisher.tag(), source = %source.origin.what, "publishing");
    } else {
        show::note(&format!("publishing {}: {}", publisher.tag(), source.origin.what));
    }
    let quality = source.feed.quality().filter(|_| args.adapt);
    let adapter = quality.map(|quality| Adapter::start(&node, publisher.id(), quality));
    let wait = args.wait.unwrap_or(source.origin.wait);
    let ended = if wait_for_subscriber(args.tag.as_str(), wait, &stop, |slice| {
        publisher.wait_matching(slice)
    }) {
        if !wait.is_zero() && publisher.matching() {
            heard::wait(&node, std::iter::once(&publisher), &stop);
        }
        Session::new(args, source.origin.hz).run(&mut publisher, source.feed, &stop)
    } else {
        Ok(false)
    };
    drop(adapter);
    if !stop.requested() && !publisher.close(SENT_WITHIN) {
        not_all_sent();
    }
    if !stop.requested() {
        links::tell(&node, args.json)?;
    }
    node.close();
    Ok(if ended? { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

fn not_all_sent() {
    let seconds = SENT_WITHIN.as_secs();
    show::note(&format!("the last samples were not sent within {seconds} s; they are lost"));
}

fn declare(node: &Node, args: &PubArgs, origin: &Origin) -> Result<Publisher, PublishError> {
    let mut builder = node.publisher(args.tag.as_str()).encoding(origin.encoding.clone());
    if let Some(hz) = origin.hz {
        builder = builder.hz(hz);
    }
    if let Some(kind) = args.kind {
        builder = builder.kind(kind);
    }
    if let Some(size) = origin.size {
        builder = builder.picture_size(size);
    }
    if let Some(bytes) = origin.bytes_max {
        builder = builder.bytes_max(bytes);
    }
    declare_with(builder, args.late, args.loss, args.history)
}

/// Declares a publisher with the settings that `pub` and `replay` offer for every tag.
pub(crate) fn declare_with(
    mut builder: PublisherBuilder<'_>,
    late: bool,
    loss: Option<LossTolerance>,
    history: Option<History>,
) -> Result<Publisher, PublishError> {
    if let Some(loss) = loss {
        builder = builder.loss(loss.x(), loss.y());
    }
    if late {
        builder = builder.late(Late::Send);
    }
    if let Some(history) = history {
        builder = builder.history(history);
    }
    builder.declare()
}

pub(crate) fn declared(error: PublishError) -> anyhow::Error {
    if matches!(error, PublishError::Closed) { error.into() } else { exit::usage(error) }
}

/// Waits at most `wait` until `matches` reports a subscriber. Returns false if the user interrupts it.
fn wait_for_subscriber(
    name: &str,
    wait: Duration,
    stop: &Stop,
    matches: impl Fn(Duration) -> bool,
) -> bool {
    let until = Instant::now() + wait;
    loop {
        if stop.requested() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if !wait.is_zero() {
                show::note(&format!("no subscriber for {name} yet; publishing all the same"));
            }
            return true;
        }
        if matches(left.min(crate::stop::STOP_SLICE)) {
            return true;
        }
    }
}
