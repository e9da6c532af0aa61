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

/// A scaler of a form.
#[derive(Clone, Debug)]
struct Scaler {
    id: ScalerId,
    /// The number of its outputs.
    outputs: u32,
    /// The number of outputs that it ever had.
    joined: u32,
}

/// The scalers of one form. New outputs use the last of them.
#[derive(Clone, Debug, Default)]
struct FormScalers {
    scalers: Vec<Scaler>,
    terms: ScalerTerms,
}

/// The scalers of a source, by the form that outputs share.
#[derive(Clone, Debug, Default)]
pub(super) struct Scalers(BTreeMap<Form, FormScalers>);

impl Scalers {
    pub(super) fn ids(&self) -> impl Iterator<Item = ScalerId> + '_ {
        self.0.values().flat_map(|form| form.scalers.iter().map(|scaler| scaler.id))
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
        if shared.scalers.last().is_none_or(|last| last.joined >= SCALER_OUTPUTS_MAX) {
            let id = ScalerId { source, form, number: *next };
            *next += 1;
            let (publisher, scale) = (publisher.clone(), plan.at_port());
            commands.push(PortCommand::OpenScaler { scaler: id, publisher, scale });
            if shared.terms != ScalerTerms::default() {
                commands.push(PortCommand::SetTerms(id, shared.terms));
            }
            shared.scalers.push(Scaler { id, outputs: 0, joined: 0 });
        }
        let last = shared.scalers.last_mut()?;
        last.outputs += 1;
        last.joined += 1;
        Some((last.id, last.joined - 1))
    }

    /// Notes that an output has left its scaler.
    pub(super) fn leave(&mut self, id: ScalerId) {
        let shared = self.0.get_mut(&id.form).into_iter().flat_map(|form| &mut form.scalers);
        shared.filter(|scaler| scaler.id == id).for_each(|scaler| scaler.outputs -= 1);
    }

    /// Removes and returns the scalers without outputs.
    pub(super) fn take_unused(&mut self) -> Vec<ScalerId> {
        let mut unused = Vec::new();
        self.0.retain(|_, form| {
            unused.extend(form.scalers.extract_if(.., |it| it.outputs == 0).map(|it| it.id));
            !form.scalers.is_empty()
        });
        unused
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
                commands.extend(all.map(|scaler| PortCommand::SetTerms(scaler.id, terms)));
            }
        }
    }
}
