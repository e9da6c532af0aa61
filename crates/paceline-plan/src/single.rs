//! One proxy per tag without limits: the costs of all nodes, from distances alone.

use crate::budget::Remaining;
use crate::list::{at, float};
use crate::model::{Model, TagForms};
use crate::problem::{CostModel, PlanTag};
use crate::routes::UNREACHED;
use crate::usage::Usage;

/// The most ends of a multicast tree whose pairs are compared.
const PAIRED_MAX: usize = 16;

/// The nodes of a tag in the order of their cost as the only proxy.
#[derive(Debug)]
pub(crate) struct Ranked {
    tag: usize,
    /// The cost and the node. With multicast the cost is a lower bound.
    order: Vec<(f64, usize)>,
    is_exact: bool,
}

/// The best single proxy of a tag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Single {
    pub(crate) node: usize,
    pub(crate) cost: f64,
    /// A lower bound of the cost.
    pub(crate) bound: f64,
}

/// Nodes that were visited since the last new stamp.
struct Marks {
    stamps: Vec<u32>,
    stamp: u32,
}

impl Marks {
    fn clear(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
    }

    /// Returns true if the node was not visited before.
    fn visit(&mut self, node: usize) -> bool {
        let Some(stamp) = self.stamps.get_mut(node) else { return false };
        std::mem::replace(stamp, self.stamp) != self.stamp
    }

    fn has(&self, node: usize) -> bool {
        self.stamps.get(node) == Some(&self.stamp)
    }
}

impl Model<'_> {
    /// Returns the nodes that may run the only proxy of a tag, by their cost.
    pub(crate) fn ranked(&self, tag: usize) -> Ranked {
        let mut order = Vec::new();
        if let Some((spec, _)) = self.tag(tag) {
            let costs = self.single_costs(tag, spec);
            let nodes = self.candidates(spec).into_iter();
            let priced = nodes.map(|node| (at(&costs, node), node));
            order = priced.filter(|(cost, _)| cost.is_finite()).collect();
            if self.shares_segments() {
                // The bounds below count each link.
                let exact =
                    |(cost, node): &mut (f64, usize)| *cost = self.single_usage(tag, *node).cost;
                order.iter_mut().for_each(exact);
            }
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let is_exact = self.problem.cost != CostModel::Multicast || self.shares_segments();
        Ranked { tag, order, is_exact }
    }

    /// Returns the cost of each node: a sum over the distances to all ends.
    fn single_costs(&self, tag: usize, spec: &PlanTag) -> Vec<f64> {
        let Some((_, forms)) = self.tag(tag) else { return Vec::new() };
        let original = forms.get(0).per_link;
        let publishers = float(spec.publishers.len());
        let copies = match self.problem.cost {
            CostModel::PerSubscriber => float(spec.subscribers.len()),
            CostModel::SharedUpstream | CostModel::Multicast => 1.0,
        };
        let scaling = match self.problem.cost {
            CostModel::PerSubscriber => forms.of.iter().map(|&form| forms.get(form).scaling).sum(),
            CostModel::SharedUpstream | CostModel::Multicast => {
                forms.forms.iter().map(|form| form.scaling).sum::<f64>()
            }
        };
        let fixed = self.cpu_cost * scaling * publishers;
        let mut costs = vec![fixed; self.problem.nodes.len()];
        for &from in &spec.publishers {
            let tree = self.routes.tree(from);
            for (cost, hops) in costs.iter_mut().zip(tree.all_hops()) {
                *cost += times(hops, original * copies);
            }
        }
        if self.problem.cost == CostModel::Multicast {
            self.add_trees(spec, forms, &mut costs);
            return costs;
        }
        for (to, &form) in spec.subscribers.iter().zip(&forms.of) {
            let per_link = forms.get(form).per_link * publishers;
            let back = self.routes.back(to.node);
            costs.iter_mut().zip(back).for_each(|(cost, &hops)| *cost += times(hops, per_link));
        }
        costs
    }

    /// Adds lower bounds of the costs of multicast trees from each node.
    fn add_trees(&self, spec: &PlanTag, forms: &TagForms, costs: &mut [f64]) {
        let publishers = float(spec.publishers.len());
        let mut before = vec![0.0; costs.len()];
        for &from in &spec.publishers {
            let tree = self.routes.tree(from);
            let hops = before.iter_mut().zip(tree.all_hops());
            hops.for_each(|(sum, hops)| *sum += times(hops, forms.get(0).per_link));
        }
        for form in 0..forms.forms.len() {
            let ends = spec.subscribers.iter().zip(&forms.of).filter(|(_, of)| **of == form);
            let ends: Vec<usize> = ends.map(|(to, _)| to.node).collect();
            let per_link = forms.get(form).per_link * publishers;
            let trees = self.least_links(&ends);
            for ((cost, links), before) in costs.iter_mut().zip(trees).zip(&before) {
                // The original form may cross the same links before and behind the proxy.
                let shared = if form == 0 { *before } else { 0.0 };
                *cost += (links * per_link - shared).max(0.0);
            }
        }
    }

    /// Returns a lower bound of the links of a tree from each node to these ends. It has at least
    /// the links to the farthest end. A tree to two ends has half of the way around them.
    fn least_links(&self, ends: &[usize]) -> Vec<f64> {
        let mut least = vec![0.0_f64; self.problem.nodes.len()];
        for &end in ends {
            let back = self.routes.back(end);
            least
                .iter_mut()
                .zip(back)
                .for_each(|(least, &hops)| *least = least.max(times(hops, 1.0)));
        }
        if !self.is_symmetric || ends.len() > PAIRED_MAX {
            return least;
        }
        for (place, &a) in ends.iter().enumerate() {
            for &b in ends.iter().skip(place + 1) {
                let (to_a, to_b) = (self.routes.back(a), self.routes.back(b));
                let between = times(at(to_a, b), 1.0);
                for ((least, &a), &b) in least.iter_mut().zip(to_a).zip(to_b) {
                    let around = (times(a, 1.0) + times(b, 1.0) + between) / 2.0;
                    *least = least.max(around.ceil());
                }
            }
        }
        least
    }

    /// Returns the cost of the trees behind a proxy, and of the paths to it.
    fn multicast_cost(&self, tag: usize, node: usize, marks: &mut Marks) -> f64 {
        let Some((spec, forms)) = self.tag(tag) else { return f64::INFINITY };
        let tree = self.routes.tree(node);
        let publishers = float(spec.publishers.len());
        let mut cost = 0.0;
        for (form, of) in forms.forms.iter().enumerate().rev() {
            marks.clear();
            let mut links = 0;
            for (to, _) in spec.subscribers.iter().zip(&forms.of).filter(|(_, of)| **of == form) {
                let mut at = to.node;
                while let Some((_, before)) = self.routes.up(&tree, at).filter(|_| marks.visit(at))
                {
                    links += 1;
                    at = before;
                }
            }
            cost +=
                float(links) * of.per_link * publishers + of.scaling * publishers * self.cpu_cost;
        }
        // The marks are those of the original form, which may cross the links to the proxy too.
        let original = forms.get(0).per_link;
        for &from in &spec.publishers {
            self.routes.walk(from, node, |link| {
                let end = self.problem.links.get(link).map_or(node, |link| link.to);
                let again =
                    marks.has(end) && self.routes.up(&tree, end).is_some_and(|up| up.0 == link);
                cost += if again { 0.0 } else { original };
            });
        }
        cost
    }

    fn all_in_time(&self, tag: usize, node: usize) -> bool {
        let count = self.problem.tags.get(tag).map_or(0, |tag| tag.subscribers.len());
        (0..count).all(|to| self.in_time(tag, to, node))
    }

    /// Returns the use of a single proxy.
    pub(crate) fn single_usage(&self, tag: usize, node: usize) -> Usage {
        let count = self.problem.tags.get(tag).map_or(0, |tag| tag.subscribers.len());
        self.usage(tag, &vec![node; count])
    }
}

