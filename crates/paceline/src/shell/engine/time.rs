//! The time of this node's clock for its neighbours, and theirs for it.

use super::Engine;
use super::questions::Question;
use crate::shell::clock;
use bytes::Bytes;
use paceline_proto::{NodeId, ProbeInterval};
use paceline_sched::Instant;
use paceline_time::ntp::source::PollRange;
use paceline_time::server::answer_neighbour;
use std::collections::BTreeSet;
use std::sync::PoisonError;

/// The part of the probes of a slow link that requests for the time may add: one for eight probes.
const PROBES_PER_POLL: u64 = 8;

/// Returns the range of the intervals between requests to a neighbour: on a slow link they are as rare as its probes.
fn poll_range(probes: ProbeInterval) -> PollRange {
    let own = PollRange::OWN;
    if probes == ProbeInterval::SHORTEST {
        return own;
    }
    let seconds = probes.time().mul_div(PROBES_PER_POLL, 1).as_nanos() / 1_000_000_000;
    let min = i8::try_from(seconds.max(1).next_power_of_two().trailing_zeros()).unwrap_or(i8::MAX);
    PollRange { min, max: own.max.max(min) }
}

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
        let follows = |id| poll_range(self.control.probe_interval(id));
        port.set(nodes.map(|node| (node.id, node.name.to_owned(), follows(node.id))).collect());
    }

    /// Passes the intervals of the probes of hops to what else is sent periodically.
    pub(super) fn follow_probes(&mut self) {
        for (at, link) in self.links.iter().enumerate() {
            let snapshot = link.handle.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
            for hop in snapshot.hops.iter().filter(|hop| self.ways.link(hop.node) == Some(at)) {
                self.control.set_probe_interval(hop.node, hop.probes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_links_are_asked_for_the_time_as_rarely_as_they_are_probed() {
        let range = |tenths| poll_range(ProbeInterval::from_tenths(tenths).unwrap());
        assert_eq!(range(6), PollRange::OWN);
        assert_eq!(range(21), PollRange { min: 4, max: 4 });
        assert_eq!(range(500), PollRange { min: 9, max: 9 });
    }
}
