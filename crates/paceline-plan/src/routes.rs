//! The paths of the network, by the rule of a node's own routing.
//!
//! A path has the fewest links. Of equally short paths it has the widest bottleneck (RFC 2676), and
//! of these it leads over nodes that are earlier in the list.

use crate::list::at;
use crate::problem::{DelayModel, PlanLink, PlanProblem};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// The number of links to a node without a path.
pub(crate) const UNREACHED: u32 = u32::MAX;

/// The bytes of a segment on the wire, as a Paceline link sends it.
pub(crate) const SEGMENT_BYTES: u64 = 1_090;

/// The most nodes of all trees that are kept.
const KEPT_MAX: usize = 8_000_000;

/// The path to a node.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// The number of links, or [`UNREACHED`].
    hops: u32,
    /// The index of the last link.
    last: u32,
    /// The capacity of the narrowest link.
    width: u64,
}

const NOWHERE: Reached = Reached { hops: UNREACHED, last: 0, width: 0 };

/// The shortest paths from one node.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    reached: Vec<Reached>,
    /// The sums of the delays of the links, and of the transmission times of a segment, in
    /// nanoseconds. Empty unless the delay model uses them.
    times: Vec<(u64, u64)>,
}

impl Tree {
    /// Returns the number of links to a node.
    pub(crate) fn hops(&self, to: usize) -> u32 {
        self.reached.get(to).map_or(UNREACHED, |reached| reached.hops)
    }

    /// Returns the number of links to each node.
    pub(crate) fn all_hops(&self) -> impl Iterator<Item = u32> {
        self.reached.iter().map(|reached| reached.hops)
    }

    /// Returns the delay of the links to a node, and of the transmissions of a segment.
    pub(crate) fn times(&self, to: usize) -> (u64, u64) {
        at(&self.times, to)
    }
}

/// A link from a node.
#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    link: u32,
    width: u64,
}

/// The shortest paths of a network. Trees are computed when they are needed, and kept while there
/// is space.
#[derive(Debug)]
pub(crate) struct Routes<'a> {
    links: &'a [PlanLink],
    has_times: bool,
    /// The links from all nodes, and the place of each node's first one.
    out: (Vec<Edge>, Vec<usize>),
    into: Vec<Vec<usize>>,
    trees: RefCell<(Vec<Option<Rc<Tree>>>, usize)>,
    back: Vec<OnceCell<Vec<u32>>>,
}

impl<'a> Routes<'a> {
    pub(crate) fn new(problem: &'a PlanProblem) -> Self {
        let count = problem.nodes.len();
        let (mut edges, mut into) =
            (Vec::with_capacity(problem.links.len()), vec![Vec::new(); count]);
        let mut order: Vec<usize> = (0..problem.links.len()).collect();
        order.sort_by_key(|&link| problem.links.get(link).map(|link| link.from));
        let mut firsts = vec![0; count + 1];
        for index in order {
            let Some(link) = problem.links.get(index) else { continue };
            let width = link.capacity.map_or(u64::MAX, |rate| rate.bits_per_s());
            let small = |index: usize| u32::try_from(index).unwrap_or(0);
            edges.push(Edge { to: small(link.to), link: small(index), width });
            set(&mut firsts, link.from + 1, edges.len());
            if let Some(into) = into.get_mut(link.to) {
                into.push(link.from);
            }
        }
        // Nodes without links begin where the node before them ends.
        let mut end = 0;
        for first in &mut firsts {
            end = end.max(*first);
            *first = end;
        }
        let back = std::iter::repeat_with(OnceCell::new).take(count).collect();
        let trees = RefCell::new((vec![None; count], 0));
        let has_times = problem.delays != DelayModel::Periods;
        Self { links: &problem.links, has_times, out: (edges, firsts), into, trees, back }
    }

    /// Returns the tree of paths from a node.
    pub(crate) fn tree(&self, from: usize) -> Rc<Tree> {
        let mut trees = self.trees.borrow_mut();
        if let Some(Some(tree)) = trees.0.get(from) {
            return Rc::clone(tree);
        }
        let tree = Rc::new(self.grow(from));
        if (trees.1 + 1).saturating_mul(self.into.len()) > KEPT_MAX {
            trees.0.iter_mut().for_each(|tree| *tree = None);
            trees.1 = 0;
        }
        if let Some(place) = trees.0.get_mut(from) {
            *place = Some(Rc::clone(&tree));
            trees.1 += 1;
        }
        tree
    }

    /// Returns the number of links from every node to this one.
    pub(crate) fn back(&self, to: usize) -> &[u32] {
        let hops = self.back.get(to).map(|cell| cell.get_or_init(|| self.shrink(to)));
        hops.map_or(&[], Vec::as_slice)
    }

