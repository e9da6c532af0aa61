//! The two paths of least total length without a common link.
//!
//! Suurballe & Tarjan (1984), Bhandari (1999): a flow of two units, each unit on the shortest path that may also take back
//! hops of the one before. A link of a node is a vertex that only one unit may pass, whatever neighbours it leads to. For
//! paths without a common relay, a relay is such a vertex instead.

use crate::control::data::ids::HOPS_MAX;
use crate::control::membership::graph::relays;
use crate::control::membership::registry::Registry;
use crate::ids::NodeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Returns true if two paths may share a hop: the hop between two processes of a host fails with its host.
pub(in crate::control) fn may_share(registry: &Registry, from: NodeId, to: NodeId) -> bool {
    registry.claims(from, to) && registry.claims(to, from)
}

/// The ends of two paths, and their common requirements.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct Ends {
    pub(in crate::control) from: NodeId,
    pub(in crate::control) to: NodeId,
    /// True if all hops must be encrypted.
    pub(in crate::control) encrypted: bool,
    /// True if the paths may not have a relay in common.
    pub(in crate::control) apart: bool,
}

/// Returns the two paths of least total length without a common link, the shorter one first. Hops between processes of a
/// host may be on both.
///
/// Returns `None` if there are none. Also returns `None` if one of these two has more than [`HOPS_MAX`] hops or leads through
/// a node that does not relay: a longer pair without that fault may exist, but is not searched, because finding the shortest
/// two disjoint paths of a bounded length is NP-hard (Itai, Perl & Shiloach 1982).
pub(in crate::control) fn shortest_pair(
    registry: &Registry,
    ends: Ends,
) -> Option<[Vec<NodeId>; 2]> {
    if ends.from == ends.to {
        return None;
    }
    let mut flow = Flow::new(registry, ends);
    for _ in 0..2 {
        flow.augment()?;
    }
    // The first path is the shortest one of those that the flow contains.
    let paths = [flow.take_path()?, flow.take_path()?];
    let fits = |path: &Vec<NodeId>| path.len() <= HOPS_MAX + 1 && is_relayed(registry, path);
    paths.iter().all(fits).then_some(paths)
}

/// Returns true if every node of a path relays between its neighbours there.
fn is_relayed(registry: &Registry, path: &[NodeId]) -> bool {
    let hop = |from: NodeId, to: NodeId| registry.record(from)?.neighbours.get(&to);
    let both = |from, to| Some([hop(from, to)?, hop(to, from)?]);
    path.windows(3).all(|nodes| {
        let &[before, node, next] = nodes else { return true };
        both(before, node).zip(both(node, next)).is_some_and(|(to, on)| relays(to, on))
    })
}

/// A vertex of the flow.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Vertex<'r> {
    /// A node that any number of units may pass.
    Node(NodeId),
    /// The entry of a node or of a link of a node that one unit may pass.
    Enter(NodeId, &'r str),
    /// The exit of such a node or link.
    Leave(NodeId, &'r str),
}

/// An arc of the flow; the next or previous one with the same number but for the lowest bit is its reverse.
#[derive(Clone, Copy, Debug)]
struct Arc {
    to: usize,
    /// The number of hops, negative for the reverse of a hop.
    hops: i64,
    /// The units that it can still carry.
    left: u32,
}

/// The nodes as vertices, and the units that flow so far.
struct Flow<'r> {
    ends: Ends,
    /// The hosts and processes of both ends, which both paths may pass: near the first node, and near the last one.
    near: [BTreeSet<NodeId>; 2],
    numbers: BTreeMap<Vertex<'r>, usize>,
    vertices: Vec<Vertex<'r>>,
    /// The arcs of each vertex.
    leaving: Vec<Vec<usize>>,
    arcs: Vec<Arc>,
}

impl<'r> Flow<'r> {
    fn new(registry: &'r Registry, ends: Ends) -> Self {
        let near = [ends.from, ends.to].map(|end| near(registry, end));
        let (numbers, vertices, leaving, arcs) = Default::default();
        let mut flow = Self { ends, near, numbers, vertices, leaving, arcs };
        for (node, record) in registry.all() {
            for (&next, hop) in &record.neighbours {
                let back = registry.record(next).and_then(|next| next.neighbours.get(&node));
                let Some(back) = back.filter(|_| hop.encrypted || !ends.encrypted) else {
                    continue;
                };
                // A leaf carries streams of the processes of its own host.
                let [first, last] = &flow.near;
                if hop.leaf && !last.contains(&next) || back.leaf && !first.contains(&node) {
                    continue;
                }
                let (from, to) = match may_share(registry, node, next) {
                    true => (flow.leave(node, None), flow.enter(next, None)),
                    false => {
                        let (out, into) = (&hop.link_name, &back.link_name);
                        (flow.leave(node, Some(out)), flow.enter(next, Some(into)))
                    }
                };
                flow.connect((from, to), 1, 2);
            }
        }
        flow
    }

    /// Returns true if only one path may pass a node.
    fn is_narrow(&self, node: NodeId) -> bool {
        self.ends.apart && !self.near.iter().any(|near| near.contains(&node))
    }

    /// Returns the vertex at which units enter `node` over one of its links, or over a hop that both may take.
    fn enter(&mut self, node: NodeId, link: Option<&'r str>) -> usize {
        match link {
            Some(link) => self.pass(node, link).0,
            None if self.is_narrow(node) => self.pass(node, "").0,
            None => self.number(Vertex::Node(node)),
        }
    }

