//! The time of this node's clock for its neighbours, and theirs for it.

use super::Engine;
use super::questions::Question;
use crate::shell::clock;
use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_sched::Instant;
use paceline_time::server::answer_neighbour;
use std::collections::BTreeSet;

impl Engine {
    /// Sends a question for the time to a neighbour.
    pub(super) fn ask_time(&mut self, now: Instant, node: NodeId, body: Bytes) {
        let sent = clock::raw();
        let question = self.control.ask(now, node, body);
        self.questions.add(question, Question::Time(sent));
    }

    /// Returns the answer to `node`, which asks for the time: a packet of NTP, and the nodes from which this clock has its
    /// time. If `node` is one of them, the answer is that the clock is not synchronised, so that clocks never follow each
    /// other in a circle.
    pub(super) fn own_time(&self, node: NodeId, request: &[u8]) -> Option<Bytes> {
        let received = self.clock.now();
        let lineage = self.clock.state().lineage().clone();
        let lineage = lineage.filter(|own| !own.nodes.contains(&node));
        let facts = lineage.as_ref().map(|own| &own.facts);
        let packet = answer_neighbour(request, facts, (received, self.clock.now()))?;
        let nodes = lineage.iter().flat_map(|own| &own.nodes).flat_map(|node| node.0.to_be_bytes());
        Some(packet.iter().copied().chain(nodes).collect())
    }

    /// Passes the neighbours whose clocks this node follows to its clock.
    pub(super) fn note_neighbours(&self) {
        let Some(port) = &self.neighbours else { return };
        let behind: BTreeSet<_> = port.links().flat_map(|link| self.ways.behind(link)).collect();
        let nodes = self.control.nodes().filter(|node| behind.contains(&node.id));
        port.set(nodes.map(|node| (node.id, node.name.to_owned())).collect());
    }
}
