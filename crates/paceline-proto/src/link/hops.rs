//! The hops of a link: handshake, acknowledgement, and the frames and bytes in flight.

mod answer;
mod attendance;
mod closes;
mod control_queue;
mod flight;
mod greetings;
mod hop;
mod ledger;
mod losses;
mod neighbour;
mod record_queue;
mod rtt;
mod smoothed;
mod stamp;
mod transit;
mod window;

#[cfg(test)]
pub(super) use hop::WINDOW_FRAMES;
pub use hop::{Hop, HopChange};
pub use ledger::Fates;
pub(super) use neighbour::Neighbour;
pub(super) use window::window_bytes;

use super::contents::Notice;
use super::pacing::{Pacer, Wire};
use crate::carrier::Carrier;
use crate::ids::NodeId;
use crate::probes::ProbeInterval;
use closes::Parted;
pub(super) use greetings::Greetings;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The neighbours of a link, each behind one hop.
#[derive(Debug, Default)]
pub(super) struct Hops {
    neighbours: BTreeMap<NodeId, Neighbour>,
    /// The number of neighbours that are up, so that a frame need not ask all of them.
    up: usize,
    /// The start tag of the control that was sent last, in bytes.
    control_clock: u64,
    /// Closes for removed neighbours, in case they return.
    parted: Parted,
    /// The interval of probes to each of them.
    probes: ProbeInterval,
    /// The share of those that are not up.
    pub(super) greetings: Greetings,
}

impl Hops {
    /// Adds a discovered hop, unless it is known.
    pub(super) fn add(&mut self, now: Instant, node: NodeId, epoch: u32, wire: &Wire) {
        let Self { parted, probes, greetings, .. } = self;
        let probes = *probes;
        self.neighbours.entry(node).or_insert_with(|| {
            let mut hop = Hop::new(now, epoch, wire.is_paced());
            greetings.recall(node).into_iter().for_each(|greeted| hop.set_greeted(greeted));
            hop.set_probe_interval(now, probes);
            hop.set_frame_bytes_max(wire.carrier.frame_bytes_max());
            hop.set_answers_within(wire.answers_within());
            if wire.carrier == Carrier::Datagrams {
                hop.expect_loss();
            }
            Neighbour::new(hop, parted.take(node))
        });
        self.share_probes(now, wire);
    }

    /// Gives all neighbours the interval of probes that those which are up can share on this wire. The others are not
    /// probed: otherwise anybody could make the node notice the loss of its neighbours late.
    pub(super) fn share_probes(&mut self, now: Instant, wire: &Wire) {
        let probes = ProbeInterval::of(wire.capacity, self.up);
        if probes != self.probes {
            self.probes = probes;
            self.neighbours.values_mut().for_each(|it| it.hop.set_probe_interval(now, probes));
        }
    }

    /// Counts the neighbours that are up, after one of them has changed.
    pub(super) fn count_up(&mut self) {
        self.up = self.neighbours.values().filter(|it| it.hop.is_up()).count();
    }

    /// Removes a neighbour, except for the closes that it may not have received.
    pub(super) fn part(&mut self, node: NodeId) {
        let Some(mut neighbour) = self.neighbours.remove(&node) else { return };
        self.count_up();
        self.greetings.remember(node, &neighbour.hop);
        neighbour.keep_closes();
        neighbour.notices.into_iter().for_each(|close| self.parted.keep(node, close));
    }

    pub(super) fn get(&self, node: NodeId) -> Option<&Neighbour> {
        self.neighbours.get(&node)
    }

    pub(super) fn get_mut(&mut self, node: NodeId) -> Option<&mut Neighbour> {
        self.neighbours.get_mut(&node)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &Neighbour)> {
        self.neighbours.iter().map(|(node, neighbour)| (*node, neighbour))
    }

    pub(super) fn is_up(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(|neighbour| neighbour.hop.is_up())
    }

    /// Returns `true` if frames to this hop may be lost, so that lost segments are retransmitted.
    pub(super) fn is_mended(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(|neighbour| neighbour.hop.is_lossy())
    }

