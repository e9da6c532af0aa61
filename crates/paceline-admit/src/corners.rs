//! A sum of piecewise linear curves, stored as corners in order of time.
//!
//! Between two corners the sum is `level + slope × time`. The demand curve of an EDF stream starts
//! at its deadline with its burst; a service curve starts at 0. Additions and subtractions are
//! exact integer sums, so removing a stream restores the previous sum.

use crate::demand::StreamDemand;
use crate::due::{Due, Dues, Excess, Trials};
use crate::ledger::less;
use crate::owed::Owed;
use crate::traffic::{NANOBITS, Traffic, nanobits, narrow};
use paceline_sched::Curve;
use paceline_sched::police::Dual;
use std::collections::BTreeMap;

/// A change of the sum at one instant. Levels are in nanobits, slopes in bits per second.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Corner {
    at: u64,
    level: i128,
    slope: i128,
    /// The number of pieces that start here.
    pieces: i64,
}

/// A line that starts with `first` bytes and rises by `slope` bits per second.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    first: u64,
    slope: u64,
}

impl Line {
    /// Returns the crossing with `later`, which rises more slowly, as a quotient of nanobits and
    /// bits per second.
    fn meets(self, later: Self) -> (u128, u128) {
        let rise = nanobits(later.first.saturating_sub(self.first));
        (rise, u128::from(self.slope.saturating_sub(later.slope)))
    }
}

/// The minimum of several lines: the lines that form it, in order of time and decreasing slope.
#[derive(Clone, Copy, Debug, Default)]
struct Lines {
    lines: [Line; 3],
    used: usize,
}

impl Lines {
    fn of(traffic: &Traffic, owed: Option<Owed>) -> Self {
        let Dual { peak_burst, peak_rate, burst, rate } = traffic.dual();
        let mut lines = Self::default();
        lines.join(Line { first: peak_burst, slope: peak_rate });
        lines.join(Line { first: burst, slope: rate });
        if let Some(Owed { burst, rate }) = owed {
            lines.join(Line { first: burst, slope: rate });
        }
        lines
    }

    fn iter(&self) -> impl Iterator<Item = Line> {
        self.lines.into_iter().take(self.used)
    }

    /// Adds a line. It must not be steeper than the lines before.
    fn join(&mut self, line: Line) {
        let at = |lines: &Self, back: usize| {
            let place = lines.used.checked_sub(back)?;
            lines.lines.get(place).copied()
        };
        while let Some(last) = at(self, 1) {
            if last.first < line.first && last.slope > line.slope {
                let Some(before) = at(self, 2) else { break };
                // The last line contributes only if it crosses its predecessor before the new line
                // does.
                let ((rise, apart), (up, off)) = (before.meets(last), before.meets(line));
                if rise.saturating_mul(off) < up.saturating_mul(apart) {
                    break;
                }
            } else if last.first <= line.first && last.slope <= line.slope {
                return;
            }
            self.used -= 1;
        }
        if let Some(slot) = self.lines.get_mut(self.used) {
            *slot = line;
            self.used += 1;
        }
    }
}

/// The corners of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Piece {
    corners: [Corner; 6],
    used: usize,
    /// The exact demand, with the packet length and the time until which a packet of this stream blocks.
    due: Option<Due>,
}

impl Piece {
    fn push(&mut self, at: u64, level: i128, slope: i128) {
        if let Some(corner) = self.corners.get_mut(self.used) {
            *corner = Corner { at, level, slope, pieces: 1 };
            self.used += 1;
        }
    }

    fn blocks(&self) -> Option<(u64, u64)> {
        self.due.map(|due| (due.blocks, due.packet))
    }

    fn begun(&self) -> Option<(u64, u64)> {
        self.due.and_then(|due| due.begun_at_most())
    }

    fn corners(&self) -> &[Corner] {
        self.corners.get(..self.used).unwrap_or_default()
    }

