//! A scaler as commands name it.

use paceline_proto::Form;
use paceline_proto::control::{FormBudget, PublisherSpec};
use paceline_proto::plan::{OutputPlan, SourceKey};

/// The most outputs of a scaler. Further ones of the same form use another scaler.
pub const SCALER_OUTPUTS_MAX: u32 = 64;

/// Identifies a scaler of a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ScalerId {
    /// The source of its samples.
    pub source: SourceKey,
    /// The form that its outputs share: the scaling before them, and with a bit rate also their rate, on which the bytes of a
    /// picture depend.
    pub form: Form,
    /// Distinguishes it from all others of the node.
    pub number: u64,
}

/// The terms of the streams that a scaler serves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ScalerTerms {
    /// The traffic that the encoder must keep; `None` if it is unknown.
    pub budget: Option<FormBudget>,
    /// One of the streams has a contract, or a delay bound at a subscriber of this node.
    pub promised: bool,
}

impl ScalerTerms {
    /// Returns the terms for outputs of one scaler. Best effort and outputs of this node are limited only by a bit rate that
    /// was requested.
    pub(super) fn of<'a>(
        publisher: &PublisherSpec,
        mut plans: impl Iterator<Item = &'a OutputPlan> + Clone,
    ) -> Self {
        let promised = plans.clone().any(OutputPlan::is_promised);
        let contracted = plans.clone().any(|plan| plan.contract.is_some());
        let limited = plans.next().filter(|plan| contracted || plan.form.bitrate.is_some());
        Self { budget: limited.and_then(|plan| publisher.budget(plan.form)), promised }
    }
}
