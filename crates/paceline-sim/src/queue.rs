//! The event queue: a heap of wake-ups.

use paceline_sched::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The receiver of a wake-up. At one instant, events are ordered by variant and then by index. Arrivals and
/// publications thus precede the nodes that process them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Event {
    /// The transport announces nodes to their neighbours.
    Beacons,
    /// Something arrives over a wire.
    Wire(usize),
    /// A driver publishes.
    Driver(usize),
    /// A node runs an iteration.
    Node(usize),
}

/// An instant in the upper bits, then the rank and index of the event, so that one comparison orders all
/// entries.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Entry(u128);

impl Entry {
    /// The number of bits of an index.
    const PLACE: u32 = 32;

    fn new(at: Instant, event: Event) -> Self {
        let (rank, place) = match event {
            Event::Beacons => (0_u64, 0),
            Event::Wire(place) => (1, place),
            Event::Driver(place) => (2, place),
            Event::Node(place) => (3, place),
        };
        debug_assert!(place < 1 << Self::PLACE, "{event:?}");
        let target = rank << Self::PLACE | place as u64;
        Self(u128::from(at.as_nanos()) << 64 | u128::from(target))
    }

    const fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half, and half of that")]
    fn event(self) -> Event {
        let target = self.0 as u64;
        let place = target as u32 as usize;
        match target >> Self::PLACE {
            0 => Event::Beacons,
            1 => Event::Wire(place),
            2 => Event::Driver(place),
            _ => Event::Node(place),
        }
    }
}

/// Wake-ups in the order of their instants. Only the earliest wake-up of an event is valid. Others are stale
/// and skipped when they reach the top, so the heap is never searched.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    beacons: Option<Instant>,
    wires: Vec<Option<Instant>>,
    drivers: Vec<Option<Instant>>,
    nodes: Vec<Option<Instant>>,
}

impl Queue {
    fn due(&mut self, event: Event) -> &mut Option<Instant> {
        let (list, place) = match event {
            Event::Beacons => return &mut self.beacons,
            Event::Wire(place) => (&mut self.wires, place),
            Event::Driver(place) => (&mut self.drivers, place),
            Event::Node(place) => (&mut self.nodes, place),
        };
        if list.len() <= place {
            list.resize(place + 1, None);
        }
        let Some(due) = list.get_mut(place) else { panic!("{event:?} has no place") };
        due
    }

    /// Wakes `event` no later than `at`, or never if that is [`Instant::FAR`].
    pub(super) fn wake(&mut self, event: Event, at: Instant) {
        let due = self.due(event);
        if at < Instant::FAR && due.is_none_or(|due| at < due) {
            *due = Some(at);
            self.heap.push(Reverse(Entry::new(at, event)));
        }
    }

    /// Returns the instant of the next valid wake-up.
    pub(super) fn next_at(&mut self) -> Option<Instant> {
        while let Some(&Reverse(entry)) = self.heap.peek() {
            if *self.due(entry.event()) == Some(entry.at()) {
                return Some(entry.at());
            }
            self.heap.pop();
        }
        None
    }

    /// Removes and returns the next event due by `now`. The caller must schedule it again.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Event> {
        self.next_at().filter(|at| *at <= now)?;
        let event = self.heap.pop()?.0.event();
        *self.due(event) = None;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wakeup_of_each_counts_once() {
        let mut queue = Queue::default();
        let at = Instant::from_millis;
        queue.wake(Event::Node(1), at(5));
        queue.wake(Event::Node(1), at(3));
        queue.wake(Event::Node(1), at(4));
        queue.wake(Event::Node(0), Instant::FAR);
        queue.wake(Event::Wire(7), at(3));
        assert_eq!(queue.next_at(), Some(at(3)));
        assert_eq!(queue.pop(at(2)), None);
        assert_eq!(queue.pop(at(3)), Some(Event::Wire(7)));
        assert_eq!(queue.pop(at(3)), Some(Event::Node(1)));
        assert_eq!((queue.pop(at(9)), queue.next_at()), (None, None));
        queue.wake(Event::Node(1), at(6));
        assert_eq!(queue.pop(at(9)), Some(Event::Node(1)));
    }
}
