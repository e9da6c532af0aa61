//! Handing changes to a data-path thread: it pays one load per look while there are none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Changes for one reader, in order.
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
    /// Leaves a change for the reader.
    pub(crate) fn post(&self, change: T) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(change);
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// Leaves a change, made one with the last if that waits still: a reader that does not come for
    /// long finds no more than one.
    pub(crate) fn post_merged(&self, change: T, merge: impl FnOnce(T, T) -> T) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let change = match waiting.pop_back() {
            Some(last) => merge(last, change),
            None => change,
        };
        waiting.push_back(change);
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// Leaves a change that undoes an earlier one: if `undone` waits still, both are as good as none.
    pub(crate) fn post_undoing(&self, change: T, undone: impl Fn(&T) -> bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = waiting.iter().rposition(undone) {
            waiting.remove(place);
            return;
        }
        waiting.push_back(change);
        self.posted.fetch_add(1, Ordering::Release);
    }

    /// Applies what was posted since `seen`, which is the reader's own count.
    pub(crate) fn collect(&self, seen: &mut u64, mut apply: impl FnMut(T)) {
        let posted = self.posted.load(Ordering::Acquire);
        if posted == *seen {
            return;
        }
        *seen = posted;
        loop {
            // Applied outside the lock: a change may be large, and whoever posts must not wait.
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
    fn changes_that_wait_are_undone_and_made_one() {
        let (mailbox, mut seen) = (Mailbox::default(), 0);
        mailbox.post(1);
        mailbox.post(2);
        mailbox.post_undoing(10, |&change| change == 1);
        assert_eq!(collected(&mailbox, &mut seen), [2]);
        mailbox.post_undoing(10, |&change| change == 1);
        assert_eq!(collected(&mailbox, &mut seen), [10], "what was made is undone by a change");
        for change in 1..100 {
            mailbox.post_merged(change, |last, this| last + this);
        }
        assert_eq!(collected(&mailbox, &mut seen), [99 * 50]);
        assert_eq!(collected(&mailbox, &mut seen), [0; 0]);
    }
}
