//! The reasons why a request for samples is not served.

use super::stage::{FeedStage, PathAnswer};

/// The kind of a reason, which selects the status of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FeedFaultKind {
    /// An option of the request is wrong.
    Request,
    /// Nobody publishes the tag.
    Missing,
    /// The receiver cannot read the samples.
    Format,
    /// A path refuses the contract.
    Refused,
    /// The path does not answer, no sample has arrived, or a limit is reached.
    Unavailable,
}

/// The reason why a request is not served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FeedFault {
    pub(crate) kind: FeedFaultKind,
    /// The reason in words, with a remedy.
    pub(crate) why: String,
    /// The alternatives that the path would grant, as flags of `paceline sub`.
    pub(crate) offers: Vec<String>,
}

impl FeedFault {
    pub(crate) fn new(kind: FeedFaultKind, why: impl Into<String>) -> Self {
        Self { kind, why: why.into(), offers: Vec::new() }
    }

    /// Returns the reason for a tag.
    pub(crate) fn of(tag: &str, kind: FeedFaultKind, why: &str) -> Self {
        Self::new(kind, format!("{tag}: {why}"))
    }

    /// Returns the refusal of a path, if it has refused.
    pub(crate) fn refused(stage: &FeedStage) -> Option<Self> {
        let PathAnswer::Refused { why, offers } = &stage.answer else { return None };
        let (why, offers) = (why.clone(), offers.clone());
        Some(Self { kind: FeedFaultKind::Refused, why, offers })
    }
}

impl FeedStage {
    /// Checks that the path has not refused the request, and has answered one for a contract.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn check(&self) -> Result<(), FeedFault> {
        if let Some(why) = &self.ended {
            return Err(FeedFault::new(FeedFaultKind::Missing, why));
        }
        if let Some(refusal) = FeedFault::refused(self) {
            return Err(refusal);
        }
        if self.contract && self.answer == PathAnswer::None {
            let why = "the path did not answer within 2.5 s; try again";
            return Err(FeedFault::new(FeedFaultKind::Unavailable, why));
        }
        Ok(())
    }

    /// Returns the answer of the path in words.
    pub(crate) fn answer_text(&self) -> String {
        match &self.answer {
            PathAnswer::Granted(text) => text.clone(),
            PathAnswer::BestEffort { why, .. } => format!("best effort: {why}"),
            PathAnswer::None | PathAnswer::Refused { .. } => "best effort".to_owned(),
        }
    }
}