    /// Returns the minimum round trip of the last 10 to 20 s; zero before the first measurement.
    pub(super) fn trip(&self, node: NodeId) -> Duration {
        let trip = self.get(node).and_then(|neighbour| neighbour.hop.least_round_trip());
        trip.unwrap_or_default()
    }

    /// Returns the number of the next frame to a hop.
    pub(super) fn next_seq(&self, node: NodeId) -> Option<u64> {
        self.get(node).map(|neighbour| neighbour.hop.next_seq())
    }

    /// Queues a notice for a neighbour.
    pub(super) fn notify(&mut self, node: NodeId, notice: Notice) {
        if let Some(neighbour) = self.neighbours.get_mut(&node) {
            neighbour.notices.push_back(notice);
        }
    }

    /// Notifies the other end of a closed stream, at once or when the neighbour returns.
    pub(super) fn notify_close(&mut self, node: NodeId, close: Notice) {
        match self.neighbours.get_mut(&node) {
            Some(neighbour) => neighbour.notify_close(close),
            None => self.parted.keep(node, close),
        }
    }

    /// Sets the longest delay of acknowledgements to all neighbours.
    pub(super) fn set_answers_within(&mut self, delay: Duration) {
        self.neighbours.values_mut().for_each(|it| it.hop.set_answers_within(delay));
    }

    /// Sends again the closes that a neighbour may not have received.
    pub(super) fn repeat_closes(&mut self, node: NodeId) {
        if let Some(neighbour) = self.neighbours.get_mut(&node) {
            neighbour.repeat_closes();
        }
    }

    /// Returns the hop other than `next` that is up and has waited longest for a frame without data. Hops with notices
    /// precede them.
    pub(super) fn wants_bare_frame(&self, now: Instant, next: Option<NodeId>) -> Option<NodeId> {
        let wants = |(node, n): (&NodeId, &Neighbour)| {
            let since = if n.notices.is_empty() { n.hop.next_frame() } else { Instant::ZERO };
            (Some(*node) != next && n.hop.is_up() && since <= now).then_some((since, *node))
        };
        self.neighbours.iter().filter_map(wants).min().map(|(_, node)| node)
    }

    /// Returns true if no neighbour needs a greeting.
    fn all_up(&self) -> bool {
        self.up == self.neighbours.len()
    }

    /// Returns the hop to greet, if a greeting is due and their share has room for it.
    #[inline]
    pub(super) fn wants_greeting(&self, now: Instant, wire: &Wire) -> Option<NodeId> {
        if self.all_up() { None } else { self.next_greeted(now, wire) }
    }

    fn next_greeted(&self, now: Instant, wire: &Wire) -> Option<NodeId> {
        if now < self.greetings.ready_at(wire) {
            return None;
        }
        let due = |(_, it): &(&NodeId, &Neighbour)| !it.hop.is_up() && it.hop.wants_frame(now);
        let due = self.neighbours.iter().filter(due);
        due.min_by_key(|(_, it)| self.greetings.order(&it.hop)).map(|(node, _)| *node)
    }

    /// Returns the hop for the next control.
    ///
    /// Hops with control share its part of the link equally by bytes, in the order of start tags (start-time fair queueing,
    /// Goyal, Vin and Cheng, 1996): a neighbour that causes much control delays that of no other.
    pub(super) fn next_control(&self, now: Instant, wire: &Wire) -> Option<NodeId> {
        let mut first: Option<(u64, NodeId)> = None;
        for (node, it) in &self.neighbours {
            let start = it.control_start.max(self.control_clock);
            // Those with later tags need not be asked.
            if first.is_none_or(|(least, _)| start < least) && self.may_send_control(now, it, wire)
            {
                first = Some((start, *node));
            }
        }
        first.map(|(_, node)| node)
    }

    /// Notes that so many bytes of control were sent to a hop.
    pub(super) fn charge_control(&mut self, node: NodeId, bytes: u64) {
        let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
        self.control_clock = self.control_clock.max(neighbour.control_start);
        neighbour.control_start = self.control_clock + bytes;
    }

