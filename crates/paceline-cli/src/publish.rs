//! `paceline pub`: publishes a value, a test card, a file or standard input on a tag.

mod adapt;
mod args;
mod camera;
mod card;
mod configured;
mod files;
mod film;
mod flight_times;
mod input;
mod media;
mod news;
mod open;
mod pieces;
mod reading;
mod session;
mod sound;
mod source;
mod stored;
mod telemetry;
mod traffic;
mod value;

pub(crate) use args::PubArgs;
use args::Tenet;
pub(crate) use configured::ConfiguredSource;

use crate::playback::{
    SENT_WITHIN, declare_with, declared, not_all_sent, report_links, wait_for_subscriber,
    wait_until_heard,
};
use adapt::Adapter;
use paceline::{Node, PublishError, Publisher};
use paceline_tool::exit::{self, INTERRUPTED};
use paceline_tool::show;
use paceline_tool::stop::{STOP_SLICE, Stop};
use session::Session;
use sound::Sound;
use source::{Opened, Origin};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Publishes until the source ends, `--count` is reached or a signal arrives.
pub(crate) fn run(args: &PubArgs) -> anyhow::Result<ExitCode> {
    if let Some(file) = telemetry::log_file(args) {
        return telemetry::run(args, file);
    }
    if let Some(flag) = args.telemetry_flag() {
        return Err(exit::usage(format!(
            "{flag}: only .ulg files support this option; leave it out"
        )));
    }
    let stop = Stop::on_signals()?;
    let Some(opened) = open::open(args, &stop)? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let node = args.node.open("pub", args.tag.as_str())?;
    let ended = publish(args, &node, opened, &stop);
    if !stop.requested() {
        report_links(&node, args.json)?;
    }
    node.close();
    Ok(if ended? { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

/// Publishes an opened source. Returns false if `stop` ends it before its end.
fn publish(
    args: &PubArgs,
    node: &Node,
    (source, sound): (Opened, Option<Sound>),
    stop: &Stop,
) -> anyhow::Result<bool> {
    let mut publisher = declare(node, args, &source.origin).map_err(declared)?;
    if args.json {
        tracing::info!(tag = %publisher.tag(), source = %source.origin.what, "publishing");
    } else {
        show::note(&format!("publishing {}: {}", publisher.tag(), source.origin.what));
    }
    let quality = source.feed.quality().filter(|_| args.adapt);
    let adapter = quality.map(|quality| Adapter::start(node, publisher.id(), quality));
    let wait = args.wait.unwrap_or(source.origin.wait);
    let over = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        if let Some(sound) = sound {
            scope.spawn(|| sound.run(node, args, &over));
        }
        let ended = if wait_for_subscriber(args.tag.as_str(), wait, stop, |slice| {
            publisher.wait_matching(slice)
        }) {
            if !wait.is_zero() && publisher.matching() {
                wait_until_heard(node, std::iter::once(&publisher), stop);
            }
            Session::new(args, node, &source.origin).run(&mut publisher, source.feed, stop)
        } else {
            Ok(false)
        };
        over.store(true, Ordering::Relaxed);
        ended
    });
    if args.latch && ended.as_ref().is_ok_and(|ended| *ended) {
        keep(args, stop);
    }
    drop(adapter);
    if !stop.requested() && !publisher.close(SENT_WITHIN) {
        not_all_sent();
    }
    let ended = ended?;
    // The rest was published. The error repeats the note, for the exit code.
    match source.origin.news.and_then(|news| news.failure()) {
        Some(damage) => Err(damage),
        None => Ok(ended),
    }
}

/// Keeps the newest sample for subscribers until a signal arrives.
fn keep(args: &PubArgs, stop: &Stop) {
    if !args.json {
        show::note("the newest sample stays for subscribers that join later; Ctrl-C ends");
    }
    while !stop.requested() {
        std::thread::sleep(STOP_SLICE);
    }
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
    if let Some(bytes) = args.largest.or(origin.bytes_max) {
        builder = builder.bytes_max(bytes);
    }
    let declared = args.rate.zip(args.burst).map(|(rate, burst)| (rate.bits_per_s(), burst));
    // The figures of a file hold for the file alone.
    let known = origin.traffic.filter(|_| !args.declares_traffic());
    if let Some((bits_per_s, burst)) = declared.or(known) {
        builder = builder.traffic(bits_per_s, burst);
    }
    if let Some(Tenet { xmin, xave, interval, smax }) = args.tenet {
        builder = builder.tenet(xmin, xave, interval, smax);
    }
    if args.latch {
        builder = builder.latch();
    }
    if let Some(bound) = args.within {
        builder = builder.within(bound);
    }
    declare_with(builder, args.late, args.loss, args.history)
}
