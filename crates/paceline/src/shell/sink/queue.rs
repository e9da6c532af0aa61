//! A subscriber's queue. What is dropped from it unread may be what a later video picture needs.

use crate::subscriber::Delivery;
use crossbeam_queue::ArrayQueue;
use paceline_proto::{Kind, PublisherId};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Publishers of video whose pictures are followed; beyond that all of them begin anew.
const PUBLISHERS_MAX: usize = 4_096;

/// A delivery that nobody has read yet.
pub(super) struct Unread {
    pub(super) delivery: Delivery,
    /// How many pictures that others need were delivered before it, of a video.
    pub(super) needed: u64,
}

/// Deliveries that wait to be read.
pub(super) struct Queue {
    /// Boxed, so that a queue that waits for samples takes little memory.
    pub(super) unread: ArrayQueue<Box<Unread>>,
    /// For each publisher of video, how many pictures must have been read for the next to be decodable.
    read: Mutex<BTreeMap<PublisherId, u64>>,
}

impl Queue {
    pub(super) fn new(samples: usize) -> Self {
        Self { unread: ArrayQueue::new(samples.max(1)), read: Mutex::default() }
    }

    /// True unless it is a video picture that needs one which was dropped unread. To be asked once for
    /// each that is read, in order.
    pub(super) fn is_usable(&self, unread: &Unread) -> bool {
        let Delivery { kind, publisher, .. } = unread.delivery;
        if !kind.is_video() {
            return true;
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // What a pull is sent may begin anywhere; whoever pulls knows what it has.
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
        let delivery = Delivery {
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
    fn after_a_gap_only_a_picture_that_stands_alone_is_usable() {
        use Kind::{VideoB as B, VideoI as I, VideoP as P};
        let queue = Queue::new(4);
        assert!(!usable(&queue, 0, P, 3), "nothing was read before it");
        let all = [(I, 4), (P, 5), (B, 6), (P, 6), (B, 7)];
        assert!(all.into_iter().all(|(kind, needed)| usable(&queue, 0, kind, needed)));
        // The picture with 7 before it was dropped unread.
        for (kind, needed) in [(P, 8), (B, 9), (P, 9)] {
            assert!(!usable(&queue, 0, kind, needed));
        }
        assert!(usable(&queue, 1, I, 0) && usable(&queue, 1, P, 1), "another publisher");
        assert!(usable(&queue, 0, Kind::Data, 0));
        assert!(usable(&queue, 0, I, 10) && usable(&queue, 0, P, 11));
        // A new way to the publisher counts from the beginning.
        assert!(!usable(&queue, 0, P, 1) && usable(&queue, 0, I, 0) && usable(&queue, 0, P, 1));
    }
}
