//! The terms of an exchange.

use paceline_sched::Duration;
use thiserror::Error;

/// The terms at which an object is exchanged with an observer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeTerms {
    /// The least time between two updates: from 1 ms to 1 h.
    pub gap: Duration,
    /// The longest time between two updates, also of an object that did not change: from the gap to 1 h.
    pub refresh: Duration,
    /// The least share of the state that an update carries, in thousandths: from 1 to 1,000. Groups that changed
    /// come first. 0 carries all groups that changed and no others.
    pub fidelity_permille: u16,
    /// The error of the replica's extrapolated position up to which no update of the position is needed, in units of
    /// the world: 0 or more. Other changes, and the refresh, are not held back.
    pub tolerance: f64,
    /// The importance, relative to other objects: more than 0, at most [`Self::WEIGHT_MAX`].
    pub weight: f64,
}

impl ExchangeTerms {
    /// The greatest weight.
    pub const WEIGHT_MAX: f64 = 1e9;

    /// Returns the terms of updates of what changed, at least `gap` apart, refreshed after 10 gaps (at least 1 s), with
    /// weight 1.
    #[must_use]
    pub const fn every(gap: Duration) -> Self {
        let refresh =
            gap.mul_div(10, 1).max(Duration::from_secs(1)).min(Duration::from_secs(3_600));
        Self { gap, refresh: refresh.max(gap), fidelity_permille: 0, tolerance: 0.0, weight: 1.0 }
    }

    /// Returns the same with another weight.
    #[must_use]
    pub const fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }

    /// Returns the same with another tolerance, in units of the world.
    #[must_use]
    pub const fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Returns the same with another fidelity, in thousandths.
    #[must_use]
    pub const fn fidelity(self, fidelity_permille: u16) -> Self {
        Self { fidelity_permille, ..self }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), TermsError> {
        let millisecond = Duration::from_millis(1);
        let hour = Duration::from_secs(3_600);
        if self.gap < millisecond || self.gap > hour {
            Err(TermsError::Gap(self.gap))
        } else if self.refresh < self.gap || self.refresh > hour {
            Err(TermsError::Refresh { refresh: self.refresh, gap: self.gap })
        } else if self.fidelity_permille > 1_000 {
            Err(TermsError::Fidelity(self.fidelity_permille))
        } else if !self.tolerance.is_finite() || self.tolerance < 0.0 {
            Err(TermsError::Tolerance(self.tolerance))
        } else if self.weight > 0.0 && self.weight <= Self::WEIGHT_MAX {
            Ok(())
        } else {
            Err(TermsError::Weight(self.weight))
        }
    }
}

/// The error of a value of [`ExchangeTerms`] that is out of range.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum TermsError {
    /// The gap.
    #[error("gap {0}: must be from 1ms to 1h, such as 100ms")]
    Gap(Duration),
    /// The longest time between two updates.
    #[error("refresh {refresh}: must be from the gap {gap} to 1h, such as 1s")]
    Refresh {
        /// The value.
        refresh: Duration,
        /// The least permitted value.
        gap: Duration,
    },
    /// The fidelity.
    #[error("fidelity of {0}/1000: must be from 0 to 1000, such as 1000")]
    Fidelity(u16),
    /// The tolerance.
    #[error("tolerance {0}: must be 0 or more and finite, such as 0.5")]
    Tolerance(f64),
    /// The weight.
    #[error("weight {0}: must be more than 0 and at most 1e9, such as 1.0")]
    Weight(f64),
}
