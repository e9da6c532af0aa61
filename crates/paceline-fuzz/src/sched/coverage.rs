//! What happened in scenarios: proof that they are rich enough to prove anything.

use std::fmt;

/// Something that a scenario may come across.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Situation {
    /// A head was picked.
    Pick,
    /// The head that was picked was ahead of its period, in round robin.
    EarlyPick,
    /// A head could no longer end in time.
    Miss,
    /// Three misses or more became known in one turn.
    Burst,
    /// A suspended head was missed.
    SuspendedMiss,
    /// A late head's deadline moved on by two periods or more in one turn.
    Postponed,
    /// By a hundred or more.
    Stalled,
    /// A sample was served after its deadline.
    ServedLate,
    /// A window was violated.
    Violation,
    /// It was violated by a sample that was skipped or removed.
    SkipViolation,
    /// A stream was seen with a tag.
    Tag,
    /// A stream was seen with y' above y.
    Raised,
    /// A stream was seen with a window longer than 2^15.
    LongWindow,
    /// A stream joined again while it had a head.
    Change,
    /// A suspended stream with a head was resumed.
    Resume,
    /// The clock went backward.
    Backward,
    /// A head's deadline was later than any instant.
    Never,
    /// A segment that was not the last left.
    Segment,
    /// The next wake was not the next change.
    Sleep,
    /// A head was longer than its contract allows.
    Long,
}

impl Situation {
    /// Every situation.
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

/// Rows of the longest table of rules, and the tie by index.
const RULES: usize = 8;

/// How often what happened.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    situations: [u64; Situation::ALL.len()],
    /// How many comparisons of two heads were settled by each row of the discipline's table, from 1.
    rules: [u64; RULES],
    /// How many events there were.
    pub steps: u64,
}

impl Coverage {
    /// How often the situation came up.
    #[must_use]
    pub const fn of(&self, situation: Situation) -> u64 {
        self.situations[situation as usize]
    }

    /// How many comparisons the row of the table settled; rows count from 1.
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
