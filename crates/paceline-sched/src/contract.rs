//! What a stream was promised on one link.

use crate::time::Duration;
use core::fmt;
use core::str::FromStr;

/// Loss tolerance x/y: of each window of `y` consecutive samples at most `x` may miss their deadline.
///
/// Windows follow each other (samples ky … ky+y−1), they do not slide; [`LossTolerance::sliding`]
/// gives the tolerance that holds the sliding promise. Always `x ≤ y` and `y ≥ 1`, except `0/0`,
/// which asks for deadlines alone, without a window (DWCS's pure EDF stream). A window is at most
/// [`LossTolerance::Y_MAX`] samples, so that the disciplines compare tolerances exactly in one word.
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
    /// Deadlines without a window: 0/0.
    pub const EDF: Self = Self { x: 0, y: 0 };

    /// Bits of the longest window.
    pub(crate) const Y_BITS: u32 = 20;
    /// The longest window: 1,048,575 samples, almost three hours at 100 Hz.
    pub const Y_MAX: u32 = (1 << Self::Y_BITS) - 1;

    /// At most `x` of each `y` consecutive samples.
    ///
    /// # Errors
    /// [`ContractError::LossAboveOne`] if `x > y`; 0/0 is refused too, ask for [`Self::EDF`].
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

    /// How many samples of a window may miss.
    #[must_use]
    pub const fn x(self) -> u32 {
        self.x
    }

    /// How many consecutive samples make a window.
    #[must_use]
    pub const fn y(self) -> u32 {
        self.y
    }

    /// The tolerance that keeps "at most x in *any* y consecutive samples": ⌊x/2⌋/y, because a sliding
    /// window meets at most two aligned ones.
    #[must_use]
    pub const fn sliding(self) -> Self {
        Self { x: self.x / 2, y: self.y }
    }

    /// The stricter of two tolerances: the one that allows the smaller share of misses, and at equal
    /// shares the shorter window.
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
    /// Reads "x/y", for example `1/10`.
    fn from_str(text: &str) -> Result<Self, ContractError> {
        let (x, y) = text.split_once('/').ok_or(ContractError::LossSyntax)?;
        let x = x.trim().parse().map_err(|_| ContractError::LossSyntax)?;
        let y = y.trim().parse().map_err(|_| ContractError::LossSyntax)?;
        Self::new(x, y)
    }
}

/// What becomes of a sample that can no longer arrive in time.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Late {
    /// It is dropped: late data is worth nothing (pictures, positions).
    #[default]
    Drop,
    /// It is sent late and counted as a miss (commands, files).
    Send,
}

/// The contract of a stream on one link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Contract {
    /// T: the least time between two samples; successive deadlines are this far apart. Not zero.
    pub period: Duration,
    /// From a sample's arrival at the link to the end of its service there. Not zero.
    ///
    /// The papers state the latest *start* of service; this is the latest *end*, so that the segments
    /// of a long sample do not outrank everything once the sample has begun. The start follows:
    /// end − service time ([`crate::discipline::Left::service`]).
    pub deadline: Duration,
    /// How many samples of each window may miss.
    pub loss: LossTolerance,
    /// What becomes of a sample that misses.
    pub late: Late,
    /// How much earlier than its period a sample may come and still count as conforming.
    pub jitter: Duration,
}

impl Contract {
    /// A contract with deadline = period, no tolerance for loss, late samples dropped, no jitter.
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

    /// The same contract with another deadline.
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

    /// The same contract with another loss tolerance.
    #[must_use]
    pub const fn with_loss(mut self, loss: LossTolerance) -> Self {
        self.loss = loss;
        self
    }

    /// The same contract with another rule for late samples.
    #[must_use]
    pub const fn with_late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    /// The same contract with another jitter.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }
}

/// Why a contract was not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ContractError {
    /// The period is zero.
    ZeroPeriod,
    /// The deadline is zero.
    ZeroDeadline,
    /// More misses allowed than there are samples in the window.
    LossAboveOne {
        /// The misses asked for.
        x: u32,
        /// The window asked for.
        y: u32,
    },
    /// A window of more samples than [`LossTolerance::Y_MAX`].
    WindowTooLong {
        /// The window asked for.
        y: u32,
    },
    /// Not of the form x/y.
    LossSyntax,
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroPeriod => f.write_str("period is 0: give the time between two samples"),
            Self::ZeroDeadline => f.write_str("deadline is 0: give the time a sample may take"),
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
    fn nothing_takes_no_time() {
        assert_eq!(Contract::every(Duration::ZERO), Err(ContractError::ZeroPeriod));
        let contract = Contract::every(Duration::from_millis(10)).unwrap();
        assert_eq!(contract.deadline, contract.period);
        assert_eq!(contract.with_deadline(Duration::ZERO), Err(ContractError::ZeroDeadline));
    }
}
