//! The window counters of DWCS, by the rules of its table.

use paceline_sched::contract::LossTolerance;
use paceline_sched::discipline::RuleSet;

/// x'/y' of DWCS and its tag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Window {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) tagged: bool,
}

impl Window {
    pub(crate) const fn open(loss: LossTolerance) -> Self {
        Self { x: loss.x(), y: loss.y(), tagged: false }
    }

    pub(crate) fn fraction(self) -> (u64, u64) {
        (u64::from(self.x), u64::from(self.y))
    }

    /// Rule (A): the head was served by its deadline.
    pub(crate) fn met(&mut self, loss: LossTolerance, rules: RuleSet) {
        if self.y > self.x {
            self.y -= 1;
        } else if rules == RuleSet::Later && self.x == self.y && self.x > 0 {
            self.x -= 1;
            self.y -= 1;
        }
        if (self.x == 0 && self.y == 0) || self.tagged {
            (self.x, self.y) = (loss.x(), loss.y());
        }
        self.tagged = false;
    }

    /// Rule (B): one deadline passed.
    pub(crate) fn missed(&mut self, loss: LossTolerance, rules: RuleSet) {
        let (x, y) = (loss.x(), loss.y());
        if self.x > 0 {
            self.x -= 1;
            self.y -= 1;
            if self.x == 0 && self.y == 0 {
                (self.x, self.y) = (x, y);
            }
        } else if y > 0 {
            let more = match rules {
                RuleSet::Later => 1,
                RuleSet::Original if x > 0 => (y - 1).div_ceil(x),
                RuleSet::Original => y,
            };
            self.y = self.y.saturating_add(more);
            self.tagged = rules == RuleSet::Later;
        }
    }
}
