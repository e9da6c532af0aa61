//! Dynamic window-constrained scheduling with both published rule sets, which can be combined for
//! ordering and adjustment.
//!
//! Every stream has a current window constraint x'/y' that starts at x/y. It changes when samples are
//! served (rule A) and missed (rule B).
//!
//! N, the later rules: West & Poellabauer, RTSS 2000; West, Zhang, Schwan & Poellabauer, TC 2004. They
//! keep every window of a feasible set (Σ (1 − x/y)·C/T ≤ 1) if all streams have the same period,
//! service time and y, and deadlines coincide. The reason is that windows are compared only between
//! equal deadlines. With different y, a nearly full link can violate a window (`tests/shares.rs`). With
//! different periods, even a link that is one third full can (`tests/oracles.rs`, E2). Use VDS in these
//! cases.
//!
//! O, the original rules: West & Schwan, ICMCS 1999; West, Schwan & Poellabauer, RTAS 1999; seed 004
//! §2.2.4. Under O a backlogged stream that is served whenever it has a head (work-conserving) can
//! starve others, because its window constraint stays the lowest. Use
//! [`super::Eligibility::OncePerPeriod`] with it.

use super::division::fraction;
use super::rules::{Rules as CoreRules, owed};
use super::stream::Stream;
use super::{RuleSet, Terms, WindowState};
use crate::contract::LossTolerance;
use crate::time::Instant;

/// The rules of one link.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) ordering: RuleSet,
    pub(super) adjustment: RuleSet,
}

impl CoreRules for Rules {
    type Own = Window;

    fn open(&mut self, terms: &Terms) -> Window {
        Window::open(terms.contract().map_or(LossTolerance::EDF, |contract| contract.loss))
    }

    #[inline(always)]
    fn rank(&mut self, stream: &mut Stream<Window>) -> Option<u128> {
        let (x, y) = (stream.own.x(), stream.own.y);
        if !stream.contracted() {
            return None;
        }
        Some(match self.ordering {
            RuleSet::Later => owed(later_order(stream.deadline, x, y)),
            RuleSet::Original => owed(original_order(stream.deadline, x, y)),
        })
    }

    #[inline]
    fn met(&mut self, window: &mut Window, loss: LossTolerance) {
        match self.adjustment {
            RuleSet::Later => window.handle_met(loss),
            RuleSet::Original => window.handle_met_original(loss),
        }
    }

    #[inline]
    fn missed(&mut self, window: &mut Window, loss: LossTolerance, deadlines: u64) {
        window.handle_missed(loss, deadlines, self.adjustment);
    }

    fn window(&self, stream: &Stream<Window>) -> WindowState {
        let window = stream.own;
        WindowState { x: window.x(), y: window.y, tagged: window.tagged() }
    }
}

/// Returns x'/y' as a fraction of 2^40 for x' > 0; different fractions give different results.
///
/// In that case y' is below 2^20, since only a stream with x' = 0 increases y'. Two different fractions
/// therefore differ by more than 1.
#[inline]
fn ratio(x: u32, y: u32) -> u64 {
    fraction(u64::from(x), y)
}

/// Returns the order of the later rules.
///
/// N1: the earliest deadline. N2: the lowest x'/y'. N3: of zeros the highest y', so 0/0 is the last of
/// them. N4: of equal ratios the lowest x'. N5, "first come, first served", is the lowest stream index.
#[inline]
fn later_order(deadline: Instant, x: u32, y: u32) -> u128 {
    // Any ratio above zero is at least 2^20 and is shifted above all of N3.
    let constraint = match x {
        0 => (u32::MAX - y) as u64,
        _ => ratio(x, y) << LossTolerance::Y_BITS | x as u64,
    };
    (deadline.as_nanos() as u128) << 61 | constraint as u128
}

