//! Sums per level of non-preemptive static priority. FIFO is the case of a single level.

use crate::bounds::{LatencyRate, Sum, static_priority};
use crate::demand::StreamDemand;
use crate::ledger::less;
use crate::traffic::nanobits;
use paceline_sched::Duration;
use std::collections::BTreeMap;

/// The streams of one level.
#[derive(Clone, Debug, Default)]
struct Level {
    sum: Sum,
    packets: BTreeMap<u64, u32>,
    deadlines: BTreeMap<u64, u32>,
}

impl Level {
    fn add(&mut self, demand: &StreamDemand) {
        self.sum.burst += demand.traffic().burst();
        self.sum.rate += demand.traffic().rate();
        *self.packets.entry(demand.traffic().packet()).or_default() += 1;
        *self.deadlines.entry(demand.deadline().as_nanos()).or_default() += 1;
    }

    fn take(&mut self, demand: &StreamDemand) {
        self.sum.burst -= demand.traffic().burst();
        self.sum.rate -= demand.traffic().rate();
        less(&mut self.packets, &demand.traffic().packet());
        less(&mut self.deadlines, &demand.deadline().as_nanos());
    }

    fn view(&self, level: u32) -> View {
        View {
            level,
            sum: self.sum,
            longest: self.packets.last_key_value().map_or(0, |(packet, _)| *packet),
            strictest: self.deadlines.first_key_value().map_or(u64::MAX, |(at, _)| *at),
        }
    }
}

/// The summary of one level for a check.
#[derive(Clone, Copy, Debug)]
struct View {
    level: u32,
    sum: Sum,
    longest: u64,
    strictest: u64,
}

/// All levels of a link.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    levels: BTreeMap<u32, Level>,
    /// The summaries of the levels, in order and contiguous in memory.
    views: Vec<View>,
    total: Sum,
    /// True if every stream is in level 0.
    one: bool,
}

/// Why a delay bound exceeds a deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TooLong {
    /// The bound, and the deadline that it would exceed.
    Delay { bound: u64, deadline: u64 },
    /// The rate exceeds the remaining capacity.
    Rate,
}

impl Levels {
    pub(crate) const fn new(one: bool) -> Self {
        let total = Sum { burst: 0, rate: 0 };
        Self { levels: BTreeMap::new(), views: Vec::new(), total, one }
    }

    fn level_of(&self, demand: &StreamDemand) -> u32 {
        if self.one { 0 } else { demand.level() }
    }

    pub(crate) fn add(&mut self, demand: &StreamDemand) {
        let number = self.level_of(demand);
        let level = self.levels.entry(number).or_default();
        level.add(demand);
        let view = level.view(number);
        match self.views.binary_search_by_key(&number, |view| view.level) {
            Ok(place) => self.views.splice(place..=place, [view]).for_each(drop),
            Err(place) => self.views.insert(place, view),
        }
        self.total = with(self.total, demand);
    }

    pub(crate) fn take(&mut self, demand: &StreamDemand) {
        let number = self.level_of(demand);
        let Some(level) = self.levels.get_mut(&number) else { return };
        level.take(demand);
        let left = (!level.packets.is_empty()).then(|| level.view(number));
        if left.is_none() {
            self.levels.remove(&number);
        }
        if let Ok(place) = self.views.binary_search_by_key(&number, |view| view.level) {
            self.views.splice(place..=place, left).for_each(drop);
        }
        self.total = without(self.total, demand);
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.levels.is_empty() && self.views.is_empty() && self.total == Sum::default()
    }

    /// Returns the delay bound of `plus` if all deadlines are met with it and without `minus`.
    ///
    /// The scan runs backwards from the last level. It stops at the first changed level unless a
    /// longer packet blocks, because the bounds of earlier levels are unchanged.
    pub(crate) fn check(
        &self,
        link: LatencyRate,
        other: u64,
        minus: Option<&StreamDemand>,
        plus: &StreamDemand,
    ) -> Result<Duration, TooLong> {
        let own = self.level_of(plus);
        let gone = minus.map(|minus| (self.level_of(minus), minus));
        let first = gone.map_or(own, |(at, _)| at.min(own));
        let first = if plus.traffic().packet() > other { 0 } else { first };
        let total = with(minus.map_or(self.total, |minus| without(self.total, minus)), plus);
        let mut scan = Scan { link, left: total, longest: other, own, bound: Duration::ZERO };
        let mut added = false;
        for &held in self.views.iter().rev() {
            if !added && held.level < own {
                scan.pass(&alone(own, plus))?;
                added = true;
            }
            if held.level < first {
                break;
            }
            let touched = held.level == own || gone.is_some_and(|(at, _)| at == held.level);
            let view = if touched { self.touched(held.level, gone, own, plus) } else { Some(held) };
            added |= held.level == own;
            if let Some(view) = view {
                scan.pass(&view)?;
            }
        }
        if !added {
            scan.pass(&alone(own, plus))?;
        }
        Ok(scan.bound)
    }

