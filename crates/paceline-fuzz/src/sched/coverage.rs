//! Counts the situations in scenarios, to show that the scenarios cover the rules.

use std::fmt;

/// A situation that a scenario may reach.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Situation {
    /// A head was picked.
    Pick,
    /// The picked head was ahead of its period and was served in round robin.
    EarlyPick,
    /// A head could no longer end in time.
    Miss,
    /// At least three misses became known in one iteration.
    Burst,
    /// A suspended head was missed.
    SuspendedMiss,
    /// A late head's deadline advanced by at least two periods in one iteration.
    Postponed,
    /// A late head's deadline advanced by at least a hundred periods.
    Stalled,
    /// A sample was served after its deadline.
    ServedLate,
    /// A window was violated.
    Violation,
    /// A skipped or removed sample violated a window.
    SkipViolation,
    /// A stream had a tag set by the window rules.
    Tag,
    /// A stream had y' above y.
    Raised,
    /// A stream had a window longer than 2^15.
    LongWindow,
    /// A stream with a head joined again.
    Change,
    /// A suspended stream with a head was resumed.
    Resume,
    /// The clock was set back.
    Backward,
    /// A head's deadline exceeded the last instant.
    Never,
    /// A segment other than the last one was sent.
    Segment,
    /// The next wake-up differed from the next change.
    Sleep,
    /// A head was longer than its contract permits.
    Long,
}

impl Situation {
    /// Every situation, in the order of the variants.
    pub const ALL: [Self; 20] = [
        Self::Pick,
        Self::EarlyPick,
        Self::Miss,
        Self::Burst,
        Self::SuspendedMiss,
        Self::Postponed,
        Self::Stalled,
        Self::ServedLate,
        Self::Violation,
        Self::SkipViolation,
        Self::Tag,
        Self::Raised,
        Self::LongWindow,
        Self::Change,
        Self::Resume,
        Self::Backward,
        Self::Never,
        Self::Segment,
        Self::Sleep,
        Self::Long,
    ];
}

/// The number of rows in the longest table of rules, plus the tie by index.
const RULES: usize = 8;

/// Counts of situations and rules.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    situations: [u64; Situation::ALL.len()],
    /// Comparisons of two heads settled by each row of the discipline's table, counted from row 1.
    rules: [u64; RULES],
    /// The number of events.
    pub steps: u64,
}

impl Coverage {
    /// Returns the count of a situation.
    #[must_use]
    pub const fn of(&self, situation: Situation) -> u64 {
        self.situations[situation as usize]
    }

    /// Returns the number of comparisons that a row of the table settled; rows count from 1.
    #[must_use]
    pub fn of_rule(&self, rule: usize) -> u64 {
        self.rules.get(rule).copied().unwrap_or_default()
    }

    pub(crate) const fn saw(&mut self, situation: Situation) {
        self.situations[situation as usize] += 1;
    }

    pub(crate) const fn saw_if(&mut self, seen: bool, situation: Situation) {
        self.situations[situation as usize] += seen as u64;
    }

    pub(crate) const fn settled(&mut self, rule: usize) {
        self.rules[rule % RULES] += 1;
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps", self.steps)?;
        for situation in Situation::ALL {
            write!(f, ", {} {situation:?}", self.of(situation))?;
        }
        for rule in (1..RULES).filter(|&rule| self.of_rule(rule) > 0) {
            write!(f, ", {} by row {rule}", self.of_rule(rule))?;
        }
        Ok(())
    }
}
