//! A bounded queue of events for a reader that may never read.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The limit of queued events. Beyond it, the oldest is dropped.
const EVENTS_MAX: usize = 64;

/// A bounded queue of events. The events are boxed because most queues have one event and room for
/// four.
#[derive(Debug)]
pub(crate) struct Events<T>(Mutex<VecDeque<Box<T>>>);

impl<T> Default for Events<T> {
    fn default() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl<T> Events<T> {
    pub(crate) fn push(&self, event: T) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() >= EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(Box::new(event));
    }

    pub(crate) fn pop(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front().map(|event| *event)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_are_dropped_and_the_others_stay_in_order() {
        let events = Events::default();
        assert!(events.is_empty());
        (0..100).for_each(|number| events.push(number));
        let left: Vec<i32> = std::iter::from_fn(|| events.pop()).collect();
        assert!(left.iter().copied().eq(36..100));
        assert!(events.is_empty());
    }
}
