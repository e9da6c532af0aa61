//! Counts updates, and those that were suppressed by reason.

/// Why an update of an object was not carried to an observer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SuppressReason {
    /// A newer one replaced it before the least time between two updates had passed, or it came before and was
    /// dropped.
    Gap,
    /// A newer one replaced it before there was room for it: its weight and error were the lower ones.
    Budget,
    /// A newer one replaced the rest of it, which the fidelity permitted to leave out.
    Fidelity,
    /// A newer one replaced it while the replica's extrapolation was within the tolerance.
    Tolerance,
    /// It could not leave in the time of its constraints; see [`super::UpdateConstraints`].
    Expired,
    /// The observer has no interest in the object.
    Interest,
    /// The observer or the owner has too many objects of interest; see [`super::ExchangeSettings`].
    Limit,
}

impl SuppressReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Gap,
        Self::Budget,
        Self::Fidelity,
        Self::Tolerance,
        Self::Expired,
        Self::Interest,
        Self::Limit,
    ];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Budget => "budget",
            Self::Fidelity => "fidelity",
            Self::Tolerance => "tolerance",
            Self::Expired => "expired",
            Self::Interest => "interest",
            Self::Limit => "limit",
        }
    }
}

/// Counts what became of the updates for one observer, or for all.
///
/// Every change of an object is one update for every observer, and so is the state of an object at the begin of
/// interest. `offered + lost = carried + suppressed + waiting` holds at any time, where *waiting* is the number of
/// objects with an update that waits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ExchangeCounters {
    /// Updates by changes and by the begin of interest.
    pub offered: u64,
    /// Updates that were carried completely in one or more messages.
    pub carried: u64,
    /// Updates that wait again since a message was lost.
    pub lost: u64,
    /// Updates of unchanged objects that only renewed their age.
    pub refreshed: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes of messages by the settings' sizes of headers.
    pub bytes: u64,
    /// Updates in messages of the promised class.
    pub promised: u64,
    /// Updates in messages of the best-effort class.
    pub best_effort: u64,
    /// Evaluations of a pair.
    pub evaluated: u64,
    suppressed: [u64; SuppressReason::ALL.len()],
}

impl ExchangeCounters {
    /// Returns the number of updates that were suppressed for a reason.
    #[must_use]
    pub fn suppressed(&self, reason: SuppressReason) -> u64 {
        let count = SuppressReason::ALL.iter().zip(&self.suppressed);
        count.filter(|(other, _)| **other == reason).map(|(_, count)| *count).sum()
    }

    /// Returns the number of updates that were suppressed for any reason.
    #[must_use]
    pub fn suppressed_total(&self) -> u64 {
        self.suppressed.iter().sum()
    }

    /// Returns the sums with other counters.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut suppressed = self.suppressed;
        for (count, more) in suppressed.iter_mut().zip(&other.suppressed) {
            *count += more;
        }
        Self {
            offered: self.offered + other.offered,
            carried: self.carried + other.carried,
            lost: self.lost + other.lost,
            refreshed: self.refreshed + other.refreshed,
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
            promised: self.promised + other.promised,
            best_effort: self.best_effort + other.best_effort,
            evaluated: self.evaluated + other.evaluated,
            suppressed,
        }
    }

    pub(crate) fn suppress(&mut self, reason: SuppressReason, updates: u64) {
        for (other, count) in SuppressReason::ALL.iter().zip(&mut self.suppressed) {
            if *other == reason {
                *count += updates;
            }
        }
    }
}
