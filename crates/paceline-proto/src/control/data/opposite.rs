//! The other half of a request that is tied to an opposite stream.

use super::grant::Grant;
use super::refusal::Refusal;
use crate::tag::Tag;

/// The opposite stream of a request with [`SubscriptionSpec::with`](crate::control::SubscriptionSpec::with), as a survey found it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OppositeStream {
    /// Its tag.
    pub tag: Tag,
    /// The contract that its path would grant; `None` if it would be carried with best effort.
    pub grant: Option<Grant>,
    /// The obstacle on its path; `None` if there is none.
    pub refusal: Option<Refusal>,
}
