//! The answers of other nodes to this one, and its answers to their questions.

use super::Engine;
use super::change::{change_answered, outcome_answered};
use super::feedback::feedback_answered;
use super::passages::passages_answered;
use super::pull::pull_answered;
use super::questions::Question;
use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_proto::control::Topic;
use paceline_sched::Instant;

impl Engine {
    /// Forwards another node's answer to the caller that waits for it.
    pub(super) fn answered(&mut self, request: u64, node: NodeId, body: Bytes) {
        match self.questions.take(request) {
            Some(Question::Change(reply)) => change_answered(&reply, body),
            Some(Question::Outcome(reply)) => outcome_answered(&reply, body),
            Some(Question::Feedback(rows, reply)) => {
                feedback_answered(rows, &reply, body);
            }
            Some(Question::Passages(reply)) => passages_answered(&reply, node, body),
            Some(Question::Time(sent)) => {
                self.neighbours.iter().for_each(|port| port.answered(node, sent, &body));
            }
            Some(Question::Pull(token, reply)) => pull_answered(token, &reply, node, body),
            None => self.take_status(request, node, body),
        }
    }

    /// Answers a request of another node.
    pub(super) fn handle_question(
        &mut self,
        now: Instant,
        request: u64,
        from: NodeId,
        body: Bytes,
    ) {
        let answer = match Topic::split(body) {
            Some((Topic::Status, rest)) if rest.is_empty() => self.own_status().to_wire().into(),
            Some((Topic::Pull, body)) => {
                return self.handle_buffer_question(request, from, body);
            }
            Some((Topic::Feedback, body)) => return self.send_feedback(now, request, from, body),
            Some((Topic::Passages, body)) => return self.send_passages(now, request, from, body),
            Some((Topic::Time, body)) => match self.own_time(from, &body) {
                Some(answer) => answer,
                None => return,
            },
            Some((
                Topic::Status
                | Topic::Room
                | Topic::Change
                | Topic::Excess
                | Topic::Refused
                | Topic::Relax
                | Topic::Warning
                | Topic::Outcome,
                _,
            ))
            | None => {
                tracing::debug!("invalid query from {from}");
                return;
            }
        };
        self.control.answer(now, request, from, answer);
    }
}
