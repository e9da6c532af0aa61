//! A sum of curves made of straight pieces, kept as its corners in order of time.
//!
//! The sum is `level + slope × time` between two corners. A demand of earliest deadline first begins at
//! its deadline with its burst; a service curve begins at 0. Adding and taking away are integer sums, so
//! what is left after a stream has gone is what was there before it came.

use crate::demand::Demand;
use crate::traffic::{NANOBITS, nanobits, narrow};
use paceline_sched::Curve;
use paceline_sched::police::Dual;
use std::collections::BTreeMap;

/// A change of the sum at one time; levels in nanobits, slopes in bits per second.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Corner {
    at: u64,
    level: i128,
    slope: i128,
    /// How many pieces begin here.
    pieces: i64,
}

/// The corners of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Piece {
    corners: [Corner; 3],
    used: usize,
    /// Its longest packet blocks whatever is due before this.
    blocks: Option<(u64, u64)>,
}

impl Piece {
    fn push(&mut self, at: u64, level: i128, slope: i128) {
        if let Some(corner) = self.corners.get_mut(self.used) {
            *corner = Corner { at, level, slope, pieces: 1 };
            self.used += 1;
        }
    }

    fn corners(&self) -> &[Corner] {
        self.corners.get(..self.used).unwrap_or_default()
    }

    /// What is due of a stream with this deadline, by each time after a common beginning.
    pub(crate) fn due(demand: &Demand, deadline: u64) -> Self {
        let traffic = demand.traffic();
        let Dual { peak_burst, peak_rate, burst, rate } = traffic.dual();
        let at = i128::from(deadline);
        // The line through (deadline, first) of that slope, drawn back to 0.
        let line = |first: u64, slope: u64| signed(nanobits(first)) - i128::from(slope) * at;
        let mut piece = Self { blocks: Some((deadline, traffic.packet())), ..Self::default() };
        let (bend, apart) = traffic.bend();
        if bend == 0 || apart == 0 {
            piece.push(deadline, line(peak_burst, rate), i128::from(rate));
            return piece;
        }
        // Up to the whole nanosecond before the pieces cross the peak counts, from the next one on the
        // sustained rate: exact at all whole nanoseconds, and convex nowhere.
        let cross = deadline.saturating_add(narrow(bend / apart));
        let peak = line(peak_burst, peak_rate);
        piece.push(deadline, peak, i128::from(peak_rate));
        piece.push(cross, 0, 0);
        let slope = i128::from(rate) - i128::from(peak_rate);
        piece.push(cross.saturating_add(1), line(burst, rate) - peak, slope);
        piece
    }

    /// A service curve from 0 on.
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

/// Where the sum is above the line of the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Excess {
    pub(crate) at: u64,
    /// In bytes, rounded up.
    pub(crate) needed: u64,
    /// In bytes, rounded down.
    pub(crate) available: u64,
}

/// The sum of all streams of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Corners {
    /// In order of time, no two at the same.
    corners: Vec<Corner>,
    /// The sum's last piece.
    level: i128,
    slope: i128,
    /// How many packets of which length block whatever is due before which time.
    blocks: BTreeMap<(u64, u64), u32>,
    lengths: BTreeMap<u64, u32>,
}

impl Corners {
    pub(crate) fn add(&mut self, piece: &Piece) {
        for corner in piece.corners() {
            self.change(corner, 1);
        }
        if let Some((before, packet)) = piece.blocks {
            *self.blocks.entry((before, packet)).or_default() += 1;
            *self.lengths.entry(packet).or_default() += 1;
        }
    }

    pub(crate) fn take(&mut self, piece: &Piece) {
        for corner in piece.corners() {
            self.change(corner, -1);
        }
        if let Some((before, packet)) = piece.blocks {
            less(&mut self.blocks, &(before, packet));
            less(&mut self.lengths, &packet);
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
                debug_assert!(sign > 0, "a piece that is taken away was added");
                self.corners.insert(place, *by);
            }
        }
    }

    /// Whether the sum, without `minus` and with `plus`, stays below a link of `rate` bits per second
    /// that may first be busy with a packet of `other` bytes, or with one that is due later.
    ///
    /// Goes back from the last corner. Nothing changes before the first one of `plus` unless something
    /// was taken away or a longer packet blocks, so it stops there.
    pub(crate) fn check(
        &self,
        rate: u64,
        other: u64,
        minus: Option<&Piece>,
        plus: &Piece,
    ) -> Result<(), Excess> {
        let (level, slope) = (self.level, self.slope);
        let mut scan = Scan { rate: i128::from(rate), level, slope, blocking: other, first: None };
        let mut more: Vec<Corner> = plus.corners().to_vec();
        let taken = minus.map_or(&[][..], Piece::corners);
        more.extend(taken.iter().map(|c| Corner { level: -c.level, slope: -c.slope, ..*c }));
        for corner in &more {
            scan.level += corner.level;
            scan.slope += corner.slope;
        }
        more.sort_unstable_by_key(|corner| corner.at);
        let longest = self.lengths.last_key_value().map_or(0, |(length, _)| *length);
        let packet = plus.blocks.map_or(0, |(_, packet)| packet);
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
            scan.look(at);
            while let Some(corner) = held.next_if(|corner| corner.at == at) {
                scan.pass(corner);
            }
            while let Some(corner) = more.next_if(|corner| corner.at == at) {
                scan.pass(corner);
            }
            while walks && let Some((key, count)) = blocks.next_if(|(key, _)| key.0 >= at) {
                let gone = minus.is_some_and(|minus| minus.blocks == Some(*key)) && *count == 1;
                scan.blocking = if gone { scan.blocking } else { scan.blocking.max(key.1) };
            }
            if let Some((before, packet)) = plus.blocks
                && before >= at
            {
                scan.blocking = scan.blocking.max(packet);
            }
        }
        scan.first.map_or(Ok(()), Err)
    }

    /// True if no stream is in it.
    pub(crate) fn is_zero(&self) -> bool {
        self.corners.is_empty() && self.blocks.is_empty() && self.level == 0 && self.slope == 0
    }
}

/// The state of a check on its way back.
struct Scan {
    rate: i128,
    level: i128,
    slope: i128,
    blocking: u64,
    /// The earliest excess seen.
    first: Option<Excess>,
}

impl Scan {
    fn look(&mut self, at: u64) {
        let time = i128::from(at);
        let due = self.level + self.slope * time;
        // Before anything is due nothing can be late.
        if due <= 0 {
            return;
        }
        let needed = due + signed(nanobits(self.blocking));
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

/// One less of `key`, and none of it at 0.
pub(crate) fn less<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    let Some(count) = counts.get_mut(key) else { return };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}
