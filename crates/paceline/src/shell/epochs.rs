//! The epochs of new hops.

use paceline_sched::Instant;
use std::sync::atomic::{AtomicU32, Ordering};

/// The limit by which an old hop's epoch raises the next epoch. A neighbour that restarts its hop
/// repeatedly cannot exhaust the epochs.
const RESTARTS_MAX: u32 = 16;

/// The epoch of new hops of one link, higher than that of any earlier hop.
#[derive(Debug)]
pub(crate) struct Epochs(AtomicU32);

impl Epochs {
    pub(crate) fn new(now: Instant) -> Self {
        Self(AtomicU32::new(epoch_at(now)))
    }

    /// Returns the epoch of a new hop.
    pub(crate) fn next(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Handles the removal of a hop with this last epoch: the next hop to the node gets a higher
    /// one.
    pub(crate) fn handle_removed(&self, now: Instant, last: u32) {
        let raise = |epoch: u32| {
            let last = last.min(epoch.saturating_add(RESTARTS_MAX));
            Some(epoch.max(last).max(epoch_at(now)).saturating_add(1))
        };
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, raise);
    }
}

/// Returns the epoch for a time: it increases by one per 100 ms.
fn epoch_at(now: Instant) -> u32 {
    u32::try_from(now.as_nanos() / 100_000_000 + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sched::Duration;

    #[test]
    fn each_new_hop_has_a_higher_epoch() {
        let now = Instant::from_millis(60_000);
        let epochs = Epochs::new(now);
        let first = epochs.next();
        epochs.handle_removed(now, first);
        assert_eq!(epochs.next(), first + 1);
        epochs.handle_removed(now, first + 5);
        assert_eq!(epochs.next(), first + 6, "that hop was restarted");
        epochs.handle_removed(now, u32::MAX);
        assert!(epochs.next() < first + 30, "nobody exhausts the epochs");
        epochs.handle_removed(now + Duration::from_secs(60), 0);
        assert_eq!(epochs.next(), first + 601);
    }
}
