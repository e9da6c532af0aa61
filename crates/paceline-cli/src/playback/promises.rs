//! The grants and refusals of a publisher's subscriptions.

use paceline::PublisherEvent;
use paceline::contract::Form;
use paceline::status::{Excess, NodeId, SubscriptionId};
use std::collections::BTreeMap;

/// The subscriptions with an answer: true if granted, false if refused.
#[derive(Debug, Default)]
pub(crate) struct Promises(BTreeMap<SubscriptionId, bool>);

impl Promises {
    /// Records an event, and returns a description in words with the node of the subscription; `name` returns the name
    /// of that node.
    pub(super) fn take(
        &mut self,
        event: PublisherEvent,
        name: impl Fn(SubscriptionId) -> String,
    ) -> (Option<NodeId>, String) {
        let node = match &event {
            PublisherEvent::Granted(grant) => Some(grant.subscription.node),
            PublisherEvent::Refused(refusal) => Some(refusal.subscription.node),
            PublisherEvent::Warned(subscription, _) => Some(subscription.node),
            PublisherEvent::Withdrawn(subscription) => Some(subscription.node),
            // Also for an event of a later version.
            PublisherEvent::Excess(_) | _ => None,
        };
        let text = match event {
            PublisherEvent::Granted(grant) => {
                self.0.insert(grant.subscription, true);
                let form = match grant.form {
                    Form::FULL => String::new(),
                    form => format!("{form}, "),
                };
                format!("granted: {}: {form}{grant}", name(grant.subscription))
            }
            PublisherEvent::Refused(refusal) => {
                self.0.insert(refusal.subscription, false);
                format!("refused: {}: {refusal}", name(refusal.subscription))
            }
            PublisherEvent::Warned(subscription, warning) => {
                format!("{}: {warning}", name(subscription))
            }
            PublisherEvent::Excess(Excess { early, long }) => format!(
                "more than declared: {early} samples arrived too early, {long} were too large; \
                 they are sent after all contracts"
            ),
            PublisherEvent::Withdrawn(subscription) => {
                let what = match self.0.remove(&subscription) {
                    Some(false) => "the refused request has ended",
                    Some(true) | None => "the contract no longer applies",
                };
                format!("ended: {}: {what}", name(subscription))
            }
            // An event of a later version.
            other => format!("{other:?}"),
        };
        (node, text)
    }

    pub(super) fn granted(&self) -> usize {
        self.0.values().filter(|granted| **granted).count()
    }

    pub(super) fn refused(&self) -> usize {
        self.0.len() - self.granted()
    }
}
