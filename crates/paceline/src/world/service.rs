//! The service of an observer's contract.

use crate::contract::{Grant, Refusal};
use crate::status::PublisherId;

/// A change of the service of an observer's contract.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServiceEvent {
    /// The links to an owner reserve the contract.
    Granted(Grant),
    /// A link cannot keep it: the updates of an owner are best effort.
    Refused(Refusal, ServiceOffer),
    /// Nothing is reserved for the updates of a publisher any more; they are best effort.
    Withdrawn(PublisherId),
}

/// Estimates of a contract that the link can keep, each value by itself, from the rate and the delay that it has left;
/// `None` if no value would help. A new request decides.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServiceOffer {
    /// At most this number of updates in the contract's time.
    pub max_updates: Option<u32>,
    /// A least share of the state of at most this, in thousandths.
    pub fidelity_permille: Option<u16>,
    /// A delay of at least this.
    pub delay: Option<std::time::Duration>,
}
