//! One topic of a telemetry file: its publisher and its totals.

use super::super::args::PubArgs;
use super::super::declared;
use crate::args::Telemetry;
use anyhow::Context as _;
use paceline::{Encoding, Late, Node, PublishError, Publisher, Put};
use paceline_media::ulog;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A topic that is being published.
pub(super) struct Topic {
    pub(super) publisher: Publisher,
    row: Row,
}

/// The last line of `--json`.
#[derive(Serialize)]
pub(super) struct TopicsLine {
    pub(super) topics: Vec<Row>,
}

/// What became of a topic.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    tag: String,
    published: u64,
    bytes: u64,
    taken: u64,
    dropped: u64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, published, bytes, dropped, .. } = self;
        write!(f, "{tag}: {published} messages, {bytes} bytes, dropped {dropped}")
    }
}

impl Topic {
    /// Declares the publisher of a topic.
    pub(super) fn declare(
        node: &Node,
        args: &PubArgs,
        topic: &ulog::Topic,
    ) -> anyhow::Result<Self> {
        let tag = format!("{}/{}", args.tag, topic.suffix());
        let publisher = declare(node, args, topic, &tag).map_err(declared);
        let publisher = publisher.with_context(|| format!("topic {}", topic.name))?;
        let row = Row { tag, published: 0, bytes: 0, taken: 0, dropped: 0 };
        Ok(Self { publisher, row })
    }

    /// Publishes a message; waits for room first if it `waits`.
    pub(super) fn put(&mut self, payload: Vec<u8>, waits: bool) -> anyhow::Result<Put> {
        let bytes = payload.len() as u64;
        let put = match waits {
            true => self.publisher.put_blocking(payload),
            false => self.publisher.put(payload),
        };
        let put = put.with_context(|| {
            format!("{}: cannot publish message {}", self.row.tag, self.row.published)
        })?;
        self.row.published += 1;
        self.row.bytes += bytes;
        self.row.taken += u64::from(put.taken);
        self.row.dropped += u64::from(put.dropped);
        Ok(put)
    }

    /// Ends it: the totals, and whether all was sent within the time.
    pub(super) fn close(self, within: Duration) -> (Row, bool) {
        (self.row, self.publisher.close(within))
    }
}

fn declare(
    node: &Node,
    args: &PubArgs,
    topic: &ulog::Topic,
    tag: &str,
) -> Result<Publisher, PublishError> {
    let mut builder = node.publisher(tag)?;
    builder = match args.form.unwrap_or(Telemetry::Raw) {
        Telemetry::Raw => builder
            .encoding(Encoding::new(&format!("application/x-ulog;message={}", topic.name)))
            .bytes_max(topic.bytes_max as u64),
        Telemetry::Json => builder.encoding(Encoding::Json),
    };
    // As fast as they are taken they still stand for what they were.
    let times = match args.speed {
        Some(crate::args::Speed::Times(times)) => times,
        Some(crate::args::Speed::Max) | None => 1.0,
    };
    if topic.hz > 0.0 {
        builder = builder.hz((topic.hz * times).min(1_000_000.0))?;
    }
    if let Some(kind) = args.kind {
        builder = builder.kind(kind);
    }
    if let Some(loss) = args.loss {
        builder = builder.loss(loss.x(), loss.y())?;
    }
    if args.late {
        builder = builder.late(Late::Send);
    }
    if let Some(history) = args.history {
        builder = builder.history(history);
    }
    builder.declare()
}