/// Returns the order of the original rules.
///
/// O1: the lowest x'/y'. O2: of equal ratios above zero the earliest deadline, O3: then the lowest x'.
/// O5: of zeros the highest y', so that 0/0 is the last of them, O4: and then the earliest deadline. O6,
/// "first come, first served", is the lowest stream index.
fn original_order(deadline: Instant, x: u32, y: u32) -> u128 {
    let deadline = deadline.as_nanos() as u128;
    match x {
        0 => ((u32::MAX - y) as u128) << 64 | deadline,
        _ => {
            let ratio = (ratio(x, y) as u128) << 84;
            1 << 125 | ratio | deadline << LossTolerance::Y_BITS | x as u128
        }
    }
}

/// The current window constraint x'/y' of a stream and its tag.
///
/// Always x' ≤ y'; 0/0 only for a contract of 0/0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// x' and [`TAG`].
    x: u32,
    y: u32,
}

/// The tag of the later rules: violated since the last service in time.
///
/// The next service in time then opens a full new window, so that y' cannot stay inflated and starve
/// others. The tag is a bit of x', which has [`LossTolerance::Y_BITS`] bits and is 0 while the tag is
/// set.
const TAG: u32 = 1 << 31;

impl Window {
    fn open(loss: LossTolerance) -> Self {
        Self { x: loss.x(), y: loss.y() }
    }

    #[inline]
    const fn x(self) -> u32 {
        self.x & !TAG
    }

    #[inline]
    const fn tagged(self) -> bool {
        self.x & TAG != 0
    }

    /// Applies rule (A) of the later rules: the head was served by its deadline.
    #[inline]
    fn handle_met(&mut self, loss: LossTolerance) {
        // y' > x': y' decreases. y' = x' > 0: both decrease. The code has no branches, because their
        // outcome is practically random.
        self.x = self.x.saturating_sub(u32::from(self.x == self.y));
        self.y = self.y.saturating_sub(1);
        // x' ≤ y', so if y' is 0, both are.
        if self.y == 0 || self.tagged() {
            *self = Self::open(loss);
        }
    }

    /// Applies rule (A) of the original rules. A stream at x' = y' stays there, so its windows drift
    /// against the aligned ones.
    fn handle_met_original(&mut self, loss: LossTolerance) {
        if self.y > self.x() {
            self.y -= 1;
        }
        if self.x() == 0 && self.y == 0 {
            *self = Self::open(loss);
        }
    }

    /// Applies rule (B) once for each of the `deadlines` that passed, in closed form.
    ///
    /// While x' > 0 the rule decreases both numbers, and it opens a new window when both reach 0. Once
    /// x' = 0 it increases y' each time and stays there, so there are at most two runs to count down.
    /// Only x = y opens windows repeatedly, every x deadlines.
    #[inline]
    fn handle_missed(&mut self, loss: LossTolerance, deadlines: u64, rules: RuleSet) {
        if loss.y() == 0 {
            return;
        }
        let mut deadlines = self.count_down(deadlines);
        if self.x() == 0 && self.y == 0 {
            *self = Self::open(loss);
            if loss.x() == loss.y() {
                deadlines %= u64::from(loss.x());
            }
            deadlines = self.count_down(deadlines);
        }
        if deadlines > 0 {
            self.violate(loss, deadlines, rules);
        }
    }

    /// Subtracts up to x' of `deadlines` from x' and y', and returns the remainder.
    #[inline]
    fn count_down(&mut self, deadlines: u64) -> u64 {
        let run = u32::try_from(deadlines).unwrap_or(u32::MAX).min(self.x());
        self.x -= run;
        self.y -= run;
        deadlines - u64::from(run)
    }

    /// Increases y' for each of `deadlines` that passed with x' = 0.
    ///
    /// N: by ε = 1, and sets the tag. O: by ⌈(y − 1)/x⌉, or by y if no miss is tolerated.
    fn violate(&mut self, loss: LossTolerance, deadlines: u64, rules: RuleSet) {
        let step = match rules {
            RuleSet::Later => 1,
            RuleSet::Original if loss.x() == 0 => loss.y(),
            RuleSet::Original => (loss.y() - 1).div_ceil(loss.x()),
        };
        let more = u64::from(step).saturating_mul(deadlines);
        self.y = self.y.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        if matches!(rules, RuleSet::Later) {
            self.x |= TAG;
        }
    }
}

#[cfg(test)]
mod tests;
