//! The command line of `paceline replay`.

use crate::args::{self, Speed};
use crate::config::NodeArgs;
use paceline::pull::History;
use paceline::{LossTolerance, Pattern, Tag};
use paceline_record::Order;
use std::path::PathBuf;
use std::time::Duration;

const AFTER: &str = "\
Each channel is published under its topic, with the recorded media type. Subscribers can request rates and sizes as \
from the original publisher. Pictures, video and sound in Foxglove's schemas (protobuf) are unpacked, from any \
recorder; all other messages are published unchanged. With --speed max, pictures and video are dropped if they \
arrive faster than a link can send, as for any publisher. Jumps of the file's times are cut and reported. Damaged places are \
skipped and reported, and the exit code is then 1. The file is read twice.";

/// Arguments of `paceline replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER, allow_negative_numbers = true)]
pub(crate) struct ReplayArgs {
    /// The file to replay
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Playback speed: 0.01 to 1000 times, or max for the subscribers' pace
    #[arg(long, value_name = "X", value_parser = args::speed, default_value = "1")]
    speed: Speed,
    /// Starts again at the end
    #[arg(long = "loop")]
    pub(super) repeat: bool,
    /// Starts at this time after the first sample of the file, such as 10s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    pub(super) from: Option<Duration>,
    /// Ends at this time after the first sample of the file, such as 1min
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    pub(super) to: Option<Duration>,
    /// Publishes under another tag: replaces the prefix OLD by NEW
    #[arg(long, value_name = "OLD=NEW", value_parser = remap)]
    pub(super) remap: Vec<Remap>,
    /// Replays only topics that match this pattern, by their names in the file
    #[arg(long = "tag", value_name = "PATTERN", value_parser = Pattern::new)]
    pub(super) tags: Vec<Pattern>,
    /// Clock for the sample times: published (the publishers' clocks), arrival (the recorder's clock), or auto,
    /// whichever fits the file
    #[arg(long, value_name = "TIMES", value_parser = order, default_value = "auto")]
    pub(super) by: Order,
    /// Ends after this many samples
    #[arg(long, value_name = "N", value_parser = args::count)]
    pub(super) count: Option<u64>,
    /// Sends late samples too, and waits until every stream has room
    #[arg(long)]
    pub(super) late: bool,
    /// Longest wait for a subscriber before the first sample; defaults to 1s, with --loop
    /// to 0s
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    pub(super) wait: Option<Duration>,
    /// Allows X of each Y samples to miss the deadline, for subscribers with --within and without --loss
    #[arg(long, value_name = "X/Y")]
    pub(super) loss: Option<LossTolerance>,
    /// Buffers published samples for others to pull: N samples, or samples=N,bytes=10MB,age=60s
    #[arg(long, value_name = "LIMITS", value_parser = args::history)]
    pub(super) history: Option<History>,
    /// Prints one line of JSON per second
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) node: NodeArgs,
}

/// A replacement of a topic prefix.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Remap {
    pub(super) old: String,
    new: String,
}

fn remap(text: &str) -> Result<Remap, String> {
    let fix = "write OLD=NEW, such as robot=lab or robot/camera=lab/left";
    let (old, new) = text.split_once('=').ok_or_else(|| format!("has no =; {fix}"))?;
    // OLD may be a topic of another system, which need not be a valid tag.
    if old.is_empty() {
        return Err(format!("has nothing before the =; {fix}"));
    }
    Tag::new(new).map_err(|error| format!("'{new}': {error}; {fix}"))?;
    Ok(Remap { old: old.to_owned(), new: new.to_owned() })
}

fn order(text: &str) -> Result<Order, String> {
    match text {
        "auto" => Ok(Order::Auto),
        "published" => Ok(Order::Published),
        "arrival" => Ok(Order::Came),
        _ => Err("must be auto, published or arrival; arrival uses one clock".to_owned()),
    }
}

impl Remap {
    /// Returns the new topic if `topic` starts with all chunks of the old prefix.
    pub(super) fn apply(&self, topic: &str) -> Option<String> {
        let rest = topic.strip_prefix(&self.old)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", self.new))
    }
}

impl ReplayArgs {
    /// Returns the tag name for a topic, which may be invalid. ROS topics start with a slash.
    pub(super) fn tag_of(&self, topic: &str) -> String {
        let remapped = self.remap.iter().find_map(|remap| remap.apply(topic));
        remapped.unwrap_or_else(|| topic.trim_start_matches('/').to_owned())
    }

    /// Returns true if a topic is selected for replay.
    pub(super) fn wants(&self, topic: &str) -> bool {
        let tag = Tag::new(topic.trim_start_matches('/'));
        self.tags.is_empty()
            || tag.is_ok_and(|tag| self.tags.iter().any(|pattern| pattern.matches(&tag)))
    }

    /// Returns the speed factor, `None` for the subscribers' pace.
    pub(super) const fn times(&self) -> Option<f64> {
        match self.speed {
            Speed::Times(times) => Some(times),
            Speed::Max => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remap_changes_whole_chunks_at_the_beginning() {
        let lab = remap("robot=lab/a").unwrap();
        assert_eq!(lab.apply("robot/camera").as_deref(), Some("lab/a/camera"));
        assert_eq!(lab.apply("robot").as_deref(), Some("lab/a"));
        assert_eq!(lab.apply("robots/camera"), None);
        assert_eq!(remap("/imu=imu").unwrap().apply("/imu").as_deref(), Some("imu"));
        for wrong in ["robot", "=lab", "robot=", "robot=a/*", "robot=a//b"] {
            assert!(remap(wrong).unwrap_err().contains("write OLD=NEW"), "{wrong}");
        }
    }
}
