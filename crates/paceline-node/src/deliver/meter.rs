//! The status of one subscription: its request, its counters, and what is measured over a window.

use super::{AgeWindow, Delivery};
use crate::status::{
    ElasticStatus, HealthRequest, HealthWindow, SubscriptionHealth, SubscriptionStatus,
};
use paceline_proto::SubscriptionId;
use paceline_proto::control::SubscriptionSpec;
use paceline_sched::Instant;
use std::time::Duration;

impl Delivery {
    /// Returns the request and the counters of a subscription as a row of the status. Publishers, refusals and what is measured
    /// over a window are empty.
    #[must_use]
    pub fn status(&self, id: SubscriptionId, spec: &SubscriptionSpec) -> SubscriptionStatus {
        let counts = self.counts();
        SubscriptionStatus {
            id,
            pattern: spec.pattern.as_str().to_owned(),
            form: spec.form,
            elastic: ElasticStatus::of(spec),
            importance: spec.importance,
            within: spec.within.map(Into::into),
            loss: spec.loss,
            proxy: spec.proxy.clone(),
            scaled_at: Vec::new(),
            publishers: Vec::new(),
            refusals: Vec::new(),
            delivered: counts.delivered,
            bytes: counts.bytes,
            rate_millihertz: 0,
            late: counts.late_in_all(),
            overdue: counts.overdue,
            age_max: Duration::ZERO,
            age_mean: None,
            age_sum: Duration::from_nanos(counts.age_sum),
            dropped: counts.drops(),
            jitter: self.jitter(),
            lost: counts.gaps,
            timed: None,
            players: None,
            health: SubscriptionHealth::default(),
        }
    }
}

/// The rate and the ages of a subscription's samples between two readings, and its health over ten seconds.
#[derive(Clone, Debug, Default)]
pub struct DeliveryMeter {
    samples: u64,
    read_at: Option<Instant>,
    millihertz: u64,
    ages: AgeWindow,
    health: HealthWindow,
}

impl DeliveryMeter {
    /// Takes a reading; call it about once per second.
    pub fn read(&mut self, now: Instant, delivery: &mut Delivery, request: HealthRequest) {
        let samples = delivery.counts().delivered;
        if let Some(before) = self.read_at {
            let over = u128::from(now.since(before).as_nanos().max(1));
            let grown = u128::from(samples.saturating_sub(self.samples));
            self.millihertz = u64::try_from(grown * 1_000_000_000_000 / over).unwrap_or(u64::MAX);
        }
        (self.samples, self.read_at) = (samples, Some(now));
        self.ages = delivery.take_ages();
        let at = Duration::from_nanos(now.as_nanos());
        self.health.handle_reading(request, delivery.health_reading(at));
    }

    /// Fills in what was measured. The refusals of the row count.
    pub fn fill(&self, row: &mut SubscriptionStatus) {
        row.rate_millihertz = self.millihertz;
        row.age_max = Duration::from_nanos(self.ages.longest);
        row.age_mean = self.ages.mean().map(Duration::from_nanos);
        row.health = self.health.with_refusals(&row.refusals);
    }
}
