//! Checks grants against deliveries.

use super::PromisesResult;
use super::source::Source;
use crate::handle::Sub;
use crate::sink::Delivered;
use crate::world::World;
use paceline_proto::control::{Grant, SubscriptionSpec};
use paceline_proto::form::Rate;
use paceline_sched::{Duration, Instant, LossTolerance};
use std::collections::BTreeMap;

/// The request of one subscription to one publisher.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) subscription: Sub,
    /// The index of the publisher.
    pub(super) place: usize,
    pub(super) spec: SubscriptionSpec,
    pub(super) granted: Option<Grant>,
    pub(super) refused: bool,
    /// Deliveries already checked.
    seen: usize,
    /// The position of the first sample under the contract, among the requested ones.
    first: Option<u64>,
    /// The number of samples in time, by window.
    windows: BTreeMap<u64, u32>,
    /// The instant at which both ends knew the grant. It applies to samples captured from then on.
    since: Option<Instant>,
    /// The losses counted by the time at which all earlier samples have arrived.
    lost: Option<u64>,
    /// The instant at which the request ended.
    pub(super) ended: Option<Instant>,
}

impl Asked {
    pub(super) fn new(subscription: Sub, place: usize, spec: SubscriptionSpec) -> Self {
        Self {
            subscription,
            place,
            spec,
            granted: None,
            refused: false,
            seen: 0,
            first: None,
            windows: BTreeMap::new(),
            since: None,
            lost: None,
            ended: None,
        }
    }

    fn loss(&self) -> LossTolerance {
        self.spec.loss.unwrap_or(LossTolerance::NONE)
    }

    /// Returns a sample's position among the requested ones; unknown with a maximum rate.
    const fn place_of(&self, seq: u64) -> Option<u64> {
        match self.spec.form.rate {
            Rate::All => Some(seq),
            Rate::Every(n) => Some(seq / n.get() as u64),
            Rate::Max(_) => None,
        }
    }

    /// Checks new deliveries while the request lasts. Returns the first violation as the error.
    pub(super) fn look(
        &mut self,
        world: &World,
        source: &Source,
        sums: &mut PromisesResult,
    ) -> Result<(), String> {
        if self.ended.is_some() {
            return Ok(());
        }
        let all = world.delivered(self.subscription);
        let from = core::mem::replace(&mut self.seen, all.len());
        if self.granted.is_none() {
            self.refused |= !world.refusals(self.subscription).is_empty();
            self.granted = world.grants(self.subscription).values().next().cloned();
        }
        let Some(grant) = &self.granted else { return Ok(()) };
        if self.since.is_none() && world.knows(grant) {
            self.since = Some(world.now());
        }
        let Some(since) = self.since else { return Ok(()) };
        for sample in all.get(from..).unwrap_or_default() {
            if source.at(sample.seq) >= since {
                self.check_sample(sample, source, sums)?;
            }
        }
        let lost = world.drops(self.subscription);
        let within = self.spec.within.unwrap_or(Duration::ZERO);
        if world.now() < since + within {
            return Ok(());
        }
        let before = *self.lost.get_or_insert(lost.total());
        if self.loss().x() == 0 && lost.total() != before {
            return Err(format!(
                "{lost:?} lost by a stream without loss tolerance, by {}",
                world.now()
            ));
        }
        Ok(())
    }

    fn check_sample(
        &mut self,
        sample: &Delivered,
        source: &Source,
        sums: &mut PromisesResult,
    ) -> Result<(), String> {
        let Some(grant) = &self.granted else { return Ok(()) };
        let within = self.spec.within.unwrap_or(Duration::ZERO);
        let delay = sample.at.since(source.at(sample.seq));
        let in_time = delay <= within;
        if !in_time && self.loss().x() == 0 {
            return Err(format!("{delay} of {within} promised (grant {grant}): {sample:?}"));
        }
        sums.samples += 1;
        if in_time {
            let part = delay.as_nanos() * 1_000 / within.as_nanos().max(1);
            sums.worst = sums.worst.max(part);
        }
        if let Some(place) = self.place_of(sample.seq) {
            self.first.get_or_insert(place);
            let y = u64::from(self.loss().y());
            *self.windows.entry(place / y).or_default() += u32::from(in_time);
        }
        Ok(())
    }

    /// Checks the complete windows that began under the contract and whose samples have all arrived or are
    /// late.
    pub(super) fn close(
        &self,
        now: Instant,
        source: &Source,
        sums: &mut PromisesResult,
    ) -> Result<(), String> {
        let Some(first) = self.first else { return Ok(()) };
        let (x, y) = (self.loss().x(), u64::from(self.loss().y()));
        let until = self.ended.unwrap_or(now);
        let within = self.spec.within.unwrap_or(Duration::ZERO);
        let each = match self.spec.form.rate {
            Rate::Every(n) => u64::from(n.get()),
            Rate::All | Rate::Max(_) => 1,
        };
        let (mut window, mut checked) = (first.div_ceil(y), 0);
        while source.at((window + 1) * y * each) + within < until {
            let arrived = u64::from(self.windows.get(&window).copied().unwrap_or_default());
            if arrived > y {
                return Err(format!("window {window} of {x}/{y}: {arrived} arrived"));
            }
            if y - arrived > u64::from(x) {
                return Err(format!("window {window} of {x}/{y}: {arrived} arrived in time"));
            }
            sums.missed += y - arrived;
            (window, checked) = (window + 1, checked + 1);
        }
        sums.windows += checked;
        Ok(())
    }
}
