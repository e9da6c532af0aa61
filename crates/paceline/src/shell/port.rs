//! Ports: where an output's samples go, owned by the one thread that brings them.

use super::scaling::ScalePort;
use super::sink::{AtomicDrops, Sink};
use super::wake::Waker;
use crossbeam_queue::ArrayQueue;
use event_listener::Event;
use paceline_proto::{DropReason, PublisherId, Sample, Tag};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Instant, Late};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples that a ring between a source and its link holds.
const RING_SAMPLES: usize = 512;

/// What a link's egress thread is told through: who has something, and how to wake it.
#[derive(Debug)]
pub(crate) struct Announcements {
    /// Streams whose ring is no longer empty.
    pub(crate) ready: ArrayQueue<StreamIndex>,
    /// The egress thread.
    pub(crate) waker: Arc<Waker>,
    /// Told when rings were drained.
    pub(crate) room: Event,
}

/// What both ends of a stream's ring share.
#[derive(Debug)]
pub(crate) struct RingShared {
    index: StreamIndex,
    announced: AtomicBool,
    /// Samples that never got into the ring.
    pub(crate) drops: AtomicDrops,
    link: Arc<Announcements>,
}

impl RingEnd {
    /// True if the ring has so much room that a publisher that waits for it should be told: half of
    /// it, so that the two do not wake each other for every sample.
    pub(crate) fn has_much_room(&self) -> bool {
        self.consumer.slots() <= RING_SAMPLES / 2
    }
}

impl RingShared {
    fn announce(&self) {
        if !self.announced.swap(true, Ordering::AcqRel) {
            // There is one announcement a stream at most, and room for all streams.
            let _ = self.link.ready.push(self.index);
            self.link.waker.wake();
        }
    }

    /// The ring is about to be drained: what comes from now on is announced again.
    pub(crate) fn withdraw(&self) {
        self.announced.store(false, Ordering::Release);
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// A stream's ring, at the side of its source.
pub(crate) struct RingPort {
    producer: Producer<Sample>,
    shared: Arc<RingShared>,
}

/// A stream's ring, at the side of its link.
pub(crate) struct RingEnd {
    pub(crate) consumer: Consumer<Sample>,
    pub(crate) shared: Arc<RingShared>,
}

/// A new ring for the stream `index` of a link.
pub(crate) fn ring(index: StreamIndex, link: Arc<Announcements>) -> (RingPort, RingEnd) {
    let (producer, consumer) = RingBuffer::new(RING_SAMPLES);
    let shared = Arc::new(RingShared {
        index,
        announced: AtomicBool::new(false),
        drops: AtomicDrops::default(),
        link,
    });
    (RingPort { producer, shared: shared.clone() }, RingEnd { consumer, shared })
}

/// Subscribers of this node that get samples in one form from one publisher.
pub(crate) struct LocalPort {
    pub(crate) tag: Tag,
    pub(crate) publisher: PublisherId,
    pub(crate) late: Late,
    pub(crate) sinks: Vec<Arc<Sink>>,
    pub(crate) next_seq: u64,
}

impl LocalPort {
    fn deliver(&mut self, now: Instant, sample: Sample) -> bool {
        if sample.seq < self.next_seq {
            self.count(DropReason::Duplicate, 1);
            return false;
        }
        self.next_seq = sample.seq + 1;
        let Some((last, others)) = self.sinks.split_last() else { return true };
        let mut delivered = true;
        for sink in others {
            delivered &= sink.deliver(now, &self.tag, self.publisher, self.late, sample.clone());
        }
        delivered & last.deliver(now, &self.tag, self.publisher, self.late, sample)
    }

    fn count(&self, reason: DropReason, samples: u64) {
        self.sinks.iter().for_each(|sink| sink.counts.drops.add(reason, samples));
    }
}

/// Where an output's samples go.
pub(crate) enum Port {
    /// To a link.
    Ring(RingPort),
    /// To subscribers here.
    Local(LocalPort),
    /// To be scaled first.
    Scale(ScalePort),
}

impl Port {
    /// Takes a sample; false if it was dropped, which is counted where it was to go.
    pub(crate) fn push(&mut self, now: Instant, sample: Sample) -> bool {
        match self {
            Self::Ring(ring) => {
                let taken = ring.producer.push(sample).is_ok();
                if !taken {
                    ring.shared.drops.add(DropReason::QueueFull, 1);
                }
                ring.shared.announce();
                taken
            }
            Self::Local(local) => local.deliver(now, sample),
            Self::Scale(scale) => scale.submit(sample),
        }
    }

    /// Counts samples that were lost on their way here.
    pub(crate) fn count(&self, reason: DropReason, samples: u64) {
        match self {
            Self::Ring(ring) => ring.shared.drops.add(reason, samples),
            Self::Local(local) => local.count(reason, samples),
            Self::Scale(scale) => scale.count(reason, samples),
        }
    }

    /// The link to wait for if this port has no room.
    pub(crate) fn full(&self) -> Option<&Arc<Announcements>> {
        match self {
            Self::Ring(ring) if ring.producer.is_full() && !ring.producer.is_abandoned() => {
                Some(&ring.shared.link)
            }
            Self::Ring(_) | Self::Local(_) | Self::Scale(_) => None,
        }
    }
}
