//! The bytes of contracted samples that wait on a node: on all its links, and unread at its subscribers.

use std::sync::atomic::{AtomicU64, Ordering};

/// The sum over all links and subscribers, which threads of their own update.
#[derive(Debug, Default)]
pub(crate) struct HostDepth {
    queued: AtomicU64,
    greatest: AtomicU64,
}

impl HostDepth {
    /// Adds bytes that begin to wait.
    pub(crate) fn add(&self, bytes: u64) {
        let before = self.queued.fetch_add(bytes, Ordering::Relaxed);
        self.greatest.fetch_max(before.saturating_add(bytes), Ordering::Relaxed);
    }

    /// Removes bytes that were added.
    pub(crate) fn take(&self, bytes: u64) {
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Replaces the bytes that one thread added by `now`.
    pub(crate) fn replace(&self, before: &mut u64, now: u64) {
        match now.checked_sub(*before) {
            Some(more) => self.add(more),
            None => self.take(*before - now),
        }
        *before = now;
    }

    /// Returns true if `more` bytes beyond the present ones would be the most so far.
    pub(crate) fn is_greatest_with(&self, more: u64) -> bool {
        let queued = self.queued.load(Ordering::Relaxed);
        queued.saturating_add(more) > self.greatest.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that waited at once so far.
    pub(crate) fn greatest(&self) -> u64 {
        self.greatest.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_sum_of_all_threads_counts() {
        let depth = HostDepth::default();
        let (mut one, mut other) = (0, 0);
        depth.replace(&mut one, 500);
        depth.replace(&mut other, 300);
        depth.add(100);
        depth.replace(&mut one, 0);
        depth.replace(&mut other, 250);
        assert!(!depth.is_greatest_with(550) && depth.is_greatest_with(551));
        depth.take(100);
        assert_eq!((one, other, depth.greatest()), (0, 250, 900));
        depth.replace(&mut one, 600);
        assert_eq!(depth.greatest(), 900, "850 wait");
    }
}
