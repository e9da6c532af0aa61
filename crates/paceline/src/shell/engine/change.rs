//! Subscriptions that ask for something else, here or at another node.

use super::Engine;
use crate::change::SubscriptionView;
use crate::subscriber::SubscriberEvent;
use bytes::Bytes;
use paceline_proto::SubscriptionId;
use paceline_proto::control::{ChangeAnswer, SubscriptionSpec};
use paceline_sched::Instant;
use std::sync::mpsc::Sender;

/// How many may wait for an answer; the one that waits longest is given up for a new one.
const WAITING_MAX: usize = 1_024;

impl Engine {
    pub(super) fn tell_subscriptions(&self, reply: &Sender<Vec<SubscriptionView>>) {
        let mut all = Vec::new();
        for node in self.control.nodes() {
            for (&id, spec) in node.subscriptions {
                if !spec.pattern.is_private() {
                    all.push(SubscriptionView::new(id, node.name, spec));
                }
            }
        }
        // Whoever asked may not wait any more.
        let _ = reply.send(all);
    }

    pub(super) fn ask_change(
        &mut self,
        now: Instant,
        id: SubscriptionId,
        spec: &SubscriptionSpec,
        reply: Sender<bool>,
    ) {
        let question = self.control.change_subscription(now, id, spec);
        if self.changing.len() >= WAITING_MAX {
            self.changing.pop_first();
        }
        self.changing.insert(question, reply);
    }

    /// True if it was the answer to a change.
    pub(super) fn take_change(&mut self, question: u64, body: &Bytes) -> bool {
        let Some(reply) = self.changing.remove(&question) else { return false };
        match ChangeAnswer::decode(body.clone()) {
            Ok(answer) => {
                let _ = reply.send(answer == ChangeAnswer::Done);
            }
            Err(error) => tracing::debug!("the answer to a change was not understood: {error}"),
        }
        true
    }

    pub(super) fn changed(&self, id: SubscriptionId, spec: SubscriptionSpec) {
        if let Some(sink) = self.sinks.get(&id) {
            sink.change(&spec);
            let SubscriptionSpec { form, within, loss, .. } = spec;
            sink.tell(SubscriberEvent::Changed { form, within: within.map(Into::into), loss });
        }
    }
}
