//! Messages and their updates.

use crate::ids::{ObjectIndex, PeerId};
use crate::schema::GroupMask;
use paceline_sched::{Duration, Instant};
use thiserror::Error;

/// Which service a message has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangeClass {
    /// Its updates are promised by the observer's contract; they leave whatever the budget is.
    Promised,
    /// Its updates leave as far as the budget permits, those of the greatest weight and error first.
    BestEffort,
}

/// The kind of an update.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UpdateKind {
    /// The observer has no replica yet, or is not known to have one.
    Introduce,
    /// Groups changed.
    Change,
    /// Nothing changed: only the age of the replica is renewed.
    Refresh,
    /// The observer has no interest any more: its replica is not kept up to date.
    Withdraw,
    /// The object is deleted.
    Delete,
}

impl UpdateKind {
    /// Returns whether it introduces the object.
    #[must_use]
    pub const fn introduces(self) -> bool {
        matches!(self, Self::Introduce)
    }

    /// Returns whether the replica ends.
    #[must_use]
    pub const fn ends(self) -> bool {
        matches!(self, Self::Withdraw | Self::Delete)
    }
}

/// An update of an object in a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeUpdate {
    /// The object.
    pub object: ObjectIndex,
    /// Its kind.
    pub kind: UpdateKind,
    /// The groups that it carries, with their content at the time of the message.
    pub groups: GroupMask,
    /// The least share of the state that has to be carried, in thousandths.
    pub fidelity_permille: u16,
    /// The time of the exchange: from then on it could leave.
    pub due: Instant,
}

/// A message to one observer.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// The observer.
    pub peer: PeerId,
    /// The service of the message.
    pub class: ExchangeClass,
    /// The number of the message among those to this observer, from 0.
    pub number: u64,
    /// Its updates.
    pub updates: Vec<ExchangeUpdate>,
    /// Its bytes, by the sizes of groups and headers in the settings.
    pub bytes: u64,
}

/// Constraints of one change, in addition to the terms or the contract of its observers.
///
/// Paper: West and Schwan 1997, section 4.2.2: a message may have service parameters of its own.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UpdateConstraints {
    /// The least share of the state that the update carries, in thousandths from 1 to 1,000, instead of that of the
    /// terms. Under a contract, it can only be less than the contract's.
    pub fidelity_permille: Option<u16>,
    /// The time in which the update must leave, from 1 ms to 1 h; else it is dropped, and the next change or refresh
    /// carries the state.
    pub within: Option<Duration>,
}

impl UpdateConstraints {
    /// Checks the values.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self) -> Result<(), UpdateConstraintError> {
        let range = Duration::from_millis(1)..=Duration::from_secs(3_600);
        match (self.fidelity_permille, self.within) {
            (Some(share), _) if share == 0 || share > 1_000 => {
                Err(UpdateConstraintError::Fidelity(share))
            }
            (_, Some(within)) if !range.contains(&within) => {
                Err(UpdateConstraintError::Within(within))
            }
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }
}

/// The error of [`UpdateConstraints`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum UpdateConstraintError {
    /// The fidelity.
    #[error("fidelity of {0}/1000: must be from 1 to 1000, such as 500")]
    Fidelity(u16),
    /// The time.
    #[error("within {0}: must be from 1ms to 1h, such as 100ms")]
    Within(Duration),
}

/// An update that may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct UpdatePlan {
    pub(super) kind: UpdateKind,
    pub(super) groups: GroupMask,
    pub(super) bytes: u64,
}

/// How many bytes of best-effort messages may leave to an observer now.
pub trait ExchangeBudget {
    /// Returns the bytes. An update leaves if they are at least its own bytes, or those of the largest message.
    fn bytes_for(&self, peer: PeerId) -> u64;
}

/// The same number for every observer.
impl ExchangeBudget for u64 {
    fn bytes_for(&self, _peer: PeerId) -> u64 {
        *self
    }
}

impl<F: Fn(PeerId) -> u64> ExchangeBudget for F {
    fn bytes_for(&self, peer: PeerId) -> u64 {
        self(peer)
    }
}
