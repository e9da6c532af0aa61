//! The questions of this node that other nodes have not answered.

use super::super::command::Reply;
use crate::status::{Feedback, NodePassages};
use paceline_proto::control::ChangeOutcome;
use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::sync::mpsc::Sender;

/// The limit of pending questions of one kind.
const PENDING_MAX: usize = 1_024;
/// The limit of pending questions for traces, and for the time.
const TRACES_MAX: usize = 64;

/// A pending question: its purpose, and the caller that waits for the answer.
pub(super) enum Question {
    /// Whether a subscription's node accepts a change.
    Change(Sender<Option<u64>>),
    /// The outcome of a change.
    Outcome(Sender<ChangeOutcome>),
    /// The feedback of a node's subscriptions: the rows in the order of the request, and the caller.
    Feedback(Vec<Feedback>, Sender<Vec<Feedback>>),
    /// The traces of a node.
    Passages(Sender<NodePassages>),
    /// A pull from a node's buffers: the token of the request, and its caller.
    Pull(u64, Sender<Reply>),
    /// The time of a neighbour: the instant of the raw clock at which the question left.
    Time(u64),
}

impl Question {
    /// Returns the limit of pending questions of this kind.
    const fn most(&self) -> usize {
        match self {
            Self::Passages(_) | Self::Time(_) => TRACES_MAX,
            Self::Change(_) | Self::Outcome(_) | Self::Feedback(..) | Self::Pull(..) => PENDING_MAX,
        }
    }
}

/// The pending questions, by the number of the question.
#[derive(Default)]
pub(super) struct Questions {
    pending: BTreeMap<u64, Question>,
}

impl Questions {
    /// Adds a question. If too many of its kind are pending, the oldest of them is given up.
    pub(super) fn add(&mut self, number: u64, question: Question) {
        let most = question.most();
        if self.pending.len() >= most {
            let kind = discriminant(&question);
            let full = self.of(kind).count() >= most;
            let oldest = self.of(kind).next().filter(|_| full);
            oldest.into_iter().for_each(|oldest| _ = self.pending.remove(&oldest));
        }
        self.pending.insert(number, question);
    }

    /// Takes the question that an answer belongs to.
    pub(super) fn take(&mut self, number: u64) -> Option<Question> {
        self.pending.remove(&number)
    }

    fn of(&self, kind: Discriminant<Question>) -> impl Iterator<Item = u64> {
        let same = self.pending.iter().filter(move |(_, other)| discriminant(*other) == kind);
        same.map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn beyond_the_limit_of_a_kind_its_oldest_question_is_given_up() {
        let mut questions = Questions::default();
        let (outcomes, _answers) = channel();
        questions.add(0, Question::Outcome(outcomes));
        let (traces, answers) = channel();
        for number in 1..=1 + TRACES_MAX as u64 {
            questions.add(number, Question::Passages(traces.clone()));
        }
        assert!(questions.take(1).is_none());
        assert!(matches!(questions.take(0), Some(Question::Outcome(_))));
        let kept = (2..=1 + TRACES_MAX as u64).filter_map(|number| questions.take(number));
        assert_eq!(kept.count(), TRACES_MAX);
        drop(traces);
        assert!(answers.recv().is_err(), "the callers were let go");
    }
}
