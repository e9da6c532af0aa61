//! Ports: the outputs of a source, each owned by the thread that delivers samples to it.

pub(crate) mod scaling;

use super::mailbox::Mailbox;
use super::sink::{AtomicDrops, Needed, Order, Origin, Sink};
use super::wake::Waker;
use crossbeam_queue::ArrayQueue;
use event_listener::{Event, EventListener};
use paceline_proto::video::DecodeGate;
use paceline_proto::{DropReason, PublisherId, RawSample, SubscriptionId, Tag};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Instant, Late};
use rtrb::{Consumer, Producer, RingBuffer};
use scaling::ScalePort;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The capacity of the ring between a source and its link, in samples.
pub(crate) const RING_SAMPLES: usize = 512;

/// The notifications to a link's egress thread, and its waker.
#[derive(Debug)]
pub(crate) struct Announcements {
    /// Streams whose ring is no longer empty.
    pub(crate) ready: ArrayQueue<StreamIndex>,
    /// The waker of the egress thread.
    pub(crate) waker: Arc<Waker>,
    /// Notified when rings were drained.
    pub(crate) room: Event,
}

/// The state that both ends of a stream's ring share.
#[derive(Debug)]
pub(crate) struct RingShared {
    index: StreamIndex,
    announced: AtomicBool,
    /// Samples that did not fit into the ring.
    pub(crate) drops: AtomicDrops,
    link: Arc<Announcements>,
}

impl RingEnd {
    /// Returns true if waiting publishers should be notified: half of the ring is free.
    ///
    /// A lower threshold would make publisher and link wake each other for every sample.
    pub(crate) fn has_much_room(&self) -> bool {
        self.consumer.slots() <= RING_SAMPLES / 2
    }
}

impl RingPort {
    /// Returns a listener for room if the ring is full and the link still exists.
    fn full(&self) -> Option<EventListener> {
        let full = || self.producer.is_full() && !self.producer.is_abandoned();
        let room = full().then(|| self.shared.link.room.listen());
        // The ring may have been drained before the listener existed.
        room.filter(|_| full())
    }
}

impl RingShared {
    fn announce(&self) {
        if !self.announced.swap(true, Ordering::AcqRel) {
            // There is at most one announcement per stream, and the queue has room for all streams.
            let _ = self.link.ready.push(self.index);
            self.link.waker.wake();
        }
    }

