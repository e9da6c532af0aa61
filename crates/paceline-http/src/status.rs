//! The document of `paceline ls --json`, which the API returns too: the status of nodes, described in
//! docs/reference/json.md.
//!
//! ```
//! use paceline::Node;
//! use paceline_http::status::StatusDocument;
//! use std::time::Duration;
//!
//! let node = Node::builder().isolated().open()?;
//! let camera = node.publisher("robot/camera").declare()?;
//! let document = StatusDocument::read(&node, Duration::from_millis(100));
//! assert_eq!(document.nodes[0].publishers[0].tag.as_str(), "robot/camera");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use paceline::Node;
use paceline::status::{NodeStatus, explain};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The version of the document; from the first release on, it increases when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// The status of several nodes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StatusDocument {
    schema: u32,
    /// Nodes, sorted by name, then by id.
    pub nodes: Vec<NodeStatus>,
}

impl StatusDocument {
    /// Creates the document from the answers of nodes. Together they show the link on which samples of a subscription were lost.
    #[must_use]
    pub fn new(mut nodes: Vec<NodeStatus>) -> Self {
        nodes.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        explain(&mut nodes);
        Self { schema: SCHEMA, nodes }
    }

    /// Reads the status of every reachable node, and waits at most `timeout` for an answer. The node itself is omitted unless it
    /// is in use.
    #[must_use]
    pub fn read(node: &Node, timeout: Duration) -> Self {
        Self::without_unused(node, node.status(timeout))
    }

    /// Reads like [`Self::read`], but only the nodes that are reachable without a link of limited capacity.
    #[must_use]
    pub fn read_near(node: &Node, timeout: Duration) -> Self {
        Self::without_unused(node, node.status_of(&node.near(), timeout))
    }

    fn without_unused(node: &Node, mut nodes: Vec<NodeStatus>) -> Self {
        nodes.retain(|found| found.id != node.id() || is_used(found));
        for link in nodes.iter_mut().flat_map(|found| &mut found.links) {
            link.hops.retain(|hop| *hop != node.id());
            link.neighbours.retain(|neighbour| neighbour.id != node.id());
        }
        Self::new(nodes)
    }
}

fn is_used(node: &NodeStatus) -> bool {
    let has_streams = node.links.iter().any(|link| !link.streams.is_empty());
    let is_idle =
        node.publishers.is_empty() && node.subscriptions.is_empty() && node.buffers.is_empty();
    has_streams || !is_idle
}

#[cfg(test)]
pub(crate) mod tests;
