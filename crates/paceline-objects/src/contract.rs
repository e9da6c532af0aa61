//! The service of one object for one participant, and its mapping to messages and packets.
//!
//! Paper: West and Schwan 1997, sections 3.1 and 3.2.

use paceline_sched::Duration;
use thiserror::Error;

/// The service of one object for one participant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ObjectContract {
    /// The greatest number of updates in [`Self::per`], `n_max` of the paper: from 1 to 1,000,000.
    pub max_updates: u32,
    /// The time in which they are counted, `t` of the paper: from 1 ms to 1 h. Two updates are at least
    /// `per / max_updates` apart.
    pub per: Duration,
    /// The longest time between two updates, also of an object that did not change: the minimum rate. At least the
    /// gap, at most 1 h.
    pub refresh: Duration,
    /// The size of the object's state in bytes, `s` of the paper: from 1 to 16 MiB.
    pub bytes: u32,
    /// The longest time from a change until its replica has it, `δ` of the paper, for updates that are not held back
    /// by the gap: from 1 ms to 1 min.
    pub delay: Duration,
    /// The least share of the state that an update carries, `f` of the paper, in thousandths: from 1 to 1,000.
    pub fidelity_permille: u16,
}

impl ObjectContract {
    /// The largest state: 16 MiB.
    pub const BYTES_MAX: u32 = 16 << 20;

    /// Returns a contract of `updates` per second, each complete.
    #[must_use]
    pub const fn per_second(updates: u32, bytes: u32, delay: Duration) -> Self {
        Self {
            max_updates: updates,
            per: Duration::from_secs(1),
            refresh: Duration::from_secs(1),
            bytes,
            delay,
            fidelity_permille: 1_000,
        }
    }

    /// Returns the least time between two updates: `t / n_max`, rounded up.
    #[must_use]
    pub const fn gap(&self) -> Duration {
        Duration::from_nanos(self.per.as_nanos().div_ceil(if self.max_updates == 0 {
            1
        } else {
            self.max_updates as u64
        }))
    }

    /// Returns the greatest age of a replica's state that the contract permits: the longest time between two updates
    /// and the delay of the second.
    #[must_use]
    pub const fn max_age(&self) -> Duration {
        self.refresh.saturating_add(self.delay)
    }

    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), ObjectContractError> {
        let millisecond = Duration::from_millis(1);
        let hour = Duration::from_secs(3_600);
        if self.max_updates == 0 || self.max_updates > 1_000_000 {
            Err(ObjectContractError::MaxUpdates(self.max_updates))
        } else if self.per < millisecond || self.per > hour {
            Err(ObjectContractError::Per(self.per))
        } else if self.refresh < self.gap() || self.refresh > hour {
            Err(ObjectContractError::Refresh { refresh: self.refresh, gap: self.gap() })
        } else if self.bytes == 0 || self.bytes > Self::BYTES_MAX {
            Err(ObjectContractError::Bytes(self.bytes))
        } else if self.delay < millisecond || self.delay > Duration::from_secs(60) {
            Err(ObjectContractError::Delay(self.delay))
        } else if self.fidelity_permille == 0 || self.fidelity_permille > 1_000 {
            Err(ObjectContractError::Fidelity(self.fidelity_permille))
        } else {
            Ok(())
        }
    }
}

/// The error of a value of an [`ObjectContract`] that is out of range.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ObjectContractError {
    /// The number of updates.
    #[error("max_updates {0}: must be from 1 to 1000000, such as 10")]
    MaxUpdates(u32),
    /// The time in which updates are counted.
    #[error("per {0}: must be from 1ms to 1h, such as 1s")]
    Per(Duration),
    /// The longest time between two updates.
    #[error("refresh {refresh}: must be from {gap} (per / max_updates) to 1h, such as 1s")]
    Refresh {
        /// The value.
        refresh: Duration,
        /// The least permitted value.
        gap: Duration,
    },
    /// The size.
    #[error("bytes {0}: must be from 1 to 16777216, such as 64")]
    Bytes(u32),
    /// The delay.
    #[error("delay {0}: must be from 1ms to 1min, such as 100ms")]
    Delay(Duration),
    /// The fidelity.
    #[error("fidelity of {0}/1000: must be from 1 to 1000, such as 1000")]
    Fidelity(u16),
}