    fn may_send_control(&self, now: Instant, neighbour: &Neighbour, wire: &Wire) -> bool {
        neighbour.may_send_control(now) && !self.is_silent(now, &neighbour.hop, wire)
    }

    /// Processes timeouts. Returns the changes of silent hops.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Vec<(NodeId, HopChange)> {
        let silent = |(node, neighbour): (&NodeId, &mut Neighbour)| {
            Some((*node, neighbour.hop.handle_timeout(now)?))
        };
        self.neighbours.iter_mut().filter_map(silent).collect()
    }

    /// Returns the hops whose frames may be lost.
    pub(super) fn lossy(&self) -> Vec<NodeId> {
        let lossy = self.neighbours.iter().filter(|(_, neighbour)| neighbour.hop.is_lossy());
        lossy.map(|(node, _)| *node).collect()
    }

    /// Removes hops that never answer; the transport will discover them again.
    pub(super) fn forget_silent(&mut self, now: Instant) {
        let silent = |(node, it): (&NodeId, &Neighbour)| it.hop.is_forgotten(now).then_some(*node);
        let gone: Vec<_> = self.neighbours.iter().filter_map(silent).collect();
        gone.into_iter().for_each(|node| self.part(node));
    }

    /// Returns the instant at which a hop needs a frame, a timeout or a loss check next.
    pub(super) fn next_wake(&self, now: Instant, pacer: &Pacer) -> Instant {
        let (mut next, paced) = (Instant::FAR, pacer.ready_at());
        let greets =
            || self.greetings.ready_at(&pacer.wire).max(pacer.control_ready_at()).max(paced);
        let greets = if self.all_up() { paced } else { greets() };
        for neighbour in self.neighbours.values() {
            let frame = neighbour.hop.next_frame();
            let frame = frame.max(if neighbour.hop.is_up() { paced } else { greets });
            next = next.min(frame).min(neighbour.hop.next_timeout());
            next = next.min(neighbour.hop.next_loss(now));
            if self.may_send_control(now, neighbour, &pacer.wire) {
                next = next.min(pacer.control_ready_at().max(paced));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hops(count: u64) -> (Hops, Wire) {
        let (mut hops, wire) = (Hops::default(), Wire::new(None, Carrier::Ordered));
        (0..count).for_each(|id| hops.add(Instant::ZERO, NodeId(id), 1, &wire));
        (hops, wire)
    }

    #[test]
    fn a_hop_that_is_not_up_has_no_credit_and_wants_a_greeting() {
        let (hops, wire) = hops(1);
        assert!(!hops.is_up(NodeId(0)) && !hops.any_has_credit(Instant::ZERO, &wire));
        let greets = hops.next_wake(Instant::ZERO, &Pacer::new(wire));
        assert_eq!(greets, Instant::from_millis(100));
        let now = Instant::from_millis(1_000);
        assert_eq!(hops.wants_greeting(now, &wire), Some(NodeId(0)));
        assert_eq!(hops.wants_bare_frame(now, None), None);
    }

    #[test]
    fn closes_for_a_neighbour_that_left_wait_for_its_return() {
        let (mut hops, wire) = hops(1);
        hops.notify_close(NodeId(0), Notice::Close(1, 5));
        hops.part(NodeId(0));
        hops.notify_close(NodeId(0), Notice::Close(2, 6));
        assert!(hops.get(NodeId(0)).is_none());
        hops.add(Instant::ZERO, NodeId(0), 2, &wire);
        assert_eq!(hops.get(NodeId(0)).map(|neighbour| neighbour.notices.len()), Some(2));
    }

    #[test]
    fn a_hop_that_never_answers_is_forgotten() {
        let (mut hops, _) = hops(2);
        hops.forget_silent(Instant::from_millis(4_000));
        assert_eq!(hops.iter().count(), 2);
        hops.forget_silent(Instant::from_millis(6_000));
        assert_eq!(hops.iter().count(), 0);
    }
}
