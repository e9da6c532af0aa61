//! The processor demand criterion: the exact test of a link on which each sample counts when it is due.
//!
//! Papers: Baruah, Rosier & Howell 1990 (demand bound functions); Zhang & Burns, "Schedulability Analysis for
//! Real-Time Systems with EDF Scheduling", IEEE ToC 2009 (quick processor-demand analysis, QPA: from the end of the
//! longest busy period, all instants between the time in which the demand is carried and the present one can be left
//! out).
//!
//! [`crate::corners`] tests the curves above all samples incrementally, and admits most demands. Only demands that it
//! refuses are tested here.

use crate::ledger::less;
use crate::owed::Owed;
use crate::staircase::Staircase;
use crate::traffic::{NANOBITS, nanobits, narrow};
use paceline_sched::LossTolerance;
use paceline_sched::police::Dual;
use std::collections::BTreeMap;

/// The most demand functions that a test evaluates, or each search of an offer, so that its time is bounded: a few hundred
/// microseconds. A set that would need more is refused. Each step evaluates those of all different streams, and most tests
/// take a few steps.
const EVALUATIONS_MAX: usize = 1 << 15;

/// The results that the tests of several demands on one link share. Each demand replaces the same present one, or is
/// added to all; the demand of the others is evaluated once per instant.
#[derive(Debug)]
pub(crate) struct Trials {
    /// The demand functions that may still be evaluated.
    left: usize,
    /// The demand that the tested ones replace.
    minus: Option<Due>,
    /// The demands that stay, with their numbers.
    staying: Option<Vec<(Due, u32)>>,
    /// Their demand due by an instant, and the longest of their packets that block it.
    known: BTreeMap<u64, Staying>,
    /// The instant that the link did not carry in the last refusal: most demands that do not fit exceed it, too.
    refused_at: Option<u64>,
}

/// The demands that stay, at one instant.
#[derive(Clone, Copy, Debug)]
struct Staying {
    nanobits: u128,
    /// The longest packet that blocks later instants, and that blocks this one.
    blocks_later: u64,
    blocks: u64,
    /// The most nanobits that one sample which has begun adds to the demand.
    begun: u128,
    /// The last instant before this one from which a longer packet blocks no more.
    change: u64,
}

impl Trials {
    pub(crate) const fn new() -> Self {
        Self {
            left: EVALUATIONS_MAX,
            minus: None,
            staying: None,
            known: BTreeMap::new(),
            refused_at: None,
        }
    }

    /// Removes the results of a link. The number of evaluations that are left stays.
    pub(crate) fn forget(&mut self) {
        *self = Self { left: self.left, ..Self::new() };
    }

    /// Allows as many evaluations as for a single test.
    pub(crate) const fn renew(&mut self) {
        self.left = EVALUATIONS_MAX;
    }
}

/// The demand of one stream: the bytes that are due by each instant after a simultaneous start.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Due {
    pub(crate) deadline: u64,
    /// A packet of this length blocks all deadlines before this time.
    pub(crate) blocks: u64,
    pub(crate) packet: u64,
    /// The least time until the deadline of a sample that has begun, if its virtual deadline may be later.
    begun: Option<u64>,
    /// The lines of the curve: bytes at once and bits per second.
    lines: [(u64, u64); 2],
    staircase: Option<Staircase>,
    /// The loss tolerance, if only the services owed count, and the line above them.
    owed: Option<(u32, u32, Owed)>,
}

impl Due {
    pub(crate) fn new(
        (deadline, blocks, packet): (u64, u64, u64),
        dual: Dual,
        staircase: Option<Staircase>,
        owed: Option<(LossTolerance, Owed)>,
    ) -> Self {
        let lines = [(dual.peak_burst, dual.peak_rate), (dual.burst, dual.rate)];
        let owed = owed.map(|(loss, line)| (loss.x(), loss.y(), line));
        Self { deadline, blocks, packet, begun: None, lines, staircase, owed }
    }

