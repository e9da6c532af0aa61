//! Changes of running subscriptions, on this node or another.

use super::Engine;
use super::questions::Question;
use crate::event::{PublisherEvent, SubscriberEvent};
use crate::status::SubscriptionView;
use bytes::Bytes;
use paceline_proto::SubscriptionId;
use paceline_proto::control::{
    ChangeAnswer, ChangeOutcome, ControlOutput, Refusal, SubscriptionSpec,
};
use paceline_sched::Instant;
use std::sync::mpsc::Sender;

/// Forwards the answer to a change.
pub(super) fn change_answered(reply: &Sender<Option<u64>>, body: Bytes) {
    // The caller may have stopped waiting, here and below.
    match ChangeAnswer::decode(body) {
        Ok(ChangeAnswer::Done { revision }) => _ = reply.send(Some(revision)),
        Ok(ChangeAnswer::Unknown | ChangeAnswer::Denied(_)) => _ = reply.send(None),
        Err(error) => tracing::debug!("invalid answer to a change: {error}"),
    }
}

/// Forwards the outcome of a change.
pub(super) fn outcome_answered(reply: &Sender<ChangeOutcome>, body: Bytes) {
    match ChangeOutcome::decode(body) {
        Ok(outcome) => _ = reply.send(outcome),
        Err(error) => tracing::debug!("invalid outcome of a change: {error}"),
    }
}

impl Engine {
    pub(super) fn reply_subscriptions(&self, reply: &Sender<Vec<SubscriptionView>>) {
        let mut all = Vec::new();
        for node in self.control.nodes() {
            for (&id, spec) in node.subscriptions {
                if !spec.pattern.is_private() {
                    all.push(SubscriptionView::new(id, node.name, spec));
                }
            }
        }
        // The caller may have stopped waiting.
        let _ = reply.send(all);
    }

    pub(super) fn ask_change(
        &mut self,
        now: Instant,
        id: SubscriptionId,
        spec: &SubscriptionSpec,
        reply: Sender<Option<u64>>,
    ) {
        let question = self.control.change_subscription(now, id, spec);
        self.questions.add(question, Question::Change(reply));
    }

    pub(super) fn ask_outcome(
        &mut self,
        now: Instant,
        id: SubscriptionId,
        revision: u64,
        reply: Sender<ChangeOutcome>,
    ) {
        let question = self.control.ask_outcome(now, id, revision);
        self.questions.add(question, Question::Outcome(reply));
    }

    /// Notifies a subscription of this node that its request has changed. The old grant stays in
    /// force until the paths have answered.
    pub(super) fn changed(&self, output: ControlOutput) {
        let ControlOutput::Changed { subscription: id, spec, adaptation } = output else { return };
        if let Some(sink) = self.sinks.get(&id) {
            sink.delivery().relax(&spec);
            let SubscriptionSpec { form, within, loss, revision, .. } = spec;
            let within = within.map(Into::into);
            sink.notify(match adaptation {
                Some(adaptation) => {
                    let adaptation = *adaptation;
                    SubscriberEvent::Adapted { revision, form, within, loss, adaptation }
                }
                None => SubscriberEvent::Changed { revision, form, within, loss },
            });
        }
    }

    /// Warns the ends of a contract on this node that a link will soon no longer carry it.
    pub(super) fn warned(&self, output: ControlOutput) {
        let ControlOutput::Warned { subscription, publisher, warning } = output else { return };
        let event = SubscriberEvent::Warned(publisher, warning.clone());
        let to_publisher = PublisherEvent::Warned(subscription, warning);
        self.notify_ends((subscription, publisher), event, to_publisher);
    }

    /// Applies a request to which all paths have answered.
    pub(super) fn in_force(&self, id: SubscriptionId, spec: &SubscriptionSpec) {
        if let Some(sink) = self.sinks.get(&id) {
            sink.delivery().change(spec);
        }
    }

    /// Restores the previous request after a refusal.
    pub(super) fn change_refused(
        &self,
        id: SubscriptionId,
        refusals: Vec<Refusal>,
        spec: SubscriptionSpec,
    ) {
        if let Some(sink) = self.sinks.get(&id) {
            sink.delivery().change(&spec);
            let SubscriptionSpec { form, within, loss, .. } = spec;
            let within = within.map(Into::into);
            sink.notify(SubscriberEvent::ChangeRefused { refusals, form, within, loss });
        }
    }
}
