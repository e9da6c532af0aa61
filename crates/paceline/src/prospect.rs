//! Answers to admission requests that reserve nothing.

use paceline_proto::control::{Grant, Refusal};
use paceline_proto::{PublisherId, Tag};

/// The answer of one publisher's path to a request of [`SubscriberBuilder::ask`].
///
/// The path reserves nothing. Other subscriptions may use up the capacity before the subscription
/// is declared.
///
/// [`SubscriberBuilder::ask`]: crate::SubscriberBuilder::ask
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
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
    /// The reason of a refusal: the node and link, the numbers, and the best contract that would be
    /// granted.
    pub refusal: Option<Refusal>,
}

impl Prospect {
    /// Returns true if all nodes of the path would grant the request.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        self.complete && self.refusal.is_none()
    }
}
