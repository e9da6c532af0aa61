//! The control messages of neighbours that wait for the one thread that handles them.

use paceline_proto::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// The most messages of one neighbour that wait.
const WAITING_MAX: usize = 8_192;

/// The control messages that wait, one queue per neighbour. The neighbours have turns, one message each, so that a neighbour
/// with many messages delays the messages of another by one message only.
///
/// Messages of a neighbour keep their order. Each neighbour has room for 8,192 messages; the caller counts their memory.
///
/// ```
/// use paceline_node::MessageQueue;
/// use paceline_proto::NodeId;
///
/// let (busy, newcomer) = (NodeId(1), NodeId(2));
/// let mut queue = MessageQueue::default();
/// (0..1_000).for_each(|number| assert!(queue.push(busy, number)));
/// assert!(queue.push(newcomer, 1_000));
/// assert_eq!(queue.pop(), Some((busy, 0)));
/// assert_eq!(queue.pop(), Some((newcomer, 1_000)));
/// ```
#[derive(Clone, Debug)]
pub struct MessageQueue<T> {
    /// The queues that are not empty.
    queues: BTreeMap<NodeId, VecDeque<T>>,
    /// Their neighbours, in the order of their turns.
    turns: VecDeque<NodeId>,
}

impl<T> Default for MessageQueue<T> {
    fn default() -> Self {
        Self { queues: BTreeMap::new(), turns: VecDeque::new() }
    }
}

impl<T> MessageQueue<T> {
    /// Returns true if no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Adds a message of a neighbour. Returns false if it is dropped, because too many messages of this neighbour wait.
    #[must_use = "a message may be dropped"]
    pub fn push(&mut self, from: NodeId, message: T) -> bool {
        let waits = self.queues.get(&from).map_or(0, VecDeque::len);
        if waits >= WAITING_MAX {
            return false;
        }
        self.append(from, message);
        true
    }

    /// Adds an input that must not be dropped, behind the messages of this neighbour.
    pub fn append(&mut self, from: NodeId, input: T) {
        let queue = self.queues.entry(from).or_default();
        if queue.is_empty() {
            self.turns.push_back(from);
        }
        queue.push_back(input);
    }

    /// Takes the next message, with its neighbour.
    pub fn pop(&mut self) -> Option<(NodeId, T)> {
        self.pop_of(|_| true)
    }

    /// Returns true if a message of a neighbour waits that `may` be handled.
    #[must_use]
    pub fn has_of(&self, may: impl Fn(NodeId) -> bool) -> bool {
        self.turns.iter().any(|from| may(*from))
    }

    /// Takes the next message of a neighbour that `may` be handled. The messages of the rest wait.
    pub fn pop_of(&mut self, may: impl Fn(NodeId) -> bool) -> Option<(NodeId, T)> {
        let place = self.turns.iter().position(|from| may(*from))?;
        let from = self.turns.remove(place)?;
        let queue = self.queues.get_mut(&from)?;
        let message = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&from);
        } else {
            self.turns.push_back(from);
        }
        Some((from, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_messages_of_a_neighbour_are_bounded() {
        let mut queue = MessageQueue::default();
        let pushed = (0..10_000).filter(|number| queue.push(NodeId(1), *number)).count();
        assert_eq!(pushed, WAITING_MAX);
        queue.append(NodeId(1), 10_000);
        assert!(queue.push(NodeId(2), 0));
        let all: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((all.len(), all[1]), (WAITING_MAX + 2, (NodeId(2), 0)));
        assert_eq!(all.last(), Some(&(NodeId(1), 10_000)));
    }

    #[test]
    fn the_messages_of_a_neighbour_wait_while_it_may_not_be_handled() {
        let mut queue = MessageQueue::default();
        (0..4).for_each(|number| assert!(queue.push(NodeId(1 + number % 2), number)));
        let second = |node| node == NodeId(2);
        assert_eq!(queue.pop_of(second), Some((NodeId(2), 1)));
        assert_eq!(queue.pop_of(second), Some((NodeId(2), 3)));
        assert!(queue.pop_of(second).is_none() && !queue.has_of(second) && !queue.is_empty());
        assert_eq!((queue.pop(), queue.pop()), (Some((NodeId(1), 0)), Some((NodeId(1), 2))));
    }

    proptest! {
        /// Each message is taken once and in its order, and waits for at most one message of each other neighbour and
        /// message before it.
        #[test]
        fn neighbours_have_equal_turns(steps in prop::collection::vec(0..8u64, 1..300)) {
            let mut queue = MessageQueue::default();
            let mut waiting: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
            // The turns of others since the last turn of each neighbour with messages.
            let mut passed: BTreeMap<u64, BTreeMap<u64, u32>> = BTreeMap::new();
            let mut take = |queue: &mut MessageQueue<usize>, waiting: &mut BTreeMap<u64, VecDeque<usize>>| {
                let Some((NodeId(from), number)) = queue.pop() else {
                    assert!(waiting.values().all(VecDeque::is_empty));
                    return false;
                };
                assert_eq!(waiting.get_mut(&from).and_then(VecDeque::pop_front), Some(number));
                passed.remove(&from);
                for other in waiting.iter().filter(|(_, all)| !all.is_empty()).map(|(other, _)| *other) {
                    if other != from {
                        let turns = passed.entry(other).or_default().entry(from).or_default();
                        *turns += 1;
                        assert!(*turns <= 1, "{from} had two turns before {other}");
                    }
                }
                true
            };
            for (number, step) in steps.into_iter().enumerate() {
                // Four neighbours; the first one sends most.
                match step {
                    0..5 => {
                        let from = step.saturating_sub(1);
                        prop_assert!(queue.push(NodeId(from), number));
                        waiting.entry(from).or_default().push_back(number);
                    }
                    _ => _ = take(&mut queue, &mut waiting),
                }
            }
            while take(&mut queue, &mut waiting) {}
            prop_assert!(queue.is_empty() && queue.queues.is_empty());
        }
    }
}
