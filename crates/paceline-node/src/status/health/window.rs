//! The readings of a subscription's counters, and the comparison over them.

use super::{HealthState, SubscriptionHealth};
use paceline_proto::{DropReason, Drops, PublisherId, Rate};
use paceline_sched::LossTolerance;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The longest time that the figures cover.
const WINDOW: Duration = Duration::from_secs(10);
/// The time without a sample after which a publisher without a declared rate is silent.
const SILENCE: Duration = Duration::from_secs(2);
/// With a requested rate, the share of missing samples that is not counted, as `1 / SLACK_PART`, and the number of missing samples
/// in thousandths: a rate is kept by counting, and the window cuts its first and last interval.
const SLACK_PART: u128 = 10;
const SLACK_THOUSANDTHS: u128 = 1_500;
const THOUSAND: u128 = 1_000;
/// The growth of the smallest age that shows that samples wait: a path that sends all of them has none.
const WAITING: Duration = Duration::from_millis(500);
/// The unknown place of losses on the path.
const BEFORE: &str = "before this node";

/// The counters of a subscription at one time, all since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthReading {
    /// The time of reading by the node's clock.
    pub at: Duration,
    /// Delivered samples.
    pub delivered: u64,
    /// Samples that were later than the delay bound, delivered or dropped for it.
    pub late: u64,
    /// The part of `late` that arrived in time, and waited in this process.
    pub overdue: u64,
    /// The smallest age at arrival of the samples since the last reading; `None` without any.
    pub youngest: Option<Duration>,
    /// Samples between two that arrived, which did not arrive; 0 unless every sample is requested.
    pub gaps: u64,
    /// Samples that arrived in order and were dropped at this node.
    pub refused: u64,
    /// Samples dropped at this node, by reason.
    pub dropped: Drops,
    /// Samples that each publisher has sent since its first one here, as far as their numbers show; empty if every sample is
    /// requested.
    pub published: BTreeMap<PublisherId, u64>,
}

/// The request and the publishers of a subscription.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthRequest {
    /// Requested rate.
    pub rate: Rate,
    /// Requested delay bound.
    pub within: Option<Duration>,
    /// Requested loss tolerance.
    pub loss: Option<LossTolerance>,
    /// The received publishers, each with its declared period.
    pub publishers: Vec<(PublisherId, Option<Duration>)>,
}

/// The readings of ten seconds.
#[derive(Clone, Debug, Default)]
pub struct HealthWindow {
    request: HealthRequest,
    readings: VecDeque<HealthReading>,
    /// The newest stretch of samples beyond the tolerance, while it is in the window.
    burst: Option<Burst>,
    broken: Duration,
    broken_at: Option<Duration>,
}

/// The shortest stretch of samples at a reading that missed more than the tolerance allows. A mean over the window hides it: a
/// tolerance limits each group of consecutive samples.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// The time of the reading before it.
    since: Duration,
    over: Duration,
    missed: u64,
    samples: u64,
}

/// The growth of the counters between two readings.
struct Growth {
    over: Duration,
    delivered: u64,
    late: u64,
    overdue: u64,
    gaps: u64,
    refused: u64,
    dropped: Drops,
    /// Time since the last sample that arrived, in whole readings.
    quiet: Duration,
    /// The growth of the smallest age since its least value.
    waiting: Duration,
}

impl HealthWindow {
    /// Takes a reading. A changed request or other publishers start a new window.
    pub fn handle_reading(&mut self, request: HealthRequest, reading: HealthReading) {
        if request != self.request {
            self.request = request;
            self.readings.clear();
            self.burst = None;
        }
        let before = self.readings.back().map(|before| before.at);
        let at = reading.at;
        while self.readings.len() > 1
            && self.readings.get(1).is_some_and(|second| at.saturating_sub(second.at) >= WINDOW)
        {
            self.readings.pop_front();
        }
        self.readings.push_back(reading);
        let start = self.readings.front().map_or(at, |first| first.at);
        self.burst = self.new_burst().or(self.burst.filter(|burst| burst.since >= start));
        if let Some(before) = before
            && self.health().state == HealthState::Broken
        {
            self.broken = self.broken.saturating_add(at.saturating_sub(before));
            self.broken_at = Some(at);
        }
    }

    /// Returns the health, without the refusals.
    #[must_use]
    pub fn health(&self) -> SubscriptionHealth {
        let mut health = SubscriptionHealth {
            broken_seconds: self.broken.as_secs(),
            broken_ago: self.broken_ago(),
            ..SubscriptionHealth::default()
        };
        let state = match (self.request.publishers.is_empty(), self.growth(0)) {
            (true, _) => HealthState::NoPublisher,
            (false, None) => HealthState::Silent,
            (false, Some(growth)) => self.compare(&growth, &mut health),
        };
        health.set_state(state);
        health
    }

