//! One direction of a bad network.

use super::line::{Held, Line};
use super::loss::Chooser;
use super::{Impairment, MIN_RTO, WireKind};
use crate::random::Random;
use paceline_sched::{Duration, Instant};

/// How often at most a reliable transport's packet is lost before it gets through.
const LOST_IN_A_ROW_MAX: u32 = 8;

/// What has become of packets: `packets + duplicated = delivered + dropped.total() + on their way`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Packets that were sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that have arrived, doubles included.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Those that never will.
    pub dropped: Dropped,
    /// Doubles that were made.
    pub duplicated: u64,
    /// Packets that arrived after one that was sent later.
    pub reordered: u64,
    /// Times that a reliable transport had to send again.
    pub retransmitted: u64,
    /// The longest that a packet waited for those before it.
    pub waited_max: Duration,
    /// The most packets that were on their way at once.
    pub held_max: usize,
}

/// Packets that do not arrive, by reason.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Dropped {
    /// The queue before the rate was full.
    pub queue: u64,
    /// Lost by chance.
    pub loss: u64,
    /// Sent in a blackout.
    pub blackout: u64,
    /// More were on their way than there is room for.
    pub overflow: u64,
    /// On their way when everything was [cleared](Emulator::clear).
    pub cleared: u64,
}

impl Dropped {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.queue + self.loss + self.blackout + self.overflow + self.cleared
    }
}

/// One direction of a network that does to packets what an [`Impairment`] says.
///
/// [`handle`](Self::handle) each packet when it is sent; [`poll`](Self::poll) until there is nothing
/// more when [`next_at`](Self::next_at) has come. Memory is bounded by the packets that may be on
/// their way at once.
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
    /// One generator for each decision: which packets are lost does not depend on the jitter.
    loss: Chooser,
    jitter: Random,
    reorder: Random,
    duplicate: Random,
    now: Instant,
    /// When the last packet has left.
    busy_until: Instant,
    /// Of a reliable transport: when it goes on after a blackout.
    resumes_at: Instant,
    ordered: Line<T>,
    /// Those that others overtake.
    held_back: Line<T>,
    number: u64,
    newest: u64,
    counters: Counters,
}

impl<T: Clone> Emulator<T> {
    /// A network on which at most `packets_max` packets are on their way at once; `seed` decides
    /// about loss, jitter, order and doubles.
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
            held_back: Line::new(),
            number: 0,
            newest: 0,
            counters: Counters::default(),
        };
        emulator.set(Instant::ZERO, impairment);
        emulator
    }

    /// What it does to packets now.
    #[must_use]
    pub const fn impairment(&self) -> Impairment {
        self.impairment
    }

    /// What it does to packets that are sent from now on; those on their way go on as they were, and
    /// nobody overtakes them because the delay is shorter now.
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

    /// Sends a packet of `bytes` bytes. Gives it back if it is dropped.
    pub fn handle(&mut self, now: Instant, bytes: u64, item: T) -> Option<T> {
        let now = self.advance(now);
        self.counters.packets += 1;
        self.counters.bytes += bytes;
        self.number += 1;
        let Some(left) = self.leave(now, bytes) else {
            self.counters.dropped.queue += 1;
            return Some(item);
        };
        if self.on_their_way() >= self.packets_max {
            self.counters.dropped.overflow += 1;
            return Some(item);
        }
        let arrives = left + self.impairment.delay + self.jitter();
        match self.kind {
            WireKind::Datagrams => self.send_datagram(Held::new(arrives, self.number, bytes, item)),
            WireKind::Reliable => {
                self.send_reliably(Held::new(arrives, self.number, bytes, item));
                None
            }
        }
    }

    /// A packet that has arrived, in the order of arrival; `None` if there is none yet.
    pub fn poll(&mut self, now: Instant) -> Option<T> {
        if self.next_at() > self.advance(now) {
            return None;
        }
        let first = if self.held_back.first() < self.ordered.first() {
            &mut self.held_back
        } else {
            &mut self.ordered
        };
        let held = first.pop()?;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += held.bytes;
        self.counters.reordered += u64::from(held.number < self.newest);
        self.newest = self.newest.max(held.number);
        Some(held.item)
    }

    /// When the next packet arrives; [`Instant::FAR`] if none is on its way.
    #[must_use]
    pub fn next_at(&self) -> Instant {
        self.ordered.first().min(self.held_back.first()).0.max(self.resumes_at)
    }

    /// Packets on their way, and arrived but not polled.
    #[must_use]
    pub fn on_their_way(&self) -> usize {
        self.ordered.len() + self.held_back.len()
    }

    /// Drops everything that is on its way.
    pub fn clear(&mut self) {
        self.counters.dropped.cleared += self.on_their_way() as u64;
        self.ordered.clear();
        self.held_back.clear();
    }

    /// What has become of packets so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Time never goes back.
    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// When a packet has left through the rate; `None` if the queue has no room for it.
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

    fn send_datagram(&mut self, mut packet: Held<T>) -> Option<T> {
        let Impairment { loss, duplicate_ppm, blackout, .. } = self.impairment;
        if blackout {
            self.counters.dropped.blackout += 1;
            return Some(packet.item);
        }
        if self.loss.loses(loss) {
            self.counters.dropped.loss += 1;
            return Some(packet.item);
        }
        let held_back = self.holds_back();
        if held_back {
            packet.arrives += self.impairment.reorder_by;
        }
        let double = duplicate_ppm > 0 && self.duplicate.ppm(duplicate_ppm);
        let double = double && self.on_their_way() + 1 < self.packets_max;
        let line = if held_back { &mut self.held_back } else { &mut self.ordered };
        if double {
            self.counters.duplicated += 1;
            line.push(packet.clone());
        }
        line.push(packet);
        self.note_held();
        None
    }

    fn send_reliably(&mut self, mut packet: Held<T>) {
        let mut timeout = timeout(&self.impairment);
        for _ in 0..LOST_IN_A_ROW_MAX {
            if !self.loss.loses(self.impairment.loss) {
                break;
            }
            self.counters.retransmitted += 1;
            packet.arrives += timeout;
            timeout = timeout.mul_div(2, 1);
        }
        if self.holds_back() {
            packet.arrives += self.impairment.reorder_by;
        }
        self.ordered.push(packet);
        self.note_held();
    }

    fn holds_back(&mut self) -> bool {
        self.impairment.reorder_ppm > 0 && self.reorder.ppm(self.impairment.reorder_ppm)
    }

    fn note_held(&mut self) {
        self.counters.held_max = self.counters.held_max.max(self.on_their_way());
    }
}

/// When a reliable transport sends again what was lost.
fn timeout(impairment: &Impairment) -> Duration {
    impairment.delay.mul_div(2, 1).saturating_add(MIN_RTO)
}
