//! The paper's router in virtual time: one processor that receives, sorts by priority and forwards.
//!
//! Receiving preempts everything, because it is an interrupt. A packet that is being forwarded is
//! otherwise not interrupted. The order of forwarding is the product's static priority.

use super::paper::RouterCosts;
use paceline_admit::cpu::BestEffortRegulator;
use paceline_sched::discipline::{Eligibility, Head, ServiceClass, StreamIndex, Terms};
use paceline_sched::{Discipline, Duration, Instant, Policy, Scheduler as _};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The priority of a stream at the router.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Priority {
    High,
    Low,
}

/// A packet at the router.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Packet {
    pub(super) stream: StreamIndex,
    pub(super) bytes: u64,
    pub(super) arrived: Instant,
    /// True if the sender waits for the acknowledgement of this packet.
    pub(super) last: bool,
}

#[derive(Debug)]
struct Queue {
    priority: Priority,
    /// The front packet is announced to the discipline, or is being forwarded.
    packets: VecDeque<Packet>,
}

/// The observations of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Observed {
    /// The largest number of packets of high priority in the queue, including the one in service.
    pub(super) deepest: usize,
    /// The longest time of a packet of high priority from its arrival to the other ring.
    pub(super) longest: Duration,
    /// The number of packets of high priority that found all buffers full.
    pub(super) dropped_high: u64,
    /// The same for low priority.
    pub(super) dropped_low: u64,
    /// The number of forwarded packets of low priority.
    pub(super) forwarded_low: u64,
}

#[derive(Debug)]
pub(super) struct Router {
    costs: RouterCosts,
    /// The buffers of each priority, in packets.
    buffers: usize,
    discipline: Discipline,
    queues: BTreeMap<u32, Queue>,
    /// The packets on the interface, and the time that the front one still needs.
    receiving: VecDeque<Packet>,
    receive_left: Duration,
    /// The stream in service, and the time that its packet still needs.
    serving: Option<(StreamIndex, Duration)>,
    now: Instant,
    /// Drops packets of low priority after their reception; `None` drops none.
    pub(super) regulator: Option<Arc<BestEffortRegulator>>,
    pub(super) observed: Observed,
}

impl Router {
    /// Creates a router for streams with these priorities, each with `buffers` packets per priority.
    pub(super) fn new(costs: RouterCosts, buffers: usize, streams: &[Priority]) -> Self {
        let mut discipline = Discipline::new(Policy::StaticPriority, Eligibility::WorkConserving);
        let mut queues = BTreeMap::new();
        for (index, &priority) in (0..).zip(streams) {
            let level = match priority {
                Priority::High => 0,
                Priority::Low => 1,
            };
            let terms = Terms::new(ServiceClass::BestEffort).with_priority(level);
            discipline.join(StreamIndex(index), terms);
            queues.insert(index, Queue { priority, packets: VecDeque::new() });
        }
        Self {
            costs,
            buffers,
            discipline,
            queues,
            receiving: VecDeque::new(),
            receive_left: Duration::ZERO,
            serving: None,
            now: Instant::ZERO,
            regulator: None,
            observed: Observed::default(),
        }
    }

    /// Returns the instant at which the processor completes its present work.
    pub(super) fn next(&self) -> Option<Instant> {
        if !self.receiving.is_empty() {
            return Some(self.now + self.receive_left);
        }
        self.serving.map(|(_, left)| self.now + left)
    }

    /// Works until `to`, at most [`Self::next`]. Returns the packet that is forwarded at `to`.
    pub(super) fn work(&mut self, to: Instant) -> Option<Packet> {
        let time = to.since(self.now);
        self.now = to;
        let mut forwarded = None;
        if !self.receiving.is_empty() {
            self.receive_left = self.receive_left.saturating_sub(time);
            if self.receive_left.is_zero() {
                self.received();
            }
        } else if let Some((stream, left)) = self.serving {
            let left = left.saturating_sub(time);
            self.serving = Some((stream, left));
            if left.is_zero() {
                forwarded = self.forwarded(stream);
            }
        }
        self.start();
        forwarded
    }

    /// Accepts a packet that has arrived completely, at the instant of the last [`Self::work`].
    pub(super) fn arrive(&mut self, packet: Packet) {
        if self.receiving.is_empty() {
            self.receive_left = self.costs.receive(packet.bytes);
        }
        self.receiving.push_back(packet);
    }