    /// Returns the health of a subscription with these refusals.
    #[must_use]
    pub fn with_refusals(&self, refusals: &[String]) -> SubscriptionHealth {
        let mut health = self.health();
        if let Some(refusal) = refusals.first() {
            health.reason = Some(refusal.clone());
            health.set_state(HealthState::Refused);
        }
        health
    }

    fn broken_ago(&self) -> Option<Duration> {
        let now = self.readings.back().map(|last| last.at);
        now.zip(self.broken_at).map(|(now, then)| now.saturating_sub(then))
    }

    /// Returns the shortest stretch up to the last reading that is beyond the tolerance of a contract. Time without samples does
    /// not count: a publisher that pauses breaks no contract.
    fn new_burst(&self) -> Option<Burst> {
        self.request.within?;
        let before = (0..self.readings.len().saturating_sub(1)).rev();
        before.filter_map(|from| self.burst_since(from)).next()
    }

    fn burst_since(&self, from: usize) -> Option<Burst> {
        let growth = self.growth(from)?;
        let requested = if self.request.rate == Rate::ALL {
            Some(growth.seen())
        } else {
            self.requested_of_rate(from, None)
        };
        let lost = self.lost(&growth, requested);
        let missed = lost.saturating_add(growth.late_delivered());
        let samples = growth.delivered.saturating_add(lost);
        let since = self.readings.get(from)?.at;
        let burst = Burst { since, over: growth.over, missed, samples };
        self.is_beyond(samples, missed).then_some(burst)
    }

    /// Returns the growth between a reading and the last one; `None` with fewer than two.
    fn growth(&self, from: usize) -> Option<Growth> {
        let (first, last) = self.readings.get(from).zip(self.readings.back())?;
        let over = last.at.checked_sub(first.at).filter(|over| !over.is_zero())?;
        let mut dropped = Drops::default();
        last.dropped.iter().for_each(|(reason, count)| {
            dropped.add(reason, count.saturating_sub(first.dropped.of(reason)));
        });
        // A sample that replaces an unread one counts as refused in place of delivered.
        let seen = |it: &HealthReading| it.delivered.saturating_add(it.refused);
        let same = self.readings.iter().skip(from).rev().take_while(|it| seen(it) == seen(last));
        let since = same.last().map_or(last.at, |reading| reading.at);
        let grown = |of: fn(&HealthReading) -> u64| of(last).saturating_sub(of(first));
        Some(Growth {
            over,
            delivered: grown(|it| it.delivered),
            late: grown(|it| it.late),
            overdue: grown(|it| it.overdue),
            gaps: grown(|it| it.gaps),
            refused: grown(|it| it.refused),
            dropped,
            quiet: last.at.saturating_sub(since),
            waiting: self.waiting(),
        })
    }

    /// Returns the growth of the smallest age since its least value in the window. Samples that wait in a queue without a loss
    /// become older and older.
    fn waiting(&self) -> Duration {
        let mut ages = self.readings.iter().filter_map(|reading| reading.youngest);
        let last = ages.next_back();
        let least = ages.min();
        last.zip(least).map_or(Duration::ZERO, |(last, least)| last.saturating_sub(least))
    }

    /// Compares requested and delivered samples, fills the figures and returns the state.
    fn compare(&self, growth: &Growth, health: &mut SubscriptionHealth) -> HealthState {
        let &Growth { over, delivered, refused, .. } = growth;
        let declared = self.declared_thousandths(growth.quiet);
        // Three samples were due while none arrived.
        let is_stalled = declared.is_some_and(|due| due >= 3 * THOUSAND);
        let requested = if self.request.rate == Rate::ALL {
            let due = declared.filter(|_| is_stalled).map_or(0, |due| due / THOUSAND);
            Some(growth.seen().saturating_add(u64::try_from(due).unwrap_or(u64::MAX)))
        } else {
            self.requested_of_rate(0, is_stalled.then_some(growth.quiet))
        };
        let lost = self.lost(growth, requested);
        let late = growth.late_delivered();
        health.window = over;
        // The three figures belong together, also where a rate allows one sample more or less.
        health.requested = requested.map(|_| delivered.saturating_add(lost));
        (health.delivered, health.lost, health.late) = (delivered, lost, late);
        health.lost_before = lost.saturating_sub(refused);
        health.delivered_millihertz = millihertz(delivered, over);
        health.requested_millihertz = health.requested.and_then(|count| millihertz(count, over));
        health.reason = self.reason(growth, health, is_stalled);
        self.state(health, is_stalled, growth)
    }

