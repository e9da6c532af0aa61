//! The engine's part in pulls: requests, answers, and the list of nodes with buffers.

use super::super::pull::{Holders, PullCommand, Reply};
use super::Engine;
use crate::status::BufferStatus;
use bytes::Bytes;
use paceline_proto::pull::{Answer, Question};
use paceline_proto::{NodeId, PublisherId, Tag};
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;

/// The limit of open pull requests. Beyond it, the oldest is given up.
const OPEN_MAX: usize = 1_024;

/// A pending request: the caller, and the token of its request.
struct Waiting {
    token: u64,
    reply: Sender<Reply>,
}

/// The pulls that started on this node.
#[derive(Default)]
pub(crate) struct Pulls {
    next: u64,
    open: BTreeMap<u64, Waiting>,
}

impl Engine {
    pub(super) fn handle_pull(&mut self, now: Instant, command: PullCommand) {
        match command {
            PullCommand::Number(reply) => {
                let _ = reply.send((self.control.me(), self.pulls.next));
                self.pulls.next += 1;
            }
            PullCommand::Holders(tag, reply) => {
                let _ = reply.send(self.holders(&tag));
            }
            PullCommand::Ask { to, question, token, reply } => {
                let request = self.control.ask(now, to, question.encode());
                if let Some(reply) = reply {
                    if self.pulls.open.len() >= OPEN_MAX {
                        self.pulls.open.pop_first();
                    }
                    self.pulls.open.insert(request, Waiting { token, reply });
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

    /// Returns true if `body` answers a pull request.
    pub(super) fn take_pull_answer(&mut self, request: u64, node: NodeId, body: &Bytes) -> bool {
        let Some(Waiting { token, reply }) = self.pulls.open.remove(&request) else { return false };
        match Answer::decode(body.clone()) {
            Ok(answer) => {
                // The caller may have ended the pull.
                let _ = reply.send(Reply { node, token, answer });
            }
            Err(error) => crate::warn_limited!("invalid answer from {node}: {error}"),
        }
        true
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
