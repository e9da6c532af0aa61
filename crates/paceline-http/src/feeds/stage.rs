//! The state of a feed: the answer of its path, and its format.

use bytes::Bytes;
use paceline_edge::TrackFormat;

/// The answer of the path to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum PathAnswer {
    /// There is none yet.
    #[default]
    None,
    /// The contract is in force.
    Granted(String),
    /// The path refuses it.
    Refused {
        /// The reason.
        why: String,
        /// The alternatives, as flags of `paceline sub`.
        offers: Vec<String>,
    },
    /// There is no contract.
    BestEffort {
        /// The reason.
        why: String,
        /// The answer does not change by itself.
        is_last: bool,
    },
}

/// The state of a feed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FeedStage {
    pub(crate) answer: PathAnswer,
    /// The request is one for a contract.
    pub(crate) contract: bool,
    /// The format of its samples, once one has arrived.
    pub(crate) format: Option<TrackFormat>,
    /// A key picture with parameter sets.
    pub(crate) key: Option<Bytes>,
    /// Pictures that others need are shown before one that precedes them.
    pub(crate) reorders: bool,
    /// The reason why a picture cannot be carried.
    pub(crate) unfit: Option<String>,
    /// The reason why it has ended.
    pub(crate) ended: Option<String>,
}

impl FeedStage {
    /// Returns true once the path has answered: with a grant or refusal, or with samples if no contract is requested.
    pub(crate) fn is_answered(&self) -> bool {
        if self.ended.is_some() {
            return true;
        }
        match &self.answer {
            PathAnswer::None => !self.contract && self.format.is_some(),
            PathAnswer::Granted(_) | PathAnswer::Refused { .. } => true,
            PathAnswer::BestEffort { is_last, .. } => *is_last || !self.contract,
        }
    }

    /// Returns true once the format is known, or will not be.
    pub(crate) const fn is_described(&self) -> bool {
        self.format.is_some()
            || self.ended.is_some()
            || self.unfit.is_some()
            || matches!(self.answer, PathAnswer::Refused { .. })
    }
}