    /// Returns the number of samples that a requested rate includes since a reading; `None` with a bit rate, which leaves out as
    /// many samples as their sizes require.
    fn requested_of_rate(&self, from: usize, stalled: Option<Duration>) -> Option<u64> {
        if self.request.rate.bits_per_s.is_some() {
            return None;
        }
        let thousandths = self.requested_thousandths(from, stalled)?;
        Some(u64::try_from(thousandths / THOUSAND).unwrap_or(u64::MAX))
    }

    fn lost(&self, growth: &Growth, requested: Option<u64>) -> u64 {
        let delivered = growth.delivered;
        match requested {
            Some(requested) if self.request.rate == Rate::ALL => {
                requested.saturating_sub(delivered)
            }
            Some(requested) if is_clearly_fewer(delivered, requested) => requested - delivered,
            Some(_) | None => growth.refused,
        }
    }

    fn state(&self, health: &SubscriptionHealth, is_stalled: bool, growth: &Growth) -> HealthState {
        match self.request.within {
            Some(_) if self.burst.is_some() => HealthState::Broken,
            None if self.is_beyond(health.delivered.saturating_add(health.lost), health.lost) => {
                HealthState::Short
            }
            None if growth.waiting >= WAITING => HealthState::Short,
            Some(_) | None if is_stalled => HealthState::Short,
            Some(_) | None if health.delivered == 0 || growth.quiet >= self.silence() => {
                HealthState::Silent
            }
            Some(_) | None => HealthState::Served,
        }
    }

    /// Returns true if more samples were missed than the tolerance allows, whatever the alignment of its windows: n consecutive
    /// samples of one publisher touch at most ⌈(n - 1) / y⌉ + 1 windows.
    fn is_beyond(&self, samples: u64, missed: u64) -> bool {
        let loss = self.request.loss;
        let (x, y) = loss.map_or((0, 1), |loss| (u64::from(loss.x()), u64::from(loss.y()).max(1)));
        let publishers = u64::try_from(self.request.publishers.len()).unwrap_or(u64::MAX).max(1);
        let publishers = publishers.min(samples.max(1));
        let partly =
            samples.saturating_add(publishers.saturating_mul(y)).saturating_sub(2 * publishers);
        let windows = (partly / y).saturating_add(publishers);
        missed > x.saturating_mul(windows)
    }

    /// Returns the time without a sample after which the publishers are silent: with declared rates the window, because a stall
    /// is reported earlier.
    fn silence(&self) -> Duration {
        let are_declared = self.request.publishers.iter().any(|(_, period)| period.is_some());
        if are_declared { WINDOW } else { SILENCE }
    }

    /// Returns the thousandths of samples that the declared rates imply in a time; `None` if no publisher declares one.
    fn declared_thousandths(&self, over: Duration) -> Option<u128> {
        let publishers = self.request.publishers.iter();
        let each = publishers.filter_map(|(_, period)| Some(thousandths(over, (*period)?)));
        let limited = each.map(|count| self.limited(count, over));
        limited.fold(None, |sum: Option<u128>, count| Some(sum.unwrap_or(0).saturating_add(count)))
    }

    /// Returns the thousandths of samples that the request includes of the published ones: per reading, because a publisher may
    /// have paused. While a stream is stalled, its declared rate counts.
    fn requested_thousandths(&self, from: usize, stalled: Option<Duration>) -> Option<u128> {
        let until = self.readings.back()?.at.checked_sub(stalled.unwrap_or_default())?;
        let readings = self.readings.iter().skip(from);
        let pairs = readings.clone().zip(readings.skip(1));
        let each = pairs.flat_map(|(first, last)| {
            let over = last.at.saturating_sub(first.at);
            self.request.publishers.iter().map(move |(publisher, period)| {
                let before = first.published.get(publisher).copied().unwrap_or(0);
                let now = last.published.get(publisher).copied().unwrap_or(0);
                let seen = u128::from(now.saturating_sub(before)) * THOUSAND;
                let declared = period.filter(|_| last.at > until);
                let declared = declared.map_or(0, |period| thousandths(over, period));
                self.limited(seen.max(declared), over)
            })
        });
        Some(each.sum())
    }

