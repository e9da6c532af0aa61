//! One direction of an impaired network.

use super::line::{Line, Packet};
use super::loss::Chooser;
use super::{Impairment, MIN_RTO, WireKind};
use crate::random::Random;
use paceline_sched::{Duration, Instant};

/// The most consecutive losses of a packet on a reliable transport.
const LOST_IN_A_ROW_MAX: u32 = 8;

/// Packet counters: `packets + duplicated = delivered + dropped.total() + packets in flight`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes of the packets sent.
    pub bytes: u64,
    /// Packets that arrived, duplicates included.
    pub delivered: u64,
    /// Bytes of the packets that arrived.
    pub delivered_bytes: u64,
    /// Packets that never arrive.
    pub dropped: Dropped,
    /// Duplicates created.
    pub duplicated: u64,
    /// Packets that arrived after a packet sent later.
    pub reordered: u64,
    /// Retransmissions of a reliable transport.
    pub retransmitted: u64,
    /// The longest time that a packet waited for earlier packets.
    pub waited_max: Duration,
    /// The most packets in flight at a time.
    pub in_flight_max: usize,
}

/// Packets that do not arrive, by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Dropped {
    /// The queue before the rate was full.
    pub queue: u64,
    /// Lost at random.
    pub loss: u64,
    /// Sent during a blackout.
    pub blackout: u64,
    /// The bound on packets in flight was exceeded.
    pub overflow: u64,
    /// In flight when the network was [cleared](Emulator::clear).
    pub cleared: u64,
}

impl Dropped {
    /// Returns the sum over all reasons.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.queue + self.loss + self.blackout + self.overflow + self.cleared
    }
}

/// One direction of a network with an [`Impairment`].
///
/// Call [`handle`](Self::handle) for each packet sent. At [`next_at`](Self::next_at), call
/// [`poll`](Self::poll) until it returns `None`. Memory is bounded by the limit on packets in flight.
///
/// ```
/// use paceline_sched::{Duration, Instant};
/// use paceline_sim::impair::{Emulator, Impairment, WireKind};
///
/// let slow = Impairment { delay: Duration::from_millis(40), ..Impairment::NONE };
/// let mut there = Emulator::new(WireKind::Datagrams, slow, 1_000, 7);
/// assert_eq!(there.handle(Instant::from_millis(3), 1_500, "a packet"), None);
/// assert_eq!(there.next_at(), Instant::from_millis(43));
/// assert_eq!(there.poll(Instant::from_millis(42)), None);
/// assert_eq!(there.poll(Instant::from_millis(43)), Some("a packet"));
/// ```
#[derive(Clone, Debug)]
pub struct Emulator<T> {
    kind: WireKind,
    impairment: Impairment,
    packets_max: usize,
    /// Each decision has its own generator, so that losses do not depend on the jitter.
    loss: Chooser,
    jitter: Random,
    reorder: Random,
    duplicate: Random,
    now: Instant,
    /// The end of transmission of the last packet.
    busy_until: Instant,
    /// Reliable transports only: the instant at which delivery continues after a blackout.
    resumes_at: Instant,
    ordered: Line<T>,
    /// Packets that others overtake.
    delayed: Line<T>,
    number: u64,
    newest: u64,
    counters: Counters,
}

impl<T: Clone> Emulator<T> {
    /// Creates a network with at most `packets_max` packets in flight. `seed` determines loss, jitter,
    /// reordering and duplicates.
    #[must_use]
    pub fn new(kind: WireKind, impairment: Impairment, packets_max: usize, seed: u64) -> Self {
        let mut seeds = Random::new(seed);
        let mut chance = || Random::new(seeds.next());
        let mut emulator = Self {
            kind,
            impairment: Impairment::NONE,
            packets_max,
            loss: Chooser::new(chance()),
            jitter: chance(),
            reorder: chance(),
            duplicate: chance(),
            now: Instant::ZERO,
            busy_until: Instant::ZERO,
            resumes_at: Instant::ZERO,
            ordered: Line::new(),
            delayed: Line::new(),
            number: 0,
            newest: 0,
            counters: Counters::default(),
        };
        emulator.set(Instant::ZERO, impairment);
        emulator
    }

    /// Returns the current impairment.
    #[must_use]
    pub const fn impairment(&self) -> Impairment {
        self.impairment
    }

    /// Raises the limit of packets in flight to at least `packets_max`.
    pub fn allow(&mut self, packets_max: usize) {
        self.packets_max = self.packets_max.max(packets_max);
    }

    /// Changes the impairment of packets sent from now on. Packets in flight are unaffected, and a shorter
    /// delay does not let later packets overtake them.
    pub fn set(&mut self, now: Instant, impairment: Impairment) {
        let now = self.advance(now);
        if self.kind == WireKind::Reliable {
            self.resumes_at = match (self.impairment.blackout, impairment.blackout) {
                (_, true) => Instant::FAR,
                (true, false) => now + timeout(&impairment),
                (false, false) => self.resumes_at,
            };
        }
        self.impairment = impairment;
    }

