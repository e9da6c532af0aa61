//! The contract of a stream on one link.

use crate::time::Duration;
use core::fmt;
use core::str::FromStr;

/// A loss tolerance x/y: of each window of `y` consecutive samples at most `x` may miss their deadline.
///
/// Windows are consecutive (samples ky … ky+y−1), not sliding. [`LossTolerance::sliding`] returns the
/// tolerance that satisfies the sliding guarantee. Always `x ≤ y` and `y ≥ 1`. The exception is `0/0`,
/// which requests deadlines without a window (DWCS's pure EDF stream). A window is at most
/// [`LossTolerance::Y_MAX`] samples, so that the disciplines can compare tolerances exactly in one word.
///
/// Paper: West & Schwan 1999 and seed 004 §2.2.4, "window-constraint".
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LossTolerance {
    x: u32,
    y: u32,
}

impl LossTolerance {
    /// No sample may miss its deadline: 0/1.
    pub const NONE: Self = Self { x: 0, y: 1 };
    /// Deadlines without a window, for DWCS's pure EDF streams: 0/0.
    pub const EDF: Self = Self { x: 0, y: 0 };

    /// The number of bits of the longest window.
    pub(crate) const Y_BITS: u32 = 20;
    /// The longest window: 1,048,575 samples, almost three hours at 100 Hz.
    pub const Y_MAX: u32 = (1 << Self::Y_BITS) - 1;

    /// Returns a tolerance of at most `x` misses in each `y` consecutive samples.
    ///
    /// # Errors
    /// [`ContractError::LossAboveOne`] if `x > y`, and also for 0/0: use [`Self::EDF`] instead.
    /// [`ContractError::WindowTooLong`] if `y` is above [`Self::Y_MAX`].
    pub const fn new(x: u32, y: u32) -> Result<Self, ContractError> {
        if x > y || y == 0 {
            return Err(ContractError::LossAboveOne { x, y });
        }
        if y > Self::Y_MAX {
            return Err(ContractError::WindowTooLong { y });
        }
        Ok(Self { x, y })
    }

    /// Returns the number of samples of a window that may miss their deadline.
    #[must_use]
    pub const fn x(self) -> u32 {
        self.x
    }

    /// Returns the number of consecutive samples in a window.
    #[must_use]
    pub const fn y(self) -> u32 {
        self.y
    }

    /// Returns the tolerance that guarantees "at most x in *any* y consecutive samples": ⌊x/2⌋/y.
    ///
    /// A sliding window overlaps at most two aligned windows.
    #[must_use]
    pub const fn sliding(self) -> Self {
        Self { x: self.x / 2, y: self.y }
    }

    /// Returns the stricter of two tolerances: the one with the smaller share of misses, or the shorter
    /// window if the shares are equal.
    #[must_use]
    pub fn strictest(self, other: Self) -> Self {
        let mine = u64::from(self.x) * u64::from(other.y.max(1));
        let theirs = u64::from(other.x) * u64::from(self.y.max(1));
        match mine.cmp(&theirs) {
            core::cmp::Ordering::Less => self,
            core::cmp::Ordering::Greater => other,
            core::cmp::Ordering::Equal if other.y < self.y => other,
            core::cmp::Ordering::Equal => self,
        }
    }
}

impl fmt::Display for LossTolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.x, self.y)
    }
}

impl FromStr for LossTolerance {
    type Err = ContractError;
    /// Parses "x/y", for example `1/10`.
    fn from_str(text: &str) -> Result<Self, ContractError> {
        let (x, y) = text.split_once('/').ok_or(ContractError::LossSyntax)?;
        let x = x.trim().parse().map_err(|_| ContractError::LossSyntax)?;
        let y = y.trim().parse().map_err(|_| ContractError::LossSyntax)?;
        Self::new(x, y)
    }
}

/// The treatment of a sample that can no longer meet its deadline.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Late {
    /// Drops the sample: late data has no value (pictures, positions).
    #[default]
    Drop,
    /// Sends the sample late and counts a miss (commands, files).
    Send,
}

/// The contract of a stream on one link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Contract {
    /// The shortest time between two samples, T. Successive deadlines are one period apart. Not zero.
    pub period: Duration,
    /// The time from a sample's arrival at the link to the end of its service there. Not zero.
    ///
    /// The papers state the latest *start* of service; this is the latest *end*. With start deadlines,
    /// the remaining segments of a long sample would outrank everything else once its first segment is
    /// sent. The latest start is the end minus the service time ([`crate::discipline::Left::service`]).
    pub deadline: Duration,
    /// The number of samples of each window that may miss.
    pub loss: LossTolerance,
    /// The treatment of samples that miss.
    pub late: Late,
    /// The longest time by which a sample may arrive before its period and still conform.
    pub jitter: Duration,
}

