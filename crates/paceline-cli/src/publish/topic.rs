//! One of several tags that are published together: its publisher and its totals.

use anyhow::Context as _;
use bytes::Bytes;
use paceline::{Publisher, Put};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A tag that is being published.
pub(crate) struct Topic {
    pub(super) publisher: Publisher,
    row: Row,
}

/// The last line of `--json`.
#[derive(Serialize)]
pub(super) struct TopicsLine {
    pub(super) topics: Vec<Row>,
}

/// What became of a tag's messages.
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
    /// Nothing was published yet.
    pub(crate) fn new(publisher: Publisher) -> Self {
        let tag = publisher.tag().to_string();
        Self { publisher, row: Row { tag, published: 0, bytes: 0, taken: 0, dropped: 0 } }
    }

    /// Publishes a message; waits for room first if it `waits`.
    pub(super) fn put(&mut self, payload: Bytes, waits: bool) -> anyhow::Result<Put> {
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
