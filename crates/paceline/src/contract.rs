//! Requests and their answers: forms of samples, grants and refusals, and the processor budget of
//! admission.
//!
//! A subscription requests a contract with [`SubscriberBuilder::within`] or
//! [`SubscriberBuilder::loss`]. Each path answers with a [`Grant`] or a [`Refusal`], which the
//! subscriber receives as a [`SubscriberEvent`].
//!
//! [`SubscriberBuilder::within`]: crate::SubscriberBuilder::within
//! [`SubscriberBuilder::loss`]: crate::SubscriberBuilder::loss
//! [`SubscriberEvent`]: crate::SubscriberEvent

pub use crate::error::Contradiction;
#[doc(inline)]
pub use paceline_proto::control::{
    Adaptation, BestEffort, Cause, ChangeOutcome, CpuBudget, CpuCost, CpuPoint, CpuTable,
    CpuTableError, Estimate, Grant, GrantedHop, IMPORTANCE_DEFAULT, IMPORTANCE_MAX, Offer,
    OppositeStream, Refusal, RefusalReason, Warning,
};
#[doc(inline)]
pub use paceline_proto::form::Audio;
#[doc(inline)]
pub use paceline_proto::{Form, Proxy, Rate, Retransmit, Unscalable};
use paceline_proto::{PublisherId, Tag};

/// The answer of one publisher's path to a request of [`SubscriberBuilder::quotes`].
///
/// The path reserves nothing. Other subscriptions may use up the capacity before the subscription
/// is declared.
///
/// [`SubscriberBuilder::quotes`]: crate::SubscriberBuilder::quotes
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// The publisher.
    pub publisher: PublisherId,
    /// Its tag.
    pub tag: Tag,
    /// The display name of its node.
    pub node: String,
    /// True if all nodes of the path answered within 500 ms.
    pub complete: bool,
    /// The contract that the path would grant.
    ///
    /// `None` if the samples would be best effort: the request has no contract, or the publisher
    /// has not declared its traffic.
    pub grant: Option<Grant>,
    /// The step of an elastic contract that the answer is for, from 0 for the most that is requested; `None` if the request is
    /// not elastic. If `grant` is present, [`Grant::form`] is its form.
    pub step: Option<usize>,
    /// The reason of a refusal: the node and link, the numbers, and the best contract that would be
    /// granted.
    pub refusal: Option<Refusal>,
    /// The stream of [`SubscriberBuilder::with_tag`], whose contract is granted together with this one or not at all;
    /// `None` if the request has none, or if there is no such stream.
    ///
    /// [`SubscriberBuilder::with_tag`]: crate::SubscriberBuilder::with_tag
    pub opposite: Option<OppositeStream>,
    /// The delay that the period of the samples suggests, with and without a contract; `None` if the
    /// publisher declares no period.
    pub estimate: Option<Estimate>,
}

impl Quote {
    /// Returns true if all nodes of the path would grant the request.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        self.complete && self.refusal.is_none()
    }
}
