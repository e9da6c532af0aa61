//! Admission requests that reserve nothing.

use super::Engine;
use crate::contract::Quote;
use crate::shell::command::TriedQuote;
use paceline_proto::SubscriptionId;
use paceline_proto::control::{ControlOutput, SubscriptionSpec, TrafficTrial};
use paceline_sched::Instant;
use std::sync::mpsc::Sender;

/// A pending request and the known part of its answer.
pub(crate) struct Asking {
    known: Quote,
    reply: Sender<TriedQuote>,
}

impl Engine {
    /// Asks the paths of all publishers that `spec` matches, for a new subscription or a change of `changed`, which has
    /// no trials. Each answers once, within 500 ms. The answers are complete when `reply` and its clones are dropped.
    pub(super) fn ask_prospects(
        &mut self,
        now: Instant,
        (changed, spec): (Option<SubscriptionId>, &SubscriptionSpec),
        (trials, reply): (&[TrafficTrial], &Sender<TriedQuote>),
    ) {
        let to = changed.map_or(self.control.me(), |id| id.node);
        let mut matching = Vec::new();
        for node in self.control.nodes() {
            for (&publisher, source) in node.publishers {
                if spec.pattern.matches(&source.tag) && !source.tag.is_private() {
                    let (tag, node) = (source.tag.clone(), node.name.to_owned());
                    let complete = false;
                    let (grant, refusal) = (None, None);
                    let estimate = self.control.estimate(to, publisher, spec);
                    let opposite = None;
                    let known = Quote {
                        publisher,
                        tag,
                        node,
                        complete,
                        grant,
                        refusal,
                        opposite,
                        step: None,
                        estimate,
                    };
                    matching.push(known);
                }
            }
        }
        for known in matching {
            let (publisher, spec) = (known.publisher, spec.clone());
            let survey = match changed {
                Some(id) => self.control.survey_change(now, id, publisher, spec),
                None => self.control.survey_trials(now, publisher, spec, trials.to_vec()),
            };
            if let Some(survey) = survey {
                self.asking.insert(survey, Asking { known, reply: reply.clone() });
            }
        }
    }

    /// Passes on the answer to a survey.
    pub(super) fn reply_quote(&mut self, answer: ControlOutput) {
        let ControlOutput::Surveyed { survey, complete, grant, refusal, opposite, fits } = answer
        else {
            return;
        };
        if let Some(Asking { known, reply }) = self.asking.remove(&survey) {
            let opposite = opposite.map(|it| *it);
            // The caller may have stopped waiting.
            let _ = reply.send((Quote { complete, grant, refusal, opposite, ..known }, fits));
        }
    }
}