    /// Sends a packet of `bytes` bytes. Returns the packet if it is dropped.
    pub fn handle(&mut self, now: Instant, bytes: u64, item: T) -> Option<T> {
        let now = self.advance(now);
        self.counters.packets += 1;
        self.counters.bytes += bytes;
        self.number += 1;
        let Some(left) = self.leave(now, bytes) else {
            self.counters.dropped.queue += 1;
            return Some(item);
        };
        if self.in_flight() >= self.packets_max {
            self.counters.dropped.overflow += 1;
            return Some(item);
        }
        let arrives = left + self.impairment.delay + self.jitter();
        match self.kind {
            WireKind::Datagrams => {
                self.send_datagram(Packet::new(arrives, self.number, bytes, item))
            }
            WireKind::Reliable => {
                self.send_reliably(Packet::new(arrives, self.number, bytes, item));
                None
            }
        }
    }

    /// Returns the next packet that has arrived, in the order of arrival, or `None`.
    pub fn poll(&mut self, now: Instant) -> Option<T> {
        if self.next_at() > self.advance(now) {
            return None;
        }
        let first = if self.delayed.first() < self.ordered.first() {
            &mut self.delayed
        } else {
            &mut self.ordered
        };
        let packet = first.pop()?;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += packet.bytes;
        self.counters.reordered += u64::from(packet.number < self.newest);
        self.newest = self.newest.max(packet.number);
        Some(packet.item)
    }

    /// Returns the arrival time of the next packet, or [`Instant::FAR`] if none is in flight.
    #[must_use]
    pub fn next_at(&self) -> Instant {
        self.ordered.first().min(self.delayed.first()).0.max(self.resumes_at)
    }

    /// Returns the number of packets in flight, including those that arrived but were not polled.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.ordered.len() + self.delayed.len()
    }

    /// Drops all packets in flight.
    pub fn clear(&mut self) {
        self.counters.dropped.cleared += self.in_flight() as u64;
        self.ordered.clear();
        self.delayed.clear();
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Clamps `now`, so that time never decreases.
    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// Returns the instant at which a packet leaves at the rate, or `None` if the queue is full.
    fn leave(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        let burst = self.impairment.burst_bytes;
        let ahead = self.impairment.rate.map_or(Duration::ZERO, |rate| rate.time_for(burst));
        let waits = self.busy_until.since(now).saturating_sub(ahead);
        if let Some(rate) = self.impairment.rate {
            let queued = rate.bytes_in(waits);
            let full = queued > 0 && queued.saturating_add(bytes) > self.impairment.queue_bytes;
            if full && self.kind == WireKind::Datagrams {
                return None;
            }
        }
        self.counters.waited_max = self.counters.waited_max.max(waits);
        let takes = self.impairment.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes));
        self.busy_until = self.busy_until.max(now) + takes;
        Some(now + self.busy_until.since(now).saturating_sub(ahead))
    }

    fn jitter(&mut self) -> Duration {
        match self.impairment.jitter.as_nanos() {
            0 => Duration::ZERO,
            most => Duration::from_nanos(self.jitter.below(most.saturating_add(1))),
        }
    }

    fn send_datagram(&mut self, mut packet: Packet<T>) -> Option<T> {
        let Impairment { loss, duplicate_ppm, blackout, .. } = self.impairment;
        if blackout {
            self.counters.dropped.blackout += 1;
            return Some(packet.item);
        }
        if self.loss.loses(loss) {
            self.counters.dropped.loss += 1;
            return Some(packet.item);
        }
        let delayed = self.delays();
        if delayed {
            packet.arrives += self.impairment.reorder_by;
        }
        let double = duplicate_ppm > 0 && self.duplicate.ppm(duplicate_ppm);
        let double = double && self.in_flight() + 1 < self.packets_max;
        let line = if delayed { &mut self.delayed } else { &mut self.ordered };
        if double {
            self.counters.duplicated += 1;
            line.push(packet.clone());
        }
        line.push(packet);
        self.note_in_flight();
        None
    }

    fn send_reliably(&mut self, mut packet: Packet<T>) {
        let mut timeout = timeout(&self.impairment);
        for _ in 0..LOST_IN_A_ROW_MAX {
            if !self.loss.loses(self.impairment.loss) {
                break;
            }
            self.counters.retransmitted += 1;
            packet.arrives += timeout;
            timeout = timeout.mul_div(2, 1);
        }
        if self.delays() {
            packet.arrives += self.impairment.reorder_by;
        }
        self.ordered.push(packet);
        self.note_in_flight();
    }

    fn delays(&mut self) -> bool {
        self.impairment.reorder_ppm > 0 && self.reorder.ppm(self.impairment.reorder_ppm)
    }

    fn note_in_flight(&mut self) {
        self.counters.in_flight_max = self.counters.in_flight_max.max(self.in_flight());
    }
}

/// Returns the retransmission timeout of a reliable transport.
fn timeout(impairment: &Impairment) -> Duration {
    impairment.delay.mul_div(2, 1).saturating_add(MIN_RTO)
}