impl Contract {
    /// Returns a contract with a deadline of one period, no loss tolerance and no jitter, which drops
    /// late samples.
    ///
    /// # Errors
    /// [`ContractError::ZeroPeriod`] if `period` is zero.
    pub const fn every(period: Duration) -> Result<Self, ContractError> {
        if period.is_zero() {
            return Err(ContractError::ZeroPeriod);
        }
        Ok(Self {
            period,
            deadline: period,
            loss: LossTolerance::NONE,
            late: Late::Drop,
            jitter: Duration::ZERO,
        })
    }

    /// Returns the same contract with another deadline.
    ///
    /// # Errors
    /// [`ContractError::ZeroDeadline`] if `deadline` is zero.
    pub const fn with_deadline(mut self, deadline: Duration) -> Result<Self, ContractError> {
        if deadline.is_zero() {
            return Err(ContractError::ZeroDeadline);
        }
        self.deadline = deadline;
        Ok(self)
    }

    /// Returns the same contract with another loss tolerance.
    #[must_use]
    pub const fn with_loss(mut self, loss: LossTolerance) -> Self {
        self.loss = loss;
        self
    }

    /// Returns the same contract with another treatment of late samples.
    #[must_use]
    pub const fn with_late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    /// Returns the same contract with another jitter.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }
}

/// The reasons for rejecting a contract.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ContractError {
    /// The period is zero.
    ZeroPeriod,
    /// The deadline is zero.
    ZeroDeadline,
    /// The tolerance allows more misses than there are samples in the window, or the window is 0.
    LossAboveOne {
        /// The requested number of misses.
        x: u32,
        /// The requested window in samples.
        y: u32,
    },
    /// The window is longer than [`LossTolerance::Y_MAX`] samples.
    WindowTooLong {
        /// The requested window in samples.
        y: u32,
    },
    /// The text is not of the form x/y.
    LossSyntax,
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroPeriod => {
                f.write_str("period is 0: must be above 0; it is the time between two samples")
            }
            Self::ZeroDeadline => {
                f.write_str("deadline is 0: must be above 0; it is the time that a sample may take")
            }
            Self::LossAboveOne { x, y } => write!(
                f,
                "loss tolerance {x}/{y}: x must be from 0 to y and y at least 1; 1/10 allows one \
                 miss in each ten samples"
            ),
            Self::WindowTooLong { y } => write!(
                f,
                "loss tolerance x/{y}: a window has at most {} samples; reduce the fraction",
                LossTolerance::Y_MAX
            ),
            Self::LossSyntax => {
                f.write_str("loss tolerance must be two whole numbers x/y, for example 1/10")
            }
        }
    }
}

impl core::error::Error for ContractError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_tolerance_is_at_most_one() {
        assert!(LossTolerance::new(1, 10).is_ok());
        assert!(LossTolerance::new(3, 3).is_ok());
        assert_eq!(LossTolerance::new(3, 2), Err(ContractError::LossAboveOne { x: 3, y: 2 }));
        assert_eq!(LossTolerance::new(0, 0), Err(ContractError::LossAboveOne { x: 0, y: 0 }));
        assert!(LossTolerance::new(1, LossTolerance::Y_MAX).is_ok());
        assert_eq!(
            LossTolerance::new(1, 1 << 20),
            Err(ContractError::WindowTooLong { y: 1 << 20 })
        );
        assert!("1/2000000".parse::<LossTolerance>().unwrap_err().to_string().contains("1048575"));
        assert_eq!("1/10".parse(), LossTolerance::new(1, 10));
        assert_eq!("a/b".parse::<LossTolerance>(), Err(ContractError::LossSyntax));
        assert_eq!("5".parse::<LossTolerance>(), Err(ContractError::LossSyntax));
        assert!("3/2".parse::<LossTolerance>().unwrap_err().to_string().contains("3/2"));
    }

    #[test]
    fn the_strictest_tolerance_has_the_smaller_share_and_then_the_shorter_window() {
        let loss = |x, y| LossTolerance::new(x, y).unwrap();
        assert_eq!(loss(1, 10).strictest(loss(1, 5)), loss(1, 10));
        assert_eq!(loss(2, 20).strictest(loss(1, 10)), loss(1, 10));
        assert_eq!(loss(1, 2).strictest(LossTolerance::NONE), LossTolerance::NONE);
        assert_eq!(loss(5, 10).sliding(), loss(2, 10));
    }

    #[test]
    fn zero_bytes_take_no_time() {
        assert_eq!(Contract::every(Duration::ZERO), Err(ContractError::ZeroPeriod));
        let contract = Contract::every(Duration::from_millis(10)).unwrap();
        assert_eq!(contract.deadline, contract.period);
        assert_eq!(contract.with_deadline(Duration::ZERO), Err(ContractError::ZeroDeadline));
    }
}
