//! A subscriber's queue. Dropping an unread video picture can make later ones undecodable.

use crate::sample::Sample;
use crossbeam_queue::ArrayQueue;
use paceline_proto::{Kind, PublisherId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The limit of video publishers with a decoding state. Beyond it, all states are reset.
const PUBLISHERS_MAX: usize = 4_096;

/// An unread delivery.
pub(super) struct Unread {
    pub(super) delivery: Sample,
    /// The number of reference pictures of the video that were delivered before it.
    pub(super) needed: u64,
}

/// The unread deliveries.
pub(super) struct Queue {
    /// Boxed, so that an empty queue uses little memory.
    pub(super) unread: ArrayQueue<Box<Unread>>,
    /// For each video publisher, the number of reference pictures read so far.
    read: Mutex<BTreeMap<PublisherId, u64>>,
}

impl Queue {
    pub(super) fn new(samples: usize) -> Self {
        Self { unread: ArrayQueue::new(samples.max(1)), read: Mutex::default() }
    }

    /// Returns false if the delivery is a video picture that depends on one dropped unread. Call
    /// this once per delivery, in order.
    pub(super) fn is_usable(&self, unread: &Unread) -> bool {
        let Sample { kind, publisher, .. } = unread.delivery;
        if !kind.is_video() {
            return true;
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // A pull may begin anywhere, because the puller knows the earlier pictures.
        let pulled = unread.delivery.tag.is_private();
        let whole = match read.get(&publisher) {
            Some(needed) => *needed == unread.needed,
            None => pulled && unread.needed == 0,
        };
        if kind == Kind::VideoB {
            return whole;
        }
        if kind != Kind::VideoI && !whole {
            return false;
        }
        if read.len() >= PUBLISHERS_MAX {
            read.clear();
        }
        read.insert(publisher, unread.needed + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::{Encoding, NodeId, Tag, Timestamp};
    use std::time::Duration;

    fn usable(queue: &Queue, index: u32, kind: Kind, needed: u64) -> bool {
        let delivery = Sample {
            tag: Tag::new("a").unwrap(),
            publisher: PublisherId { node: NodeId(1), index },
            seq: 0,
            captured: Timestamp::default(),
            age: Duration::ZERO,
            late: false,
            kind,
            encoding: Encoding::Bytes,
            payload: Default::default(),
            attachment: None,
        };
        queue.is_usable(&Unread { delivery, needed })
    }

    #[test]
    fn after_a_gap_only_an_independent_picture_is_usable() {
        use Kind::{VideoB as B, VideoI as I, VideoP as P};
        let queue = Queue::new(4);
        assert!(!usable(&queue, 0, P, 3), "nothing was read before it");
        let all = [(I, 4), (P, 5), (B, 6), (P, 6), (B, 7)];
        assert!(all.into_iter().all(|(kind, needed)| usable(&queue, 0, kind, needed)));
        // The reference picture before it was dropped unread.
        for (kind, needed) in [(P, 8), (B, 9), (P, 9)] {
            assert!(!usable(&queue, 0, kind, needed));
        }
        assert!(usable(&queue, 1, I, 0) && usable(&queue, 1, P, 1), "another publisher");
        assert!(usable(&queue, 0, Kind::Data, 0));
        assert!(usable(&queue, 0, I, 10) && usable(&queue, 0, P, 11));
        // A new path to the publisher counts from zero.
        assert!(!usable(&queue, 0, P, 1) && usable(&queue, 0, I, 0) && usable(&queue, 0, P, 1));
    }
}
