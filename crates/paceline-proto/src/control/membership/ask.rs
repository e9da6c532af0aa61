//! Questions to other nodes over any number of hops, and the discovery of pull buffers.
//!
//! `Control` treats questions and answers as opaque bytes, except for the [`Topic`] that selects the handler.

use super::access::Asker;
use super::graph::Tree;
use super::message::{ANSWER_BYTES_MAX, Errand, Message, QUESTION_BYTES_MAX};
use crate::control::data::ids::HOPS_MAX;
use crate::control::{Control, ControlOutput};
use crate::ids::{NodeId, SubscriptionId};
use crate::tag::Tag;
use crate::topic::Topic;
use bytes::Bytes;
use paceline_sched::Instant;
use std::collections::BTreeMap;

/// The largest number of open questions; a new one replaces the oldest.
const OPEN_MAX: usize = 1_024;

#[expect(clippy::cast_possible_truncation, reason = "16")]
pub(in crate::control) const TTL: u8 = HOPS_MAX as u8;

/// The open questions of this node.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    next: u64,
    open: BTreeMap<u64, NodeId>,
}

impl Control {
    /// Sends a question to `node`, which may be this one, and returns its number.
    ///
    /// [`ControlOutput::Answered`] with that number carries the answer. There is no output if the node is
    /// unreachable or does not answer, so the caller needs its own timeout. A question over
    /// [`QUESTION_BYTES_MAX`] bytes is not sent, only counted in [`Self::rejected`].
    pub fn ask(&mut self, now: Instant, node: NodeId, body: Bytes) -> u64 {
        self.advance(now);
        let request = self.next_question();
        if body.len() > QUESTION_BYTES_MAX {
            self.rejected += 1;
            return request;
        }
        if self.membership.questions.open.len() >= OPEN_MAX {
            self.membership.questions.open.pop_first();
        }
        self.membership.questions.open.insert(request, node);
        self.receive_question(self.me, self.errand(request, node), body);
        request
    }

    /// Sends a message to `node` that is not answered.
    pub(in crate::control) fn notify(&mut self, node: NodeId, body: Bytes) {
        let request = self.next_question();
        self.receive_question(self.me, self.errand(request, node), body);
    }

    const fn errand(&self, request: u64, to: NodeId) -> Errand {
        Errand { request, from: self.me, to, ttl: TTL, who: None }
    }

    const fn next_question(&mut self) -> u64 {
        self.membership.questions.next += 1;
        self.membership.questions.next - 1
    }

    /// Sends the answer to [`ControlOutput::Asked`]. An answer over [`ANSWER_BYTES_MAX`] bytes is not sent,
    /// only counted in [`Self::rejected`].
    pub fn answer(&mut self, now: Instant, request: u64, from: NodeId, body: Bytes) {
        self.advance(now);
        if body.len() > ANSWER_BYTES_MAX {
            self.rejected += 1;
            return;
        }
        self.receive_answer(self.errand(request, from), body);
    }

    /// Returns the subscriptions that buffer `tag` for pulls on reachable nodes, with their distances in
    /// hops. The nearest are first; equally near ones are ordered by id.
    #[must_use]
    pub fn holders(&self, tag: &Tag) -> Vec<(SubscriptionId, usize)> {
        let tree = Tree::new(&self.membership.registry, self.me);
        let mut holders = Vec::new();
        for (node, record) in tree.records(&self.membership.registry) {
            let Some(path) = tree.path(node) else { continue };
            let holds = record.subscriptions.iter();
            let holds = holds.filter(|(_, spec)| spec.holds && spec.pattern.matches(tag));
            holders.extend(holds.map(|(&id, _)| (id, path.len() - 1)));
        }
        holders.sort_unstable_by_key(|&(id, hops)| (hops, id));
        holders
    }

    /// Handles a question that the neighbour `via` delivered, or this node itself asks.
    pub(in crate::control) fn receive_question(
        &mut self,
        via: NodeId,
        errand: Errand,
        body: Bytes,
    ) {
        let asker = Asker { via, node: errand.from, who: errand.who.clone() };
        if !self.admits_question(&asker, &errand, &body) {
            return;
        }
        if errand.to == self.me {
            let Errand { request, from, .. } = errand;
            match Topic::split(body.clone()) {
                Some((Topic::Room, query)) => self.answer_room(request, from, query),
                Some((Topic::Change, change)) => self.answer_change(request, from, change),
                Some((Topic::Outcome, of)) => self.answer_outcome(request, from, of),
                Some((Topic::Excess, counted)) => self.hear_excess(from, counted),
                Some((Topic::Refused, refusal)) => self.hear_refused(from, refusal),
                Some((Topic::Relax, step)) => self.hear_relax(from, step),
                Some((Topic::Warning, body)) => self.hear_warning(from, body),
                Some((
                    Topic::Status | Topic::Pull | Topic::Feedback | Topic::Passages | Topic::Time,
                    _,
                ))
                | None => self.outputs.push_back(ControlOutput::Asked { request, from, body }),
            }
        } else if let Some((hop, errand)) = self.onward(errand) {
            let who = self.membership.access.identity(&self.membership.registry, asker);
            self.send(hop, Message::Question(Errand { who, ..errand }, body).encode());
        }
    }

    pub(in crate::control) fn receive_answer(&mut self, errand: Errand, body: Bytes) {
        let Errand { request, from: node, to, .. } = errand;
        if to != self.me {
            if let Some((hop, errand)) = self.onward(errand) {
                self.send(hop, Message::Answer(errand, body).encode());
            }
        } else if self.membership.questions.open.get(&request) == Some(&node) {
            self.membership.questions.open.remove(&request);
            if self.contracts.surveys.has_question(request) {
                return self.hear_room(request, body);
            }
            self.outputs.push_back(ControlOutput::Answered { request, node, body });
        }
    }

    /// Returns the next hop of an errand; `None` if there is none or its hop limit is reached.
    fn onward(&self, errand: Errand) -> Option<(NodeId, Errand)> {
        let ttl = errand.ttl.checked_sub(1)?;
        let hop = Tree::new(&self.membership.registry, self.me).next_hop(errand.to)?;
        Some((hop, Errand { ttl, ..errand }))
    }
}
