//! Shared media: links of one or several nodes that share one capacity, such as a radio channel or a ring.
//!
//! Each link of a medium has an *allotment*: the rate at which it may send. Its admission test and its pacer use the smaller of
//! the allotment and the link's own capacity. One node, the manager, keeps the ledger:
//!
//! Σ allotments + the rate kept for joining links ≤ capacity
//!
//! The manager is the reachable node with the lowest identity that has a link on the medium, so every node knows it without
//! a message. All state is part of the nodes' records ([`crate::control`]): each link announces its rate, the least rate that
//! its contracts need, and the rate that a waiting request needs (`Holding`); the manager announces the allotments. A link that needs no
//! more than its contracts shares the rest evenly with the others, for best effort and for new contracts.
//!
//! - A link sends at the least rate until it has an allotment, and keeps what it has until a manager changes it.
//! - The manager lowers some links first, and raises others once the lowered ones have announced their new rate.
//! - Each change of the members begins a new *term*. Nothing is raised until every link has announced its rate in this
//!   term, or after [`DETECTION`] without it. So a new manager gives nothing twice. Allotments of earlier terms are void.
//! - The rate of a link that is gone counts for [`DETECTION`], because its node may still send.
//! - A link that has lost all its neighbours sends at the least rate, and applies nothing that a manager has announced before.
//! - Two managers, each on one side of a partition, may together allot more than the capacity. When the partition heals, the one with the
//!   lower identity takes over the links of the other. Links then lose what their contracts do not need, and if that is not
//!   enough, contracts: the links with the lowest identities keep theirs.
//!
//! Papers: Christie 1995, section 2.3.2 (CBSRP over FDDI): the sum of the synchronous allocations of all stations is at most
//! the target token rotation time less the overhead, and a frame may wait for up to twice that time ([`Medium::access`]).

mod holder;
mod ledger;
#[cfg(test)]
mod tests;

pub(crate) use holder::Holder;
pub(crate) use ledger::Ledger;

use crate::ids::NodeId;
use core::fmt;
use paceline_sched::{Capacity, Duration};
use std::collections::BTreeMap;

/// The rate of a link without an allotment, as the fraction 1/`PARTS` of the capacity. No allotment is smaller.
const PARTS: u64 = 32;
/// The number of such parts that are kept for links that join.
const PARTS_TO_JOIN: u64 = 2;
/// The time after which a silent or lost link is no longer waited for.
///
/// A hop whose ends both send at 200 kbit/s or more is down after a silence of 1.8 s: a link that has lost all its neighbours
/// then sends at the least rate. On a slower hop it may notice later than this ([`crate::ProbeInterval`]), and still
/// send at a rate that others have got.
pub const DETECTION: Duration = Duration::from_secs(3);
/// The most links of one medium to which its manager gives rates. Others keep the least rate, which counts, and the contracts that
/// fit it; the manager gives the others less for it, but no less than their contracts need.
pub const MEDIUM_LINKS_MAX: usize = 30;
const _: () = assert!(MEDIUM_LINKS_MAX as u64 == PARTS - PARTS_TO_JOIN, "each has the least rate");

/// The medium of a link, as its node is configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Medium {
    /// The name, equal on all nodes.
    pub name: String,
    /// The capacity that all links of the medium share. If nodes differ, the smallest one counts.
    pub capacity: Capacity,
    /// The longest time for which a frame waits for the medium; each hop's delay bound contains it.
    ///
    /// On a token ring that is twice the target token rotation time. A sample in one frame then takes at most
    /// 2·TTRT, and one in several frames L + 2·TTRT, where L is the time that the link needs for all of them.
    pub access: Duration,
}

impl Medium {
    /// The lowest capacity, in bits per second.
    pub const CAPACITY_MIN: u64 = 64_000;
    /// The longest [access time](Self::access).
    pub const ACCESS_MAX: Duration = Duration::from_secs(1);

    /// Returns a medium on which no frame waits.
    #[must_use]
    pub fn new(name: &str, capacity: Capacity) -> Self {
        Self { name: name.to_owned(), capacity, access: Duration::ZERO }
    }
}

/// Returns the sum of the rates that all links of a medium may have, in bits per second.
pub(crate) const fn allottable(capacity: u64) -> u64 {
    capacity / PARTS * (PARTS - PARTS_TO_JOIN)
}

/// Returns the rate of a link without an allotment, in bits per second.
pub(crate) const fn least_rate(capacity: u64) -> u64 {
    capacity / PARTS
}

/// A link of a node: the node's number of it.
pub(crate) type LinkKey = (NodeId, u32);

/// The announcement of a link. Rates are in bits per second.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Holding {
    /// The manager that it follows, and the term in which it has announced that, or for which it waits.
    pub(crate) manager: NodeId,
    pub(crate) term: u64,
    /// The number of the last allotment of that manager that it has applied.
    pub(crate) seen: u64,
    /// The highest rate at which it sends.
    pub(crate) holds: u64,
    /// The least rate that its contracts need; 0 without any.
    pub(crate) need: u64,
    /// The least rate with which a waiting request would fit too; 0 if there is none.
    pub(crate) wants: u64,
    /// The highest rate that it can use: the capacity of the link itself.
    pub(crate) most: u64,
}

/// The rate that a manager gives to a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Allotment {
    /// Increases with each allotment of the manager.
    pub(crate) number: u64,
    /// The rate in bits per second.
    pub(crate) bits: u64,
    /// True if the link must follow although its contracts need more.
    pub(crate) forced: bool,
}

/// The announcement of a manager.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Allotments {
    pub(crate) term: u64,
    pub(crate) links: BTreeMap<LinkKey, Allotment>,
}

/// The entry of a link in the record of its node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct MediumLink {
    /// The configured medium.
    pub(crate) medium: Medium,
    /// The name of the link.
    pub(crate) link: String,
    pub(crate) holding: Holding,
    /// The allotments, in the entry of the manager's first link.
    pub(crate) allotments: Option<Allotments>,
}

impl MediumLink {
    /// Returns about the memory that the entry uses.
    pub(crate) fn held_bytes(&self) -> usize {
        let links = self.allotments.as_ref().map_or(0, |it| it.links.len());
        let texts = self.medium.name.len() + self.link.len();
        2 * size_of::<Self>() + texts + links * 2 * size_of::<(LinkKey, Allotment)>()
    }
}

/// A medium, as a node knows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MediumView {
    /// The name.
    pub name: String,
    /// The capacity that counts, in bits per second: the smallest one that a node has configured.
    pub capacity: u64,
    /// The sum of the rates that all links may have, in bits per second: the capacity without the part for joining links.
    pub allottable: u64,
    /// The sum of the rates that all links have, in bits per second.
    pub allotted: u64,
    /// The sum of the least rates that the contracts of all links need, in bits per second.
    pub reserved: u64,
    /// The number of links.
    pub links: usize,
    /// The manager.
    pub manager: NodeId,
    /// The first node that has configured another capacity than this one, with that capacity in bits per second.
    pub differs: Option<(NodeId, u64)>,
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "medium '{}' of {}", self.name, self.capacity)
    }
}