impl Ranked {
    /// Returns the cheapest node that meets all delay bounds.
    pub(crate) fn best(&self, model: &Model<'_>, remaining: &mut Remaining<'_>) -> Option<Single> {
        if self.is_exact {
            let fits = |&&(_, node): &&(f64, usize)| model.all_in_time(self.tag, node);
            let best = self.order.iter().find(fits);
            return best.map(|&(cost, node)| Single { node, cost, bound: cost });
        }
        let mut best: Option<Single> = None;
        let mut marks = Marks { stamps: vec![0; model.problem.nodes.len()], stamp: 0 };
        for &(least, node) in &self.order {
            let most = best.map_or(f64::INFINITY, |best| best.cost);
            if least >= most {
                break;
            }
            if let Some(best) = best.as_mut().filter(|_| remaining().is_zero()) {
                best.bound = least;
                return Some(*best);
            }
            let cost = model.multicast_cost(self.tag, node, &mut marks);
            if cost < most && model.all_in_time(self.tag, node) {
                best = Some(Single { node, cost, bound: cost });
            }
        }
        best
    }

    /// Returns up to `most` nodes that meet all delay bounds, with their use, and a lower bound of
    /// the cost of the others.
    pub(crate) fn pool(
        &self,
        model: &Model<'_>,
        most: usize,
        remaining: &mut Remaining<'_>,
    ) -> (Vec<(usize, Usage)>, f64) {
        let mut pool = Vec::new();
        for &(least, node) in &self.order {
            if pool.len() == most || !pool.is_empty() && remaining().is_zero() {
                return (pool, least);
            }
            if model.all_in_time(self.tag, node) {
                pool.push((node, model.single_usage(self.tag, node)));
            }
        }
        (pool, f64::INFINITY)
    }
}

/// Returns the cost of a path, which is infinite if there is none.
fn times(hops: u32, per_link: f64) -> f64 {
    if hops == UNREACHED { f64::INFINITY } else { f64::from(hops) * per_link }
}
