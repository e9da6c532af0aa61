//! The receiving end of a subscription.

use crate::ages::AgeHistogram;
use paceline_proto::control::{Grant, Refusal, SubscriptionSpec};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::sample::{Kind, RawSample};
use paceline_sched::{Duration, Instant, Late};
use std::collections::{BTreeMap, BTreeSet};

/// A sample as delivered to a subscription.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivered {
    /// The publisher.
    pub publisher: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// The age of the sample at delivery.
    pub age: Duration,
    /// The instant of delivery, by the world's time.
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

/// The number of samples of each publisher that are kept to recognize duplicates.
const TAKEN_MAX: usize = 1_024;

/// The receiving end of a subscription.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) spec: SubscriptionSpec,
    /// All delivered samples, if `keeps` is set.
    pub(super) delivered: Vec<Delivered>,
    pub(super) counted: Counted,
    keeps: bool,
    /// The subscription has ended.
    pub(super) ended: bool,
    pub(super) drops: Drops,
    /// The same by publisher.
    pub(super) dropped: BTreeMap<PublisherId, u64>,
    /// Samples that arrived here or were lost upstream.
    pub(super) offered: u64,
    /// Samples published from the first that arrived of each publisher to its newest.
    pub(super) published: u64,
    /// The sequence number after the newest sample, by publisher.
    next: BTreeMap<PublisherId, u64>,
    /// The last samples that arrived, by publisher.
    taken: BTreeMap<PublisherId, BTreeSet<u64>>,
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
            spec,
            delivered: Vec::new(),
            counted: Counted::default(),
            keeps,
            ended: false,
            drops: Drops::default(),
            dropped: BTreeMap::new(),
            offered: 0,
            published: 0,
            next: BTreeMap::new(),
            taken: BTreeMap::new(),
            publishers: Vec::new(),
            refusals: Vec::new(),
            unspared: Vec::new(),
            unlimited: BTreeSet::new(),
            grants: BTreeMap::new(),
        }
    }

    pub(super) fn count(&mut self, publisher: PublisherId, reason: DropReason, samples: u64) {
        self.offered += samples;
        *self.dropped.entry(publisher).or_default() += samples;
        self.drops.add(reason, samples);
    }

    /// Accounts for all samples of a publisher up to `seq`. Returns false if a newer one has arrived. If `seq` itself has
    /// not arrived before, it is then counted as lost.
    pub(super) fn take(&mut self, publisher: PublisherId, seq: u64) -> bool {
        let taken = self.taken.entry(publisher).or_default();
        let next = self.next.entry(publisher).or_insert(seq);
        let Some(missing) = seq.checked_sub(*next) else {
            if taken.insert(seq) {
                self.count(publisher, DropReason::Duplicate, 1);
            }
            return false;
        };
        *next = seq + 1;
        self.published += missing + 1;
        taken.insert(seq);
        if taken.len() > TAKEN_MAX {
            taken.pop_first();
        }
        true
    }

    /// Begins new accounts after a crash of the node.
    pub(super) fn begin_anew(&mut self) {
        self.publishers.clear();
        self.next.clear();
        self.taken.clear();
    }

    /// Delivers a sample. Returns false if it was too late. `now` is the node's clock, `at` the world's.
    pub(super) fn deliver(
        &mut self,
        (now, at): (Instant, Instant),
        publisher: PublisherId,
        late_rule: Late,
        sample: &RawSample,
    ) -> bool {
        let age = sample.age(now);
        let late = self.spec.within.is_some_and(|within| age > within);
        if late && late_rule == Late::Drop {
            self.count(publisher, DropReason::DeadlineMissed, 1);
            return false;
        }
        self.offered += 1;
        let (seq, bytes, kind) = (sample.seq, sample.payload.len(), sample.kind);
        self.counted.samples += 1;
        self.counted.late += u64::from(late);
        self.counted.bytes += bytes as u64;
        self.counted.ages.note(age);
        if self.keeps {
            self.delivered.push(Delivered { publisher, seq, age, at, late, bytes, kind });
        }
        true
    }
}
