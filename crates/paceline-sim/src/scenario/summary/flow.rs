//! The samples of one publisher at one subscriber.

use super::by_reason;
use crate::scenario::plan::{Plan, PublisherPlan, SubscriberPlan};
use crate::scenario::record::{Record, Steps, SubscriberRecord};
use paceline_sched::{Duration, Instant, LossTolerance};
use serde::Serialize;
use std::collections::BTreeMap;

/// The samples of one publisher at one subscriber.
///
/// Counts the samples published during the measurement, while both existed. Those that arrived by the end of
/// the run count as delivered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// The subscriber's node.
    pub subscriber: String,
    /// The subscribed tag or pattern.
    pub pattern: String,
    /// The requested rate.
    pub asked: String,
    /// The publisher's tag.
    pub publisher: String,
    /// Samples published.
    pub sent: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// The rate of delivery, in millihertz.
    pub rate_millihertz: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// Samples delivered after the delay bound.
    pub late: u64,
    /// Losses at the subscriber's node reported to it, by reason, over the whole run and all publishers.
    pub dropped: BTreeMap<&'static str, u64>,
    /// The delay from publish to delivery; `None` if nothing was delivered.
    pub delay_ns: Option<DelayQuantiles>,
    /// The windows of the loss tolerance; `None` without a delay bound.
    pub windows: Option<Windows>,
    /// The longest time without a delivery.
    pub gap_ns: u64,
    /// The steps of an elastic contract over the whole run; `None` if it is not elastic.
    pub steps: Option<Steps>,
    /// The reason for a refusal, with the numbers; `None` if it was not refused.
    pub refused: Option<String>,
}

/// Quantiles of the delay in nanoseconds, by nearest rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct DelayQuantiles {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The maximum.
    pub max: u64,
}

impl DelayQuantiles {
    fn of(mut delays: Vec<u64>) -> Option<Self> {
        delays.sort_unstable();
        let rank = |per_mille: usize| {
            let place = (delays.len() * per_mille).div_ceil(1_000).saturating_sub(1);
            delays.get(place).copied()
        };
        Some(Self { p50: rank(500)?, p99: rank(990)?, p999: rank(999)?, max: *delays.last()? })
    }
}

/// Consecutive windows of y samples due to the subscriber. Samples that are lost or late count as misses.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Windows {
    /// The number of windows.
    pub all: u64,
    /// Windows with more than x misses.
    pub violated: u64,
}

impl Windows {
    /// Counts windows over consecutive samples with known results, the first of which has the number `first`.
    ///
    /// Windows begin at multiples of y. A window that began before `first` is not counted.
    #[must_use]
    pub fn of(missed: &[bool], first: u64, loss: LossTolerance) -> Self {
        let y = u64::from(loss.y().max(1));
        let before = usize::try_from((y - first % y) % y).unwrap_or(usize::MAX);
        let missed = missed.get(before..).unwrap_or_default();
        let misses = |window: &[bool]| window.iter().filter(|missed| **missed).count() as u64;
        let windows = missed.chunks(usize::try_from(y).unwrap_or(usize::MAX));
        let all = windows.len() as u64;
        let violated = windows.filter(|window| misses(window) > u64::from(loss.x())).count() as u64;
        Self { all, violated }
    }
}

/// A subscriber and a publisher, by index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    subscriber: usize,
    publisher: usize,
}

/// Returns the flow of every publisher that matches a subscriber's pattern.
pub(super) fn flows(plan: &Plan, record: &Record) -> Vec<(Key, Flow)> {
    let mut flows = Vec::new();
    for (subscriber, asks) in plan.subscribers.iter().enumerate() {
        let Some(received) = record.received.get(subscriber) else { continue };
        for (publisher, publishes) in plan.publishers.iter().enumerate() {
            if asks.spec.pattern.matches(&publishes.tag) {
                let key = Key { subscriber, publisher };
                flows.push((key, key.flow(plan, record, (asks, publishes), received)));
            }
        }
    }
    flows
}

/// A sample that was due or delivered.
struct Due {
    seq: u64,
    published: Instant,
    arrived: Option<(Instant, u64)>,
}

impl Key {
    /// Returns the time between two samples due to the subscriber.
    pub(super) fn period(self, plan: &Plan) -> Duration {
        let publisher = plan.publishers.get(self.publisher).map(|publisher| publisher.period);
        let subscriber = plan.subscribers.get(self.subscriber);
        subscriber.and_then(|asks| asks.spec.form.rate.period(publisher)).unwrap_or_default()
    }

    /// Returns the publication and delivery instants of all delivered samples.
    pub(super) fn samples(self, _plan: &Plan, record: &Record) -> Vec<(Instant, Instant)> {
        let Some(received) = record.received.get(self.subscriber) else { return Vec::new() };
        let mut samples: Vec<_> = self
            .due(record, received, (Instant::ZERO, Instant::FAR))
            .filter_map(|due| Some((due.published, due.arrived?.0)))
            .collect();
        samples.sort_unstable_by_key(|(_, arrived)| *arrived);
        samples
    }