    /// Clears the announcement before the ring is drained; later samples are announced again.
    pub(crate) fn withdraw(&self) {
        self.announced.store(false, Ordering::Release);
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// The source's end of a stream's ring.
pub(crate) struct RingPort {
    producer: Producer<(Instant, RawSample)>,
    shared: Arc<RingShared>,
}

/// The link's end of a stream's ring.
pub(crate) struct RingEnd {
    /// The samples, each with its time of arrival in the ring.
    pub(crate) consumer: Consumer<(Instant, RawSample)>,
    pub(crate) shared: Arc<RingShared>,
}

/// Creates the ring of the stream `index` of a link.
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

/// A change of the subscribers of a [`LocalPort`].
pub(crate) enum SinkChange {
    Join(SubscriptionId, Arc<Sink>, Arc<Order>),
    Leave(SubscriptionId),
}

/// A subscriber and its decoding state.
struct LocalSink {
    id: SubscriptionId,
    sink: Arc<Sink>,
    order: Arc<Order>,
    gate: DecodeGate,
    /// The delivered video pictures.
    needed: Needed,
}

/// The subscribers of this node for one publisher and form.
///
/// They are added and removed by posted changes, so that the cost of a change does not depend on
/// their number.
pub(crate) struct LocalPort {
    tag: Tag,
    publisher: PublisherId,
    late: Late,
    changes: Arc<Mailbox<SinkChange>>,
    /// The number of applied changes.
    seen: u64,
    sinks: Vec<LocalSink>,
    /// True if a subscriber was added since the last query.
    newcomer: bool,
    next_seq: u64,
}

impl LocalPort {
    /// Creates a port without subscribers.
    pub(crate) fn new(
        tag: Tag,
        publisher: PublisherId,
        late: Late,
        changes: Arc<Mailbox<SinkChange>>,
    ) -> Self {
        let sinks = Vec::new();
        Self { tag, publisher, late, changes, seen: 0, sinks, newcomer: false, next_seq: 0 }
    }

    /// Applies the posted changes.
    fn settle(&mut self) {
        let Self { tag, changes, seen, sinks, newcomer, .. } = self;
        // Pulled samples are selected in advance: a page may begin inside a group of pictures.
        let gate = DecodeGate::starting(tag.is_private());
        changes.collect(seen, |change| match change {
            SinkChange::Join(id, sink, order) => {
                sinks.push(LocalSink { id, sink, order, gate, needed: Needed::default() });
                *newcomer = true;
            }
            SinkChange::Leave(id) => sinks.retain(|place| place.id != id),
        });
    }

    /// Returns true if a subscriber was added since the last call. A new subscriber needs a picture
    /// that can be decoded alone.
    pub(crate) fn has_newcomer(&mut self) -> bool {
        self.settle();
        std::mem::take(&mut self.newcomer)
    }

    fn deliver(&mut self, now: Instant, sample: RawSample) -> bool {
        self.settle();
        if sample.seq < self.next_seq {
            self.count(DropReason::Duplicate, 1);
            // A duplicate of a video picture breaks nothing: the picture was delivered before.
            return sample.kind.is_video();
        }
        self.next_seq = sample.seq.saturating_add(1);
        let Self { tag, publisher, late, sinks, .. } = self;
        let from = Origin { tag, publisher: *publisher, late: *late };
        let Some((last, others)) = sinks.split_last_mut() else { return true };
        if sample.kind.is_video() {
            // A subscriber that cannot decode the picture must not block it for the others.
            let mut delivered = false;
            for sink in others {
                delivered |= sink.deliver_video(now, &from, sample.clone());
            }
            return delivered | last.deliver_video(now, &from, sample);
        }
        let mut delivered = true;
        for other in others {
            delivered &=
                other.sink.deliver(now, &from, (&other.order, Needed::default()), sample.clone());
        }
        delivered & last.sink.deliver(now, &from, (&last.order, Needed::default()), sample)
    }

    /// Counts samples that no subscriber receives, including subscribers added since the last
    /// sample.
    fn count(&mut self, reason: DropReason, samples: u64) {
        self.settle();
        self.sinks.iter().for_each(|place| place.sink.counts.drops.add(reason, samples));
    }
}

impl LocalSink {
    /// Delivers a video picture if the previously delivered ones allow decoding it.
    fn deliver_video(&mut self, now: Instant, from: &Origin<'_>, sample: RawSample) -> bool {
        let kind = sample.kind;
        if !self.gate.admit(kind) {
            self.sink.counts.drops.add(DropReason::Undecodable, 1);
            return false;
        }
        let delivered = self.sink.deliver(now, from, (&self.order, self.needed), sample);
        if delivered {
            self.needed.add(kind);
        } else {
            self.gate.broke(kind);
        }
        delivered
    }
}

/// An output of a source.
pub(crate) enum Port {
    /// To a link.
    Ring(RingPort),
    /// To subscribers on this node.
    Local(LocalPort),
    /// To a scaler.
    Scale(ScalePort),
}

impl Port {
    /// Delivers a sample; returns false if it was dropped. The output counts the drop.
    pub(crate) fn push(&mut self, now: Instant, sample: RawSample) -> bool {
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

    /// Delivers a sample or counts the reason for its absence; returns false if there is none.
    pub(crate) fn take(&mut self, now: Instant, sample: Result<RawSample, DropReason>) -> bool {
        match sample {
            Ok(sample) => self.push(now, sample),
            Err(reason) => {
                self.count(reason, 1);
                false
            }
        }
    }

    /// Counts samples that were lost before this port.
    pub(crate) fn count(&mut self, reason: DropReason, samples: u64) {
        match self {
            Self::Ring(ring) => ring.shared.drops.add(reason, samples),
            Self::Local(local) => local.count(reason, samples),
            Self::Scale(scale) => scale.count(reason, samples),
        }
    }

    /// Returns a listener for room if this port is full.
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
    fn losses_before_the_first_sample_are_counted_at_subscribers() {
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
