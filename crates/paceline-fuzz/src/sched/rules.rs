//! The rules of the disciplines as their tables state them: row by row, with cross-multiplication, one
//! deadline at a time.

use super::line::{Line, NEVER, Waiting};
use paceline_sched::discipline::{Policy, RuleSet};
use std::cmp::Ordering;

/// A head and its stream.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) line: &'a Line,
    pub(crate) head: &'a Waiting,
}

/// The order of two heads, and the row of the table that settled it. Ties are settled by index, in the last
/// row.
pub(crate) type Settled = (Ordering, usize);

/// Returns the order of two heads in class 0 or 1.
pub(crate) fn order(policy: Policy, a: Seen<'_>, b: Seen<'_>) -> Settled {
    let due = |seen: Seen<'_>| seen.head.released.saturating_add(deadline(seen));
    let level = |seen: Seen<'_>| u64::from(seen.line.level);
    let (one, other) = (a.head, b.head);
    let arrived = (one.arrived, other.arrived);
    let serial = (one.serial, other.serial);
    match policy {
        Policy::Fifo => rows(&[arrived, serial]),
        Policy::StaticPriority => rows(&[(level(a), level(b)), arrived, serial]),
        Policy::Edf => rows(&[(due(a), due(b))]),
        Policy::DelayEdd => rows(&[(one.deadline, other.deadline)]),
        Policy::Dwcs { ordering: RuleSet::Later, .. } => later(a, b),
        Policy::Dwcs { ordering: RuleSet::Original, .. } => original(a, b),
        Policy::Vds => by_virtual_deadline(a, b),
        Policy::Rcsp => rows(&[(doublings(a, 1), doublings(b, 1)), (one.released, other.released)]),
        Policy::StopAndGo => by_frame(a, b),
        Policy::Rpq => {
            let turn = |seen: Seen<'_>| seen.head.released / ROTATION + deadline(seen) / ROTATION;
            rows(&[(turn(a), turn(b)), (one.released, other.released)])
        }
        Policy::Drr | Policy::Wf2qPlus | Policy::Hfsc => {
            unreachable!("{policy}'s twin is in paceline-sched's tests")
        }
    }
}

/// The time between two rotations of rotating priority queues, in nanoseconds.
const ROTATION: u64 = 500_000;

/// Returns the relative deadline in nanoseconds.
fn deadline(seen: Seen<'_>) -> u64 {
    seen.line.contract.map_or(0, |contract| contract.deadline.as_nanos())
}

/// Returns how often `from` nanoseconds can be doubled within the relative deadline; 0 if it is shorter.
fn doublings(seen: Seen<'_>, from: u64) -> u64 {
    let (due, mut times, mut length) = (u128::from(deadline(seen)), 0, u128::from(from) * 2);
    while length <= due {
        (times, length) = (times + 1, length * 2);
    }
    times
}

/// Returns the beginning of the frame after the one in which a head was released. Two frames fit into the deadline.
fn frame_begins(seen: Seen<'_>) -> u64 {
    let size = 1_u128 << doublings(seen, 2);
    let begins = (u128::from(seen.head.released) / size + 1) * size;
    u64::try_from(begins).unwrap_or(NEVER)
}

/// Returns the beginning of the frame for which the head of `line` waits under Stop-and-Go, once its period has begun.
pub(crate) fn waits_for_frame(policy: Policy, line: &Line) -> Option<u64> {
    let head = line.head.as_ref().filter(|head| head.turn.is_none() && !head.frame_begun)?;
    let waits = policy == Policy::StopAndGo && line.contract.is_some();
    waits.then(|| frame_begins(Seen { line, head }))
}

/// Rows 1 to 3: heads whose frame has begun precede the rest, by the length of the frame and then by its beginning. Row 4:
/// the rest by frame.
fn by_frame(a: Seen<'_>, b: Seen<'_>) -> Settled {
    let begins = (frame_begins(a), frame_begins(b));
    let size = (doublings(a, 2), doublings(b, 2));
    let settled = match (a.head.frame_begun, b.head.frame_begun) {
        (true, false) => (Ordering::Less, 1),
        (false, true) => (Ordering::Greater, 1),
        (true, true) if size.0 != size.1 => (size.0.cmp(&size.1), 2),
        (true, true) => (begins.0.cmp(&begins.1), 3),
        (false, false) => (begins.0.cmp(&begins.1), 4),
    };
    if settled.0.is_eq() { (Ordering::Equal, 5) } else { settled }
}

