//! The comparison of the publishers' rates with their declarations.

use paceline::Sample;
use paceline::status::{PublisherId, RateCheck, RateNews};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most publishers that are compared.
const PUBLISHERS_MAX: usize = 1_024;

/// The comparison for each publisher; `None` for those without a declared rate.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<PublisherId, Option<RateCheck>>);

impl Rates {
    /// Returns true if the publisher was added, and for all others above the limit.
    pub(super) fn has(&self, publisher: PublisherId) -> bool {
        self.0.contains_key(&publisher) || self.0.len() >= PUBLISHERS_MAX
    }

    /// Adds a publisher with its declared period.
    pub(super) fn add(&mut self, publisher: PublisherId, period: Option<Duration>) {
        self.0.insert(publisher, period.map(RateCheck::new));
    }

    /// Returns true if every publisher declares its rate.
    pub(super) fn are_declared(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(Option::is_some)
    }

    /// Takes a sample; returns a change. The numbers of the samples also count those that did not arrive.
    pub(super) fn note(&mut self, sample: &Sample) -> Option<RateNews> {
        let check = self.0.get_mut(&sample.publisher)?.as_mut()?;
        check.note(sample.seq, sample.captured.nanos)
    }
}