    /// Returns the demand curve of a stream with this deadline: the bytes due by each instant after
    /// a simultaneous start. `owed` limits it if given.
    /// `re_spaced` is as for [`StreamDemand::staircase`], `begun` as for [`Due::with_begun`].
    pub(crate) fn due(
        demand: &StreamDemand,
        deadline: u64,
        owed: Option<Owed>,
        (re_spaced, begun): (bool, Option<u64>),
    ) -> Self {
        let traffic = demand.traffic();
        let at = i128::from(deadline);
        // The line through (deadline, first) with this slope, extended to time 0.
        let drawn = |line: Line| signed(nanobits(line.first)) - i128::from(line.slope) * at;
        // A sample that may miss its deadline can have an arbitrarily late virtual deadline, and
        // blocks until then.
        let blocks = if owed.is_some() { u64::MAX } else { deadline };
        let times = (deadline, blocks, traffic.packet());
        let loss = owed.map(|owed| (demand.loss(), owed));
        let due = Due::new(times, traffic.dual(), demand.staircase(re_spaced), loss);
        let mut piece = Self { due: Some(due.with_begun(begun)), ..Self::default() };
        if let Some(begins) = begun {
            piece.push(begins, 0, 0);
        }
        let lines = Lines::of(traffic, owed);
        let mut before: Option<Line> = None;
        for line in lines.iter() {
            let slope = i128::from(line.slope);
            match before {
                None => piece.push(deadline, drawn(line), slope),
                Some(last) => {
                    // Up to the last whole nanosecond before the crossing the first line counts,
                    // afterwards the second. The result is exact at all whole nanoseconds and
                    // nowhere convex.
                    let (rise, apart) = last.meets(line);
                    let cross = deadline.saturating_add(narrow(rise / apart.max(1)));
                    piece.push(cross, 0, 0);
                    let level = drawn(line) - drawn(last);
                    piece.push(cross.saturating_add(1), level, slope - i128::from(last.slope));
                }
            }
            before = Some(line);
        }
        piece
    }

    /// Returns the corners of a service curve that starts at 0.
    pub(crate) fn service(curve: &Curve) -> Self {
        let mut piece = Self::default();
        let (first, second) = (i128::from(curve.m1()), i128::from(curve.m2()));
        piece.push(0, 0, first);
        if !curve.d().is_zero() {
            let d = curve.d().as_nanos();
            piece.push(d, (first - second) * i128::from(d), second - first);
        }
        piece
    }
}

const fn signed(wide: u128) -> i128 {
    if wide > i128::MAX as u128 { i128::MAX } else { wide as i128 }
}

/// The sum over all streams of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Corners {
    /// Sorted by time, with unique times.
    corners: Vec<Corner>,
    /// The level and slope after the last corner.
    level: i128,
    slope: i128,
    /// The number of packets with a blocking time and a length, by both.
    blocks: BTreeMap<(u64, u64), u32>,
    lengths: BTreeMap<u64, u32>,
    /// The number of samples that block as a whole from an instant on, by both.
    begun: BTreeMap<(u64, u64), u32>,
    dues: Dues,
}

impl Corners {
    pub(crate) fn add(&mut self, piece: &Piece) {
        for corner in piece.corners() {
            self.change(corner, 1);
        }
        if let Some(due) = &piece.due {
            self.dues.add(due);
        }
        if let Some((before, packet)) = piece.blocks() {
            *self.blocks.entry((before, packet)).or_default() += 1;
            *self.lengths.entry(packet).or_default() += 1;
        }
        if let Some(begun) = piece.begun() {
            *self.begun.entry(begun).or_default() += 1;
        }
    }

    pub(crate) fn take(&mut self, piece: &Piece) {
        for corner in piece.corners() {
            self.change(corner, -1);
        }
        if let Some(due) = &piece.due {
            self.dues.take(due);
        }
        if let Some((before, packet)) = piece.blocks() {
            less(&mut self.blocks, &(before, packet));
            less(&mut self.lengths, &packet);
        }
        if let Some(begun) = piece.begun() {
            less(&mut self.begun, &begun);
        }
    }

    fn change(&mut self, by: &Corner, sign: i128) {
        self.level += sign * by.level;
        self.slope += sign * by.slope;
        let pieces = if sign > 0 { by.pieces } else { -by.pieces };
        match self.corners.binary_search_by_key(&by.at, |corner| corner.at) {
            Ok(place) => {
                let Some(corner) = self.corners.get_mut(place) else { return };
                corner.level += sign * by.level;
                corner.slope += sign * by.slope;
                corner.pieces += pieces;
                if corner.pieces <= 0 {
                    self.corners.remove(place);
                }
            }
            Err(place) => {
                debug_assert!(sign > 0, "a removed piece was added before");
                self.corners.insert(place, *by);
            }
        }
    }