    /// Returns the summary of a level that loses or gains a stream.
    fn touched(
        &self,
        level: u32,
        gone: Option<(u32, &StreamDemand)>,
        own: u32,
        plus: &StreamDemand,
    ) -> Option<View> {
        let minus = gone.filter(|(at, _)| *at == level).map(|(_, minus)| minus);
        view(level, self.levels.get(&level)?, minus, (level == own).then_some(plus))
    }
}

const fn with(sum: Sum, demand: &StreamDemand) -> Sum {
    let traffic = demand.traffic();
    Sum { burst: sum.burst + traffic.burst(), rate: sum.rate + traffic.rate() }
}

const fn without(sum: Sum, demand: &StreamDemand) -> Sum {
    let traffic = demand.traffic();
    Sum { burst: sum.burst - traffic.burst(), rate: sum.rate - traffic.rate() }
}

/// The state of the backward scan.
struct Scan {
    link: LatencyRate,
    /// The traffic of all levels up to the current one.
    left: Sum,
    /// The longest packet of the levels after the current one.
    longest: u64,
    own: u32,
    bound: Duration,
}

impl Scan {
    fn pass(&mut self, view: &View) -> Result<(), TooLong> {
        let lower = self.longest;
        let left = self.left;
        let before = Sum { burst: left.burst - view.sum.burst, rate: left.rate - view.sum.rate };
        self.left = before;
        self.longest = self.longest.max(view.longest);
        if view.level != self.own && self.keeps(before, view, lower) {
            return Ok(());
        }
        let waits = static_priority(self.link, before, view.sum, lower).ok_or(TooLong::Rate)?;
        if waits.as_nanos() > view.strictest {
            return Err(TooLong::Delay { bound: waits.as_nanos(), deadline: view.strictest });
        }
        if view.level == self.own {
            self.bound = waits;
        }
        Ok(())
    }

    /// A sufficient condition for the comparison, without a division.
    fn keeps(&self, before: Sum, view: &View, lower: u64) -> bool {
        let rate = self.link.rate.saturating_sub(before.rate);
        let time = view.strictest.saturating_sub(self.link.latency.as_nanos());
        let bytes = nanobits(before.burst + lower + view.sum.burst);
        let more = u128::from(before.rate) * u128::from(self.link.latency.as_nanos());
        view.sum.rate <= rate && bytes + more <= u128::from(rate) * u128::from(time)
    }
}

fn alone(level: u32, demand: &StreamDemand) -> View {
    let traffic = demand.traffic();
    View {
        level,
        sum: Sum { burst: traffic.burst(), rate: traffic.rate() },
        longest: traffic.packet(),
        strictest: demand.deadline().as_nanos(),
    }
}

/// Returns the summary of a level with one stream less and one more, or `None` if it becomes empty.
fn view(
    level: u32,
    held: &Level,
    minus: Option<&StreamDemand>,
    plus: Option<&StreamDemand>,
) -> Option<View> {
    let (mut sum, mut longest, mut strictest) = (held.sum, 0, u64::MAX);
    let gone = minus.map(|minus| (minus.traffic().packet(), minus.deadline().as_nanos()));
    let stays = |gone: Option<u64>| {
        move |(value, count): (&u64, &u32)| {
            (*count > u32::from(gone == Some(*value))).then_some(*value)
        }
    };
    let packets = held.packets.iter().rev().find_map(stays(gone.map(|gone| gone.0)));
    let deadlines = held.deadlines.iter().find_map(stays(gone.map(|gone| gone.1)));
    if let (Some(packet), Some(deadline)) = (packets, deadlines) {
        (longest, strictest) = (packet, deadline);
    } else if plus.is_none() {
        return None;
    }
    if let Some(minus) = minus {
        sum = without(sum, minus);
    }
    if let Some(plus) = plus {
        sum = with(sum, plus);
        longest = longest.max(plus.traffic().packet());
        strictest = strictest.min(plus.deadline().as_nanos());
    }
    Some(View { level, sum, longest, strictest })
}
