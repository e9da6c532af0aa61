//! The receiving end of a subscription.

use crate::ages::AgeHistogram;
use paceline_node::Sample;
use paceline_node::deliver::{Acceptance, Delivery, Moments, Needed, Origin, TakenSample};
use paceline_proto::control::{Grant, Refusal, SubscriptionSpec};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::sample::{Kind, RawSample};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// A sample as delivered to a subscription.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivered {
    /// The publisher.
    pub publisher: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// The age of the sample when the application took it.
    pub age: Duration,
    /// That instant, by the world's time.
    pub at: Instant,
    /// True if the sample missed the delay bound.
    pub late: bool,
    /// Payload bytes.
    pub bytes: usize,
    /// The kind of the sample.
    pub kind: Kind,
}

/// Counters of the samples delivered to a subscription.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counted {
    /// Samples delivered.
    pub samples: u64,
    /// Samples delivered after the delay bound.
    pub late: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// The ages of the samples at delivery.
    pub ages: AgeHistogram,
}

/// The samples that wait for an application that does not read.
const QUEUE_SAMPLES: usize = 1_024;

/// The receiving end of a subscription: the delivery of a node, and an application that takes each sample at once or reads
/// later.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) spec: SubscriptionSpec,
    delivery: Delivery,
    /// The application does not read.
    paused: bool,
    /// All delivered samples, if `keeps` is set.
    pub(super) delivered: Vec<Delivered>,
    pub(super) counted: Counted,
    keeps: bool,
    /// The subscription has ended.
    pub(super) ended: bool,
    /// The samples that earlier incarnations of the node dropped or had not read.
    past: Drops,
    unread: u64,
    /// The samples that were read from them.
    former: u64,
    /// Dropped samples by publisher.
    pub(super) dropped: BTreeMap<PublisherId, u64>,
    /// Samples that arrived here or were lost upstream.
    offered: u64,
    /// Samples published from the first that arrived of each publisher to its newest.
    pub(super) published: u64,
    /// The sequence number after the newest sample, by publisher.
    next: BTreeMap<PublisherId, u64>,
    pub(super) publishers: Vec<PublisherId>,
    pub(super) refusals: Vec<(PublisherId, Refusal)>,
    /// The refusals of spares of contracts in force.
    pub(super) unspared: Vec<Refusal>,
    /// Publishers on paths without a capacity, where nothing can be reserved.
    pub(super) unlimited: BTreeSet<PublisherId>,
    /// The grants of its paths, by publisher.
    pub(super) grants: BTreeMap<PublisherId, Grant>,
}

impl Sink {
    pub(super) fn new(spec: SubscriptionSpec, keeps: bool) -> Self {
        Self {
            delivery: Delivery::queued(&spec, QUEUE_SAMPLES),
            spec,
            paused: false,
            delivered: Vec::new(),
            counted: Counted::default(),
            keeps,
            ended: false,
            past: Drops::default(),
            unread: 0,
            former: 0,
            dropped: BTreeMap::new(),
            offered: 0,
            published: 0,
            next: BTreeMap::new(),
            publishers: Vec::new(),
            refusals: Vec::new(),
            unspared: Vec::new(),
            unlimited: BTreeSet::new(),
            grants: BTreeMap::new(),
        }
    }

    /// Counts samples that were lost or dropped before they arrived here.
    pub(super) fn count(&mut self, publisher: PublisherId, reason: DropReason, samples: u64) {
        self.offered += samples;
        *self.dropped.entry(publisher).or_default() += samples;
        self.delivery.handle_lost(reason, samples);
    }

    /// Returns the dropped samples by reason.
    pub(super) fn drops(&self) -> Drops {
        let mut drops = self.past;
        drops.merge(&self.delivery.counts().drops());
        drops
    }

    /// Returns true if each sample that was offered is delivered, waits or was dropped.
    pub(super) fn is_balanced(&self) -> bool {
        self.offered == self.counted.samples + self.drops().total() + self.unread()
    }

    /// Begins new accounts after a crash of the node.
    pub(super) fn begin_anew(&mut self) {
        self.publishers.clear();
        self.next.clear();
        (self.past, self.unread) = (self.drops(), self.unread());
        self.former = self.counted.samples;
        self.delivery = Delivery::queued(&self.spec, QUEUE_SAMPLES);
    }

    /// Returns the samples that the application has not read, or never will.
    fn unread(&self) -> u64 {
        self.unread + self.delivery.counts().delivered - (self.counted.samples - self.former)
    }

    /// Lets the application stop or resume reading.
    pub(super) fn pause(&mut self, clocks: (Instant, Instant), paused: bool) {
        self.paused = paused;
        self.take(clocks);
    }

    /// Delivers a sample. `now` is the node's clock, `at` the world's.
    pub(super) fn deliver(
        &mut self,
        (now, at): (Instant, Instant),
        from: &Origin<'_>,
        needed: Needed,
        sample: &RawSample,
    ) -> Acceptance {
        let fate = self.delivery.handle(Moments::at(now), from, needed, sample.clone(), |_| {});
        let acceptance = fate.acceptance();
        match acceptance {
            Acceptance::Accepted => self.offered += 1,
            Acceptance::Dropped => {
                self.offered += 1;
                *self.dropped.entry(from.publisher).or_default() += 1;
            }
            Acceptance::Repeated => {}
        }
        self.take((now, at));
        acceptance
    }

    /// Counts the samples that were published up to `seq`, which has arrived.
    pub(super) fn note_published(&mut self, publisher: PublisherId, seq: u64) {
        let next = self.next.entry(publisher).or_insert(seq);
        if let Some(missing) = seq.checked_sub(*next) {
            *next = seq + 1;
            self.published += missing + 1;
        }
    }

    /// Lets the application take what waits, unless it does not read.
    fn take(&mut self, (now, at): (Instant, Instant)) {
        while !self.paused
            && let Some(TakenSample { sample, .. }) = self.delivery.read(now)
        {
            let age = sample.age.into();
            let Sample { publisher, seq, late, kind, payload, .. } = sample;
            let bytes = payload.len();
            self.counted.samples += 1;
            self.counted.late += u64::from(late);
            self.counted.bytes += bytes as u64;
            self.counted.ages.note(age);
            if self.keeps {
                self.delivered.push(Delivered { publisher, seq, age, at, late, bytes, kind });
            }
        }
    }
}
