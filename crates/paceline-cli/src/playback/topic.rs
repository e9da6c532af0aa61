//! One of several tags that are published together, with its counts.

use anyhow::Context as _;
use bytes::Bytes;
use paceline::{Publisher, PutOptions, PutReport};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Closing a full stream does not notify: the wait for room checks again after this time.
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// A payload and its attachment.
pub(crate) type Whole = (Bytes, Option<Arc<[u8]>>);

/// A tag during playback.
pub(crate) struct Topic {
    pub(super) publisher: Publisher,
    row: Row,
}

/// The last line of `--json`.
#[derive(Serialize)]
pub(super) struct TopicsLine {
    pub(super) topics: Vec<Row>,
}

/// The counts of one tag.
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
    /// Creates a topic with zero counts.
    pub(crate) fn new(publisher: Publisher) -> Self {
        let tag = publisher.tag().to_string();
        Self { publisher, row: Row { tag, published: 0, bytes: 0, taken: 0, dropped: 0 } }
    }

    /// Publishes a message; if `waits`, waits for room in the queues first.
    pub(super) fn put(&mut self, sample: Whole, waits: bool) -> anyhow::Result<PutReport> {
        let (payload, attachment) = sample;
        let bytes = payload.len() as u64;
        while waits && let Some(room) = self.publisher.room() {
            let _ = room.wait_until(Instant::now() + ROOM_EVERY);
        }
        let options = PutOptions { attachment, ..PutOptions::default() };
        let put = self.publisher.put_with(payload, options).with_context(|| {
            format!("{}: cannot publish message {}", self.row.tag, self.row.published)
        })?;
        self.row.published += 1;
        self.row.bytes += bytes;
        self.row.taken += u64::from(put.taken);
        self.row.dropped += u64::from(put.dropped);
        Ok(put)
    }

    /// Closes the publisher; returns its counts, and whether everything was sent within the time.
    pub(super) fn close(self, within: Duration) -> (Row, bool) {
        (self.row, self.publisher.close(within))
    }
}
