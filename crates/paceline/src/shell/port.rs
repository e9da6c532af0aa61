//! Ports: where an output's samples go, owned by the one thread that brings them.

use super::mailbox::Mailbox;
use super::scaling::ScalePort;
use super::sink::{AtomicDrops, Order, Origin, Sink};
use super::wake::Waker;
use crossbeam_queue::ArrayQueue;
use event_listener::{Event, EventListener};
use paceline_proto::video::DecodeGate;
use paceline_proto::{DropReason, Kind, PublisherId, Sample, SubscriptionId, Tag};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Instant, Late};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples that a ring between a source and its link holds.
pub(crate) const RING_SAMPLES: usize = 512;

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

impl RingPort {
    /// What to wait for if there is no room; nothing if the link is gone.
    fn full(&self) -> Option<EventListener> {
        let full = || self.producer.is_full() && !self.producer.is_abandoned();
        let room = full().then(|| self.shared.link.room.listen());
        // It may have been drained before we listened.
        room.filter(|_| full())
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
    producer: Producer<(Instant, Sample)>,
    shared: Arc<RingShared>,
}

/// A stream's ring, at the side of its link.
pub(crate) struct RingEnd {
    /// Samples, each with the time since which it waits.
    pub(crate) consumer: Consumer<(Instant, Sample)>,
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

/// A change of who gets what a [`LocalPort`] delivers.
pub(crate) enum SinkChange {
    Join(SubscriptionId, Arc<Sink>, Arc<Order>),
    Leave(SubscriptionId),
}

/// A subscriber, and what of a video it can use.
struct LocalSink {
    id: SubscriptionId,
    sink: Arc<Sink>,
    order: Arc<Order>,
    gate: DecodeGate,
    /// Video pictures handed to it that later ones need.
    needed: u64,
}

/// Subscribers of this node that get samples in one form from one publisher. They come and go by
/// changes that are posted, so that one more among thousands costs no more than among few.
pub(crate) struct LocalPort {
    tag: Tag,
    publisher: PublisherId,
    late: Late,
    changes: Arc<Mailbox<SinkChange>>,
    /// Changes applied so far.
    seen: u64,
    sinks: Vec<LocalSink>,
    /// Somebody came since this was last asked.
    newcomer: bool,
    next_seq: u64,
}

impl LocalPort {
    /// The way from a publisher to subscribers here.
    pub(crate) fn new(
        tag: Tag,
        publisher: PublisherId,
        late: Late,
        changes: Arc<Mailbox<SinkChange>>,
    ) -> Self {
        let sinks = Vec::new();
        Self { tag, publisher, late, changes, seen: 0, sinks, newcomer: false, next_seq: 0 }
    }

    /// Lets those in and out of whom that was posted.
    fn settle(&mut self) {
        let Self { tag, changes, seen, sinks, newcomer, .. } = self;
        // What is pulled was chosen beforehand: a page may begin inside a group.
        let gate = DecodeGate::starting(tag.is_private());
        changes.collect(seen, |change| match change {
            SinkChange::Join(id, sink, order) => {
                sinks.push(LocalSink { id, sink, order, gate, needed: 0 });
                *newcomer = true;
            }
            SinkChange::Leave(id) => sinks.retain(|place| place.id != id),
        });
    }

    /// True if somebody came since this was last asked: of a video they need a picture that stands
    /// alone.
    pub(crate) fn has_newcomer(&mut self) -> bool {
        self.settle();
        std::mem::take(&mut self.newcomer)
    }

    fn deliver(&mut self, now: Instant, sample: Sample) -> bool {
        self.settle();
        if sample.seq < self.next_seq {
            self.count(DropReason::Duplicate, 1);
            // Of a video nothing is missing: it was delivered before.
            return sample.kind.is_video();
        }
        self.next_seq = sample.seq.saturating_add(1);
        let Self { tag, publisher, late, sinks, .. } = self;
        let from = Origin { tag, publisher: *publisher, late: *late };
        let Some((last, others)) = sinks.split_last_mut() else { return true };
        if sample.kind.is_video() {
            // One that cannot use it must not keep it from the others.
            let mut delivered = false;
            for sink in others {
                delivered |= sink.deliver_video(now, &from, sample.clone());
            }
            return delivered | last.deliver_video(now, &from, sample);
        }
        let mut delivered = true;
        for other in others {
            delivered &= other.sink.deliver(now, &from, (&other.order, 0), sample.clone());
        }
        delivered & last.sink.deliver(now, &from, (&last.order, 0), sample)
    }

    /// Counts samples that none of the subscribers gets; also those who have come since the last sample.
    fn count(&mut self, reason: DropReason, samples: u64) {
        self.settle();
        self.sinks.iter().for_each(|place| place.sink.counts.drops.add(reason, samples));
    }
}

impl LocalSink {
    /// Delivers a video picture if it can be decoded with what was delivered before.
    fn deliver_video(&mut self, now: Instant, from: &Origin<'_>, sample: Sample) -> bool {
        let kind = sample.kind;
        if !self.gate.admit(kind) {
            self.sink.counts.drops.add(DropReason::Undecodable, 1);
            return false;
        }
        let delivered = self.sink.deliver(now, from, (&self.order, self.needed), sample);
        if !delivered {
            self.gate.broke(kind);
        } else if kind != Kind::VideoB {
            self.needed += 1;
        }
        delivered
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
                let taken = ring.producer.push((now, sample)).is_ok();
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

    /// Takes a sample, or the reason why there is none; false if it was dropped.
    pub(crate) fn take(&mut self, now: Instant, sample: Result<Sample, DropReason>) -> bool {
        match sample {
            Ok(sample) => self.push(now, sample),
            Err(reason) => {
                self.count(reason, 1);
                false
            }
        }
    }

    /// Counts samples that were lost on their way here.
    pub(crate) fn count(&mut self, reason: DropReason, samples: u64) {
        match self {
            Self::Ring(ring) => ring.shared.drops.add(reason, samples),
            Self::Local(local) => local.count(reason, samples),
            Self::Scale(scale) => scale.count(reason, samples),
        }
    }

    /// What to wait for if this port has no room.
    pub(crate) fn full(&self) -> Option<EventListener> {
        match self {
            Self::Ring(ring) => ring.full(),
            Self::Scale(scale) => scale.full(),
            Self::Local(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::control::SubscriptionSpec;
    use paceline_proto::{NodeId, Pattern};

    #[test]
    fn what_was_lost_before_the_first_sample_is_counted_at_subscribers() {
        let publisher = PublisherId { node: NodeId(1), index: 0 };
        let id = SubscriptionId { node: NodeId(2), index: 0 };
        let spec = SubscriptionSpec::all_of(Pattern::new("tag").unwrap());
        let (sink, changes) = (Arc::new(Sink::with_queue(&spec, 4)), Arc::<Mailbox<_>>::default());
        let tag = Tag::new("tag").unwrap();
        let mut port = LocalPort::new(tag, publisher, Late::Drop, changes.clone());
        changes.post(SinkChange::Join(id, sink.clone(), sink.order_of(publisher)));
        port.count(DropReason::LinkLoss, 3);
        assert_eq!(sink.counts.drops.load().of(DropReason::LinkLoss), 3);
    }
}
