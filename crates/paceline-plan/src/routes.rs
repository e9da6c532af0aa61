//! The paths of the network, by the rule of a node's own routing.
//!
//! A path has the fewest links. Of equally short paths it has the widest bottleneck (RFC 2676), and
//! of these it leads over nodes that are earlier in the list.

use crate::list::at;
use crate::problem::{PlanLink, PlanProblem};
use std::cell::OnceCell;

/// The number of links to a node without a path.
pub(crate) const UNREACHED: u32 = u32::MAX;

/// The bytes of a segment on the wire, as a Paceline link sends it.
pub(crate) const SEGMENT_BYTES: u64 = 1_090;

/// The shortest paths from one node.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// The links to each node.
    pub(crate) hops: Vec<u32>,
    /// The last link to each node.
    last: Vec<usize>,
    /// The sum of the delays of the links in nanoseconds.
    pub(crate) delay: Vec<u64>,
    /// The sum of the transmission times of a segment in nanoseconds.
    pub(crate) segment: Vec<u64>,
}

/// The shortest paths of a network. Trees are computed when they are first needed.
#[derive(Debug)]
pub(crate) struct Routes<'a> {
    links: &'a [PlanLink],
    out: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
    trees: Vec<OnceCell<Tree>>,
    back: Vec<OnceCell<Vec<u32>>>,
}

impl<'a> Routes<'a> {
    pub(crate) fn new(problem: &'a PlanProblem) -> Self {
        let count = problem.nodes.len();
        let (mut out, mut into) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for (index, link) in problem.links.iter().enumerate() {
            if let (Some(out), Some(into)) = (out.get_mut(link.from), into.get_mut(link.to)) {
                out.push(index);
                into.push(index);
            }
        }
        let trees = std::iter::repeat_with(OnceCell::new).take(count).collect();
        let back = std::iter::repeat_with(OnceCell::new).take(count).collect();
        Self { links: &problem.links, out, into, trees, back }
    }

    /// Returns the tree of paths from a node.
    pub(crate) fn tree(&self, from: usize) -> Option<&Tree> {
        Some(self.trees.get(from)?.get_or_init(|| self.grow(from)))
    }

    /// Returns the number of links from a node to another one.
    pub(crate) fn hops(&self, from: usize, to: usize) -> u32 {
        self.tree(from).and_then(|tree| tree.hops.get(to).copied()).unwrap_or(UNREACHED)
    }

    /// Returns the number of links from every node to this one.
    pub(crate) fn back(&self, to: usize) -> &[u32] {
        let hops = self.back.get(to).map(|cell| cell.get_or_init(|| self.shrink(to)));
        hops.map_or(&[], Vec::as_slice)
    }

    /// Calls `visit` with the links of a path, the last one first.
    pub(crate) fn walk(&self, from: usize, to: usize, mut visit: impl FnMut(usize)) {
        let Some(tree) = self.tree(from) else { return };
        let mut node = to;
        for _ in 0..at(&tree.hops, to) {
            if node == from || at(&tree.hops, node) == UNREACHED {
                return;
            }
            let last = at(&tree.last, node);
            visit(last);
            node = self.links.get(last).map_or(from, |link| link.from);
        }
    }

    /// Returns the nodes of a path.
    pub(crate) fn nodes(&self, from: usize, to: usize) -> Vec<usize> {
        let mut nodes = vec![to];
        self.walk(from, to, |link| nodes.extend(self.links.get(link).map(|link| link.from)));
        nodes.reverse();
        nodes
    }

    fn grow(&self, from: usize) -> Tree {
        let count = self.out.len();
        let mut tree = Tree {
            hops: vec![UNREACHED; count],
            last: vec![0; count],
            delay: vec![0; count],
            segment: vec![0; count],
        };
        let mut width = vec![0_u64; count];
        set(&mut tree.hops, from, 0);
        set(&mut width, from, u64::MAX);
        let mut layer = vec![from];
        for hops in 1.. {
            let mut next = Vec::new();
            for &node in &layer {
                for &index in self.out.get(node).into_iter().flatten() {
                    let Some(link) = self.links.get(index) else { continue };
                    let own = link.capacity.map_or(u64::MAX, |rate| rate.bits_per_s());
                    let wide = at(&width, node).min(own);
                    let known = tree.hops.get(link.to).copied();
                    let is_new = known == Some(UNREACHED);
                    if is_new {
                        next.push(link.to);
                    }
                    if is_new || known == Some(hops) && wide > at(&width, link.to) {
                        set(&mut tree.hops, link.to, hops);
                        set(&mut tree.last, link.to, index);
                        set(&mut width, link.to, wide);
                    }
                }
            }
            if next.is_empty() {
                return tree;
            }
            next.sort_unstable();
            next.iter().for_each(|&node| self.add_times(&mut tree, node));
            layer = next;
        }
        tree
    }

    fn add_times(&self, tree: &mut Tree, node: usize) {
        if let Some(link) = self.links.get(at(&tree.last, node)) {
            let delay = at(&tree.delay, link.from).saturating_add(link.delay.as_nanos());
            let segment = link.capacity.map_or(0, |rate| rate.time_for(SEGMENT_BYTES).as_nanos());
            let segment = at(&tree.segment, link.from).saturating_add(segment);
            set(&mut tree.delay, node, delay);
            set(&mut tree.segment, node, segment);
        }
    }

    fn shrink(&self, to: usize) -> Vec<u32> {
        let mut hops = vec![UNREACHED; self.into.len()];
        set(&mut hops, to, 0);
        let mut queue = std::collections::VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            let further = at(&hops, node).saturating_add(1);
            for &index in self.into.get(node).into_iter().flatten() {
                let Some(link) = self.links.get(index) else { continue };
                if hops.get(link.from) == Some(&UNREACHED) {
                    set(&mut hops, link.from, further);
                    queue.push_back(link.from);
                }
            }
        }
        hops
    }
}

fn set<T>(list: &mut [T], index: usize, value: T) {
    if let Some(place) = list.get_mut(index) {
        *place = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::PlanNode;
    use paceline_sched::Capacity;

    fn problem(links: &[(usize, usize, u64)]) -> PlanProblem {
        let mut problem = PlanProblem::default();
        problem.nodes = (0..6).map(|node| PlanNode::new(&node.to_string())).collect();
        for &(from, to, bits) in links {
            let mut link = PlanLink::new(from, to);
            link.capacity = Capacity::from_bits_per_s(bits).ok();
            problem.links.push(link);
        }
        problem
    }

    #[test]
    fn of_equal_paths_the_widest_and_then_the_first_is_taken() {
        let equal = problem(&[(0, 2, 9), (0, 1, 9), (2, 3, 9), (1, 3, 9)]);
        assert_eq!(Routes::new(&equal).nodes(0, 3), [0, 1, 3]);
        let wide = problem(&[(0, 1, 9), (0, 2, 9), (1, 3, 8), (2, 3, 9)]);
        let routes = Routes::new(&wide);
        assert_eq!(routes.nodes(0, 3), [0, 2, 3]);
        assert_eq!((routes.hops(0, 3), routes.hops(3, 0)), (2, UNREACHED));
        assert_eq!(routes.back(3), [2, 1, 1, 0, UNREACHED, UNREACHED]);
        assert_eq!(routes.nodes(4, 4), [4]);
    }
}
