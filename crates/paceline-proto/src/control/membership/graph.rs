//! The graph of the nodes, and the shortest-path tree that every node computes identically.

use super::registry::{Record, Registry};
use crate::control::data::ids::HOPS_MAX;
use crate::control::data::spec::HopInfo;
use crate::control::data::split::Split;
use crate::ids::NodeId;
use std::collections::BTreeMap;

/// Returns true if a node relays between its neighbours before and after it on a path, given the hop to it and the one from
/// it, each with its opposite hop. A leaf relays only for the processes of its own host.
pub(in crate::control) const fn relays(
    [to, to_back]: [&HopInfo; 2],
    [on, on_back]: [&HopInfo; 2],
) -> bool {
    to_back.own || (!to.leaf || on.own) && !on_back.leaf
}

/// The shortest paths from one node.
///
/// Of equally short paths, the one with the widest bottleneck link is chosen (widest-shortest path, RFC
/// 2676), and of these the one over smaller ids. No path leads through a node that the node before or after it
/// calls a leaf ([`HopInfo::leaf`](crate::control::data::spec::HopInfo::leaf)). Every node computes the same tree from the same registry.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: NodeId,
    /// Each reached node with its predecessor; the root's predecessor is the root.
    before: BTreeMap<NodeId, NodeId>,
    /// The reached nodes by distance, starting with the root.
    outward: Vec<NodeId>,
}

impl Tree {
    pub(crate) fn new(registry: &Registry, root: NodeId) -> Self {
        Self::avoiding(registry, root, |_, _| false)
    }

    /// Returns the shortest paths from `root` without the hops that `avoids` names by their two nodes.
    pub(crate) fn avoiding(
        registry: &Registry,
        root: NodeId,
        avoids: impl Fn(NodeId, NodeId) -> bool,
    ) -> Self {
        let mut before = BTreeMap::from([(root, root)]);
        let mut outward = vec![root];
        let hop_of = |from: NodeId, to: NodeId| registry.record(from)?.neighbours.get(&to);
        // The nodes at the current distance, each with the capacity of the bottleneck on its path.
        let mut reached = BTreeMap::from([(root, u64::MAX)]);
        while !reached.is_empty() {
            let mut further: BTreeMap<NodeId, ((bool, u64), NodeId)> = BTreeMap::new();
            for (&node, &width) in &reached {
                let hops = registry.record(node).map(|record| &record.neighbours);
                let before_it = before.get(&node).filter(|before| **before != node);
                let to_it =
                    before_it.and_then(|from| Some([hop_of(*from, node)?, hop_of(node, *from)?]));
                for (&next, hop) in hops.into_iter().flatten() {
                    let leads_on =
                        |back: &&HopInfo| to_it.is_none_or(|to_it| relays(to_it, [hop, back]));
                    let back = hop_of(next, node).filter(leads_on);
                    let is_open = back.is_some() && !avoids(node, next);
                    if before.contains_key(&next) || !is_open {
                        continue;
                    }
                    let width = hop.capacity.map_or(width, |c| width.min(c.bits_per_s()));
                    let path = (!hop.leaf, width);
                    let best = further.entry(next).or_insert((path, node));
                    if path > best.0 {
                        *best = (path, node);
                    }
                }
            }
            outward.extend(further.keys());
            before.extend(further.iter().map(|(&next, &(_, node))| (next, node)));
            reached = further.into_iter().map(|(next, ((_, width), _))| (next, width)).collect();
        }
        Self { root, before, outward }
    }

    pub(crate) fn reaches(&self, node: NodeId) -> bool {
        self.before.contains_key(&node)
    }

    /// Returns the node before a reached one on its path; `None` for the root.
    pub(crate) fn before(&self, node: NodeId) -> Option<NodeId> {
        self.before.get(&node).copied().filter(|_| node != self.root)
    }

