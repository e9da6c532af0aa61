//! The replayed channels of a file with their publishers, and the omitted ones with the reason.

use super::args::ReplayArgs;
use crate::args as values;
use crate::exit;
use crate::playback::{Topic, declare_with, declared};
use anyhow::Context as _;
use paceline::{Encoding, Node, PublishError, Publisher, Tag};
use paceline_record::{Body, Lane, Survey};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A replayed channel.
pub(super) struct Played {
    /// Index of its publisher.
    pub(super) topic: usize,
    /// Payload format in the file.
    pub(super) body: Body,
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
        let publisher = declare(args, node, &tag, lane).map_err(declared);
        let publisher = publisher.with_context(|| format!("topic '{topic}'"))?;
        lanes.messages += lane.messages - lane.broken;
        lanes.played.insert(*id, Played { topic: publishers.len(), body: lane.body });
        publishers.push(Topic::new(publisher));
    }
    Ok((lanes, publishers))
}

fn declare(
    args: &ReplayArgs,
    node: &Node,
    tag: &str,
    lane: &Lane,
) -> Result<Publisher, PublishError> {
    let mut builder = node
        .publisher(tag)
        .encoding(Encoding::new(&lane.encoding))
        .bytes_max(lane.bytes_max.max(1));
    if let Some(period) = period(lane) {
        // With `--speed max` the declared rate is the recorded one.
        let hz = args.times().unwrap_or(1.0) / period.as_secs_f64();
        builder = builder.hz(hz.clamp(0.001, 1_000_000.0));
    }
    // Each video sample states its own kind; without metadata the media type determines the kind.
    let kind = lane.channel.metadata.get("kind").and_then(|kind| values::kind(kind).ok());
    if let Some(kind) = kind {
        builder = builder.kind(kind);
    }
    declare_with(builder, args.late, args.loss, args.history)
}

/// Returns the period to declare: the original publisher's, or the recorded one if rate scaling made it
/// longer. Declares no period for a Paceline recording without one.
fn period(lane: &Lane) -> Option<Duration> {
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
