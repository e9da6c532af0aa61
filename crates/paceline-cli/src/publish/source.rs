//! A source of samples, and its properties.

use super::adapt::Quality;
use super::news::News;
use bytes::Bytes;
use paceline::{Encoding, Size};
use paceline_edge::Captured;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The properties of a source.
pub(crate) struct Origin {
    /// Media type of its samples.
    pub(crate) encoding: Encoding,
    /// Samples per second; `None` to publish as fast as the input delivers.
    pub(crate) hz: Option<f64>,
    /// Size of its pictures.
    pub(crate) size: Option<Size>,
    /// Size of its largest sample in bytes.
    pub(crate) bytes_max: Option<u64>,
    /// Mean rate in bits per second, and the most bytes at once at that rate, if they are known.
    pub(crate) traffic: Option<(u64, u64)>,
    /// True if the input keeps its own time, so that `hz` only declares it.
    pub(crate) live: bool,
    /// Limit of the wait for a subscriber before the first sample.
    pub(crate) wait: Duration,
    /// The parts of the input that are left out.
    pub(crate) news: Option<Arc<News>>,
    /// Description for messages.
    pub(crate) what: String,
}

/// An opened source.
pub(crate) struct Opened {
    /// Its properties.
    pub(crate) origin: Origin,
    /// Its samples.
    pub(crate) feed: Box<dyn Source + Send>,
}

impl Opened {
    /// Returns an opened source.
    pub(crate) fn new(origin: Origin, feed: impl Source + Send + 'static) -> Self {
        Self { origin, feed: Box::new(feed) }
    }
}

/// A sample of a source.
pub(crate) struct Piece {
    pub(crate) payload: Bytes,
    /// The time at which its last byte arrived; `None` for now.
    pub(crate) arrived: Option<Instant>,
    /// The time from its capture to its arrival, if the input states it.
    pub(crate) captured: Option<Captured>,
    /// Its room in a queue that counts it, freed when the sample is taken.
    #[expect(dead_code, reason = "its drop frees the room")]
    pub(crate) room: Option<Box<dyn Send>>,
}

impl From<Bytes> for Piece {
    fn from(payload: Bytes) -> Self {
        Self { payload, arrived: None, captured: None, room: None }
    }
}

/// The result of a request for a sample.
pub(crate) enum Next {
    /// A sample.
    Sample(Piece),
    /// No sample is available yet.
    Wait,
    /// The source has ended.
    End,
}

/// A source of samples.
pub(crate) trait Source {
    /// Returns sample `number`.
    ///
    /// # Errors
    /// Errors if the input cannot be read.
    fn next(&mut self, number: u64) -> anyhow::Result<Next>;

    /// Returns the quality setting of pictures encoded here.
    fn quality(&self) -> Option<&Quality> {
        None
    }

    /// Returns true if the source ends by itself.
    fn has_end(&self) -> bool;

    /// Returns true if a late sample is skipped, false if it is only delayed.
    fn keeps_time(&self) -> bool {
        false
    }
}
