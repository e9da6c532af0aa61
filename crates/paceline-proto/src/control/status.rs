//! Asking a node for its status, over as many hops as it takes.

use super::graph::{HOPS_MAX, Tree};
use super::message::{Errand, Message, STATUS_BYTES_MAX};
use super::{Control, Output};
use crate::ids::NodeId;
use bytes::Bytes;
use paceline_sched::Instant;
use std::collections::BTreeMap;

/// How many requests may be open; the oldest is given up for a new one.
const OPEN_MAX: usize = 1_024;

#[expect(clippy::cast_possible_truncation, reason = "16")]
const TTL: u8 = HOPS_MAX as u8;

/// This node's own requests.
#[derive(Debug, Default)]
pub(super) struct State {
    next: u64,
    open: BTreeMap<u64, NodeId>,
}

impl Control {
    /// Asks `node`, which may be this one, for its status. [`Output::Status`] with the number that
    /// this returns brings the answer; nothing comes if the node can't be reached: the caller has a
    /// time limit of its own.
    pub fn request_status(&mut self, now: Instant, node: NodeId) -> u64 {
        self.advance(now);
        let request = self.status.next;
        self.status.next += 1;
        if self.status.open.len() >= OPEN_MAX {
            self.status.open.pop_first();
        }
        self.status.open.insert(request, node);
        self.receive_status_request(Errand { request, from: self.me, to: node, ttl: TTL });
        request
    }

    /// The answer to [`Output::StatusWanted`]. More than [`STATUS_BYTES_MAX`] bytes are not sent
    /// but counted in [`Self::rejected`].
    pub fn handle_status(&mut self, now: Instant, request: u64, from: NodeId, rows: Bytes) {
        self.advance(now);
        if rows.len() > STATUS_BYTES_MAX {
            self.rejected += 1;
            return;
        }
        self.receive_status_reply(Errand { request, from: self.me, to: from, ttl: TTL }, rows);
    }

    pub(super) fn receive_status_request(&mut self, errand: Errand) {
        if errand.to == self.me {
            let Errand { request, from, .. } = errand;
            self.outputs.push_back(Output::StatusWanted { request, from });
        } else if let Some((hop, errand)) = self.onward(errand) {
            self.send(hop, Message::StatusRequest(errand).encode());
        }
    }

    pub(super) fn receive_status_reply(&mut self, errand: Errand, rows: Bytes) {
        let Errand { request, from: node, to, .. } = errand;
        if to != self.me {
            if let Some((hop, errand)) = self.onward(errand) {
                self.send(hop, Message::StatusReply(errand, rows).encode());
            }
        } else if self.status.open.get(&request) == Some(&node) {
            self.status.open.remove(&request);
            self.outputs.push_back(Output::Status { request, node, rows });
        }
    }

    /// The next hop of an errand; `None` if there is none or it has been on its way for too long.
    fn onward(&self, errand: Errand) -> Option<(NodeId, Errand)> {
        let ttl = errand.ttl.checked_sub(1)?;
        let hop = Tree::new(&self.registry, self.me).next_hop(errand.to)?;
        Some((hop, Errand { ttl, ..errand }))
    }
}