    /// Returns the records of the reached nodes, in order.
    pub(crate) fn records<'a>(
        &'a self,
        registry: &'a Registry,
    ) -> impl Iterator<Item = (NodeId, &'a Record)> + 'a {
        registry.all().filter(|&(node, _)| self.reaches(node))
    }

    /// Returns the records of the reached nodes by distance, starting with the root's.
    pub(crate) fn records_outward<'a>(
        &'a self,
        registry: &'a Registry,
    ) -> impl Iterator<Item = (NodeId, &'a Record)> + 'a {
        self.outward.iter().filter_map(|&node| Some((node, registry.record(node)?)))
    }

    /// Returns the nodes from the root to `to`, inclusive; `None` if there is no path of at most [`HOPS_MAX`]
    /// hops.
    pub(crate) fn path(&self, to: NodeId) -> Option<Vec<NodeId>> {
        let mut path = vec![to];
        let mut node = to;
        while node != self.root {
            node = *self.before.get(&node)?;
            path.push(node);
            if path.len() > HOPS_MAX + 1 {
                return None;
            }
        }
        path.reverse();
        Some(path)
    }

    /// Returns the root's neighbour on the path to `to`; `None` also for the root itself.
    pub(crate) fn next_hop(&self, to: NodeId) -> Option<NodeId> {
        self.path(to)?.get(1).copied()
    }
}

/// Returns true if both ends of each hop of `path` announce it.
pub(in crate::control) fn is_whole(registry: &Registry, path: &[NodeId]) -> bool {
    let leads = |from: NodeId, to: NodeId| {
        registry.record(from).is_some_and(|record| record.neighbours.contains_key(&to))
    };
    let mut hops = path.iter().copied().zip(path.iter().skip(1).copied());
    hops.all(|(from, to)| leads(from, to) && leads(to, from))
}

