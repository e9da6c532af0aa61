//! A bounded queue of events for a reader that may never read.

use super::lock;
use crate::event::{PublisherEvent, SubscriberEvent};
use paceline_proto::PublisherId;
use std::collections::VecDeque;
use std::sync::Mutex;

/// The limit of queued events. Beyond it, the oldest is dropped.
const EVENTS_MAX: usize = 64;

/// An event, and its form in a queue.
pub(crate) trait Queued: Sized {
    /// The form in which it waits.
    type Packed;

    fn pack(self) -> Self::Packed;

    fn unpack(packed: Self::Packed) -> Self;
}

impl Queued for PublisherEvent {
    type Packed = Box<Self>;

    fn pack(self) -> Box<Self> {
        Box::new(self)
    }

    fn unpack(packed: Box<Self>) -> Self {
        *packed
    }
}

/// An event of a subscription. The first event of each is its list of publishers, which many programs never read; others
/// are large.
pub(crate) enum PackedEvent {
    Publishers(Vec<PublisherId>),
    Other(Box<SubscriberEvent>),
}

impl Queued for SubscriberEvent {
    type Packed = PackedEvent;

    fn pack(self) -> PackedEvent {
        let Self::Publishers(publishers) = self else { return PackedEvent::Other(Box::new(self)) };
        PackedEvent::Publishers(publishers)
    }

    fn unpack(packed: PackedEvent) -> Self {
        match packed {
            PackedEvent::Publishers(publishers) => Self::Publishers(publishers),
            PackedEvent::Other(event) => *event,
        }
    }
}

/// A bounded queue of events.
pub(crate) struct Events<T: Queued>(Mutex<VecDeque<T::Packed>>);

impl<T: Queued> Default for Events<T> {
    fn default() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl<T: Queued> Events<T> {
    pub(crate) fn push(&self, event: T) {
        let mut events = lock(&self.0);
        if events.len() >= EVENTS_MAX {
            events.pop_front();
        }
        if events.capacity() == 0 {
            // Most queues have one event; the default is room for four.
            events.reserve_exact(1);
        }
        events.push_back(event.pack());
    }

    pub(crate) fn pop(&self) -> Option<T> {
        lock(&self.0).pop_front().map(T::unpack)
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Queued for i32 {
        type Packed = Self;

        fn pack(self) -> Self {
            self
        }

        fn unpack(packed: Self) -> Self {
            packed
        }
    }

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
