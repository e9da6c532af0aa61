//! Second paths: a contract may have a spare, a reservation on a path without the links of the first one.
//!
//! The publisher's node reserves both paths or neither, and marks the reservation that carries the samples
//! ([`Mark::Carried`](super::registry::Mark::Carried)). The nodes of the other path reserve their links and install nothing.
//! When the first path fails, the publisher's node moves the mark and sends on the second path at once. The mark is flooded
//! while the first samples travel; a node that receives them earlier buffers them.

use super::graph::Tree;
use super::registry::Registry;
use crate::ids::NodeId;

/// Returns true if a path may share a hop with another one: the hop between two processes of a host fails with its host.
fn may_share(registry: &Registry, from: NodeId, to: NodeId) -> bool {
    registry.claims(from, to) && registry.claims(to, from)
}

fn hops(path: &[NodeId]) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
    path.iter().copied().zip(path.iter().skip(1).copied())
}

/// Returns true if both ends of each hop of `path` announce it.
pub(super) fn is_whole(registry: &Registry, path: &[NodeId]) -> bool {
    let leads = |from: NodeId, to: NodeId| {
        registry.record(from).is_some_and(|record| record.neighbours.contains_key(&to))
    };
    hops(path).all(|(from, to)| leads(from, to) && leads(to, from))
}

/// Returns the shortest path between the ends of `path` for a spare: without its inner nodes if there is one, else without
/// its hops. With `encrypted`, all hops are encrypted.
pub(super) fn second_path(
    registry: &Registry,
    path: &[NodeId],
    encrypted: bool,
) -> Option<Vec<NodeId>> {
    let (&from, &to) = (path.first()?, path.last()?);
    let own: Vec<(NodeId, NodeId)> =
        hops(path).filter(|(a, b)| !may_share(registry, *a, *b)).collect();
    let is_plain = |a: NodeId, b: NodeId| {
        let hop = registry.record(a).and_then(|record| record.neighbours.get(&b));
        encrypted && hop.is_none_or(|hop| !hop.encrypted)
    };
    let is_used = |a, b| own.contains(&(a, b)) || own.contains(&(b, a));
    // Between two hops that may not be shared, a node of the first path has no place on the second one.
    let inner: Vec<NodeId> = own.iter().skip(1).map(|(node, _)| *node).collect();
    let apart = Tree::avoiding(registry, from, |a, b| {
        is_plain(a, b) || is_used(a, b) || inner.contains(&b)
    });
    apart
        .path(to)
        .or_else(|| Tree::avoiding(registry, from, |a, b| is_plain(a, b) || is_used(a, b)).path(to))
}

/// Returns the first hop of `path` that every path between its ends has in common, if there is one.
pub(super) fn shared_hop(registry: &Registry, path: &[NodeId]) -> Option<(NodeId, NodeId)> {
    let (&from, &to) = (path.first()?, path.last()?);
    let is_bridge = |&(a, b): &(NodeId, NodeId)| {
        let avoids = |x, y| (x, y) == (a, b) || (x, y) == (b, a);
        !may_share(registry, a, b) && Tree::avoiding(registry, from, avoids).path(to).is_none()
    };
    hops(path).find(is_bridge)
}
