//! The engine's part in pulls: requests, answers, and the list of nodes with buffers.

use super::super::clock;
use super::super::command::{Holders, PullCommand, Reply};
use super::super::latch::Latecomer;
use super::{Engine, questions};
use crate::status::BufferStatus;
use bytes::Bytes;
use paceline_proto::pull::{Answer, Question};
use paceline_proto::{NodeId, PublisherId, SubscriptionId, Tag};
use paceline_sched::Instant;
use std::collections::BTreeSet;
use std::sync::mpsc::Sender;

impl Engine {
    pub(super) fn handle_pull(&mut self, now: Instant, command: PullCommand) {
        match command {
            PullCommand::Number(reply) => {
                let _ = reply.send((self.control.me(), self.next_pull));
                self.next_pull += 1;
            }
            PullCommand::Holders(tag, reply) => {
                let _ = reply.send(self.holders(&tag));
            }
            PullCommand::Ask { to, question, token, reply } => {
                let request = self.control.ask(now, to, question.encode());
                if let Some(reply) = reply {
                    self.questions.add(request, questions::Question::Pull(token, reply));
                }
            }
            PullCommand::Answer { request, to, answer } => {
                self.control.answer(now, request, to, answer.encode());
            }
        }
    }

    /// Handles another node's request to the buffers of this node, which the policy allows.
    pub(super) fn handle_buffer_question(&mut self, request: u64, from: NodeId, body: Bytes) {
        let question = match Question::decode(body) {
            Ok(question) => question,
            Err(error) => return crate::warn_limited!("invalid pull from {from}: {error}"),
        };
        let now = clock::now();
        question.tag().into_iter().for_each(|tag| self.ordered.note_used(now, tag));
        match question {
            Question::Order { tag, samples } => {
                let ordered = self.order(now, &tag, samples);
                let answer = ordered.map_or_else(Answer::Refused, |()| Answer::Ordered);
                self.control.answer(now, request, from, answer.encode());
            }
            question @ (Question::Find(_) | Question::Fetch(_) | Question::Done { .. }) => {
                self.holder.ask(request, from, question);
            }
        }
    }

    /// Fetches the newest samples of latched publishers that a subscription did not receive before.
    pub(super) fn serve_latecomer(&mut self, id: SubscriptionId, publishers: &[PublisherId]) {
        let Some(sink) = self.sinks.get(&id) else { return };
        let Some(spec) = self.control.subscription(id).filter(|spec| !spec.local) else { return };
        let before = self.heard.get(&id).map_or(&[][..], Vec::as_slice);
        for &publisher in publishers.iter().filter(|it| !before.contains(it)) {
            let Some(latched) = self.control.publisher(publisher).filter(|spec| spec.latch) else {
                continue;
            };
            self.latch.serve(Latecomer {
                sink: sink.clone(),
                tag: latched.tag.clone(),
                publisher,
                form: spec.form,
            });
        }
    }

    fn holders(&self, tag: &Tag) -> Holders {
        let mut holders: Vec<(NodeId, usize)> = Vec::new();
        for (subscription, hops) in self.control.holders(tag) {
            if holders.iter().all(|(node, _)| *node != subscription.node) {
                holders.push((subscription.node, hops));
            }
        }
        let capacities = self.control.nodes().flat_map(|node| node.neighbours.values());
        let thinnest = capacities.filter_map(|hop| hop.capacity).map(|c| c.bits_per_s()).min();
        let nodes = self.control.nodes().map(|node| (node.id, node.name.to_owned())).collect();
        Holders { holders, nodes, thinnest, are_complete: self.is_complete() }
    }

    /// Returns the publishers of the system's private tags, which the status omits.
    pub(super) fn private_publishers(&self) -> BTreeSet<PublisherId> {
        let publishers = self.control.nodes().flat_map(|node| node.publishers.iter());
        publishers.filter(|(_, spec)| spec.tag.is_private()).map(|(id, _)| *id).collect()
    }

    pub(super) fn buffer_rows(&self) -> Vec<BufferStatus> {
        let rows = self.holder.buffers().into_iter().filter_map(|(id, held)| {
            let (samples, bytes) = held.len();
            let (limits, captured) = (held.limits(), held.captured());
            Some(BufferStatus {
                id,
                pattern: self.control.subscription(id)?.pattern.to_string(),
                samples_max: limits.samples() as u64,
                bytes_max: limits.bytes(),
                age_max: limits.age().into(),
                samples,
                bytes,
                oldest_ns: captured.map(|(oldest, _)| oldest),
                newest_ns: captured.map(|(_, newest)| newest),
            })
        });
        rows.collect()
    }
}

/// Forwards the answer of `node` to a pull.
pub(super) fn pull_answered(token: u64, reply: &Sender<Reply>, node: NodeId, body: Bytes) {
    match Answer::decode(body) {
        Ok(answer) => {
            // The caller may have ended the pull.
            let _ = reply.send(Reply { node, token, answer });
        }
        Err(error) => crate::warn_limited!("invalid answer from {node}: {error}"),
    }
}
