//! The settings and limits of an exchange list, and its errors.

use crate::contract::HeaderSizes;
use crate::ids::{ObjectIndex, PeerId};
use crate::semantic::ExchangeTerms;
use paceline_sched::Duration;
use thiserror::Error;

/// The settings and limits of an [`super::ExchangeList`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeSettings {
    /// The time in which every object in range of an observer is evaluated once.
    pub evaluate_every: Duration,
    /// The time that a semantic function has for a batch; see [`super::ExchangeList::next_batch`].
    pub function_budget: Duration,
    /// The terms of every object in range of an observer whose semantic function is disabled: the fallback rule.
    pub fallback: ExchangeTerms,
    /// The length of a cell of the index of positions, best near the usual range of observers.
    pub cell: f64,
    /// The greatest number of objects.
    pub objects_max: usize,
    /// The greatest number of observers.
    pub peers_max: usize,
    /// The greatest number of objects that one observer has interest in.
    pub objects_per_peer_max: usize,
    /// The greatest number of pairs of an object and an observer.
    pub pairs_max: usize,
    /// The bytes of a message without updates.
    pub message_header_bytes: usize,
    /// The bytes of an update without its groups.
    pub update_header_bytes: usize,
    /// The bytes that an update adds to each of its groups.
    pub group_header_bytes: usize,
    /// The error, in units of the world, that a second of waiting counts as: for state other than a position, for
    /// objects without one, and for objects that are not refreshed in time. More than 0.
    pub waiting_error: f64,
    /// The error that the absence of a replica counts as.
    pub absence_error: f64,
}

impl Default for ExchangeSettings {
    /// Ten evaluations per second, at most 100,000 objects, 1,000 observers and 1,000,000 pairs.
    fn default() -> Self {
        Self {
            evaluate_every: Duration::from_millis(100),
            function_budget: Duration::from_millis(50),
            fallback: ExchangeTerms::every(Duration::from_secs(1)),
            cell: 100.0,
            objects_max: 100_000,
            peers_max: 1_000,
            objects_per_peer_max: 100_000,
            pairs_max: 1_000_000,
            message_header_bytes: 32,
            update_header_bytes: 16,
            group_header_bytes: 2,
            waiting_error: 1.0,
            absence_error: 10.0,
        }
    }
}

impl ExchangeSettings {
    /// Returns the bytes of headers.
    #[must_use]
    pub const fn headers(&self) -> HeaderSizes {
        HeaderSizes {
            message: self.message_header_bytes as u64,
            update: self.update_header_bytes as u64,
            group: self.group_header_bytes as u64,
        }
    }
}

/// The error of an operation of an [`super::ExchangeList`]. Nothing changed.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum ExchangeError {
    /// There are too many objects.
    #[error("{limit} objects exist: delete some, or raise objects_max")]
    Objects {
        /// The limit.
        limit: usize,
    },
    /// There are too many observers.
    #[error("{limit} observers joined: let some leave, or raise peers_max")]
    Peers {
        /// The limit.
        limit: usize,
    },
    /// The object exists, or a deleted one of this index is still being deleted.
    #[error("object {0} exists; use a new index for each object")]
    Exists(ObjectIndex),
    /// There is no such object.
    #[error("there is no object {0}; create it first, and do not change it after its deletion")]
    NoObject(ObjectIndex),
    /// The observer joined before.
    #[error("observer {0} joined before; let it leave first")]
    Joined(PeerId),
    /// There is no such observer.
    #[error("there is no observer {0}; let it join first")]
    NoPeer(PeerId),
    /// A position or velocity that is not finite.
    #[error("object {0}: position and velocity must be finite, not NaN or infinite")]
    Motion(ObjectIndex),
    /// A position, velocity, direction or range of an observer that is not finite or negative.
    #[error("observer {0}: position and velocity must be finite and the range 0 or more")]
    Observer(PeerId),
    /// The number of groups of an object.
    #[error(
        "object {object}: {groups} groups; must be from 1 to 32, and the same after its creation"
    )]
    Groups {
        /// The object.
        object: ObjectIndex,
        /// The number.
        groups: usize,
    },
    /// The size of an object.
    #[error("object {object}: {bytes} bytes; must be from 1 to 16777216")]
    Size {
        /// The object.
        object: ObjectIndex,
        /// The size.
        bytes: u64,
    },
    /// An observer, or the owner, has too many objects of interest.
    #[error(
        "observer {peer} has interest in {pairs} objects: reduce its range, or raise objects_per_peer_max or pairs_max"
    )]
    Pairs {
        /// The observer.
        peer: PeerId,
        /// The number of its objects.
        pairs: usize,
    },
    /// The terms of an object.
    #[error(transparent)]
    Terms(#[from] crate::semantic::TermsError),
    /// The constraints of a change.
    #[error(transparent)]
    Constraint(#[from] super::update::UpdateConstraintError),
    /// The contract of an observer.
    #[error(transparent)]
    Contract(#[from] crate::contract::ObjectContractError),
}
