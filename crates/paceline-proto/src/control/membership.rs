//! The nodes of the network: their records, how these spread, the graph that they form, the rights of neighbours, and
//! questions to other nodes.

pub(super) mod access;
pub(super) mod allowance;
pub(super) mod ask;
pub(super) mod blank;
pub(super) mod claims;
pub(super) mod flood;
pub(super) mod graph;
pub(super) mod message;
pub(super) mod nodes;
pub(super) mod reach;
pub(super) mod records;
pub(super) mod registry;
mod unread;
pub(super) mod ways;

use super::data::spec::HopInfo;
use crate::ids::NodeId;
use registry::Registry;
use std::collections::BTreeMap;

/// The nodes that this one knows, and its neighbours.
#[derive(Debug)]
pub(super) struct Membership {
    pub(super) registry: Registry,
    pub(super) hops: BTreeMap<NodeId, HopInfo>,
    pub(super) flood: flood::State,
    pub(super) access: access::Access,
    pub(super) reach: reach::Reach,
    pub(super) questions: ask::State,
}

impl Membership {
    /// Creates the membership of node `me`, which knows no other node.
    pub(super) fn new(me: NodeId, name: String) -> Self {
        Self {
            registry: Registry::new(me, name),
            hops: BTreeMap::new(),
            flood: flood::State::default(),
            access: access::Access::default(),
            reach: reach::Reach::default(),
            questions: ask::State::default(),
        }
    }
}
