//! Checks grants against deliveries.

use super::PromisesResult;
use super::source::Source;
use crate::handle::{NodeIx, Pub, Sub};
use crate::sink::Delivered;
use crate::world::World;
use paceline_proto::control::{Grant, PublisherSpec, SubscriptionSpec};
use paceline_sched::{Duration, Instant, LossTolerance};
use std::collections::BTreeMap;

/// The longest time for which a publisher's node keeps samples until its subscriptions are served.
const KEPT_MAX: Duration = Duration::from_secs(1);

/// The request of one subscription to one publisher.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) subscription: Sub,
    /// The node of the subscription.
    pub(super) node: NodeIx,
    /// The index of the publisher.
    pub(super) place: usize,
    pub(super) spec: SubscriptionSpec,
    within: Duration,
    loss: LossTolerance,
    pub(super) granted: Option<Grant>,
    pub(super) refused: bool,
    /// It is one of two halves, which are carried only under contracts.
    pub(super) is_tied: bool,
    /// Deliveries and changes of the contract already checked.
    seen: usize,
    read: usize,
    /// The times of the contract, by the publisher's node: it applies to samples captured within them.
    times: Vec<(Instant, Instant)>,
    /// The number of samples in time, by window.
    windows: BTreeMap<u64, u32>,
    /// The losses counted by the time at which all earlier samples have arrived.
    lost: Option<u64>,
    /// The instant at which the request ended.
    pub(super) ended: Option<Instant>,
}

impl Asked {
    pub(super) fn new(
        (subscription, node): (Sub, NodeIx),
        place: usize,
        spec: SubscriptionSpec,
        publisher: &PublisherSpec,
    ) -> Self {
        Self {
            within: publisher.bound_for(&spec).unwrap_or(Duration::ZERO),
            loss: publisher.tolerance_for(&spec).unwrap_or(LossTolerance::NONE),
            subscription,
            node,
            place,
            spec,
            granted: None,
            refused: false,
            is_tied: false,
            seen: 0,
            read: 0,
            times: Vec::new(),
            windows: BTreeMap::new(),
            lost: None,
            ended: None,
        }
    }

    /// Returns a sample's position among the requested ones; unknown with other limits than one in n.
    fn place_of(&self, seq: u64) -> Option<u64> {
        Some(seq / u64::from(self.spec.form.rate.one_in()?.get()))
    }

    /// Returns true if the contract applies to a sample captured at `at`.
    fn covers(&self, at: Instant) -> bool {
        self.times.iter().any(|(from, to)| *from < at && at < *to)
    }

    /// Checks new deliveries while the request lasts. Returns the first violation as the error.
    pub(super) fn look(
        &mut self,
        world: &World,
        (publisher, source): (Pub, &Source),
        sums: &mut PromisesResult,
    ) -> Result<(), String> {
        if self.ended.is_some() {
            return Ok(());
        }
        if self.granted.is_none() {
            self.refused |= !world.refusals(self.subscription).is_empty();
            self.granted = world.grants(self.subscription).values().next().cloned();
        }
        self.read_changes(world.in_force(self.subscription, publisher), source, sums)?;
        let all = world.delivered(self.subscription);
        let from = core::mem::replace(&mut self.seen, all.len());
        for sample in all.get(from..).unwrap_or_default() {
            let captured = source.at(sample.seq);
            if self.covers(captured) {
                self.check_sample(sample, source, sums)?;
            } else if self.is_tied
                && !self.covers(captured + KEPT_MAX)
                && !world.is_unlimited(self.subscription, publisher)
            {
                return Err(format!("carried without a contract ({:?}): {sample:?}", self.times));
            }
        }
        self.check_losses(world)
    }

