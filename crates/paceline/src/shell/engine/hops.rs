//! The neighbours: their messages, and the links that lead to them.

use super::super::clock;
use super::super::rx::NeighbourInput;
use super::Engine;
use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_proto::control::{HopInfo, WayChange};
use paceline_proto::rights::PeerName;
use paceline_sched::{Duration, Instant};

/// The time for inputs of neighbours between two decisions.
const INPUTS_MAX: Duration = Duration::from_millis(10);

impl Engine {
    /// Collects the inputs that have arrived, and handles them for a while: one of each neighbour in turn.
    pub(super) fn handle_inputs(&mut self, now: Instant) {
        for (from, input) in self.sources.inputs.collect() {
            if let NeighbourInput::Capacity { link, change } = input {
                self.follow_capacity(now, link, change);
            } else if let NeighbourInput::Hop { link, up, .. } = input {
                if up {
                    self.unmeasured.meet(now, link, from);
                }
                self.incoming.append(from, input);
            } else if !self.incoming.push(from, input) {
                crate::warn_limited!(
                    "a control message of neighbour {from} was dropped: too many wait for the engine"
                );
            }
        }
        for link in self.unmeasured.end_late(now) {
            self.warn_unmeasured(link);
        }
        if !self.has_inputs() {
            return;
        }
        let until = clock::now() + INPUTS_MAX;
        while let Some((from, input)) = self.incoming.pop_of(|node| self.unmeasured.may(node)) {
            match input {
                NeighbourInput::Message(message, charge) => {
                    self.handle_message(now, from, message);
                    drop(charge);
                }
                NeighbourInput::Hop { link, up, peer } => {
                    self.handle_hop(now, link, (from, up), peer);
                }
                NeighbourInput::Capacity { link, change } => {
                    self.follow_capacity(now, link, change);
                }
            }
            if clock::now() >= until {
                return;
            }
        }
    }

    /// Returns true if inputs of neighbours can be handled now.
    pub(super) fn has_inputs(&self) -> bool {
        self.incoming.has_of(|node| self.unmeasured.may(node))
    }

    fn handle_message(&mut self, now: Instant, from: NodeId, message: Bytes) {
        let before = self.control.contradictions();
        if let Err(error) = self.control.handle_message(now, from, message) {
            crate::warn_limited!("invalid control message from {from}: {error}");
        }
        if self.control.contradictions() > before {
            tracing::debug!("{from} sent a record of a node to which it has no path");
            self.gate.note_contradiction(from);
        }
        if let Some(node) = self.control.take_exceeded() {
            crate::warn_limited!(
                "node {node} changes its declarations more than 200 times per second; some changes are dropped, and the \
                 newest state follows within a minute"
            );
        }
        self.gate.settle(now, &mut self.control);
    }

    fn handle_hop(
        &mut self,
        now: Instant,
        link: usize,
        (node, up): (NodeId, bool),
        peer: Option<PeerName>,
    ) {
        if up && let Some(link) = self.links.get(link) {
            self.gate.meet((now, &mut self.control), &link.config, node, peer);
        }
        let capacity = self.links.get(link).and_then(|link| link.config.capacity);
        let change = match up {
            true => self.ways.up(node, link, capacity),
            false => self.ways.down(node, link),
        };
        self.change_way(now, node, change);
    }

    /// Reports a changed route to a neighbour. If it uses another link, the streams on the old link
    /// are closed before any is opened on the new one.
    pub(super) fn change_way(&mut self, now: Instant, node: NodeId, change: WayChange) {
        if matches!(change, WayChange::Moved(_) | WayChange::Down) {
            self.control.handle_hop_down(now, node);
            self.drain(now);
            if change == WayChange::Down {
                self.gate.part(node);
            }
        }
        if let WayChange::Up(at) | WayChange::Moved(at) = change
            && let Some(link) = self.links.get(at)
        {
            let (link_name, capacity) = (link.config.name.clone(), link.config.capacity);
            let encrypted = link.config.is_encrypted();
            let own = link.config.is_host();
            let realtime = self.vitals.is_realtime();
            let multicast = self.able.contains(&(at, node));
            let hop = HopInfo::new(link_name, capacity);
            let hop = HopInfo { encrypted, own, realtime, multicast, ..hop };
            self.control.handle_hop_up(now, node, hop);
            self.gate.settle(now, &mut self.control);
        }
    }
}
