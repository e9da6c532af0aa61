//! Second paths: a contract may have a spare, a reservation on a path without the links of the first one. Hops of a node
//! with the same link name share a link.
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

/// Returns the link of the hop between two nodes at both of its ends, each with its node and its name there.
fn link_ends(
    registry: &Registry,
    (from, to): (NodeId, NodeId),
) -> impl Iterator<Item = (NodeId, &str)> {
    [(from, to), (to, from)].into_iter().filter_map(|(node, next)| {
        Some((node, registry.record(node)?.neighbours.get(&next)?.link_name.as_str()))
    })
}

/// Returns true if the hop between two nodes crosses one of `links`, and may not be shared.
fn crosses(registry: &Registry, (a, b): (NodeId, NodeId), links: &[(NodeId, &str)]) -> bool {
    link_ends(registry, (a, b)).any(|end| links.contains(&end)) && !may_share(registry, a, b)
}

/// Returns the shortest path between the ends of `path` for a spare: without its inner nodes if there is one, else without
/// its links. With `encrypted`, all hops are encrypted.
pub(super) fn second_path(
    registry: &Registry,
    path: &[NodeId],
    encrypted: bool,
) -> Option<Vec<NodeId>> {
    let (&from, &to) = (path.first()?, path.last()?);
    let own: Vec<(NodeId, NodeId)> =
        hops(path).filter(|(a, b)| !may_share(registry, *a, *b)).collect();
    let links: Vec<(NodeId, &str)> = own.iter().flat_map(|hop| link_ends(registry, *hop)).collect();
    let is_plain = |a: NodeId, b: NodeId| {
        let hop = registry.record(a).and_then(|record| record.neighbours.get(&b));
        encrypted && hop.is_none_or(|hop| !hop.encrypted)
    };
    let is_used = |a, b| crosses(registry, (a, b), &links);
    // Between two hops that may not be shared, a node of the first path has no place on the second one.
    let inner: Vec<NodeId> = own.iter().skip(1).map(|(node, _)| *node).collect();
    let apart = Tree::avoiding(registry, from, |a, b| {
        is_plain(a, b) || is_used(a, b) || inner.contains(&b)
    });
    apart
        .path(to)
        .or_else(|| Tree::avoiding(registry, from, |a, b| is_plain(a, b) || is_used(a, b)).path(to))
}

/// Returns the first link of `path` that every path between its ends crosses, if there is one: its node and its name there.
pub(super) fn shared_link<'r>(
    registry: &'r Registry,
    path: &[NodeId],
) -> Option<(NodeId, &'r str)> {
    let (&from, &to) = (path.first()?, path.last()?);
    let own = hops(path).filter(|(a, b)| !may_share(registry, *a, *b));
    let is_shared = |link: &(NodeId, &str)| {
        let avoids = |a, b| crosses(registry, (a, b), &[*link]);
        Tree::avoiding(registry, from, avoids).path(to).is_none()
    };
    own.flat_map(|hop| link_ends(registry, hop)).find(is_shared)
}
