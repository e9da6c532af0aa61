//! Dynamic window-constrained scheduling, the later rules (West & Poellabauer, RTSS 2000; West, Zhang,
//! Schwan & Poellabauer, TC 2004).
//!
//! Every stream carries a current window constraint x'/y' that starts at x/y, and shrinks as samples
//! are served (A) and missed (B).

use super::WindowState;
use super::scheduler::{Arrival, Ranking};
use super::stream::Promise;
use crate::contract::LossTolerance;
use crate::time::Instant;
use core::cmp::Ordering;

/// Earliest deadline first (N1), then by window constraint (N2 to N4). N5, "first come, first
/// served", is the lowest stream index.
#[derive(Clone, Debug)]
pub(super) struct Rules;

/// The order of heads: the fields in this order are N1, then N2 to N4.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Key {
    deadline: Instant,
    constraint: Constraint,
}

impl Ranking for Rules {
    type Key = Key;
    type Window = Window;

    fn open(loss: LossTolerance) -> Window {
        Window::open(loss)
    }

    fn rank(_: Arrival, promise: Option<&Promise<Window>>) -> Option<Key> {
        promise.map(|p| Key { deadline: p.deadline, constraint: p.window.constraint })
    }

    fn met(window: &mut Window, loss: LossTolerance) {
        window.handle_met(loss);
    }

    fn missed(window: &mut Window, loss: LossTolerance, deadlines: u64) {
        window.handle_missed(loss, deadlines);
    }

    fn state(promise: &Promise<Window>) -> WindowState {
        let Window { constraint: Constraint { x, y }, tagged } = promise.window;
        WindowState { x, y, tagged }
    }
}

/// The current window constraint x'/y', lowest first. Always x' ≤ y'; 0/0 only for a contract of 0/0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Constraint {
    x: u32,
    y: u32,
}

impl Ord for Constraint {
    /// N2: the lowest x'/y' first, compared without division. N3: of zeros the highest y', so 0/0 is
    /// the last of them. N4: of equal ratios the lowest x'.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.x, other.x) {
            (0, 0) => other.y.cmp(&self.y),
            (0, _) => Ordering::Less,
            (_, 0) => Ordering::Greater,
            _ => {
                let mine = u64::from(self.x) * u64::from(other.y);
                let theirs = u64::from(other.x) * u64::from(self.y);
                mine.cmp(&theirs).then(self.x.cmp(&other.x))
            }
        }
    }
}

impl PartialOrd for Constraint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A stream's window constraint and its tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    constraint: Constraint,
    /// Violated since the last service in time, which then opens a full new window: y' cannot stay
    /// inflated and starve others.
    tagged: bool,
}

impl Window {
    fn open(loss: LossTolerance) -> Self {
        Self { constraint: Constraint { x: loss.x(), y: loss.y() }, tagged: false }
    }

    /// Rule (A): the head was served by its deadline.
    fn handle_met(&mut self, loss: LossTolerance) {
        let Constraint { x, y } = &mut self.constraint;
        if *y > *x {
            *y -= 1;
        } else if *x > 0 {
            *x -= 1;
            *y -= 1;
        }
        if (*x == 0 && *y == 0) || self.tagged {
            *self = Self::open(loss);
        }
    }

    /// Rule (B), once for each of the `deadlines` that passed, in closed form.
    ///
    /// While x' > 0 the rule counts both down, and where both reach 0 opens a new window; once x' = 0
    /// it adds 1 to y' (ε = 1) each time and stays there, so there are at most two runs to count down.
    /// Only x = y opens windows for ever, every x deadlines.
    fn handle_missed(&mut self, loss: LossTolerance, deadlines: u64) {
        if loss.y() == 0 {
            return;
        }
        let mut deadlines = self.count_down(deadlines);
        if self.constraint == (Constraint { x: 0, y: 0 }) {
            self.constraint = Self::open(loss).constraint;
            if loss.x() == loss.y() {
                deadlines %= u64::from(loss.x());
            }
            deadlines = self.count_down(deadlines);
        }
        if deadlines > 0 {
            let more = u32::try_from(deadlines).unwrap_or(u32::MAX);
            self.constraint.y = self.constraint.y.saturating_add(more);
            self.tagged = true;
        }
    }

    /// Takes as many of `deadlines` from x' and y' as x' allows, and returns the others.
    fn count_down(&mut self, deadlines: u64) -> u64 {
        let Constraint { x, y } = &mut self.constraint;
        let run = u32::try_from(deadlines).unwrap_or(u32::MAX).min(*x);
        *x -= run;
        *y -= run;
        deadlines - u64::from(run)
    }
}

#[cfg(test)]
mod tests;
