//! Asking a node for something, over as many hops as it takes, and who is to be asked.
//!
//! What is asked and answered are bytes to `Control`; a [`Topic`] says who understands a question.

use super::graph::{HOPS_MAX, Tree};
use super::message::{ANSWER_BYTES_MAX, Errand, Message, QUESTION_BYTES_MAX};
use super::{Control, Output};
use crate::ids::{NodeId, SubscriptionId};
use crate::tag::Tag;
use bytes::Bytes;
use paceline_sched::Instant;
use std::collections::BTreeMap;

/// How many questions may be open; the oldest is given up for a new one.
const OPEN_MAX: usize = 1_024;

#[expect(clippy::cast_possible_truncation, reason = "16")]
const TTL: u8 = HOPS_MAX as u8;

/// What a question is about: its body's first byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Topic {
    /// The node's status; nothing follows.
    Status,
    /// What pull buffers hold: a [`crate::pull::Question`] follows.
    Pull,
    /// Whether this node's link of a path has room for a stream: [`Control`] answers it by itself.
    Room,
    /// A subscription of the node is to ask for something else: [`Control`] does it by itself.
    Change,
    /// What subscriptions of the node get: their numbers follow.
    Feedback,
    /// What the sender's link counted of streams to the node as more than was granted: [`Control`] takes it, and nobody
    /// answers.
    Excess,
    /// That a subscription of the node is refused, where there is no room for that in the sender's record: [`Control`] takes
    /// it, and nobody answers.
    Refused,
    /// When samples of a publisher passed the node's links: the publisher and the first number follow.
    Passages,
    /// What has become of a change of a subscription of the node: [`Control`] answers it by itself.
    Outcome,
}

impl Topic {
    /// The byte.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Status => 0,
            Self::Pull => 1,
            Self::Room => 2,
            Self::Change => 3,
            Self::Feedback => 4,
            Self::Excess => 5,
            Self::Refused => 6,
            Self::Passages => 7,
            Self::Outcome => 8,
        }
    }

    /// The topic of a question and what follows; `None` for none that this node knows.
    #[must_use]
    pub fn split(mut question: Bytes) -> Option<(Self, Bytes)> {
        let topic = match question.first()? {
            0 => Self::Status,
            1 => Self::Pull,
            2 => Self::Room,
            3 => Self::Change,
            4 => Self::Feedback,
            5 => Self::Excess,
            6 => Self::Refused,
            7 => Self::Passages,
            8 => Self::Outcome,
            _ => return None,
        };
        Some((topic, question.split_off(1)))
    }
}

/// This node's own questions.
#[derive(Debug, Default)]
pub(super) struct State {
    next: u64,
    open: BTreeMap<u64, NodeId>,
}

impl Control {
    /// Asks `node`, which may be this one. [`Output::Answered`] with the number that this returns
    /// brings the answer; nothing comes if the node can't be reached or does not answer: the caller
    /// has a time limit of its own. A question of more than [`QUESTION_BYTES_MAX`] bytes is not sent
    /// but counted in [`Self::rejected`].
    pub fn ask(&mut self, now: Instant, node: NodeId, body: Bytes) -> u64 {
        self.advance(now);
        let request = self.next_question();
        if body.len() > QUESTION_BYTES_MAX {
            self.rejected += 1;
            return request;
        }
        if self.questions.open.len() >= OPEN_MAX {
            self.questions.open.pop_first();
        }
        self.questions.open.insert(request, node);
        self.receive_question(Errand { request, from: self.me, to: node, ttl: TTL }, body);
        request
    }

    /// Says something to `node`, which does not answer.
    pub(super) fn tell(&mut self, node: NodeId, body: Bytes) {
        let request = self.next_question();
        self.receive_question(Errand { request, from: self.me, to: node, ttl: TTL }, body);
    }

    const fn next_question(&mut self) -> u64 {
        self.questions.next += 1;
        self.questions.next - 1
    }

    /// The answer to [`Output::Asked`]. More than [`ANSWER_BYTES_MAX`] bytes are not sent but
    /// counted in [`Self::rejected`].
    pub fn answer(&mut self, now: Instant, request: u64, from: NodeId, body: Bytes) {
        self.advance(now);
        if body.len() > ANSWER_BYTES_MAX {
            self.rejected += 1;
            return;
        }
        self.receive_answer(Errand { request, from: self.me, to: from, ttl: TTL }, body);
    }

    /// The subscriptions that hold `tag` in a pull buffer, on nodes that can be reached, and how many
    /// hops each is away: the nearest first, equally near ones in the order of their ids.
    #[must_use]
    pub fn holders(&self, tag: &Tag) -> Vec<(SubscriptionId, usize)> {
        let tree = Tree::new(&self.registry, self.me);
        let mut holders = Vec::new();
        for (node, record) in self.registry.reached(&tree) {
            let Some(path) = tree.path(node) else { continue };
            let holds = record.subscriptions.iter();
            let holds = holds.filter(|(_, spec)| spec.holds && spec.pattern.matches(tag));
            holders.extend(holds.map(|(&id, _)| (id, path.len() - 1)));
        }
        holders.sort_unstable_by_key(|&(id, hops)| (hops, id));
        holders
    }

    pub(super) fn receive_question(&mut self, errand: Errand, body: Bytes) {
        if errand.to == self.me {
            let Errand { request, from, .. } = errand;
            match Topic::split(body.clone()) {
                Some((Topic::Room, query)) => self.answer_room(request, from, query),
                Some((Topic::Change, change)) => self.answer_change(request, from, change),
                Some((Topic::Outcome, of)) => self.answer_outcome(request, from, of),
                Some((Topic::Excess, counted)) => self.hear_excess(from, counted),
                Some((Topic::Refused, refusal)) => self.hear_refused(from, refusal),
                Some((Topic::Status | Topic::Pull | Topic::Feedback | Topic::Passages, _))
                | None => self.outputs.push_back(Output::Asked { request, from, body }),
            }
        } else if let Some((hop, errand)) = self.onward(errand) {
            self.send(hop, Message::Question(errand, body).encode());
        }
    }

    pub(super) fn receive_answer(&mut self, errand: Errand, body: Bytes) {
        let Errand { request, from: node, to, .. } = errand;
        if to != self.me {
            if let Some((hop, errand)) = self.onward(errand) {
                self.send(hop, Message::Answer(errand, body).encode());
            }
        } else if self.questions.open.get(&request) == Some(&node) {
            self.questions.open.remove(&request);
            if self.surveys.asked(request) {
                return self.hear_room(request, body);
            }
            self.outputs.push_back(Output::Answered { request, node, body });
        }
    }

    /// The next hop of an errand; `None` if there is none or it has been on its way for too long.
    fn onward(&self, errand: Errand) -> Option<(NodeId, Errand)> {
        let ttl = errand.ttl.checked_sub(1)?;
        let hop = Tree::new(&self.registry, self.me).next_hop(errand.to)?;
        Some((hop, Errand { ttl, ..errand }))
    }
}
