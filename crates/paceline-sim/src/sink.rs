//! Where a subscription's samples end.

use paceline_proto::control::{Refusal, SubscriptionSpec};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::{DropReason, Drops};
use paceline_proto::sample::{Kind, Sample};
use paceline_sched::{Duration, Instant, Late};

/// A sample as a subscription got it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delivered {
    /// Who published it.
    pub publisher: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// How old it was.
    pub age: Duration,
    /// When it came.
    pub at: Instant,
    /// True if that was later than the delay bound.
    pub late: bool,
    /// Bytes of its payload.
    pub bytes: usize,
    /// What it was.
    pub kind: Kind,
}

/// The end of a subscription.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) spec: SubscriptionSpec,
    pub(super) delivered: Vec<Delivered>,
    pub(super) drops: Drops,
    /// Samples that came here, or that were lost on the way here.
    pub(super) offered: u64,
    pub(super) publishers: Vec<PublisherId>,
    pub(super) refusals: Vec<(PublisherId, Refusal)>,
}

impl Sink {
    pub(super) fn new(spec: SubscriptionSpec) -> Self {
        Self {
            spec,
            delivered: Vec::new(),
            drops: Drops::default(),
            offered: 0,
            publishers: Vec::new(),
            refusals: Vec::new(),
        }
    }

    pub(super) fn count(&mut self, reason: DropReason, samples: u64) {
        self.offered += samples;
        self.drops.add(reason, samples);
    }

    /// False if it came too late.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
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
        self.delivered.push(Delivered { publisher, seq, age, at: now, late, bytes, kind });
        true
    }
}
