//! Spacing: samples leave with the spacing of their time stamps, although the network has changed it.
//!
//! Paper: Pallickara et al. 2005, section 3.3, the time-differential service. Its spacing is relative: each sample
//! leaves one time difference after the previous one, so that lateness adds up ([`Anchor::Relative`]). Here all
//! samples refer to one anchor instead, and the anchor follows the delays of a window: their minimum, plus a
//! quantile of their variation. Clock skew moves the minimum, and the anchor slowly follows it.

use paceline_sched::time::jitter_step;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The window of delays, in samples.
const WINDOW: usize = 512;
/// The anchor stays while its depth exceeds the quantile by less.
const SLACK: i64 = 500_000;
/// The largest allowance for clock skew.
const DRIFT_MAX: i64 = 1_000_000;
/// The anchor rises by at most one part in so many of the time, unless a sample is late already.
const RISE: i64 = 100;
/// The anchor falls by at most one part in so many of the time: 2,000 ppm.
const FALL: i64 = 500;
/// A delay that differs by more from all in the window is a jump of the time stamps.
const JUMP: i64 = 1_000_000_000;

/// The reference of the release times.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Anchor {
    /// All samples refer to one anchor, so lateness never adds up.
    #[default]
    Adaptive,
    /// Each sample refers to the previous one, as in the paper; for comparisons.
    Relative,
}

/// The depth of a [`Spacing`]: the delay that it adds to the fastest sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Depth {
    /// The smallest added delay.
    pub min: Duration,
    /// The largest added delay.
    pub max: Duration,
    /// The part of the samples that arrive before their release time, in thousandths.
    pub quantile_permille: u16,
}

impl Default for Depth {
    /// From 0 to 200 ms, for 99.5 % of the samples.
    fn default() -> Self {
        Self { min: Duration::ZERO, max: Duration::from_millis(200), quantile_permille: 995 }
    }
}

/// The release time of one sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Release {
    /// The release time; never before that of the previous sample.
    pub at: Instant,
    /// The time by which the sample arrived after its release time; zero if it was early.
    pub late: Duration,
    /// The time stamps jumped, so the spacing starts again with this sample.
    pub jumped: bool,
}

/// The release times of one stream of samples.
///
/// ```
/// use paceline_sched::{Duration, Instant};
/// use paceline_time::spacing::{Anchor, Depth, Spacing};
///
/// let depth = Depth { min: Duration::from_millis(20), ..Depth::default() };
/// let mut spacing = Spacing::new(Anchor::Adaptive, depth);
/// let first = spacing.handle(Instant::from_millis(1_000), 0);
/// let second = spacing.handle(Instant::from_millis(1_015), 10_000_000);
/// assert_eq!(second.at.since(first.at), Duration::from_millis(10), "it arrived 5 ms too late");
/// ```
#[derive(Debug)]
pub struct Spacing {
    anchor: Anchor,
    depth: Depth,
    /// The delays of the window in the order of arrival, and sorted.
    recent: VecDeque<i64>,
    sorted: Vec<i64>,
    /// Samples until the drift is estimated again.
    until_drift: usize,
    /// The rise of the minimum delay from the older half of the window to the newer one, by clock skew.
    drift: i64,
    /// The release time minus the time stamp.
    base: i64,
    last: Option<(Instant, i64, Instant)>,
}

impl Spacing {
    /// Returns the spacing of a stream without samples.
    #[must_use]
    pub const fn new(anchor: Anchor, depth: Depth) -> Self {
        Self {
            anchor,
            depth,
            recent: VecDeque::new(),
            sorted: Vec::new(),
            until_drift: WINDOW,
            drift: 0,
            base: 0,
            last: None,
        }
    }

