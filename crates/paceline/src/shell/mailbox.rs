//! A mailbox for changes to a data-path thread. An empty mailbox costs the reader one atomic load.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A queue of changes for one reader.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    posted: AtomicU64,
    waiting: Mutex<VecDeque<T>>,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self { posted: AtomicU64::new(0), waiting: Mutex::new(VecDeque::new()) }
    }
}

impl<T> Mailbox<T> {
    /// Queues a change.
    pub(crate) fn post(&self, change: T) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(change);
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// Queues changes that the reader finds together.
    pub(crate) fn post_all(&self, changes: Vec<T>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(changes);
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// Queues a change, merged with the last one if that is still queued. A slow reader then finds
    /// a single change.
    pub(crate) fn post_merged(&self, change: T, merge: impl FnOnce(T, T) -> T) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let change = match waiting.pop_back() {
            Some(last) => merge(last, change),
            None => change,
        };
        waiting.push_back(change);
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// Queues a change, or removes the queued change that it would undo.
    pub(crate) fn post_undoing(&self, change: T, undone: impl Fn(&T) -> bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = waiting.iter().rposition(undone) {
            waiting.remove(place);
            return;
        }
        waiting.push_back(change);
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// Applies the changes posted since `seen`, the reader's own counter.
    pub(crate) fn collect(&self, seen: &mut u64, mut apply: impl FnMut(T)) {
        let posted = self.posted.load(Ordering::Acquire);
        if posted == *seen {
            return;
        }
        *seen = posted;
        loop {
            // Apply outside the lock: a change may take long, and `post` must not wait for it.
            let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(change) = next else { return };
            apply(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(mailbox: &Mailbox<u32>, seen: &mut u64) -> Vec<u32> {
        let mut all = Vec::new();
        mailbox.collect(seen, |change| all.push(change));
        all
    }

    #[test]
    fn queued_changes_are_merged_and_cancelled() {
        let (mailbox, mut seen) = (Mailbox::default(), 0);
        mailbox.post(1);
        mailbox.post(2);
        mailbox.post_undoing(10, |&change| change == 1);
        assert_eq!(collected(&mailbox, &mut seen), [2]);
        mailbox.post_undoing(10, |&change| change == 1);
        assert_eq!(collected(&mailbox, &mut seen), [10], "a change cancels the queued one");
        for change in 1..100 {
            mailbox.post_merged(change, |last, this| last + this);
        }
        assert_eq!(collected(&mailbox, &mut seen), [99 * 50]);
        mailbox.post(1);
        mailbox.post_all(vec![2, 3]);
        assert_eq!(collected(&mailbox, &mut seen), [1, 2, 3]);
        assert_eq!(collected(&mailbox, &mut seen), [0; 0]);
    }
}
