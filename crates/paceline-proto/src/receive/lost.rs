//! Samples of a stream that do not arrive.

use crate::reason::DropReason;
use crate::sample::Kind;

/// Samples of a stream that will not arrive completely.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lost {
    /// Their number.
    pub samples: u64,
    /// The reason of the loss.
    pub reason: DropReason,
    /// The sequence number and the kind of a single sample that had begun to arrive; `None` if unknown.
    pub begun: Option<(u64, Kind)>,
}

impl Lost {
    /// Returns a loss of samples of which nothing has arrived.
    #[must_use]
    pub const fn unseen(samples: u64, reason: DropReason) -> Self {
        Self { samples, reason, begun: None }
    }

    /// Returns the kind of the sample, if known.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.begun.map(|(_, kind)| kind)
    }
}