    /// Sorts the received packet into its queue.
    fn received(&mut self) {
        let Some(packet) = self.receiving.pop_front() else { return };
        if let Some(next) = self.receiving.front() {
            self.receive_left = self.costs.receive(next.bytes);
        }
        let Some(priority) = self.queues.get(&packet.stream.0).map(|queue| queue.priority) else {
            return;
        };
        let regulator = self.regulator.as_ref().filter(|_| priority == Priority::Low);
        if regulator.is_some_and(|regulator| !regulator.take(self.now, packet.bytes)) {
            self.observed.dropped_low += 1;
            return;
        }
        let depth = self.depth(priority);
        if depth >= self.buffers {
            match priority {
                Priority::High => self.observed.dropped_high += 1,
                Priority::Low => self.observed.dropped_low += 1,
            }
            return;
        }
        if priority == Priority::High {
            self.observed.deepest = self.observed.deepest.max(depth + 1);
        }
        let Some(queue) = self.queues.get_mut(&packet.stream.0) else { return };
        queue.packets.push_back(packet);
        if queue.packets.len() == 1 {
            self.announce(packet);
        }
    }

    fn depth(&self, priority: Priority) -> usize {
        let queues = self.queues.values().filter(|queue| queue.priority == priority);
        queues.map(|queue| queue.packets.len()).sum()
    }

    fn announce(&mut self, packet: Packet) {
        let service = self.costs.forward(packet.bytes);
        let head = Head::whole(packet.arrived, service, length(packet));
        self.discipline.handle_head(packet.stream, head);
    }

    fn forwarded(&mut self, stream: StreamIndex) -> Option<Packet> {
        self.serving = None;
        let queue = self.queues.get_mut(&stream.0)?;
        let packet = queue.packets.pop_front()?;
        let (next, priority) = (queue.packets.front().copied(), queue.priority);
        let _on_time = self.discipline.handle_served(stream, length(packet), self.now);
        if let Some(next) = next {
            self.announce(next);
        }
        match priority {
            Priority::High => {
                let took = self.now.since(packet.arrived);
                self.observed.longest = self.observed.longest.max(took);
            }
            Priority::Low => self.observed.forwarded_low += 1,
        }
        Some(packet)
    }

    /// Starts to forward the next packet if the processor is free.
    fn start(&mut self) {
        if self.serving.is_some() || !self.receiving.is_empty() {
            return;
        }
        let Some(stream) = self.discipline.pick(self.now) else { return };
        let front = self.queues.get(&stream.0).and_then(|queue| queue.packets.front());
        self.serving = front.map(|packet| (stream, self.costs.forward(packet.bytes)));
    }
}

fn length(packet: Packet) -> u32 {
    u32::try_from(packet.bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::paper::PACKET;
    use super::*;

    /// Offers packets of these streams at instants in ascending order, and returns the order in which
    /// they leave with the instants.
    fn run(router: &mut Router, offered: &[(u64, u32)]) -> Vec<(u32, u64)> {
        let mut left = Vec::new();
        let mut offered = offered.iter().copied().peekable();
        loop {
            let arrival = offered.peek().map(|(at, _)| Instant::ZERO + Duration::from_nanos(*at));
            let next = match (router.next(), arrival) {
                (None, None) => return left,
                (Some(work), Some(arrival)) => work.min(arrival),
                (work, arrival) => work.or(arrival).unwrap(),
            };
            left.extend(router.work(next).map(|packet| (packet.stream.0, next.as_nanos())));
            if let Some((at, stream)) = offered.next_if(|_| arrival == Some(next)) {
                let arrived = Instant::ZERO + Duration::from_nanos(at);
                let stream = StreamIndex(stream);
                router.arrive(Packet { stream, bytes: PACKET, arrived, last: false });
            }
        }
    }

    #[test]
    fn interrupts_preempt_and_forwarding_does_not() {
        let costs = RouterCosts::of_text().unwrap();
        let (receive, forward) =
            (costs.receive(PACKET).as_nanos(), costs.forward(PACKET).as_nanos());
        let mut router = Router::new(costs, 32, &[Priority::High, Priority::Low]);
        // The packet of high priority arrives while one of low priority is forwarded and another
        // waits: its reception delays the first, and then it precedes the second.
        let left = run(&mut router, &[(0, 1), (0, 1), (2 * receive + 10, 0)]);
        let first = 3 * receive + forward;
        assert_eq!(left, [(1, first), (0, first + forward), (1, first + 2 * forward)]);
        assert_eq!(router.observed.longest.as_nanos(), receive + 2 * forward - 10);
        assert_eq!((router.observed.deepest, router.observed.forwarded_low), (1, 2));
    }

    #[test]
    fn each_priority_has_its_own_buffers() {
        let costs = RouterCosts::of_text().unwrap();
        let mut router = Router::new(costs, 2, &[Priority::High, Priority::Low]);
        let left = run(&mut router, &[(0, 1), (0, 1), (0, 1), (0, 0)]);
        assert_eq!(left.len(), 3);
        let Observed { deepest, dropped_high, dropped_low, .. } = router.observed;
        assert_eq!((deepest, dropped_high, dropped_low), (1, 0, 1));
    }
}