    /// Sets the least time that a sample which has begun has until its deadline ([`crate::owed`]).
    pub(crate) const fn with_begun(self, begun: Option<u64>) -> Self {
        Self { begun, ..self }
    }

    /// Returns an instant, and the most bytes that a sample which has begun may add to the demand from then on, by the
    /// curves.
    pub(crate) fn begun_at_most(&self) -> Option<(u64, u64)> {
        let begun = self.begun?;
        let earlier = self.curve(self.deadline.saturating_sub(begun));
        Some((begun, narrow(earlier.div_ceil(NANOBITS))))
    }

    /// Returns the nanobits by which the demand of `at` increases if a sample has begun when the link was last busy with
    /// something due later.
    fn more_if_begun(&self, at: u64) -> u128 {
        let since = self.begun.and_then(|begun| at.checked_sub(begun));
        since.map_or(0, |since| self.after(since).saturating_sub(self.by(at)))
    }

    /// Returns 1 if the demand is counted by samples, else 0.
    const fn steps(&self) -> usize {
        self.staircase.is_some() as usize
    }

    /// Returns the nanobits due by `at`.
    fn by(&self, at: u64) -> u128 {
        at.checked_sub(self.deadline).map_or(0, |since| self.after(since))
    }

    /// Returns the nanobits due by `since` nanoseconds after the first deadline, by the curves.
    fn curve(&self, since: u64) -> u128 {
        let line =
            |(burst, rate): (u64, u64)| nanobits(burst) + u128::from(rate) * u128::from(since);
        let [peak, sustained] = self.lines.map(line);
        let owed = self.owed.map_or(u128::MAX, |(.., it)| line((it.burst, it.rate)));
        peak.min(sustained).min(owed)
    }

    /// Returns the nanobits due by `since` nanoseconds after the first deadline.
    fn after(&self, since: u64) -> u128 {
        let curve = self.curve(since);
        let steps = self.staircase.and_then(|steps| match self.owed {
            Some((x, y, _)) => steps.owed_in(since, LossTolerance::new(x, y).ok()?),
            None => Some(steps.bytes_in(since)),
        });
        steps.map_or(curve, |bytes| curve.min(bytes.saturating_mul(NANOBITS)))
    }
}

/// An instant at which the sum exceeds the capacity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Excess {
    pub(crate) at: u64,
    /// In bytes, rounded up.
    pub(crate) needed: u64,
    /// In bytes, rounded down.
    pub(crate) available: u64,
}

/// The demands of all streams of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dues {
    all: BTreeMap<Due, u32>,
    /// How many of them are counted by samples.
    stepped: usize,
}

impl Dues {
    pub(crate) fn add(&mut self, due: &Due) {
        *self.all.entry(*due).or_default() += 1;
        self.stepped += due.steps();
    }

    pub(crate) fn take(&mut self, due: &Due) {
        less(&mut self.all, due);
        self.stepped -= due.steps();
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.all.is_empty()
    }

    /// Checks that a link of `rate` bits per second carries the demand of every instant, without `minus` and with `plus`.
    /// A packet of `other` bytes, or one with a later deadline, may block the link.
    ///
    /// By the curves, it does from `from` nanoseconds on, and does not at `first`. Returns `None` if there are only
    /// curves, or if the answer would take too long. All tests with the same `trials` must be of the same link.
    pub(crate) fn check(
        &self,
        (rate, other): (u64, u64),
        minus: Option<&Due>,
        plus: &Due,
        (first, from): (u64, u64),
        trials: &mut Trials,
    ) -> Option<Result<(), Excess>> {
        let stepped = (self.stepped + plus.steps()).saturating_sub(minus.map_or(0, Due::steps));
        if self.all.len() > EVALUATIONS_MAX / 4 || stepped == 0 {
            return None;
        }
        if trials.minus != minus.copied() {
            trials.forget();
            trials.minus = minus.copied();
        }
        let staying = trials.staying.get_or_insert_with(|| self.without(minus));
        let walks = plus.packet > other || staying.iter().any(|(due, _)| due.packet > other);
        let (known, left) = (&mut trials.known, &mut trials.left);
        let mut link = Load { staying, plus, rate, other, walks, known, left };
        if let Some(Err(excess)) = trials.refused_at.and_then(|at| link.carries_at(at)) {
            return Some(Err(excess));
        }
        let mut next = link.carries_at(first)?.map(|_| from);
        loop {
            match next {
                Ok(0) => return Some(Ok(())),
                Ok(at) => next = link.carries_at(at)?,
                Err(excess) => {
                    trials.refused_at = Some(excess.at);
                    return Some(Err(excess));
                }
            }
        }
    }