    /// Checks that the sum, without `minus` and with `plus`, stays below a link of `rate` bits per
    /// second. The link may initially be blocked by a packet of `other` bytes, or by one with a
    /// later deadline.
    ///
    /// The scan runs backwards from the last corner. It stops at the first corner of `plus` if
    /// nothing was removed and no longer packet blocks, because earlier values are unchanged.
    pub(crate) fn check(
        &self,
        rate: u64,
        other: u64,
        minus: Option<&Piece>,
        plus: &Piece,
        trials: &mut Trials,
    ) -> Result<(), Excess> {
        let (level, slope) = (self.level, self.slope);
        let begun = self.begun(minus, plus);
        let longest_begun = begun.last().map_or(0, |(_, sample)| *sample);
        let mut scan =
            Scan { rate: i128::from(rate), level, slope, blocking: other, begun, first: None };
        let mut more: Vec<Corner> = plus.corners().to_vec();
        let taken = minus.map_or(&[][..], Piece::corners);
        more.extend(taken.iter().map(|c| Corner { level: -c.level, slope: -c.slope, ..*c }));
        for corner in &more {
            scan.level += corner.level;
            scan.slope += corner.slope;
        }
        more.sort_unstable_by_key(|corner| corner.at);
        let longest = self.lengths.last_key_value().map_or(0, |(length, _)| *length);
        let packet = plus.blocks().map_or(0, |(_, packet)| packet);
        let walks = longest.max(packet) > other;
        let stop =
            if minus.is_some() || packet > other { None } else { more.first().map(|c| c.at) };
        let mut blocks = self.blocks.iter().rev().peekable();
        let (mut held, mut more) =
            (self.corners.iter().rev().peekable(), more.iter().rev().peekable());
        while let Some(at) = latest(held.peek().map(|c| c.at), more.peek().map(|c| c.at)) {
            if stop.is_some_and(|stop| at < stop) {
                break;
            }
            while walks && let Some((key, count)) = blocks.next_if(|(key, _)| key.0 > at) {
                let gone = minus.is_some_and(|minus| minus.blocks() == Some(*key)) && *count == 1;
                scan.blocking = if gone { scan.blocking } else { scan.blocking.max(key.1) };
            }
            if let Some((before, packet)) = plus.blocks()
                && before > at
            {
                scan.blocking = scan.blocking.max(packet);
            }
            scan.look(at);
            while let Some(corner) = held.next_if(|corner| corner.at == at) {
                scan.pass(corner);
            }
            while let Some(corner) = more.next_if(|corner| corner.at == at) {
                scan.pass(corner);
            }
        }
        let Some(excess) = scan.first else { return Ok(()) };
        let exact = plus.due.and_then(|due| {
            let from = self.carried_from((rate, other.max(longest_begun)), minus, plus)?;
            let minus = minus.and_then(|it| it.due.as_ref());
            self.dues.check((rate, other), minus, &due, (excess.at, from), trials)
        });
        exact.unwrap_or(Err(excess))
    }

    /// Returns the longest sample that blocks as a whole, without `minus` and with `plus`, from each instant at which it
    /// changes, in order.
    fn begun(&self, minus: Option<&Piece>, plus: &Piece) -> Vec<(u64, u64)> {
        let minus = minus.and_then(Piece::begun);
        let held = self.begun.iter().filter(|(begun, count)| minus != Some(**begun) || **count > 1);
        let mut all: Vec<_> = held.map(|(begun, _)| *begun).chain(plus.begun()).collect();
        all.sort_unstable();
        let mut longest = 0;
        all.retain(|(_, sample)| {
            let longer = *sample > longest;
            longest = longest.max(*sample);
            longer
        });
        all
    }

