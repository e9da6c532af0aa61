//! The replayed channels of a file with their publishers, and the omitted ones with the reason.

use super::args::ReplayArgs;
use crate::args as values;
use crate::playback::{Topic, declare_with};
use paceline::{Encoding, Node, PublishError, Publisher, Size, Tag};
use paceline_record::{Body, Declared, Lane, Survey};
use paceline_tool::exit;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The highest rate of a publisher in Hz.
const HERTZ_MAX: f64 = 1_000_000.0;

/// A replayed channel.
pub(super) struct Played {
    /// Index of its publisher.
    pub(super) topic: usize,
    /// Payload format in the file.
    pub(super) body: Body,
    /// True if subscribers that join later receive its newest sample.
    pub(super) latched: bool,
}

/// The channels, keyed by their ids in the file.
#[derive(Default)]
pub(super) struct Lanes {
    pub(super) played: BTreeMap<u16, Played>,
    /// Descriptions of the omitted messages.
    pub(super) left_out: Vec<String>,
    /// Number of messages to publish.
    pub(super) messages: u64,
}

/// Lists the topics of a file for messages.
fn topics(survey: &Survey) -> String {
    let names = survey.lanes.values().filter(|lane| lane.is_samples());
    let names: BTreeSet<&str> = names.map(|lane| lane.channel.topic.as_str()).collect();
    let shown: Vec<&str> = names.iter().take(10).copied().collect();
    match names.len() - shown.len() {
        0 => format!("the file has {}", shown.join(", ")),
        more => format!("the file has {} and {more} more", shown.join(", ")),
    }
}

/// Rejects `--tag` and `--remap` for topics that the file does not contain.
pub(super) fn check(args: &ReplayArgs, survey: &Survey) -> anyhow::Result<()> {
    let lanes = || survey.lanes.values().filter(|lane| lane.is_samples());
    let has = |wanted: &dyn Fn(&str) -> bool| lanes().any(|lane| wanted(&lane.channel.topic));
    for pattern in &args.tags {
        let matches = |topic: &str| {
            Tag::new(topic.trim_start_matches('/')).is_ok_and(|tag| pattern.matches(&tag))
        };
        if !has(&matches) {
            let there = topics(survey);
            return Err(exit::usage(format!("--tag {pattern}: nothing matches it; {there}")));
        }
    }
    for remap in &args.remap {
        if !has(&|topic| remap.apply(topic).is_some()) {
            let (old, there) = (&remap.old, topics(survey));
            return Err(exit::usage(format!("--remap {old}: no topic begins with it; {there}")));
        }
    }
    Ok(())
}

/// Declares the publishers of the selected channels.
pub(super) fn open(
    args: &ReplayArgs,
    node: &Node,
    survey: &Survey,
) -> anyhow::Result<(Lanes, Vec<Topic>)> {
    let (mut lanes, mut publishers) = (Lanes::default(), Vec::new());
    for (id, lane) in &survey.lanes {
        let topic = &lane.channel.topic;
        if !lane.is_samples() || !args.wants(topic) {
            continue;
        }
        let tag = args.tag_of(topic);
        if let Err(error) = Tag::new(&tag) {
            let messages = lane.messages;
            lanes.left_out.push(format!(
                "topic '{topic}' is not a tag: {error}; its {messages} messages are left out; try --remap"
            ));
            continue;
        }
        if lane.broken > 0 {
            lanes.left_out.push(format!(
                "topic '{topic}': {} of {} messages are not {}; they are left out",
                lane.broken, lane.messages, lane.channel.schema
            ));
        }
        let declared = Declared::of(&lane.channel.metadata);
        let publisher = declare(args, node, &tag, (lane, &declared)).or_else(|error| {
            if matches!(error, PublishError::Closed) || declared == Declared::default() {
                return Err(error);
            }
            let what = "its recorded declaration cannot be restored";
            lanes.left_out.push(format!("topic '{topic}': {what}: {error}"));
            declare(args, node, &tag, (lane, &Declared::default()))
        });
        let publisher = match publisher {
            Ok(publisher) => publisher,
            Err(error @ PublishError::Closed) => return Err(error.into()),
            Err(error) => {
                let messages = lane.messages;
                lanes.left_out.push(format!(
                    "topic '{topic}' cannot be published: {error}; its {messages} messages are left out"
                ));
                continue;
            }
        };
        lanes.messages += lane.messages - lane.broken;
        let latched = declared.latch;
        lanes.played.insert(*id, Played { topic: publishers.len(), body: lane.body, latched });
        publishers.push(Topic::new(publisher));
    }
    Ok((lanes, publishers))
}

fn declare(
    args: &ReplayArgs,
    node: &Node,
    tag: &str,
    (lane, declared): (&Lane, &Declared),
) -> Result<Publisher, PublishError> {
    // With `--speed max` the declared rate is the recorded one.
    let times = args.times().unwrap_or(1.0);
    let bytes_max = lane.bytes_max.max(declared.bytes_max.unwrap_or(1));
    let encoding = Encoding::new(&lane.encoding);
    let mut builder = node.publisher(tag).encoding(encoding).bytes_max(bytes_max);
    if let Some(period) = period(lane, declared) {
        builder = match args.times() {
            Some(times) if (times - 1.0).abs() > f64::EPSILON => {
                builder.hz((times / period.as_secs_f64()).clamp(0.001, HERTZ_MAX))
            }
            Some(_) | None => builder.period(period),
        };
    }
    // Each video sample states its own kind; without metadata the media type determines the kind.
    let kind = lane.channel.metadata.get("kind").and_then(|kind| values::kind(kind).ok());
    if let Some(kind) = kind {
        builder = builder.kind(kind);
    }
    if let Some((width, height)) = declared.size {
        builder = builder.picture_size(Size { width, height });
    }
    if let Some((bits, burst)) = declared.traffic {
        builder = builder.traffic(scaled(bits, times), burst);
    }
    if let Some(ns) = declared.within_ns {
        builder = builder.within(Duration::from_nanos(ns));
    }
    if declared.latch {
        builder = builder.latch();
    }
    let (late, loss) = (args.late || declared.sends_late, args.loss);
    if let (None, Some((x, y))) = (loss, declared.loss) {
        builder = builder.loss(x, y);
    }
    declare_with(builder, late, loss, args.history)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a positive rate; beyond the range of integers it saturates"
)]
fn scaled(bits: u64, times: f64) -> u64 {
    if (times - 1.0).abs() <= f64::EPSILON { bits } else { (bits as f64 * times) as u64 }
}

/// Returns the period to declare: that of the recorded samples if the file states it, else the original publisher's, or
/// the mean one if rate scaling made it longer. Declares no period for a Paceline recording without one.
fn period(lane: &Lane, declared: &Declared) -> Option<Duration> {
    if let Some(ns) = declared.period_ns {
        return Some(Duration::from_nanos(ns)).filter(|period| !period.is_zero());
    }
    let metadata = &lane.channel.metadata;
    let mean = lane.period().map(Duration::from_nanos);
    let stated = metadata.get("period_us").and_then(|period| period.parse().ok());
    let stated = stated.map(Duration::from_micros).filter(|period| !period.is_zero());
    match stated {
        Some(stated) => Some(mean.filter(|mean| *mean > stated + stated / 4).unwrap_or(stated)),
        None if metadata.contains_key("paceline") => None,
        None => mean,
    }
}
