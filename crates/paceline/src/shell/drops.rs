//! Drop counters that several threads update.

use paceline_proto::{DropReason, Drops};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters by reason. They exist from the first drop on: most streams have none.
#[derive(Debug, Default)]
pub(crate) struct AtomicDrops(OnceLock<Box<[AtomicU64; DropReason::ALL.len()]>>);

impl AtomicDrops {
    pub(crate) fn add(&self, reason: DropReason, samples: u64) {
        if let Some(count) = self.0.get_or_init(Box::default).get(reason.index()) {
            let add = |count: u64| Some(count.saturating_add(samples));
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Returns the counters.
    pub(crate) fn load(&self) -> Drops {
        self.read(|count| count.load(Ordering::Relaxed))
    }

    /// Returns and resets the counters.
    pub(crate) fn take(&self) -> Drops {
        self.read(|count| count.swap(0, Ordering::Relaxed))
    }

    fn read(&self, read: impl Fn(&AtomicU64) -> u64) -> Drops {
        let mut drops = Drops::default();
        for (reason, count) in
            self.0.get().into_iter().flat_map(|counts| DropReason::ALL.into_iter().zip(&**counts))
        {
            drops.add(reason, read(count));
        }
        drops
    }
}
