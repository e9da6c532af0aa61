//! Admission requests that reserve nothing.

use super::Engine;
use crate::contract::Quote;
use crate::shell::command::TriedQuote;
use paceline_proto::control::{ControlOutput, SubscriptionSpec, TrafficTrial};
use paceline_sched::Instant;
use std::sync::mpsc::Sender;

/// A pending request and the known part of its answer.
pub(crate) struct Asking {
    known: Quote,
    reply: Sender<TriedQuote>,
}

impl Engine {
    /// Asks the paths of all publishers that `spec` matches. Each answers once, within 500 ms. The
    /// answers are complete when `reply` and its clones are dropped.
    pub(super) fn ask_prospects(
        &mut self,
        now: Instant,
        spec: &SubscriptionSpec,
        (trials, reply): (&[TrafficTrial], &Sender<TriedQuote>),
    ) {
        let mut matching = Vec::new();
        for node in self.control.nodes() {
            for (&publisher, source) in node.publishers {
                if spec.pattern.matches(&source.tag) && !source.tag.is_private() {
                    let (tag, node) = (source.tag.clone(), node.name.to_owned());
                    let complete = false;
                    let (grant, refusal) = (None, None);
                    let estimate = self.control.estimate(publisher, spec);
                    let opposite = None;
                    let known = Quote {
                        publisher,
                        tag,
                        node,
                        complete,
                        grant,
                        refusal,
                        opposite,
                        estimate,
                    };
                    matching.push(known);
                }
            }
        }
        for known in matching {
            if let Some(survey) =
                self.control.survey_trials(now, known.publisher, spec.clone(), trials.to_vec())
            {
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
