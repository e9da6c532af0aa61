//! The scalers of a source.

use super::PortCommand;
use paceline_proto::Form;
use paceline_proto::control::{FormBudget, PublisherSpec};
use paceline_proto::plan::{OutputPlan, SourceKey};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    fn of<'a>(
        publisher: &PublisherSpec,
        mut plans: impl Iterator<Item = &'a OutputPlan> + Clone,
    ) -> Self {
        let promised = plans.clone().any(OutputPlan::is_promised);
        let contracted = plans.clone().any(|plan| plan.contract.is_some());
        let limited = plans.next().filter(|plan| contracted || plan.form.bitrate.is_some());
        Self { budget: limited.and_then(|plan| publisher.budget(plan.form)), promised }
    }
}

/// Returns the form by which outputs share a scaler; `None` for an output without one.
fn shared_form(plan: &OutputPlan) -> Option<Form> {
    let at_port = plan.at_port();
    let form = match at_port.bitrate {
        Some(_) => Form { rate: plan.form.rate, ..at_port },
        None => at_port,
    };
    (at_port != Form::FULL).then_some(form)
}

/// The scalers of one form.
#[derive(Clone, Debug, Default)]
struct FormScalers {
    scalers: Vec<ScalerId>,
    /// The number of outputs that the last of them ever had.
    outputs: u32,
    terms: ScalerTerms,
}

/// The scalers of a source, by the form that outputs share.
#[derive(Clone, Debug, Default)]
pub(super) struct Scalers(BTreeMap<Form, FormScalers>);

impl Scalers {
    pub(super) fn ids(&self) -> impl Iterator<Item = ScalerId> + '_ {
        self.0.values().flat_map(|form| form.scalers.iter().copied())
    }

    /// Removes and returns the scalers that no plan uses.
    pub(super) fn take_unwanted(&mut self, plans: &[OutputPlan]) -> Vec<ScalerId> {
        let wanted = |form: &Form| plans.iter().any(|plan| shared_form(plan) == Some(*form));
        let gone = self.0.extract_if(.., |form, _| !wanted(form));
        gone.flat_map(|(_, form)| form.scalers).collect()
    }

    /// Returns the scaler of a new output and the output's number there, if it needs one.
    pub(super) fn join(
        &mut self,
        (source, publisher): (SourceKey, &Arc<PublisherSpec>),
        plan: &OutputPlan,
        (next, commands): (&mut u64, &mut Vec<PortCommand>),
    ) -> Option<(ScalerId, u32)> {
        let form = shared_form(plan)?;
        let shared = self.0.entry(form).or_default();
        let last = match shared.scalers.last() {
            Some(last) if shared.outputs < SCALER_OUTPUTS_MAX => *last,
            _ => {
                let scaler = ScalerId { source, form, number: *next };
                *next += 1;
                let (publisher, scale) = (publisher.clone(), plan.at_port());
                commands.push(PortCommand::OpenScaler { scaler, publisher, scale });
                // Like a new one: its terms follow.
                if shared.terms != ScalerTerms::default() {
                    commands.push(PortCommand::SetTerms(scaler, shared.terms));
                }
                shared.scalers.push(scaler);
                shared.outputs = 0;
                scaler
            }
        };
        shared.outputs += 1;
        Some((last, shared.outputs - 1))
    }

    /// Sets the terms of all scalers for the outputs `plans`.
    pub(super) fn set_terms(
        &mut self,
        publisher: &PublisherSpec,
        plans: &[OutputPlan],
        commands: &mut Vec<PortCommand>,
    ) {
        for (form, shared) in &mut self.0 {
            let served = plans.iter().filter(|plan| shared_form(plan) == Some(*form));
            let terms = ScalerTerms::of(publisher, served);
            if std::mem::replace(&mut shared.terms, terms) != terms {
                let all = shared.scalers.iter();
                commands.extend(all.map(|scaler| PortCommand::SetTerms(*scaler, terms)));
            }
        }
    }
}
