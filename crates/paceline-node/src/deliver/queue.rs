//! A subscriber's queue. Dropping an unread video picture can make later ones undecodable.

use crate::Sample;
use paceline_proto::{Kind, PublisherId};
use paceline_sched::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The limit of payload bytes in a queue.
const WAITING_BYTES_MAX: usize = 128 << 20;
/// The limit of video publishers with a decoding state. Beyond it, all states are reset.
const PUBLISHERS_MAX: usize = 4_096;

/// The pictures of a video that were delivered before another one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Needed {
    /// The number of key and reference pictures.
    references: u64,
    /// The number of leading pictures since the last key picture.
    leading: u64,
}

impl Needed {
    /// Counts a delivered picture of this kind.
    pub fn add(&mut self, kind: Kind) {
        match kind {
            Kind::VideoI => *self = Self { references: self.references + 1, leading: 0 },
            Kind::VideoP => self.references += 1,
            Kind::VideoLeading => self.leading += 1,
            Kind::VideoB | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => {}
        }
    }
}

/// A sample that the application has not taken.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) delivery: Sample,
    /// The instant at which the sample had the age in it.
    pub(super) since: Instant,
    /// The part of its age that the subscription requested, by its delivery by time or as the newest sample of a latched
    /// publisher.
    pub(super) requested: Duration,
    /// The pictures that were delivered before it.
    pub(super) needed: Needed,
    /// The instant at which it reaches the age limit; `None` if it may have, and without a limit.
    pub(super) until: Option<Instant>,
}

impl Unread {
    /// Adds the time that has passed to the age of the sample. Returns that time.
    pub(super) fn grow_old(&mut self, now: Instant) -> Duration {
        let passed = Duration::from(now.since(self.since));
        self.delivery.age += passed;
        self.since = self.since.max(now);
        passed
    }
}

/// The pictures of a video that were read.
#[derive(Debug)]
struct Read {
    needed: Needed,
    /// The leading pictures since the last key picture can be decoded.
    leads: bool,
}

/// The samples that the application has not taken.
#[derive(Debug)]
pub(super) struct Queue {
    capacity: usize,
    /// It grows with the samples that wait, because most queues are nearly empty. Boxed, so that growing is cheap.
    unread: VecDeque<Box<Unread>>,
    /// The pictures of each video publisher that were read.
    read: BTreeMap<PublisherId, Read>,
    /// The payload bytes that wait.
    bytes: usize,
}

