//! Ports: the outputs of a source, each owned by the thread that delivers samples to it.

mod local;
pub(crate) mod scaling;

pub(crate) use local::{LocalPort, SinkChange};

use super::drops::AtomicDrops;
use super::mailbox::Mailbox;
use super::wake::Waker;
use crossbeam_queue::ArrayQueue;
use event_listener::{Event, EventListener};
use paceline_node::install::Installation;
use paceline_proto::ingress::Ingress;
use paceline_proto::plan::Target;
use paceline_proto::video::{Group, Joining, Next};
use paceline_proto::{DropReason, RawSample};
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use rtrb::{Consumer, Producer, RingBuffer};
use scaling::ScalePort;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The number of pictures of a group that a joining receiver takes per sample of the source: the receiver
/// reaches the newest picture soon, and no queue overflows.
const JOIN_PORTION: usize = 12;
/// The number of samples queued at a link above which a joining stream waits: the link has no spare capacity.
const JOIN_QUEUED_MAX: usize = 4;

/// The new outputs of a source, for the thread that delivers its samples.
pub(crate) type Installs = Mailbox<Installation<Port>>;

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
    /// The number of samples that the link had queued when it last read the ring.
    pub(crate) queued: AtomicUsize,
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
    /// Lets the stream begin in the middle of a group of pictures, while the link has spare capacity.
    #[must_use]
    pub(crate) fn joining(self) -> Self {
        Self { joining: Joining::default(), ..self }
    }

    fn push(&mut self, now: Instant, sample: RawSample) -> bool {
        let taken = self.producer.push((now, sample)).is_ok();
        if !taken {
            self.shared.drops.add(DropReason::QueueFull, 1);
        }
        self.shared.announce();
        taken
    }

    fn join(&mut self, now: Instant, group: &Group, next: Option<&RawSample>) -> Next {
        let queued =
            self.shared.queued.load(Ordering::Relaxed) + RING_SAMPLES - self.producer.slots();
        let room = if queued > JOIN_QUEUED_MAX { 0 } else { JOIN_PORTION };
        if room == 0 {
            // The link reads the ring again, and updates the number.
            self.shared.announce();
        }
        let (units, treatment) = self.joining.step(group, next, room);
        let delivered = units.iter().all(|unit| self.push(now, unit.clone()));
        let treatment = if delivered { treatment } else { Next::Wait(self.joining.give_up()) };
        if let Next::Wait(lost @ 1..) = treatment {
            self.shared.drops.add(DropReason::Undecodable, lost);
        }
        treatment
    }

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
    joining: Joining,
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
        queued: AtomicUsize::new(0),
        link,
    });
    let joining = Joining::live();
    (RingPort { producer, shared: shared.clone(), joining }, RingEnd { consumer, shared })
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
            Self::Ring(ring) => ring.push(now, sample),
            Self::Local(local) => local.deliver(now, sample),
            Self::Scale(scale) => scale.submit(sample),
        }
    }

    /// Delivers units of the current group of pictures to receivers that join, before the next sample if it
    /// is known. Returns the treatment of that sample.
    pub(crate) fn join(&mut self, now: Instant, group: &Group, next: Option<&RawSample>) -> Next {
        match self {
            Self::Ring(ring) if ring.joining.is_live() => Next::Wait(0),
            Self::Ring(ring) => ring.join(now, group, next),
            Self::Local(local) => local.join(now, group, next),
            Self::Scale(scale) => next.map_or(Next::Wait(0), |next| scale.join(group, next)),
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

    /// Returns the reason for which the port drops samples that it does not take; `None` if its
    /// subscribers have different ones.
    pub(crate) const fn full_reason(&self) -> Option<DropReason> {
        match self {
            Self::Ring(_) => Some(DropReason::QueueFull),
            Self::Scale(_) => Some(DropReason::ScalerBusy),
            Self::Local(_) => None,
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

/// Delivers a sample of a source to the outputs with the given `targets`. `take` receives each output's port
/// and the sample or the reason for its absence; it returns false if the sample was dropped.
pub(crate) fn offer(
    ingress: &mut Ingress<Port>,
    targets: impl Fn(Target) -> bool,
    (now, sample): (Instant, RawSample),
    mut take: impl FnMut(&mut Port, Result<RawSample, DropReason>) -> bool,
) {
    ingress.join(&targets, &sample, |port, group| port.join(now, group, Some(&sample)));
    ingress.offer_to(targets, (now, sample), |output, sample| take(&mut output.port, sample));
}
