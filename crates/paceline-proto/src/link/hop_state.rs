//! Changes of a link's hops: discovery, reception, up and down.

use super::hops::{Hop, HopChange};
use super::{Link, LinkEvent};
use crate::ids::NodeId;
use crate::receive::Heard;
use paceline_sched::Scheduler;
use paceline_sched::{Duration, Instant};

impl Link {
    /// Adds a discovered hop. The link greets it until both ends know each other ([`LinkEvent::HopUp`]).
    /// `epoch` must be higher than in any earlier call for the same node.
    pub fn add_hop(&mut self, now: Instant, node: NodeId, epoch: u32) {
        self.hops.add(now, node, epoch, &self.pacer.wire);
    }

    /// Sets the round trip to a hop that is expected before the first measurement; the handshake of its transport is an upper
    /// bound. Probes are not more frequent than that, and the hop may be silent for three of them.
    pub fn expect_round_trip(&mut self, now: Instant, node: NodeId, trip: Duration) {
        if let Some(neighbour) = self.hops.get_mut(node) {
            neighbour.hop.expect_round_trip(now, trip);
        }
    }

    /// Removes a hop that the transport reports as gone.
    pub fn remove_hop(&mut self, node: NodeId) {
        let up = self.hops.is_up(node);
        self.hops.part(node);
        if up {
            self.take_down(node);
            self.events.push_back(LinkEvent::HopDown(node));
        }
    }

    /// Returns our epoch on a hop; 0 if there is no such hop.
    #[must_use]
    pub fn epoch(&self, node: NodeId) -> u32 {
        self.hops.get(node).map_or(0, |n| n.hop.epoch())
    }

    /// Returns half the minimum round trip of a hop since it came up, or `None` before the first measurement.
    /// It estimates by how much a frame's age grows in transit.
    #[must_use]
    pub fn half_round_trip(&self, node: NodeId) -> Option<Duration> {
        let trip = self.hops.get(node)?.hop.shortest_round_trip()?;
        Some(trip.mul_div(1, 2))
    }

    /// Iterates over the hops.
    pub fn hops(&self) -> impl Iterator<Item = (NodeId, &Hop)> {
        self.hops.iter().map(|(node, neighbour)| (node, &neighbour.hop))
    }

    /// Processes the header of a frame from a hop, and the acknowledgement that the frame requires.
    pub fn handle_heard(&mut self, now: Instant, node: NodeId, heard: &Heard) {
        // A frame that waited while this node was suspended does not prove that the neighbour still knows us.
        let silence = self.hops.get_mut(node).and_then(|n| n.hop.handle_silence(now));
        self.apply(node, silence);
        let Some(neighbour) = self.hops.get_mut(node) else { return };
        let wire = &self.pacer.wire;
        // The rate of a measured link may be wrong for a while, and a serial time that is too long would hide the round trip.
        let measured = self.measure.is_some();
        let serial = |bytes| if measured { Duration::ZERO } else { wire.time_of(bytes) };
        let (change, lost) = neighbour.hop.handle_heard(now, heard, serial);
        self.frames_lost += lost;
        if neighbour.hop.is_lossy() {
            // Only the other end may have known that frames may be lost here.
            self.pacer.wire.expect_loss();
            self.mend(node);
        }
        if lost > 0 {
            // The lost frame may have opened or closed a stream: repeat both.
            self.hops.repeat_closes(node);
            self.streams.to(node).for_each(|(_, stream)| stream.announced = false);
        }
        self.apply(node, change);
        self.note_receipt(now, node, heard);
        if heard.ack.is_some() {
            self.resume(node);
        }
    }

    pub(super) fn apply(&mut self, node: NodeId, change: Option<HopChange>) {
        if change.is_some() {
            self.hops.count_up();
        }
        match change {
            Some(HopChange::Up) => {
                self.take_up(node);
                self.events.push_back(LinkEvent::HopUp(node));
            }
            Some(HopChange::Down) => {
                self.take_down(node);
                if let Some(neighbour) = self.hops.get_mut(node) {
                    neighbour.take_down();
                }
                self.events.push_back(LinkEvent::HopDown(node));
            }
            None => {}
        }
    }

    pub(super) fn take_down(&mut self, node: NodeId) {
        self.forget_repairs(node);
        let down: Vec<_> =
            self.streams.to(node).map(|(index, stream)| (index, stream.take_down())).collect();
        for (index, gone) in down {
            self.discipline.leave(index);
            self.backlog.free_later(gone);
        }
    }

    fn take_up(&mut self, node: NodeId) {
        let up: Vec<_> = self
            .streams
            .to(node)
            .map(|(index, stream)| {
                stream.up = true;
                index
            })
            .collect();
        up.into_iter().for_each(|index| self.join(index));
    }

    /// Resumes streams that were suspended for lack of this hop's credit, in the order of their indexes.
    fn resume(&mut self, node: NodeId) {
        if self.suspended.is_empty() {
            return;
        }
        let mut waiting = core::mem::take(&mut self.suspended);
        waiting.sort_unstable();
        waiting.dedup();
        waiting.retain(|&index| {
            let stream = self.streams.get_mut(index).filter(|stream| stream.suspended);
            let Some(stream) = stream else { return false };
            if stream.spec.hop != node {
                return true;
            }
            stream.suspended = false;
            self.discipline.resume(index);
            false
        });
        self.suspended = waiting;
    }
}