    /// Applies the requested rate to a number of published samples in thousandths.
    fn limited(&self, published: u128, over: Duration) -> u128 {
        let some = published / u128::from(self.request.rate.every.get());
        let max = self
            .request
            .rate
            .max_millihertz
            .map(|max| u128::from(max.get()) * over.as_micros() / 1_000_000);
        max.map_or(some, |max| some.min(max))
    }

    fn reason(
        &self,
        growth: &Growth,
        health: &SubscriptionHealth,
        is_stalled: bool,
    ) -> Option<String> {
        let SubscriptionHealth { delivered, lost, lost_before, late, .. } = *health;
        if is_stalled {
            let declared = self.declared_thousandths(Duration::from_secs(1)).unwrap_or(0);
            let (whole, tenth) = (declared / THOUSAND, declared % THOUSAND / 100);
            let seconds = growth.quiet.as_secs();
            return Some(format!("no sample for {seconds} s, and {whole}.{tenth} Hz are declared"));
        }
        // Only where the figures of the whole window look like a tolerated loss.
        let is_visible = self.is_beyond(delivered.saturating_add(lost), late.saturating_add(lost));
        let burst = self.burst.filter(|_| !is_visible).map(Burst::in_words);
        let detail = burst.as_ref().map(|burst| format!(": {burst}")).unwrap_or_default();
        if late > lost {
            let waited = growth.overdue.saturating_mul(2) > late;
            let place = if waited { ", because they waited in this process" } else { "" };
            let within = self.request.within.map_or(0, |within| within.as_millis());
            return Some(format!(
                "{late} of {delivered} were older than {within} ms{place}{detail}"
            ));
        }
        let most = growth.dropped.iter().max_by_key(|(_, count)| *count);
        let all = health.requested.unwrap_or_else(|| delivered.saturating_add(lost));
        match (lost, most) {
            (0, _) if self.request.within.is_none() && growth.waiting >= WAITING => {
                let grown = growth.waiting.as_millis() / 100;
                let (whole, tenth) = (grown / 10, grown % 10);
                Some(format!("samples wait {BEFORE}: their age grew by {whole}.{tenth} s"))
            }
            // The rate of a request explains the loss of the whole window, but not this one.
            (0, _) => burst,
            (_, Some((reason, count))) if lost_before <= count => {
                Some(format!("{count} of {all} dropped here ({reason}){detail}"))
            }
            _ => Some(format!("{lost_before} of {all} lost {BEFORE}{detail}")),
        }
    }
}

impl Growth {
    /// Returns the samples that arrived or are known to be missing.
    fn seen(&self) -> u64 {
        self.delivered.saturating_add(self.gaps).saturating_add(self.refused)
    }

    /// Returns the late samples that were delivered.
    fn late_delivered(&self) -> u64 {
        self.late.saturating_sub(self.dropped.of(DropReason::DeadlineMissed))
    }
}

impl Burst {
    fn in_words(self) -> String {
        let Self { missed, samples, over, .. } = self;
        format!("{missed} of {samples} missed within {} s", over.as_millis().div_ceil(1_000))
    }
}

impl SubscriptionHealth {
    /// Names the place of the samples that were lost before this node.
    pub(in crate::status) fn set_place(&mut self, place: &str) {
        let of = self.requested.unwrap_or_else(|| self.delivered.saturating_add(self.lost));
        self.reason = Some(match self.reason.take() {
            Some(reason) if reason.contains(BEFORE) => reason.replacen(BEFORE, place, 1),
            // A pause of the publisher stays the reason where nothing is lost.
            Some(reason) if self.lost_before == 0 => reason,
            Some(_) | None => format!("{} of {of} lost {place}", self.lost_before),
        });
    }

    fn set_state(&mut self, state: HealthState) {
        self.state = state;
        self.label = state.in_words().to_owned();
    }
}

/// Returns the thousandths of samples of this period in a time.
fn thousandths(over: Duration, period: Duration) -> u128 {
    over.as_nanos() * THOUSAND / period.as_nanos().max(1)
}

fn millihertz(samples: u64, over: Duration) -> Option<u64> {
    let scaled = u128::from(samples) * 1_000_000_000_000;
    scaled.checked_div(over.as_nanos()).map(|it| u64::try_from(it).unwrap_or(u64::MAX))
}

/// Returns true if fewer samples arrived than a rate explains.
fn is_clearly_fewer(delivered: u64, requested: u64) -> bool {
    let (delivered, requested) = (u128::from(delivered), u128::from(requested));
    delivered * THOUSAND + SLACK_THOUSANDTHS + requested * THOUSAND / SLACK_PART
        < requested * THOUSAND
}
