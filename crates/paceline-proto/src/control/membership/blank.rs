//! Refusals without figures.

use super::registry::Registry;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{Offer, Refusal, RefusalReason};
use crate::ids::NodeId;
use core::num::NonZeroU64;

/// Returns the offer of the reason itself.
fn offered(reason: RefusalReason) -> Offer {
    let RefusalReason::Unthinnable { keys, .. } = reason else { return Offer::default() };
    Offer { max_millihertz: keys.map(NonZeroU64::get), ..Offer::default() }
}

/// Returns a refusal by `node` without figures.
pub(in crate::control) fn blank(
    (subscription, publisher): PairKey,
    node: NodeId,
    registry: &Registry,
    reason: RefusalReason,
) -> Refusal {
    let node_name = registry.record(node).map(|record| record.name.clone()).unwrap_or_default();
    Refusal {
        subscription,
        publisher,
        revision: 0,
        node,
        node_name,
        link: String::new(),
        class: String::new(),
        needed_bytes_per_s: 0,
        available_bytes_per_s: 0,
        reason,
        offer: offered(reason),
        spare: false,
    }
}
