//! Nodes that are not neighbours yet. They are answered, and no state is kept for them.
//!
//! A beacon or frame of a stranger costs its sender nothing and can carry any node identifier. The
//! answer is a greeting with the epoch that this link assigns to new hops.
//!
//! Only a node that has received the greeting can use that epoch in a frame. Such a frame proves
//! that the node exists, and makes it a neighbour ([`super::rx`]). A flood of made-up identifiers
//! therefore causes a bounded number of greetings, and displaces or excludes no genuine node.

use super::lock;
use crossbeam_queue::ArrayQueue;
use paceline_proto::NodeId;
use paceline_sched::{Capacity, Duration, Instant};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The limit of strangers queued for the next iteration of the egress thread.
const WAITING_MAX: usize = 64;
/// The largest burst of greetings of each kind.
const BURST: u64 = 16;
/// The shortest mean interval between two greetings of a kind.
const EVERY_MIN: Duration = Duration::from_micros(500);
/// The longest mean interval: strangers receive 20 answers per second even at the lowest capacity.
const EVERY_MAX: Duration = Duration::from_millis(50);
/// The size of a greeting on the wire, with the headers of all layers. Greetings use at most one
/// percent of a link.
const GREETING_BYTES: u64 = 160;
/// The limit by which an old hop's epoch raises the next epoch. A neighbour that restarts its hop
/// repeatedly cannot exhaust the epochs.
const RESTARTS_MAX: u32 = 16;

/// A stranger to greet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stranger {
    pub(crate) node: NodeId,
    /// Its epoch if it sent a frame; 0 if it sent a beacon.
    pub(crate) epoch: u32,
}

/// The strangers of one link.
pub(crate) struct Strangers {
    waiting: ArrayQueue<Stranger>,
    /// The epoch of new hops, higher than that of any earlier hop of the link.
    epoch: AtomicU32,
    /// The interval between two greetings, in nanoseconds.
    every: AtomicU64,
    /// Separate budgets: a flood of beacons does not stop answers to frames, or the reverse.
    beacons: Mutex<Budget>,
    frames: Mutex<Budget>,
    /// The number of strangers that were not answered.
    ignored: AtomicU64,
}

impl Strangers {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            waiting: ArrayQueue::new(WAITING_MAX),
            epoch: AtomicU32::new(epoch_at(now)),
            every: AtomicU64::new(EVERY_MIN.as_nanos()),
            beacons: Mutex::default(),
            frames: Mutex::default(),
            ignored: AtomicU64::new(0),
        }
    }

    /// Limits the share of greetings on a link of this capacity.
    pub(crate) fn set_capacity(&self, capacity: Option<Capacity>) {
        let every = capacity.map_or(EVERY_MIN, |capacity| {
            capacity.time_for(100 * GREETING_BYTES).max(EVERY_MIN).min(EVERY_MAX)
        });
        self.every.store(every.as_nanos(), Ordering::Relaxed);
    }

    /// Handles a beacon, or a frame with the given epoch; returns true if a greeting is queued.
    pub(crate) fn came(&self, now: Instant, stranger: Stranger) -> bool {
        let budget = if stranger.epoch == 0 { &self.beacons } else { &self.frames };
        let every = Duration::from_nanos(self.every.load(Ordering::Relaxed));
        let greets = lock(budget).take(now, every) && self.waiting.push(stranger).is_ok();
        if !greets {
            self.ignored.fetch_add(1, Ordering::Relaxed);
        }
        greets
    }

    /// Returns the next stranger to greet.
    pub(crate) fn next(&self) -> Option<Stranger> {
        self.waiting.pop()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of strangers that were not answered.
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }

    /// Returns the epoch of a new hop.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Handles the removal of a hop with this last epoch: the next hop to the node gets a higher
    /// one.
    pub(crate) fn handle_removed(&self, now: Instant, last: u32) {
        let raise = |epoch: u32| {
            let last = last.min(epoch.saturating_add(RESTARTS_MAX));
            Some(epoch.max(last).max(epoch_at(now)).saturating_add(1))
        };
        let _ = self.epoch.fetch_update(Ordering::AcqRel, Ordering::Acquire, raise);
    }
}

/// Returns the epoch for a time: it increases by one per 100 ms.
fn epoch_at(now: Instant) -> u32 {
    u32::try_from(now.as_nanos() / 100_000_000 + 1).unwrap_or(u32::MAX)
}

/// A token bucket, as the time at which it is full again.
#[derive(Debug, Default)]
struct Budget(Instant);

impl Budget {
    fn take(&mut self, now: Instant, every: Duration) -> bool {
        let paid = self.0.max(now);
        let room = paid.since(now) < every.mul_div(BURST, 1);
        if room {
            self.0 = paid + every;
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(60_000);

    fn beacon(node: u64) -> Stranger {
        Stranger { node: NodeId(node), epoch: 0 }
    }

    #[test]
    fn beacon_floods_are_greeted_at_a_bounded_rate_and_frames_still_arrive() {
        let strangers = Strangers::new(NOW);
        strangers.set_capacity(Capacity::from_bits_per_s(2_000_000).ok());
        let mut greeted = 0;
        for tenth in 0..100_000_u64 {
            let now = NOW + Duration::from_micros(100 * tenth);
            strangers.came(now, beacon(tenth));
            greeted += std::iter::from_fn(|| strangers.next()).count();
        }
        // One percent of 2 Mbit/s for 10 s, but at least 20 per second.
        assert!((150..=250).contains(&greeted), "{greeted}");
        assert_eq!(strangers.ignored(), 100_000 - greeted as u64);
        let end = NOW + Duration::from_secs(10);
        assert!(strangers.came(end, Stranger { node: NodeId(1), epoch: 7 }));
        assert_eq!(strangers.next(), Some(Stranger { node: NodeId(1), epoch: 7 }));
    }

    #[test]
    fn waiting_unknown_nodes_are_bounded() {
        let strangers = Strangers::new(NOW);
        for node in 0..10_000 {
            strangers.came(NOW + Duration::from_secs(node), beacon(node));
        }
        assert_eq!(std::iter::from_fn(|| strangers.next()).count(), WAITING_MAX);
        assert!(strangers.is_empty());
    }

    #[test]
    fn each_new_hop_has_a_higher_epoch() {
        let strangers = Strangers::new(NOW);
        let first = strangers.epoch();
        strangers.handle_removed(NOW, first);
        assert_eq!(strangers.epoch(), first + 1);
        strangers.handle_removed(NOW, first + 5);
        assert_eq!(strangers.epoch(), first + 6, "that hop was restarted");
        strangers.handle_removed(NOW, u32::MAX);
        assert!(strangers.epoch() < first + 30, "nobody exhausts the epochs");
        strangers.handle_removed(NOW + Duration::from_secs(60), 0);
        assert_eq!(strangers.epoch(), first + 601);
    }
}
