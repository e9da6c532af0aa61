//! The application behind a subscription.

use crate::ages::AgeHistogram;
use paceline_node::deliver::{Delivery, TakenSample};
use paceline_node::{Sample, SubscriptionAccount};
use paceline_proto::Form;
use paceline_proto::control::{Adaptation, Grant, Refusal, SubscriptionSpec, Warning};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::Drops;
use paceline_proto::sample::Kind;
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
pub(super) const QUEUE_SAMPLES: usize = 1_024;

/// The counters of a subscription up to a crash of its node.
#[derive(Clone, Debug, Default)]
struct Past {
    drops: Drops,
    /// Samples that were not read, and never will be.
    unread: u64,
    /// The samples that were read.
    read: u64,
    offered: u64,
    published: u64,
    dropped: BTreeMap<PublisherId, u64>,
}

/// The application behind a subscription, which takes each sample at once or reads later.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) spec: SubscriptionSpec,
    /// The application does not read.
    pub(super) paused: bool,
    /// All delivered samples, if `keeps` is set.
    pub(super) delivered: Vec<Delivered>,
    pub(super) counted: Counted,
    keeps: bool,
    /// The subscription has ended.
    pub(super) ended: bool,
    /// The counters of earlier incarnations of the node.
    past: Past,
    pub(super) publishers: Vec<PublisherId>,
    pub(super) refusals: Vec<(PublisherId, Refusal)>,
    /// The steps of an elastic contract, each with the time and the new form.
    pub(super) steps: Vec<(Instant, Form, Adaptation)>,
    /// The forecasts for its contracts.
    pub(super) warnings: Vec<(Instant, Warning)>,
    /// The refusals of spares of contracts in force.
    pub(super) unspared: Vec<Refusal>,
    /// Publishers on paths without a capacity, where nothing can be reserved.
    pub(super) unlimited: BTreeSet<PublisherId>,
    /// The grants of its paths, by publisher.
    pub(super) grants: BTreeMap<PublisherId, Grant>,
}

/// The present counters of a subscription; `None` in a node that has not known it since a crash.
pub(super) type Present<'a> = Option<(&'a Delivery, &'a SubscriptionAccount)>;

impl Sink {
    pub(super) fn new(spec: SubscriptionSpec, keeps: bool) -> Self {
        Self {
            spec,
            paused: false,
            delivered: Vec::new(),
            counted: Counted::default(),
            keeps,
            ended: false,
            past: Past::default(),
            publishers: Vec::new(),
            refusals: Vec::new(),
            steps: Vec::new(),
            warnings: Vec::new(),
            unspared: Vec::new(),
            unlimited: BTreeSet::new(),
            grants: BTreeMap::new(),
        }
    }

    /// Returns the dropped samples by reason.
    pub(super) fn drops(&self, present: Present<'_>) -> Drops {
        let mut drops = self.past.drops;
        present.iter().for_each(|(delivery, _)| drops.merge(&delivery.counts().drops()));
        drops
    }

    /// Returns the dropped samples of a publisher.
    pub(super) fn dropped(&self, present: Present<'_>, of: PublisherId) -> u64 {
        let now = present.and_then(|(_, account)| account.dropped.get(&of));
        now.into_iter().chain(self.past.dropped.get(&of)).sum()
    }

    /// Returns the samples published from the first that arrived of each publisher to its newest.
    pub(super) fn published(&self, present: Present<'_>) -> u64 {
        self.past.published + present.map_or(0, |(_, account)| account.published)
    }

    /// Returns true if each sample that was offered is delivered, waits or was dropped.
    pub(super) fn is_balanced(&self, present: Present<'_>) -> bool {
        let offered = self.past.offered + present.map_or(0, |(_, account)| account.offered);
        offered == self.counted.samples + self.drops(present).total() + self.unread(present)
    }

    /// Returns the samples that the application has not read, or never will.
    fn unread(&self, present: Present<'_>) -> u64 {
        let delivered = present.map_or(0, |(delivery, _)| delivery.counts().delivered);
        self.past.unread + delivered - (self.counted.samples - self.past.read)
    }

    /// Keeps the counters of a node that has crashed.
    pub(super) fn begin_anew(&mut self, present: Present<'_>) {
        let mut dropped = self.past.dropped.clone();
        for (publisher, samples) in present.iter().flat_map(|(_, account)| &account.dropped) {
            *dropped.entry(*publisher).or_default() += samples;
        }
        self.past = Past {
            drops: self.drops(present),
            unread: self.unread(present),
            read: self.counted.samples,
            offered: self.past.offered + present.map_or(0, |(_, account)| account.offered),
            published: self.published(present),
            dropped,
        };
    }

    /// Takes a sample at an instant of the world.
    pub(super) fn take(&mut self, at: Instant, TakenSample { sample, .. }: TakenSample) {
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
