//! One publisher's samples at one subscriber.

use super::by_reason;
use crate::scenario::plan::{Plan, PublisherPlan, SubscriberPlan};
use crate::scenario::record::{Received, Record};
use paceline_proto::form::Rate;
use paceline_sched::{Duration, Instant, LossTolerance};
use serde::Serialize;
use std::collections::BTreeMap;

/// One publisher's samples at one subscriber: of those published in the duration, while both were
/// there, the ones that came until the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// The subscriber's node.
    pub subscriber: String,
    /// What it asked for.
    pub pattern: String,
    /// How many samples it asked for.
    pub asked: String,
    /// The publisher's tag.
    pub publisher: String,
    /// Samples published.
    pub sent: u64,
    /// Samples delivered.
    pub delivered: u64,
    /// Delivered a second, in millihertz.
    pub rate_millihertz: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// Delivered later than the delay bound.
    pub late: u64,
    /// What was lost at the subscriber's node and told to it, over the whole run and all publishers, by
    /// reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// From publish to delivery; `None` if nothing was delivered.
    pub delay_ns: Option<Delays>,
    /// Windows of the loss tolerance; `None` without a delay bound.
    pub windows: Option<Windows>,
    /// The longest time without a delivery.
    pub gap_ns: u64,
    /// Why it was refused, with the numbers that did not fit; `None` if it was not.
    pub refused: Option<String>,
}

/// Delays in nanoseconds, by nearest rank.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Delays {
    /// Half of the samples took no longer.
    pub p50: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1,000.
    pub p999: u64,
    /// All.
    pub max: u64,
}

impl Delays {
    fn of(mut delays: Vec<u64>) -> Option<Self> {
        delays.sort_unstable();
        let rank = |per_mille: usize| {
            let place = (delays.len() * per_mille).div_ceil(1_000).saturating_sub(1);
            delays.get(place).copied()
        };
        Some(Self { p50: rank(500)?, p99: rank(990)?, p999: rank(999)?, max: *delays.last()? })
    }
}

/// Windows of y samples that the subscriber was due, one after the other; what did not come or came
/// late is a miss.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Windows {
    /// How many there were.
    pub all: u64,
    /// How many had more than x misses.
    pub violated: u64,
}

impl Windows {
    /// Judges samples that follow each other, of which it is known whether they missed and the first has the
    /// number `first`. Windows begin where numbers are a multiple of y; the one that had begun before is not
    /// judged.
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

/// A subscriber and a publisher, by their places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    subscriber: usize,
    publisher: usize,
}

/// The flow of every publisher that a subscriber asks for.
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

/// A sample that was due or was delivered.
struct Due {
    seq: u64,
    published: Instant,
    came: Option<(Instant, u64)>,
}

impl Key {
    /// The time between two samples that the subscriber is due.
    pub(super) fn period(self, plan: &Plan) -> Duration {
        let publisher = plan.publishers.get(self.publisher).map(|publisher| publisher.period);
        let subscriber = plan.subscribers.get(self.subscriber);
        subscriber.and_then(|asks| asks.spec.form.rate.period(publisher)).unwrap_or_default()
    }

    /// Everything that came: when it was published, and when it came.
    pub(super) fn samples(self, _plan: &Plan, record: &Record) -> Vec<(Instant, Instant)> {
        let Some(received) = record.received.get(self.subscriber) else { return Vec::new() };
        let mut samples: Vec<_> = self
            .due(record, received, (Instant::ZERO, Instant::FAR))
            .filter_map(|due| Some((due.published, due.came?.0)))
            .collect();
        samples.sort_unstable_by_key(|(_, came)| *came);
        samples
    }

