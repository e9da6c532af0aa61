//! The requests in the address of a player, and the answers for those that are not served.

use crate::feeds::{FeedFault, FeedFaultKind, FeedWish};
use paceline_edge::{PlayerAnswer, PlayerStatus, PlayerTarget};

/// Returns the tags of an address with the options for each.
pub(super) fn wishes(target: &PlayerTarget) -> Vec<FeedWish> {
    let own = (target.tag.clone(), target.query.clone());
    let all = std::iter::once(own).chain(target.sound.clone());
    all.map(|(tag, query)| FeedWish { tag, query }).collect()
}

/// Returns the answer for a request that is not served. Players show the beginning only, so the address that a path would grant
/// comes first.
pub(super) fn refusal(fault: &FeedFault, target: &PlayerTarget) -> PlayerAnswer {
    let status = match fault.kind {
        FeedFaultKind::Request => PlayerStatus::ParameterNotUnderstood,
        FeedFaultKind::Missing => PlayerStatus::NotFound,
        FeedFaultKind::Format => PlayerStatus::UnsupportedMediaType,
        FeedFaultKind::Refused => PlayerStatus::NotEnoughBandwidth,
        FeedFaultKind::Unavailable => PlayerStatus::ServiceUnavailable,
    };
    let why = &fault.why;
    match fault.offers.first() {
        Some(flags) => {
            PlayerAnswer::refusal(status, &format!("try {} ({why})", target.with_flags(flags)))
        }
        None => PlayerAnswer::refusal(status, why),
    }
}
