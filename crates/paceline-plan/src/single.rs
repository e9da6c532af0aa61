//! One proxy per tag without limits: the costs of all nodes, from distances alone.

use crate::list::float;
use crate::model::Model;
use crate::problem::{CostModel, PlanTag};
use crate::routes::UNREACHED;
use crate::usage::Usage;

/// The nodes of a tag in the order of their cost as the only proxy.
#[derive(Debug)]
pub(crate) struct Ranked {
    tag: usize,
    /// The cost and the node. With multicast the cost is a lower bound.
    order: Vec<(f64, usize)>,
    is_exact: bool,
}

impl Model<'_> {
    /// Returns the nodes that may run the only proxy of a tag, by their cost.
    pub(crate) fn ranked(&self, tag: usize) -> Ranked {
        let mut order = Vec::new();
        if let Some((spec, _)) = self.tag(tag) {
            let costs = self.single_costs(tag, spec);
            let nodes = costs.into_iter().enumerate().map(|(node, cost)| (cost, node));
            let may = |&(cost, node): &(f64, usize)| {
                cost < f64::INFINITY && self.may_scale(spec, node)
            };
            order = nodes.filter(may).collect();
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Ranked { tag, order, is_exact: self.problem.cost != CostModel::Multicast }
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
            let hops = tree.map_or(&[][..], |tree| tree.hops.as_slice());
            for (cost, &hops) in costs.iter_mut().zip(hops) {
                *cost += if hops == UNREACHED { f64::INFINITY } else { f64::from(hops) * original * copies };
            }
        }
        let mut farthest = vec![vec![0.0_f64; costs.len()]; forms.forms.len()];
        for (to, &form) in spec.subscribers.iter().zip(&forms.of) {
            let per_link = forms.get(form).per_link * publishers;
            let far = farthest.get_mut(form).into_iter().flatten();
            for ((cost, far), &hops) in costs.iter_mut().zip(far).zip(self.routes.back(to.node)) {
                let way = if hops == UNREACHED { f64::INFINITY } else { f64::from(hops) * per_link };
                match self.problem.cost {
                    CostModel::PerSubscriber | CostModel::SharedUpstream => *cost += way,
                    CostModel::Multicast => *far = far.max(way),
                }
            }
        }
        // A multicast stream crosses at least the links to its farthest subscriber. The original may
        // share links before and behind the proxy.
        for far in farthest.iter().skip(1) {
            costs.iter_mut().zip(far).for_each(|(cost, far)| *cost += far);
        }
        if let Some(far) = farthest.first() {
            for (node, (cost, far)) in costs.iter_mut().zip(far).enumerate() {
                let before: f64 = spec.publishers.iter().map(|&from| {
                    f64::from(self.routes.hops(from, node)) * original
                }).sum();
                *cost += (far - before).max(0.0);
            }
        }
        costs
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
    /// Returns the cheapest node that meets all delay bounds, and its cost. A tag without a
    /// subscriber has its proxy at the first publisher.
    pub(crate) fn best(&self, model: &Model<'_>) -> Option<(usize, f64)> {
        if self.is_exact {
            let fits = |&&(_, node): &&(f64, usize)| model.all_in_time(self.tag, node);
            return self.order.iter().find(fits).map(|&(cost, node)| (node, cost));
        }
        let mut best: Option<(usize, f64)> = None;
        for &(least, node) in &self.order {
            let most = best.map_or(f64::INFINITY, |best| best.1);
            if least >= most {
                break;
            }
            let cost = model.single_usage(self.tag, node).cost;
            if cost < most && model.all_in_time(self.tag, node) {
                best = Some((node, cost));
            }
        }
        best
    }

    /// Returns up to `most` nodes that meet all delay bounds, with their use, and a lower bound of
    /// the cost of the others.
    pub(crate) fn pool(&self, model: &Model<'_>, most: usize) -> (Vec<(usize, Usage)>, f64) {
        let mut pool = Vec::new();
        for &(least, node) in &self.order {
            if pool.len() == most {
                return (pool, least);
            }
            if model.all_in_time(self.tag, node) {
                pool.push((node, model.single_usage(self.tag, node)));
            }
        }
        (pool, f64::INFINITY)
    }

    /// Returns the cost of a node from the distances.
    #[cfg(test)]
    pub(crate) fn cost_of(&self, node: usize) -> f64 {
        let found = self.order.iter().find(|(_, other)| *other == node);
        found.map_or(f64::INFINITY, |found| found.0)
    }
}