    /// Returns the samples published from `from` to before `to`, with their deliveries.
    fn due<'r>(
        self,
        record: &'r Record,
        received: &SubscriberRecord,
        (from, to): (Instant, Instant),
    ) -> impl Iterator<Item = Due> + use<'r> {
        let mut arrived = BTreeMap::new();
        for arrival in &received.arrivals {
            arrived.entry((arrival.from, arrival.seq)).or_insert((arrival.at, arrival.bytes));
        }
        let lives = record.published.iter().filter(move |life| life.publisher == self.publisher);
        lives.flat_map(move |life| {
            let all = life.at.iter().zip(0..).filter(|(at, _)| (from..to).contains(*at));
            let due: Vec<Due> = all
                .map(|(&published, seq)| Due {
                    seq,
                    published,
                    arrived: arrived.get(&(life.id, seq)).copied(),
                })
                .collect();
            due
        })
    }

    fn flow(
        self,
        plan: &Plan,
        record: &Record,
        (asks, publishes): (&SubscriberPlan, &PublisherPlan),
        received: &SubscriberRecord,
    ) -> Flow {
        let (from, to) = interval(plan, record, asks, publishes);
        let due: Vec<Due> = self.due(record, received, (from, to)).collect();
        let delivered = || due.iter().filter_map(|due| Some((due.published, due.arrived?)));
        let delay = |(published, (arrived, _)): (Instant, (Instant, u64))| arrived.since(published);
        let late = asks.spec.within.map_or(0, |within| {
            delivered().filter(|arrived| delay(*arrived) > within).count() as u64
        });
        let count = delivered().count() as u64;
        let (time, nanos) = (to.since(from).as_nanos(), |arrived| delay(arrived).as_nanos());
        let millihertz = u128::from(count) * 1_000_000_000_000 / u128::from(time.max(1));
        Flow {
            subscriber: plan.node(asks.node).to_owned(),
            pattern: asks.spec.pattern.as_str().to_owned(),
            asked: asks.spec.form.rate.to_string(),
            publisher: publishes.tag.as_str().to_owned(),
            sent: due.len() as u64,
            delivered: count,
            rate_millihertz: u64::try_from(millihertz).unwrap_or(u64::MAX),
            bytes: delivered().map(|(_, (_, bytes))| bytes).sum(),
            late,
            dropped: by_reason(&received.drops),
            delay_ns: DelayQuantiles::of(delivered().map(nanos).collect()),
            // The rate of an elastic contract changes, so the samples that are due are not known.
            windows: self.windows(plan, asks, &due).filter(|_| asks.spec.elastic.is_none()),
            gap_ns: gap(received, self.lives(record), (from, to)).as_nanos(),
            steps: asks.spec.elastic.as_ref().map(|_| received.steps),
            refused: self.refusal(record, received),
        }
    }

    /// Returns the ids of all incarnations of the publisher.
    fn lives(self, record: &Record) -> Vec<paceline_proto::ids::PublisherId> {
        let lives = record.published.iter().filter(|life| life.publisher == self.publisher);
        lives.map(|life| life.id).collect()
    }

    /// Returns the last refusal, unless a sample was delivered after all.
    fn refusal(self, record: &Record, received: &SubscriberRecord) -> Option<String> {
        let lives = self.lives(record);
        let last = received.refusals.iter().rev().find(|(id, _)| lives.contains(id))?;
        let arrived = received.arrivals.iter().any(|arrival| arrival.from == last.0);
        (!arrived).then(|| last.1.clone())
    }

    /// Counts the windows of the due samples. A subscriber that asks for a lower rate is due one of every
    /// `step` samples, whichever arrives.
    fn windows(self, plan: &Plan, asks: &SubscriberPlan, due: &[Due]) -> Option<Windows> {
        let (within, loss) = asks.window()?;
        let source = plan.publishers.get(self.publisher)?.period.as_nanos();
        let asked = self.period(plan).as_nanos().max(1);
        let step = ((source / 2 + asked) / source.max(1)).max(1);
        let mut missed = Vec::new();
        let mut waiting = 0;
        for one in due {
            waiting += 1;
            let Some((arrived, _)) = one.arrived else { continue };
            // Samples missing before this one. Less than half a step counts as jitter.
            let absent = ((waiting + step / 2) / step).saturating_sub(1);
            missed.extend((0..absent).map(|_| true));
            missed.push(arrived.since(one.published) > within);
            waiting = 0;
        }
        missed.extend((0..waiting / step).map(|_| true));
        let one_in = asks.spec.form.rate.one_in().map(|n| u64::from(n.get()));
        let places = one_in.and_then(|n| Some(due.first()?.seq.div_ceil(n)));
        Some(Windows::of(&missed, places.unwrap_or_default(), loss))
    }
}

/// Returns the part of the duration in which both existed.
fn interval(
    plan: &Plan,
    record: &Record,
    asks: &SubscriberPlan,
    publishes: &PublisherPlan,
) -> (Instant, Instant) {
    let lifetimes = [asks.lifetime, publishes.lifetime];
    let from = lifetimes.iter().filter_map(|one| one.from).max().unwrap_or_default();
    let to = lifetimes.iter().filter_map(|one| one.to).fold(plan.duration, Duration::min);
    (record.start + from, record.start + to.max(from))
}

/// Returns the longest time without a delivery, including the time to both ends of the interval.
fn gap(
    received: &SubscriberRecord,
    lives: Vec<paceline_proto::ids::PublisherId>,
    (from, to): (Instant, Instant),
) -> Duration {
    let ours = received.arrivals.iter().filter(|arrival| lives.contains(&arrival.from));
    let inside = ours.map(|arrival| arrival.at).filter(|at| (from..=to).contains(at));
    let (mut last, mut longest) = (from, Duration::ZERO);
    for at in inside.chain([to]) {
        longest = longest.max(at.since(last));
        last = at;
    }
    longest
}
