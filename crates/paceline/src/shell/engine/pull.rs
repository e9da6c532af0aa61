//! The engine's part in pulls: requests, answers, and the list of nodes with buffers.

use super::super::command::{Holders, PullCommand, Reply};
use super::{Engine, questions};
use crate::status::BufferStatus;
use bytes::Bytes;
use paceline_proto::pull::{Answer, Question};
use paceline_proto::{NodeId, PublisherId, Tag};
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

    /// Handles another node's request to the buffers of this node.
    pub(super) fn asked_of_buffers(&mut self, request: u64, from: NodeId, body: Bytes) {
        match Question::decode(body) {
            Ok(question) => self.holder.ask(request, from, question),
            Err(error) => crate::warn_limited!("invalid pull from {from}: {error}"),
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
        Holders { holders, nodes, thinnest }
    }

    /// Returns the publishers of the system's private tags, which the status omits.
    pub(super) fn private_publishers(&self) -> BTreeSet<PublisherId> {
        let publishers = self.control.nodes().flat_map(|node| node.publishers.iter());
        publishers.filter(|(_, spec)| spec.tag.is_private()).map(|(id, _)| *id).collect()
    }

    pub(super) fn buffer_rows(&self) -> Vec<BufferStatus> {
        let rows = self.holder.buffers().into_iter().filter_map(|(id, held)| {
            let (samples, bytes) = held.len();
            Some(BufferStatus {
                id,
                pattern: self.control.subscription(id)?.pattern.to_string(),
                limits: *held.limits(),
                samples,
                bytes,
                captured: held.captured(),
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
