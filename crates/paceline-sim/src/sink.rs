//! Where a subscription's samples end.

use crate::ages::Ages;
use paceline_proto::control::{Grant, Refusal, SubscriptionSpec};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::sample::{Kind, Sample};
use paceline_sched::{Duration, Instant, Late};
use std::collections::BTreeMap;

/// A sample as a subscription got it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivered {
    /// Who published it.
    pub publisher: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// How old it was.
    pub age: Duration,
    /// When it came, by the world's time.
    pub at: Instant,
    /// True if that was later than the delay bound.
    pub late: bool,
    /// Bytes of its payload.
    pub bytes: usize,
    /// What it was.
    pub kind: Kind,
}

/// What a subscription got, counted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counted {
    /// Samples.
    pub samples: u64,
    /// Those of them that were later than the delay bound.
    pub late: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// How old they were.
    pub ages: Ages,
}

/// The end of a subscription.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) spec: SubscriptionSpec,
    /// Everything that it got, if it keeps it.
    pub(super) delivered: Vec<Delivered>,
    pub(super) counted: Counted,
    keeps: bool,
    /// Nobody subscribes any more.
    pub(super) ended: bool,
    pub(super) drops: Drops,
    /// Samples that came here, or that were lost on the way here.
    pub(super) offered: u64,
    pub(super) publishers: Vec<PublisherId>,
    pub(super) refusals: Vec<(PublisherId, Refusal)>,
    /// What its paths promise, by publisher.
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
            offered: 0,
            publishers: Vec::new(),
            refusals: Vec::new(),
            grants: BTreeMap::new(),
        }
    }

    pub(super) fn count(&mut self, reason: DropReason, samples: u64) {
        self.offered += samples;
        self.drops.add(reason, samples);
    }

    /// False if it came too late. `now` is by the node's clock, `at` by the world's.
    pub(super) fn deliver(
        &mut self,
        (now, at): (Instant, Instant),
        publisher: PublisherId,
        late_rule: Late,
        sample: &Sample,
    ) -> bool {
        let age = sample.age(now);
        let late = self.spec.within.is_some_and(|within| age > within);
        if late && late_rule == Late::Drop {
            self.count(DropReason::DeadlineMissed, 1);
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