    /// Records when the contract is in force. It ends only for an idle time, or with the other half.
    fn read_changes(
        &mut self,
        changes: &[(Instant, bool)],
        source: &Source,
        sums: &mut PromisesResult,
    ) -> Result<(), String> {
        for &(at, now) in changes.get(self.read..).unwrap_or_default() {
            match self.times.last_mut() {
                _ if now => self.times.push((at, Instant::FAR)),
                Some(last) => last.1 = at,
                None => {}
            }
            if !now && self.spec.idle.is_some() {
                sums.released += 1;
            } else if !now && !self.is_tied && at >= source.start {
                // Earlier ends are those of paths that change while the network is found.
                return Err(format!("withdrawn at {at}"));
            }
        }
        self.read = changes.len();
        Ok(())
    }

    /// Checks that nothing is lost under a contract without a loss tolerance that never ends.
    fn check_losses(&mut self, world: &World) -> Result<(), String> {
        let Some(&(since, Instant::FAR)) = self.times.first() else { return Ok(()) };
        if self.loss.x() > 0 || world.now() < since + self.within {
            return Ok(());
        }
        let lost = world.drops(self.subscription);
        if lost.total() == *self.lost.get_or_insert(lost.total()) {
            return Ok(());
        }
        Err(format!("{lost:?} lost by a stream without loss tolerance, by {}", world.now()))
    }

    fn check_sample(
        &mut self,
        sample: &Delivered,
        source: &Source,
        sums: &mut PromisesResult,
    ) -> Result<(), String> {
        let (within, grant) = (self.within, self.granted.as_ref());
        let delay = sample.at.since(source.at(sample.seq));
        let in_time = delay <= within;
        if !in_time && self.loss.x() == 0 {
            let times = &self.times;
            let grant = grant.map(Grant::to_string).unwrap_or_default();
            return Err(format!(
                "{delay} of {within} promised (grant {grant}, in force {times:?}): {sample:?}"
            ));
        }
        sums.samples += 1;
        sums.scaled += u64::from(self.spec.form.converts());
        // Scaled pictures do not have the sizes of a film.
        sums.films += u64::from(source.clip.is_some() && !self.spec.form.converts());
        if in_time {
            let part = delay.as_nanos() * 1_000 / within.as_nanos().max(1);
            sums.worst = sums.worst.max(part);
        }
        if let Some(place) = self.place_of(sample.seq) {
            let y = u64::from(self.loss.y());
            *self.windows.entry(place / y).or_default() += u32::from(in_time);
        }
        Ok(())
    }

    /// Checks the complete windows that lie within the contract and whose samples have all arrived or are late.
    pub(super) fn close(
        &self,
        now: Instant,
        source: &Source,
        sums: &mut PromisesResult,
    ) -> Result<(), String> {
        let Some(each) = self.spec.form.rate.one_in().map(|n| u64::from(n.get())) else {
            return Ok(());
        };
        let (x, y) = (self.loss.x(), u64::from(self.loss.y()));
        let until = self.ended.unwrap_or(now);
        let mut window = 0;
        while source.at((window + 1) * y * each) + self.within < until {
            // Any of `each` samples may be the requested one, after a gap in the contract.
            let (first, last) =
                (source.at(window * y * each), source.at((window + 1) * y * each - 1));
            if self.covers_window(first, last) {
                let arrived = u64::from(self.windows.get(&window).copied().unwrap_or_default());
                if arrived > y || y - arrived > u64::from(x) {
                    return Err(format!(
                        "window {window} of {x}/{y}, of samples captured from {first} to {last}: {arrived} \
                         arrived in time (in force {:?})",
                        self.times
                    ));
                }
                sums.missed += y - arrived;
                sums.windows += 1;
            }
            window += 1;
        }
        Ok(())
    }

    /// Returns true if one contract applies to all samples of a window. The end of the other half also ends the
    /// delivery of earlier samples.
    fn covers_window(&self, first: Instant, last: Instant) -> bool {
        let last = if self.is_tied { last + self.within } else { last };
        self.times.iter().any(|(from, to)| *from < first && last < *to)
    }
}