impl Split {
    /// Creates the split of `path` from the capacities in the registry.
    pub(crate) fn of(registry: &Registry, path: &[NodeId]) -> Self {
        let has_capacity = |(from, to): (&NodeId, &NodeId)| {
            let hop = registry.record(*from).and_then(|record| record.neighbours.get(to));
            hop.is_some_and(|hop| hop.capacity.is_some())
        };
        Self::new(path.iter().zip(path.iter().skip(1)).map(has_capacity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sched::{Capacity, Instant};

    /// Returns a registry in which each node lists the given neighbours.
    fn registry(lists: &[(u64, &[u64])]) -> Registry {
        let mut registry = Registry::new(NodeId(0), String::new());
        for (node, neighbours) in lists {
            let hop = HopInfo::new(String::new(), None);
            let neighbours = neighbours.iter().map(|&to| (NodeId(to), hop.clone())).collect();
            let record = Record { version: 2, neighbours, ..Record::default() };
            let node = NodeId(*node);
            registry.replace(Instant::ZERO, (node, node), (record, 9)).unwrap();
        }
        registry
    }

    fn path(tree: &Tree, to: u64) -> Option<Vec<u64>> {
        Some(tree.path(NodeId(to))?.into_iter().map(|node| node.0).collect())
    }

    #[test]
    fn an_edge_listed_by_one_end_only_is_ignored() {
        let registry = registry(&[(0, &[1, 2]), (1, &[0]), (2, &[]), (3, &[0])]);
        let tree = Tree::new(&registry, NodeId(0));
        assert!(tree.reaches(NodeId(1)));
        assert!(!tree.reaches(NodeId(2)));
        assert!(!tree.reaches(NodeId(3)));
        assert_eq!(path(&tree, 2), None);
    }

    #[test]
    fn among_equal_paths_the_widest_bottleneck_wins() {
        let wide = |bits| Some(Capacity::from_bits_per_s(bits).unwrap());
        let mut registry = Registry::new(NodeId(0), String::new());
        // The bottleneck of 0 - 1 - 3 is 10 kbit/s, that of 0 - 2 - 3 is 20 kbit/s; 3 - 4 limits both.
        let lists = [
            (0, vec![(1, None), (2, wide(20_000))]),
            (1, vec![(0, None), (3, wide(10_000))]),
            (2, vec![(0, wide(20_000)), (3, wide(30_000))]),
            (3, vec![(1, wide(10_000)), (2, wide(30_000)), (4, wide(5_000))]),
            (4, vec![(3, wide(5_000))]),
        ];
        for (node, neighbours) in lists {
            let hop = |capacity| HopInfo::new(String::new(), capacity);
            let neighbours = neighbours.into_iter().map(|(to, c)| (NodeId(to), hop(c))).collect();
            let record = Record { version: 2, neighbours, ..Record::default() };
            let node = NodeId(node);
            registry.replace(Instant::ZERO, (node, node), (record, 9)).unwrap();
        }
        let tree = Tree::new(&registry, NodeId(0));
        assert_eq!(path(&tree, 4), Some(vec![0, 2, 3, 4]));
        assert_eq!(path(&tree, 1), Some(vec![0, 1]));
    }

    #[test]
    fn no_path_leads_through_a_leaf() {
        // 0 - 1 - 3 is short, and 1 is a leaf of 0, of 3 or of both; 0 - 2 - 4 - 3 is the other path.
        let lists: [(u64, &[u64]); 5] =
            [(0, &[1, 2]), (1, &[0, 3]), (2, &[0, 4]), (4, &[2, 3]), (3, &[1, 4])];
        for of in [vec![], vec![0], vec![3], vec![0, 3]] {
            let mut registry = Registry::new(NodeId(0), String::new());
            for (node, neighbours) in lists {
                let leaf = |to| to == 1 && of.contains(&node);
                let hop = |&to| {
                    let plain = HopInfo::new(String::new(), None);
                    (NodeId(to), HopInfo { leaf: leaf(to), ..plain })
                };
                let neighbours = neighbours.iter().map(hop).collect();
                let record = Record { version: 2, neighbours, ..Record::default() };
                let node = NodeId(node);
                registry.replace(Instant::ZERO, (node, node), (record, 9)).unwrap();
            }
            let tree = Tree::new(&registry, NodeId(0));
            let expected = if of.is_empty() { vec![0, 1, 3] } else { vec![0, 2, 4, 3] };
            assert_eq!(path(&tree, 3), Some(expected), "a leaf of {of:?}");
            assert_eq!(path(&tree, 1), Some(vec![0, 1]));
            // Its own paths begin at the leaf.
            assert_eq!(path(&Tree::new(&registry, NodeId(1)), 3), Some(vec![1, 3]));
        }
    }

    #[test]
    fn paths_lead_through_a_leaf_to_and_from_the_processes_of_its_host() {
        // 1 is a leaf of 0, 2 a process of the host of 1, and 3 another neighbour of 1.
        let mut registry = Registry::new(NodeId(0), String::new());
        let lists: [(u64, &[u64]); 4] = [(0, &[1]), (1, &[0, 2, 3]), (2, &[1]), (3, &[1])];
        for (node, neighbours) in lists {
            let hop = |&to: &u64| {
                let plain = HopInfo::new(String::new(), None);
                let (leaf, own) = ((node, to) == (0, 1), (node, to) == (1, 2));
                (NodeId(to), HopInfo { leaf, own, ..plain })
            };
            let neighbours = neighbours.iter().map(hop).collect();
            let record = Record { version: 2, neighbours, ..Record::default() };
            let node = NodeId(node);
            registry.replace(Instant::ZERO, (node, node), (record, 9)).unwrap();
        }
        let from = |node| Tree::new(&registry, NodeId(node));
        assert_eq!(path(&from(0), 2), Some(vec![0, 1, 2]));
        assert_eq!(path(&from(2), 0), Some(vec![2, 1, 0]));
        assert_eq!((path(&from(0), 3), path(&from(3), 0)), (None, None));
        assert_eq!(path(&from(3), 2), Some(vec![3, 1, 2]));
    }

    #[test]
    fn among_equal_paths_the_smaller_ids_win() {
        let registry =
            registry(&[(0, &[5, 3]), (3, &[0, 9]), (5, &[0, 9]), (9, &[3, 5, 1]), (1, &[9])]);
        let tree = Tree::new(&registry, NodeId(0));
        assert_eq!(path(&tree, 9), Some(vec![0, 3, 9]));
        assert_eq!(tree.next_hop(NodeId(1)), Some(NodeId(3)));
        assert_eq!(tree.next_hop(NodeId(0)), None);
        // The return path follows a tree of its own.
        assert_eq!(path(&Tree::new(&registry, NodeId(1)), 0), Some(vec![1, 9, 3, 0]));
    }
}