/// Compares row by row; the first row in which the values differ settles it, the lower value first.
fn rows(pairs: &[(u64, u64)]) -> Settled {
    let differ = pairs.iter().position(|(a, b)| a != b);
    differ.map_or((Ordering::Equal, pairs.len() + 1), |row| {
        (pairs[row].0.cmp(&pairs[row].1), row + 1)
    })
}

/// Compares x1/y1 with x2/y2, neither of them zero.
fn ratios((x1, y1): (u64, u64), (x2, y2): (u64, u64)) -> Ordering {
    (x1 * y2).cmp(&(x2 * y1))
}

/// Rules N1 to N5.
fn later(a: Seen<'_>, b: Seen<'_>) -> Settled {
    let (d1, d2) = (a.head.deadline, b.head.deadline);
    let (w1, w2) = (a.line.window.fraction(), b.line.window.fraction());
    if d1 != d2 {
        return (d1.cmp(&d2), 1);
    }
    match (w1.0, w2.0) {
        (0, 0) if w1.1 != w2.1 => (w2.1.cmp(&w1.1), 3),
        (0, 0) => (Ordering::Equal, 5),
        (0, _) => (Ordering::Less, 2),
        (_, 0) => (Ordering::Greater, 2),
        _ if ratios(w1, w2).is_ne() => (ratios(w1, w2), 2),
        _ if w1.0 != w2.0 => (w1.0.cmp(&w2.0), 4),
        _ => (Ordering::Equal, 5),
    }
}

/// Rules O1 to O6. Equal zeros are ordered by deadline too, 0/0 or not: "first come, first served" does not
/// contradict this.
fn original(a: Seen<'_>, b: Seen<'_>) -> Settled {
    let (d1, d2) = (a.head.deadline, b.head.deadline);
    let (w1, w2) = (a.line.window.fraction(), b.line.window.fraction());
    match (w1.0, w2.0) {
        (0, 0) if w1.1 != w2.1 => (w2.1.cmp(&w1.1), 5),
        (0, 0) if d1 != d2 => (d1.cmp(&d2), 4),
        (0, 0) => (Ordering::Equal, 6),
        (0, _) => (Ordering::Less, 1),
        (_, 0) => (Ordering::Greater, 1),
        _ if ratios(w1, w2).is_ne() => (ratios(w1, w2), 1),
        _ if d1 != d2 => (d1.cmp(&d2), 2),
        _ if w1.0 != w2.0 => (w1.0.cmp(&w2.0), 3),
        _ => (Ordering::Equal, 6),
    }
}

/// Returns Vd = d − T + k'·T/m' as a fraction, or `None` if no service is owed.
fn virtual_deadline(seen: Seen<'_>) -> Option<(i128, i128)> {
    let (left, required) = seen.line.remaining();
    let contract = seen.line.contract?;
    let (deadline, period) =
        (i128::from(seen.head.deadline), i128::from(contract.period.as_nanos()));
    if contract.loss.y() == 0 {
        return Some((deadline, 1));
    }
    if seen.line.can_miss() && seen.head.late_begin.is_some() {
        return None;
    }
    if seen.line.can_miss() && seen.head.begun {
        return Some((deadline, 1));
    }
    let (left, required) = (i128::from(left), i128::from(required));
    (required > 0).then_some(((deadline - period) * required + left * period, required))
}

/// Row 1: the earliest virtual deadline. Row 2: a stream that is owed service precedes one that is not. Row
/// 3: among the latter, the earliest deadline.
fn by_virtual_deadline(a: Seen<'_>, b: Seen<'_>) -> Settled {
    let settled = match (virtual_deadline(a), virtual_deadline(b)) {
        (Some((n1, m1)), Some((n2, m2))) => ((n1 * m2).cmp(&(n2 * m1)), 1),
        (Some(_), None) => (Ordering::Less, 2),
        (None, Some(_)) => (Ordering::Greater, 2),
        (None, None) => (a.head.deadline.cmp(&b.head.deadline), 3),
    };
    if settled.0.is_eq() { (Ordering::Equal, 4) } else { settled }
}