    /// What was published from `from` to before `to`, and what came of it.
    fn due<'r>(
        self,
        record: &'r Record,
        received: &Received,
        (from, to): (Instant, Instant),
    ) -> impl Iterator<Item = Due> + use<'r> {
        let mut came = BTreeMap::new();
        for arrival in &received.arrivals {
            came.entry((arrival.from, arrival.seq)).or_insert((arrival.at, arrival.bytes));
        }
        let lives = record.published.iter().filter(move |life| life.publisher == self.publisher);
        lives.flat_map(move |life| {
            let all = life.at.iter().zip(0..).filter(|(at, _)| (from..to).contains(*at));
            let due: Vec<Due> = all
                .map(|(&published, seq)| Due {
                    seq,
                    published,
                    came: came.get(&(life.id, seq)).copied(),
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
        received: &Received,
    ) -> Flow {
        let (from, to) = interval(plan, record, asks, publishes);
        let due: Vec<Due> = self.due(record, received, (from, to)).collect();
        let delivered = || due.iter().filter_map(|due| Some((due.published, due.came?)));
        let delay = |(published, (came, _)): (Instant, (Instant, u64))| came.since(published);
        let late = asks
            .spec
            .within
            .map_or(0, |within| delivered().filter(|came| delay(*came) > within).count() as u64);
        let count = delivered().count() as u64;
        let (time, nanos) = (to.since(from).as_nanos(), |came| delay(came).as_nanos());
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
            delay_ns: Delays::of(delivered().map(nanos).collect()),
            windows: self.windows(plan, asks, &due),
            gap_ns: gap(received, self.lives(record), (from, to)).as_nanos(),
            refused: self.refusal(record, received),
        }
    }

    /// Everybody that the publisher was.
    fn lives(self, record: &Record) -> Vec<paceline_proto::ids::PublisherId> {
        let lives = record.published.iter().filter(|life| life.publisher == self.publisher);
        lives.map(|life| life.id).collect()
    }

    /// The last refusal, if it was not followed by a sample.
    fn refusal(self, record: &Record, received: &Received) -> Option<String> {
        let lives = self.lives(record);
        let last = received.refusals.iter().rev().find(|(id, _)| lives.contains(id))?;
        let came = received.arrivals.iter().any(|arrival| arrival.from == last.0);
        (!came).then(|| last.1.clone())
    }

    /// Judges windows of what was due. A subscriber that asks for fewer samples than are published is
    /// due one in so many, whichever comes.
    fn windows(self, plan: &Plan, asks: &SubscriberPlan, due: &[Due]) -> Option<Windows> {
        let (within, loss) = asks.window()?;
        let source = plan.publishers.get(self.publisher)?.period.as_nanos();
        let asked = self.period(plan).as_nanos().max(1);
        let step = ((source / 2 + asked) / source.max(1)).max(1);
        let mut missed = Vec::new();
        let mut waiting = 0;
        for one in due {
            waiting += 1;
            let Some((came, _)) = one.came else { continue };
            // Those before it that should have come: what is less than half a step is jitter.
            let absent = ((waiting + step / 2) / step).saturating_sub(1);
            missed.extend((0..absent).map(|_| true));
            missed.push(came.since(one.published) > within);
            waiting = 0;
        }
        missed.extend((0..waiting / step).map(|_| true));
        let places: Option<u64> = match asks.spec.form.rate {
            Rate::All => due.first().map(|first| first.seq),
            Rate::Every(n) => due.first().map(|first| first.seq.div_ceil(u64::from(n.get()))),
            Rate::Max(_) => None,
        };
        Some(Windows::of(&missed, places.unwrap_or_default(), loss))
    }
}

/// When both were there, within the duration.
fn interval(
    plan: &Plan,
    record: &Record,
    asks: &SubscriberPlan,
    publishes: &PublisherPlan,
) -> (Instant, Instant) {
    let spans = [asks.span, publishes.span];
    let from = spans.iter().filter_map(|span| span.from).max().unwrap_or_default();
    let to = spans.iter().filter_map(|span| span.to).fold(plan.duration, Duration::min);
    (record.start + from, record.start + to.max(from))
}

/// The longest time without a delivery, the edges included.
fn gap(
    received: &Received,
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