    /// Returns the last link of the path to a node, and the node before it.
    pub(crate) fn up(&self, tree: &Tree, node: usize) -> Option<(usize, usize)> {
        let reached = tree.reached.get(node).filter(|it| it.hops != UNREACHED && it.hops != 0)?;
        let link = usize::try_from(reached.last).ok()?;
        Some((link, self.links.get(link)?.from))
    }

    /// Calls `visit` with the links of a path, the last one first.
    pub(crate) fn walk(&self, from: usize, to: usize, mut visit: impl FnMut(usize)) {
        if from == to {
            return;
        }
        let tree = self.tree(from);
        let mut node = to;
        while let Some((link, before)) = self.up(&tree, node) {
            visit(link);
            node = before;
        }
    }

    /// Returns the nodes of a path.
    pub(crate) fn nodes(&self, from: usize, to: usize) -> Vec<usize> {
        let mut nodes = vec![to];
        self.walk(from, to, |link| nodes.extend(self.links.get(link).map(|link| link.from)));
        nodes.reverse();
        nodes
    }

    fn edges(&self, node: usize) -> &[Edge] {
        let (edges, firsts) = &self.out;
        edges.get(at(firsts, node)..at(firsts, node + 1)).unwrap_or_default()
    }

    /// Returns the node from which a link leads.
    fn start(&self, link: u32) -> usize {
        let link = usize::try_from(link).ok().and_then(|link| self.links.get(link));
        link.map_or(usize::MAX, |link| link.from)
    }

    fn grow(&self, from: usize) -> Tree {
        let mut reached = vec![NOWHERE; self.into.len()];
        set(&mut reached, from, Reached { hops: 0, last: 0, width: u64::MAX });
        let mut layer = vec![from];
        let mut order = Vec::new();
        let mut next = Vec::new();
        let mut hops = 0;
        while !layer.is_empty() {
            hops += 1;
            for &node in &layer {
                let narrow = reached.get(node).map_or(0, |it| it.width);
                for &Edge { to, link, width } in self.edges(node) {
                    let to = usize::try_from(to).unwrap_or(usize::MAX);
                    let Some(known) = reached.get_mut(to) else { continue };
                    let width = narrow.min(width);
                    if known.hops == UNREACHED {
                        next.push(to);
                    } else if known.hops != hops
                        || width < known.width
                        || width == known.width && self.start(known.last) <= node
                    {
                        continue;
                    }
                    *known = Reached { hops, last: link, width };
                }
            }
            if self.has_times {
                order.extend_from_slice(&next);
            }
            std::mem::swap(&mut layer, &mut next);
            next.clear();
        }
        let times = if self.has_times { self.times(&reached, &order) } else { Vec::new() };
        Tree { reached, times }
    }

    /// Returns the sums of the times of links, for nodes in the order of their distance.
    fn times(&self, reached: &[Reached], order: &[usize]) -> Vec<(u64, u64)> {
        let mut times: Vec<(u64, u64)> = vec![(0, 0); reached.len()];
        for &node in order {
            let last = reached.get(node).and_then(|it| usize::try_from(it.last).ok());
            let Some(link) = last.and_then(|last| self.links.get(last)) else { continue };
            let (delay, segment) = at(&times, link.from);
            let own = link.capacity.map_or(0, |rate| rate.time_for(SEGMENT_BYTES).as_nanos());
            let delay = delay.saturating_add(link.delay.as_nanos());
            set(&mut times, node, (delay, segment.saturating_add(own)));
        }
        times
    }

    fn shrink(&self, to: usize) -> Vec<u32> {
        let mut hops = vec![UNREACHED; self.into.len()];
        set(&mut hops, to, 0);
        let mut queue = std::collections::VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            let further = at(&hops, node).saturating_add(1);
            for &from in self.into.get(node).into_iter().flatten() {
                if hops.get(from) == Some(&UNREACHED) {
                    set(&mut hops, from, further);
                    queue.push_back(from);
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
        let mut problem =
            PlanProblem::new((0..6).map(|node| PlanNode::new(&node.to_string())).collect());
        for &(from, to, bits) in links {
            let mut link = PlanLink::new(from, to);
            link.capacity = Capacity::from_bits_per_s(bits * 1_000).ok();
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
        assert_eq!((routes.tree(0).hops(3), routes.tree(3).hops(0)), (2, UNREACHED));
        assert_eq!(routes.back(3), [2, 1, 1, 0, UNREACHED, UNREACHED]);
        assert_eq!(routes.nodes(4, 4), [4]);
    }
}
