//! Whether a subscription would be granted now.

use paceline_proto::control::{Grant, Refusal};
use paceline_proto::{PublisherId, Tag};

/// What a path would say to a subscription of one publisher at the moment when it was asked. Nothing is
/// reserved: somebody else may have taken the room by the time that it is subscribed to.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospect {
    /// The publisher.
    pub publisher: PublisherId,
    /// Its tag.
    pub tag: Tag,
    /// The name of its node.
    pub node: String,
    /// All nodes of the path have answered within half a second.
    pub complete: bool,
    /// What would be promised if nothing stands in the way; nothing if the samples would be carried as best
    /// effort: no contract was asked for, or the publisher has not said how much it sends.
    pub grant: Option<Grant>,
    /// What stands in the way: which link of which node, the numbers, and what would be granted instead.
    pub refusal: Option<Refusal>,
}

impl Prospect {
    /// True if it would be granted: all nodes of the path have said so.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        self.complete && self.refusal.is_none()
    }
}