    /// Returns an instant from which the sum, without `minus` and with `plus`, is below the link; `None` if there is
    /// none.
    fn carried_from(
        &self,
        (rate, other): (u64, u64),
        minus: Option<&Piece>,
        plus: &Piece,
    ) -> Option<u64> {
        let sum = |piece: &Piece| {
            let corners = piece.corners().iter();
            corners.fold((0, 0), |(level, slope), it| (level + it.level, slope + it.slope))
        };
        let (added, taken) = (sum(plus), minus.map_or((0, 0), sum));
        let (level, slope) = (self.level + added.0 - taken.0, self.slope + added.1 - taken.1);
        let left = i128::from(rate) - slope;
        let lengths = self.lengths.last_key_value().map(|(length, _)| *length);
        let packets = [Some(other), lengths, plus.blocks().map(|(_, packet)| packet)];
        let longest = packets.into_iter().flatten().max().unwrap_or(0);
        let waits = level + signed(nanobits(longest));
        let after = if left > 0 { waits.max(0) / left + 1 } else { return None };
        let corners = [self.corners.last(), plus.corners().last()];
        let last = corners.into_iter().flatten().map(|corner| corner.at).max().unwrap_or(0);
        Some(narrow(after.unsigned_abs()).max(last))
    }

    /// Returns true if no stream is included.
    pub(crate) fn is_zero(&self) -> bool {
        self.corners.is_empty()
            && self.begun.is_empty()
            && self.dues.is_zero()
            && self.level == 0
            && self.slope == 0
    }
}

/// The state of the backward scan.
struct Scan {
    rate: i128,
    level: i128,
    slope: i128,
    blocking: u64,
    /// The longest sample that blocks as a whole, from each instant at which it changes.
    begun: Vec<(u64, u64)>,
    /// The earliest excess so far.
    first: Option<Excess>,
}

impl Scan {
    fn look(&mut self, at: u64) {
        let time = i128::from(at);
        let due = self.level + self.slope * time;
        // Nothing is late before the first deadline.
        if due <= 0 {
            return;
        }
        while self.begun.pop_if(|(from, _)| *from > at).is_some() {}
        let begun = self.begun.last().map_or(0, |(_, sample)| *sample);
        let needed = due + signed(nanobits(self.blocking.max(begun)));
        let carried = self.rate * time;
        if needed > carried {
            let unit = signed(NANOBITS);
            let up = narrow((needed.unsigned_abs()).div_ceil(NANOBITS));
            let available = narrow((carried / unit).unsigned_abs());
            self.first = Some(Excess { at, needed: up, available });
        }
    }

    const fn pass(&mut self, corner: &Corner) {
        self.level -= corner.level;
        self.slope -= corner.slope;
    }
}

fn latest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (at, None) | (None, at) => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sched::{Duration, LossTolerance};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_due_bytes_are_the_least_of_all_lines_at_every_instant(
            (rate, more) in (1..20_u64, 0..30_u64),
            (first, burst) in (1..60_u64, 0..90_u64),
            (x, y) in (1..8_u32, 1..8_u32),
            deadline in 1..300_u64,
        ) {
            const FAST: u64 = 8_000_000_000;
            let dual = Dual {
                peak_burst: first,
                peak_rate: (rate + more) * FAST / 100,
                burst: first + burst,
                rate: rate * FAST / 100,
            };
            let traffic = Traffic::new(dual, 1, 1 << 40).unwrap();
            let demand = StreamDemand::new(traffic, Duration::from_nanos(deadline)).unwrap();
            let demand = demand.with_loss(LossTolerance::new(x.min(y), y).unwrap());
            for owed in [None, Owed::of(&demand)] {
                let mut sum = Corners::default();
                sum.add(&Piece::due(&demand, deadline, owed, (false, None)));
                for at in deadline..deadline + 600 {
                    let (mut level, mut slope) = (0, 0);
                    for corner in sum.corners.iter().filter(|corner| corner.at <= at) {
                        level += corner.level;
                        slope += corner.slope;
                    }
                    let time = u128::from(at - deadline);
                    let line = |it: Owed| nanobits(it.burst) + u128::from(it.rate) * time;
                    let least = traffic.nanobits_in(time).min(owed.map_or(u128::MAX, line));
                    prop_assert_eq!((level + slope * i128::from(at)).unsigned_abs(), least);
                }
                sum.take(&Piece::due(&demand, deadline, owed, (false, None)));
                prop_assert!(sum.is_zero());
            }
        }
    }
}