    fn without(&self, minus: Option<&Due>) -> Vec<(Due, u32)> {
        let left = |(due, count): (&Due, &u32)| {
            let count = count.saturating_sub(u32::from(Some(due) == minus));
            (count > 0).then_some((*due, count))
        };
        let mut staying = Vec::with_capacity(self.all.len());
        staying.extend(self.all.iter().filter_map(left));
        staying
    }
}

/// The demands on a link, with their numbers.
struct Load<'a> {
    staying: &'a [(Due, u32)],
    plus: &'a Due,
    rate: u64,
    other: u64,
    /// A packet of a stream may block for longer than one of other traffic.
    walks: bool,
    known: &'a mut BTreeMap<u64, Staying>,
    left: &'a mut usize,
}

impl Load<'_> {
    /// Checks that the link carries the demand of `at`. Returns the last instant before it for which it may not, or 0 if
    /// there is none; `None` if the answer would take too many evaluations.
    fn carries_at(&mut self, at: u64) -> Option<Result<u64, Excess>> {
        let staying = self.staying_at(at)?;
        let due = staying.nanobits + self.plus.by(at);
        let begun = staying.begun.max(self.plus.more_if_begun(at));
        if due + begun == 0 {
            return Some(Ok(0));
        }
        let own = |blocks: bool| if blocks { self.plus.packet } else { 0 };
        let later = staying.blocks_later.max(own(self.plus.blocks > at)).max(self.other);
        let blocked = if due > 0 { nanobits(later) } else { 0 };
        let needed = due + blocked.max(begun);
        let carried = u128::from(self.rate) * u128::from(at);
        if needed > carried {
            let needed = narrow(needed.div_ceil(NANOBITS));
            return Some(Err(Excess { at, needed, available: narrow(carried / NANOBITS) }));
        }
        // Before `at`, no more is due. A packet that blocks until an earlier instant may be longer.
        let blocking = staying.blocks.max(own(self.plus.blocks >= at)).max(self.other);
        let own = self.plus.blocks < at && self.plus.packet > blocking;
        let change = staying.change.max(if own { self.plus.blocks } else { 0 });
        let most = due + nanobits(blocking).max(begun);
        let before = narrow(most.saturating_sub(1) / u128::from(self.rate.max(1)));
        Some(Ok(before.max(change).min(at.saturating_sub(1))))
    }

    /// Returns the demands that stay, at one instant; `None` if no evaluations are left.
    fn staying_at(&mut self, at: u64) -> Option<Staying> {
        if let Some(known) = self.known.get(&at) {
            return Some(*known);
        }
        *self.left = self.left.checked_sub(self.staying.len() + 1)?;
        let due = self.staying.iter().map(|(due, count)| due.by(at) * u128::from(*count));
        let nanobits = due.sum();
        let blocks = self.longest(|until| until >= at);
        let blocks_later = self.longest(|until| until > at);
        // Longer packets than those that block `at`, whether or not the tested demand has a longer one.
        let longer = self.staying.iter().map(|(due, _)| due).filter(|_| self.walks);
        let longer = longer.filter(|due| due.blocks < at && due.packet > blocks);
        let change = longer.map(|due| due.blocks).max().unwrap_or(0);
        let begun = self.staying.iter().map(|(due, _)| due.more_if_begun(at)).max().unwrap_or(0);
        let staying = Staying { nanobits, blocks_later, blocks, begun, change };
        self.known.insert(at, staying);
        Some(staying)
    }

    /// Returns the length of the longest packet of other traffic, or of a stream that stays and whose packets block until
    /// these times.
    fn longest(&self, blocks: impl Fn(u64) -> bool) -> u64 {
        if !self.walks {
            return self.other;
        }
        let packets = self.staying.iter().filter(|(due, _)| blocks(due.blocks));
        packets.map(|(due, _)| due.packet).max().unwrap_or(0).max(self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sched::Duration;
    use proptest::prelude::*;

    fn due() -> impl Strategy<Value = Due> {
        let steps = (1..9_u64, 3..30_u64, 0..20_u64);
        let loss = (0..3_u32, 1..4_u32);
        (1..40_u64, 1..9_u64, steps, loss, any::<bool>()).prop_map(
            |(deadline, packet, (bytes, period, early), (x, more), stepped)| {
                let ns = Duration::from_nanos;
                let (period, early) = (period * 10, early * 10);
                let rate = (bytes * 8_000_000_000).div_ceil(period);
                let burst = bytes + (bytes * early).div_ceil(period);
                let dual = Dual { peak_burst: burst, peak_rate: rate, burst, rate };
                let steps =
                    Staircase { bytes, period: ns(period), early: ns(early), clock: ns(period) };
                let loss = LossTolerance::new(x, x + more).unwrap();
                let owed = (x > 0).then(|| (loss, Owed { burst: burst * 2, rate }));
                let blocks = if x > 0 { u64::MAX } else { deadline * 10 };
                let times = (deadline * 10, blocks, packet);
                let begun = (x > 0).then_some(deadline * 5);
                Due::new(times, dual, stepped.then_some(steps), owed).with_begun(begun)
            },
        )
    }

    proptest! {
        #[test]
        fn the_quick_test_agrees_with_a_test_of_every_instant(
            held in proptest::collection::vec(due(), 0..5),
            plus in due(),
            gone in any::<prop::sample::Index>(),
            (rate, other) in (5..60_u64, 0..12_u64),
        ) {
            let rate = rate * 100_000_000;
            let mut dues = Dues::default();
            held.iter().for_each(|due| dues.add(due));
            let minus = (!held.is_empty()).then(|| held[gone.index(held.len())]);
            let from = 2_000;
            let mut all = held.clone();
            if !held.is_empty() {
                all.remove(gone.index(held.len()));
            }
            all.push(plus);
            let fits = (0..=from).all(|at| {
                let due: u128 = all.iter().map(|due| due.by(at)).sum();
                let later = all.iter().filter(|due| due.blocks > at).map(|due| due.packet);
                let blocking = later.max().unwrap_or(0).max(other);
                let carried = u128::from(rate) * u128::from(at);
                let begun = |one: &Due| due - one.by(at) + one.by(at + one.deadline / 2);
                if !all.iter().filter(|it| it.begun.is_some()).all(|it| begun(it) <= carried) {
                    return false;
                }
                due == 0 || due + nanobits(blocking) <= u128::from(rate) * u128::from(at)
            });
            let range = (plus.deadline, from);
            let mut trials = Trials::new();
            // Tests of other demands in place of the same one change nothing.
            for mut before in held {
                before.deadline = plus.deadline;
                _ = dues.check((rate, other), minus.as_ref(), &before, range, &mut trials);
            }
            let got = dues.check((rate, other), minus.as_ref(), &plus, range, &mut trials);
            let stepped = all.iter().any(|due| due.staircase.is_some());
            prop_assert_eq!(got.map(|it| it.is_ok()), stepped.then_some(fits));
        }
    }
}