    /// Returns the release time of a sample that arrives at `now` with a time stamp in nanoseconds.
    ///
    /// Only differences of time stamps count, so the publisher's clock need not be right.
    pub fn handle(&mut self, now: Instant, stamp_nanos: u64) -> Release {
        let (arrived, stamp) = (signed(now.as_nanos()), signed(stamp_nanos));
        let delay = arrived.saturating_sub(stamp);
        let jumped = self.is_jump(delay);
        if jumped {
            self.recent.clear();
            self.sorted.clear();
            (self.until_drift, self.drift) = (WINDOW, 0);
        }
        let first = self.recent.is_empty();
        self.note(delay);
        let at = match (self.anchor, self.last.filter(|_| !first)) {
            (Anchor::Adaptive, last) => {
                let elapsed = last.map(|(before, ..)| signed(now.since(before).as_nanos()));
                self.follow(delay, elapsed);
                stamp.saturating_add(self.base)
            }
            (Anchor::Relative, None) => arrived.saturating_add(signed(self.depth.min.as_nanos())),
            (Anchor::Relative, Some((_, before, at))) => {
                signed(at.as_nanos()).saturating_add(stamp.saturating_sub(before))
            }
        };
        let at = Instant::from_nanos(u64::try_from(at).unwrap_or_default());
        let late = now.since(at);
        let at = self.last.map_or(at, |(_, _, last)| at.max(last)).max(now);
        self.last = Some((now, stamp, at));
        Release { at, late, jumped }
    }

    /// Returns the delay that is added to the fastest sample of the window.
    #[must_use]
    pub fn added(&self) -> Duration {
        let min = self.sorted.first().copied().unwrap_or(self.base);
        Duration::from_nanos(u64::try_from(self.base.saturating_sub(min)).unwrap_or_default())
    }

    fn is_jump(&self, delay: i64) -> bool {
        let reach = JUMP.saturating_add(signed(self.depth.max.as_nanos()));
        let far = |other: &i64| delay.saturating_sub(*other).saturating_abs() > reach;
        self.sorted.first().is_some_and(far) && self.sorted.last().is_some_and(far)
    }

    fn note(&mut self, delay: i64) {
        if self.recent.len() >= WINDOW
            && let Some(oldest) = self.recent.pop_front()
            && let Ok(place) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(place);
        }
        self.recent.push_back(delay);
        let place = self.sorted.partition_point(|other| *other < delay);
        self.sorted.insert(place, delay);
        self.until_drift -= 1;
        if self.until_drift == 0 {
            self.until_drift = WINDOW / 8;
            let min = |half: &mut dyn Iterator<Item = &i64>| half.min().copied().unwrap_or(delay);
            let older = min(&mut self.recent.iter().take(WINDOW / 2));
            let newer = min(&mut self.recent.iter().skip(WINDOW / 2));
            self.drift = newer.saturating_sub(older).clamp(0, DRIFT_MAX);
        }
    }

    /// Moves the anchor towards the minimum delay plus the quantile of its variation. `elapsed` is `None` for a
    /// first sample.
    fn follow(&mut self, delay: i64, elapsed: Option<i64>) {
        let rank = (self.sorted.len() * usize::from(self.depth.quantile_permille)).div_ceil(1_000);
        let min = self.sorted.first().copied().unwrap_or(delay);
        let high = self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or(delay);
        let limits = (signed(self.depth.min.as_nanos()), signed(self.depth.max.as_nanos()));
        let depth = high.saturating_add(self.drift).saturating_sub(min).min(limits.1).max(limits.0);
        let target = min.saturating_add(depth);
        let (gap, late) = (target.saturating_sub(self.base), delay > self.base);
        self.base = match elapsed {
            None => target,
            Some(_) if gap > 0 && late => target,
            Some(elapsed) if gap > 0 => self.base.saturating_add(gap.min(elapsed / RISE)),
            Some(elapsed) if gap < -SLACK => self.base.saturating_sub((-gap).min(elapsed / FALL)),
            Some(_) => self.base,
        };
    }
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// The interarrival jitter of RFC 3550, section 6.4.1: a running mean of the differences of transit times.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Jitter {
    last: Option<i64>,
    /// Sixteen times the jitter, in nanoseconds.
    scaled: u64,
}

impl Jitter {
    /// Adds a sample with a time stamp in nanoseconds that arrives, or leaves, at `now`.
    pub fn add(&mut self, now: Instant, stamp_nanos: u64) {
        let transit = signed(now.as_nanos()).saturating_sub(signed(stamp_nanos));
        if let Some(last) = self.last {
            let change = transit.saturating_sub(last).unsigned_abs();
            self.scaled = jitter_step(self.scaled, change);
        }
        self.last = Some(transit);
    }

    /// Returns the jitter.
    #[must_use]
    pub const fn value(&self) -> Duration {
        Duration::from_nanos(self.scaled >> 4)
    }
}
