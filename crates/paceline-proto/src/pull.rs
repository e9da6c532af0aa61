//! Pull: retrieving past samples from buffers.
//!
//! A pull buffer is a subscription, on any node, that stores its samples. A puller asks every holder of a tag
//! for its contents ([`Question::Find`]). It [merges](merge::merge) the answers into a [`PullPlan`] that names
//! the nearest holder of each sample, and fetches page by page ([`Question::Fetch`]). The holder scales the
//! samples as requested and publishes them on a [private tag](private_tag), to which only the puller
//! subscribes. They thus use the same links and drop reasons as any other stream. Streams of private tags are
//! *background*: links serve them only when no live sample waits.
//!
//! Paper: seed 000 §3.2 (pull).

pub mod buffer;
pub mod holding;
pub mod limits;
pub mod merge;
pub mod message;
pub mod selection;
mod video;

pub use buffer::{PullBuffer, Pushed};
pub use holding::{Cursor, Find, Found, Held, Holding, PAGE_HOLDINGS, PAGE_ITEMS, SampleSpan};
pub use limits::{Limits, LimitsError};
pub use merge::{Absence, Answered, Page, PlanItem, PullPlan, merge};
pub use message::{Answer, Fetch, Making, NEXT_MAX, Question, REFUSED_BYTES_MAX, SEQS_MAX};
pub use selection::{ITEMS_MAX, Selection, SelectionError};

use crate::ids::{NodeId, PublisherId};
use crate::tag::{Pattern, Tag, TagError};

/// Returns the tag on which a holder publishes the samples of `publisher` for `puller`'s pull number `pull`:
/// `@pull/<puller>/<pull>/<publisher's node>/<publisher's index>`, with node ids as 16 hexadecimal digits.
///
/// # Errors
/// Never fails in practice: the tag is short and has no forbidden character.
pub fn private_tag(puller: NodeId, pull: u64, publisher: PublisherId) -> Result<Tag, TagError> {
    Tag::new(&format!("@pull/{puller}/{pull}/{}/{}", publisher.node, publisher.index))
}

/// Returns the pattern that `puller` subscribes to for its pull number `pull`. It matches all of the pull's
/// [`private_tag`]s.
///
/// # Errors
/// Never fails in practice, like [`private_tag`].
pub fn private_pattern(puller: NodeId, pull: u64) -> Result<Pattern, TagError> {
    Pattern::new(&format!("@pull/{puller}/{pull}/**"))
}

/// Returns the publisher that a [`private_tag`] names; `None` for any other tag.
#[must_use]
pub fn publisher_of(tag: &Tag) -> Option<PublisherId> {
    let mut chunks = tag.as_str().strip_prefix("@pull/")?.split('/').skip(2);
    let node = chunks.next().filter(|digits| digits.len() == 16)?;
    let node = NodeId(u64::from_str_radix(node, 16).ok()?);
    let index = chunks.next()?.parse().ok()?;
    chunks.next().is_none().then_some(PublisherId { node, index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_tag_names_its_publisher_and_matches_only_its_pull() {
        let publisher = PublisherId { node: NodeId(0xab), index: 7 };
        let tag = private_tag(NodeId(1), 3, publisher).unwrap();
        assert_eq!(tag.as_str(), "@pull/0000000000000001/3/00000000000000ab/7");
        assert!(tag.is_private());
        assert_eq!(publisher_of(&tag), Some(publisher));
        assert!(private_pattern(NodeId(1), 3).unwrap().matches(&tag));
        assert!(!private_pattern(NodeId(1), 4).unwrap().matches(&tag));
        assert!(!private_pattern(NodeId(2), 3).unwrap().matches(&tag));
        assert!(!Pattern::new("**").unwrap().matches(&tag));
        for other in
            ["robot/camera", "@pull/1/2", "@pull/1/2/ab/7", "@pull/1/2/00000000000000ab/7/8"]
        {
            assert_eq!(publisher_of(&Tag::new(other).unwrap()), None, "{other}");
        }
    }
}
