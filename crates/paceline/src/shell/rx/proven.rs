//! The nodes that have proven their ids by a certificate.
//!
//! On other links a node id is only a claim. Frames that claim a proven id there are forged.

use paceline_proto::NodeId;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// The most remembered nodes. A node has a new id after each start.
const NODES_MAX: usize = 65_536;

/// The proven ids, shared by all links of a node.
#[derive(Debug, Default)]
pub(super) struct Proven {
    any: AtomicBool,
    nodes: RwLock<BTreeSet<NodeId>>,
}

impl Proven {
    /// Adds a node whose certificate was checked.
    pub(super) fn add(&self, node: NodeId) {
        let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        if nodes.len() < NODES_MAX {
            nodes.insert(node);
        }
        self.any.store(true, Ordering::Release);
    }

    /// Returns true if the node has proven its id. Costs one load as long as there is none.
    pub(super) fn contains(&self, node: NodeId) -> bool {
        self.any.load(Ordering::Acquire)
            && self.nodes.read().unwrap_or_else(PoisonError::into_inner).contains(&node)
    }
}