    /// Returns the vertex at which units leave `node` over one of its links, or over a hop that both may take.
    fn leave(&mut self, node: NodeId, link: Option<&'r str>) -> usize {
        match link {
            Some(link) => self.pass(node, link).1,
            None if self.is_narrow(node) => self.pass(node, "").1,
            None => self.number(Vertex::Node(node)),
        }
    }

    /// Returns the two vertices that stand for a link of a node, or for a whole node that only one path may pass.
    fn pass(&mut self, node: NodeId, link: &'r str) -> (usize, usize) {
        let is_narrow = self.is_narrow(node);
        let link = if is_narrow { "" } else { link };
        let (enter, leave) = (Vertex::Enter(node, link), Vertex::Leave(node, link));
        if let (Some(&enter), Some(&leave)) = (self.numbers.get(&enter), self.numbers.get(&leave)) {
            return (enter, leave);
        }
        let (enter, leave) = (self.number(enter), self.number(leave));
        self.connect((enter, leave), 0, 1);
        if !is_narrow {
            let whole = self.number(Vertex::Node(node));
            self.connect((whole, enter), 0, 1);
            self.connect((leave, whole), 0, 1);
        }
        (enter, leave)
    }

    fn number(&mut self, vertex: Vertex<'r>) -> usize {
        let next = self.vertices.len();
        let number = *self.numbers.entry(vertex).or_insert(next);
        if number == next {
            self.vertices.push(vertex);
            self.leaving.push(Vec::new());
        }
        number
    }

    fn connect(&mut self, (from, to): (usize, usize), hops: i64, left: u32) {
        for (from, to, hops, left) in [(from, to, hops, left), (to, from, -hops, 0)] {
            if let Some(leaving) = self.leaving.get_mut(from) {
                leaving.push(self.arcs.len());
            }
            self.arcs.push(Arc { to, hops, left });
        }
    }

    fn number_of(&self, node: NodeId) -> Option<usize> {
        self.numbers.get(&Vertex::Node(node)).copied()
    }

    /// Returns the arcs of the shortest path from the first to the last node over the arcs that are `open`.
    fn shortest(&self, open: impl Fn(usize, &Arc) -> bool) -> Option<Vec<usize>> {
        let (from, to) = (self.number_of(self.ends.from)?, self.number_of(self.ends.to)?);
        // Bellman–Ford with a queue: reversed hops have a negative length, but no cycle has one.
        let mut reached: Vec<Option<(i64, usize)>> = vec![None; self.vertices.len()];
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((vertex, hops)) = queue.pop_front() {
            let known = reached.get(vertex).copied().flatten();
            if known.is_some_and(|(known, _)| known < hops) {
                continue;
            }
            for &number in self.leaving.get(vertex)? {
                let arc = self.arcs.get(number)?;
                let all = hops + arc.hops;
                let entry = reached.get_mut(arc.to)?;
                let is_shorter = arc.to != from && entry.is_none_or(|(known, _)| all < known);
                if is_shorter && open(number, arc) {
                    *entry = Some((all, number));
                    queue.push_back((arc.to, all));
                }
            }
        }
        let (mut path, mut at) = (Vec::new(), to);
        while at != from {
            let (_, number) = (*reached.get(at)?)?;
            path.push(number);
            at = self.arcs.get(number ^ 1)?.to;
        }
        path.reverse();
        Some(path)
    }

    /// Adds a unit on the shortest path.
    fn augment(&mut self) -> Option<()> {
        let path = self.shortest(|_, arc| arc.left > 0)?;
        self.shift(&path)
    }

    /// Moves a unit from the arcs of `path` to their reverses.
    fn shift(&mut self, path: &[usize]) -> Option<()> {
        for number in path {
            self.arcs.get_mut(*number)?.left -= 1;
            self.arcs.get_mut(number ^ 1)?.left += 1;
        }
        Some(())
    }

    /// Removes the shortest unit and returns its nodes.
    fn take_path(&mut self) -> Option<Vec<NodeId>> {
        let carries = |number: usize, _: &Arc| {
            number & 1 == 0 && self.arcs.get(number | 1).is_some_and(|back| back.left > 0)
        };
        let arcs = self.shortest(carries)?;
        let reverse: Vec<usize> = arcs.iter().map(|number| number ^ 1).collect();
        self.shift(&reverse)?;
        let ends = arcs.iter().filter_map(|number| self.vertices.get(self.arcs.get(*number)?.to));
        let nodes = ends.map(|vertex| match *vertex {
            Vertex::Node(node) | Vertex::Enter(node, _) | Vertex::Leave(node, _) => node,
        });
        let mut path = vec![self.ends.from];
        path.extend(nodes);
        path.dedup();
        Some(path)
    }
}

/// Returns the processes of the host of `end`, and `end`.
pub(super) fn near(registry: &Registry, end: NodeId) -> BTreeSet<NodeId> {
    let (mut near, mut waiting) = (BTreeSet::from([end]), vec![end]);
    while let Some(node) = waiting.pop() {
        let hops = registry.record(node).into_iter().flat_map(|record| record.neighbours.keys());
        let shared = hops.filter(|next| may_share(registry, node, **next));
        waiting.extend(shared.copied().filter(|next| near.insert(*next)).collect::<Vec<_>>());
    }
    near
}

#[cfg(test)]
mod tests;