impl Queue {
    pub(super) fn new(samples: usize) -> Self {
        Self { capacity: samples.max(1), unread: VecDeque::new(), read: BTreeMap::new(), bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.unread.len()
    }

    /// Returns the payload bytes that wait.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns half of its capacity, as far as that is free.
    pub(super) fn half_free(&self) -> usize {
        (self.capacity / 2).saturating_sub(self.len())
    }

    pub(super) fn push(&mut self, unread: Unread) {
        self.bytes += unread.delivery.payload.len();
        self.unread.push_back(Box::new(unread));
    }

    /// Takes the oldest sample.
    pub(super) fn pop(&mut self) -> Option<Box<Unread>> {
        let oldest = self.unread.pop_front()?;
        self.bytes -= oldest.delivery.payload.len();
        Some(oldest)
    }

    /// Takes the oldest sample if more wait than the queue may hold.
    pub(super) fn pop_excess(&mut self) -> Option<Box<Unread>> {
        let full = self.len() > self.capacity || self.bytes > WAITING_BYTES_MAX && self.len() > 1;
        full.then(|| self.pop()).flatten()
    }

    /// Returns false if the delivery is a video picture that depends on one dropped unread. Call
    /// this once per delivery, in order.
    pub(super) fn is_usable(&mut self, unread: &Unread) -> bool {
        let Sample { kind, publisher, .. } = unread.delivery;
        if !kind.is_video() {
            return true;
        }
        let read = &mut self.read;
        // A pull may begin anywhere, because the puller knows the earlier pictures.
        let pulled = unread.delivery.tag.is_private();
        let last = read.get(&publisher);
        let whole = match last {
            Some(last) => last.needed.references == unread.needed.references,
            None => pulled && unread.needed.references == 0,
        };
        let leads = if kind == Kind::VideoI {
            whole
        } else if kind == Kind::VideoLeading {
            let all = |last: &Read| last.leads && last.needed.leading == unread.needed.leading;
            last.map_or(pulled, all)
        } else {
            last.is_some_and(|last| last.leads)
        };
        let usable = kind == Kind::VideoI || whole && (leads || kind != Kind::VideoLeading);
        if !usable || kind == Kind::VideoB {
            return usable;
        }
        if read.len() >= PUBLISHERS_MAX {
            read.clear();
        }
        let mut needed = unread.needed;
        needed.add(kind);
        read.insert(publisher, Read { needed, leads });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::{Encoding, NodeId, Tag, Timestamp};

    fn usable(queue: &mut Queue, index: u32, kind: Kind, references: u64) -> bool {
        usable_after(queue, index, kind, Needed { references, leading: 0 })
    }

    fn usable_after(queue: &mut Queue, index: u32, kind: Kind, needed: Needed) -> bool {
        let delivery = Sample {
            tag: Tag::new("a").unwrap(),
            publisher: PublisherId { node: NodeId(1), index },
            seq: 0,
            captured: Timestamp::default(),
            age: Duration::ZERO,
            late: false,
            actuation: None,
            placement: None,
            kind,
            encoding: Encoding::Bytes,
            payload: Default::default(),
            attachment: None,
        };
        let since = Instant::ZERO;
        let requested = Duration::ZERO;
        queue.is_usable(&Unread { delivery, since, requested, needed, until: None })
    }

    #[test]
    fn after_a_gap_only_an_independent_picture_is_usable() {
        use Kind::{VideoB as B, VideoI as I, VideoP as P};
        let mut queue = Queue::new(4);
        assert!(!usable(&mut queue, 0, P, 3), "nothing was read before it");
        let all = [(I, 4), (P, 5), (B, 6), (P, 6), (B, 7)];
        assert!(all.into_iter().all(|(kind, needed)| usable(&mut queue, 0, kind, needed)));
        // The reference picture before it was dropped unread.
        for (kind, needed) in [(P, 8), (B, 9), (P, 9)] {
            assert!(!usable(&mut queue, 0, kind, needed));
        }
        assert!(usable(&mut queue, 1, I, 0) && usable(&mut queue, 1, P, 1), "another publisher");
        assert!(usable(&mut queue, 0, Kind::Data, 0));
        assert!(usable(&mut queue, 0, I, 10) && usable(&mut queue, 0, P, 11));
        // A new path to the publisher counts from zero.
        assert!(
            !usable(&mut queue, 0, P, 1)
                && usable(&mut queue, 0, I, 0)
                && usable(&mut queue, 0, P, 1)
        );
    }

    #[test]
    fn leading_pictures_need_everything_before_their_key_picture() {
        use Kind::{VideoI as I, VideoLeading as L, VideoP as P};
        let after = |references, leading| Needed { references, leading };
        let mut queue = Queue::new(4);
        let mut read = |kind, needed| usable_after(&mut queue, 0, kind, needed);
        assert!(read(I, after(0, 0)) && !read(L, after(1, 0)), "reading starts at the key picture");
        assert!(read(P, after(1, 0)) && read(I, after(2, 0)));
        assert!(read(L, after(3, 0)) && read(L, after(3, 1)) && read(P, after(3, 2)));
        // A leading picture was dropped unread: the other ones cannot be decoded, all others can.
        assert!(read(I, after(4, 0)) && !read(L, after(5, 1)) && read(P, after(5, 2)));
        // A reference before the key picture was dropped unread.
        assert!(read(I, after(7, 0)) && !read(L, after(8, 0)) && read(P, after(8, 1)));
    }
}
