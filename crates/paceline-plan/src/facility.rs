//! Several proxies per tag without limits: a facility location problem with at most k facilities.
//!
//! The lower bound is the Lagrangian relaxation of the rule that every subscriber has a proxy
//! (Cornuejols, Fisher, Nemhauser 1977). Nodes that cannot be in a cheaper plan by that bound are
//! excluded; if few sets remain, all are compared, and the result is optimal.

use crate::budget::Remaining;
use crate::list::{TOLERANCE, at, float, least};
use crate::model::Model;
use crate::problem::{CostModel, DelayModel};
use crate::routes::UNREACHED;

/// Sets of proxies that are compared one by one.
const SETS_MAX: usize = 5_000;
/// The most proxies of a set whose subsets are all compared for the cost of scaling.
const COMPARED_MAX: usize = 8;
/// Iterations of the relaxation.
const ITERATIONS: usize = 200;
/// Nodes above which delays that need the paths from each node are computed for the best nodes only.
const TREES_MAX: usize = 1_500;

/// The costs of one tag.
#[derive(Debug)]
struct Facility {
    nodes: usize,
    most: usize,
    /// The cost of each subscriber at each node, infinite if the node is too slow.
    serve: Vec<Vec<f64>>,
    /// The cost of the streams to a proxy at each node.
    open: Vec<f64>,
    /// The cost of scaling to each form.
    scale: Vec<f64>,
    of: Vec<usize>,
    /// Nodes that may be chosen. The others count only in the bound.
    usable: Vec<bool>,
}

/// The best known proxies of a tag, one per subscriber, with their cost and a lower bound.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bounded {
    pub(crate) proxies: Vec<usize>,
    pub(crate) cost: f64,
    pub(crate) bound: f64,
}

/// Returns the best proxies of a tag, or `None` if none are fast enough or were found.
pub(crate) fn several(
    model: &Model<'_>,
    tag: usize,
    remaining: &mut Remaining<'_>,
) -> Option<Bounded> {
    let facility = Facility::new(model, tag)?;
    let mut set = facility.greedy().unwrap_or_default();
    let (mut best, mut bound) = (f64::INFINITY, 0.0);
    let mut kept: Vec<usize> = (0..facility.nodes).collect();
    if !set.is_empty() {
        facility.improve(&mut set, remaining);
        best = facility.value(&set);
        (bound, kept) = facility.relax(&mut best, &mut set, remaining);
    }
    let exact = facility.compare_all(&kept, &mut best, &mut set);
    if best.is_infinite() {
        return None;
    }
    let proxies = facility.proxies(&set);
    let bound = if exact { best } else { bound.min(best) };
    Some(Bounded { proxies, cost: best, bound })
}

impl Facility {
    fn new(model: &Model<'_>, tag: usize) -> Option<Self> {
        let (spec, forms) = model.tag(tag)?;
        let nodes = model.problem.nodes.len();
        let publishers = float(spec.publishers.len());
        let mut open = vec![0.0; nodes];
        let mut may = vec![false; nodes];
        for node in model.candidates(spec) {
            may.iter_mut().skip(node).take(1).for_each(|may| *may = true);
        }
        for &from in &spec.publishers {
            let tree = model.routes.tree(from);
            for ((cost, may), hops) in open.iter_mut().zip(&may).zip(tree.all_hops()) {
                *cost += if *may { f64::from(hops) * forms.get(0).per_link } else { f64::INFINITY };
            }
        }
        let is_shared = model.problem.cost != CostModel::PerSubscriber;
        let unit = model.cpu_cost * publishers;
        let mut serve = Vec::with_capacity(spec.subscribers.len());
        for (number, to) in spec.subscribers.iter().enumerate() {
            let form = forms.of_subscriber(number);
            let own = if is_shared { 0.0 } else { unit * form.scaling };
            let costs = model.routes.back(to.node).iter().zip(&open).map(|(&hops, &open)| {
                let before = if is_shared && open.is_finite() { 0.0 } else { open };
                match hops {
                    UNREACHED => f64::INFINITY,
                    _ => f64::from(hops) * form.per_link * publishers + before + own,
                }
            });
            serve.push(costs.collect::<Vec<f64>>());
        }
        let scale =
            forms.forms.iter().map(|form| if is_shared { unit * form.scaling } else { 0.0 });
        let scale = scale.collect();
        if !is_shared {
            open.iter_mut().for_each(|cost| *cost = 0.0);
        }
        let (most, of) = (model.problem.proxies, forms.of.clone());
        let mut facility = Self { nodes, most, serve, open, scale, of, usable: vec![true; nodes] };
        facility.exclude_slow(model, tag);
        Some(facility)
    }

    /// Removes nodes that are too slow for a subscriber.
    fn exclude_slow(&mut self, model: &Model<'_>, tag: usize) {
        if model.problem.delays != DelayModel::Periods && self.nodes > TREES_MAX {
            let mut sums: Vec<(f64, usize)> = (0..self.nodes)
                .map(|node| (self.serve.iter().map(|costs| at(costs, node)).sum(), node))
                .collect();
            sums.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            for &(_, node) in sums.iter().skip(TREES_MAX) {
                if let Some(usable) = self.usable.get_mut(node) {
                    *usable = false;
                }
            }
        }
        for (to, costs) in self.serve.iter_mut().enumerate() {
            for (node, cost) in costs.iter_mut().enumerate() {
                if cost.is_finite() && at(&self.usable, node) && !model.in_time(tag, to, node) {
                    *cost = f64::INFINITY;
                }
            }
        }
    }

    fn serve(&self, to: usize, node: usize) -> f64 {
        self.serve.get(to).and_then(|costs| costs.get(node)).copied().unwrap_or(f64::INFINITY)
    }

    /// Returns the place in the set of the cheapest proxy of each subscriber.
    fn nearest(&self, set: &[usize]) -> Vec<Option<usize>> {
        let subscribers = 0..self.serve.len();
        let cheapest = |to| least(set.iter().map(|&node| self.serve(to, node)));
        subscribers.map(|to| cheapest(to).map(|(place, _)| place)).collect()
    }

    /// Returns the proxies of the subscribers. Scaling costs can make a farther proxy cheaper, so
    /// each form chooses its subset of the set.
    fn proxies(&self, set: &[usize]) -> Vec<usize> {
        let mut proxies: Vec<usize> =
            self.nearest(set).into_iter().map(|place| at(set, place.unwrap_or(0))).collect();
        for form in 0..self.scale.len() {
            let subset = self.subset(form, set).1;
            let nodes: Vec<usize> = chosen(set, subset).collect();
            for (to, proxy) in proxies.iter_mut().enumerate() {
                let cheapest = least(nodes.iter().map(|&node| self.serve(to, node)));
                if let Some((place, _)) = cheapest.filter(|_| at(&self.of, to) == form) {
                    *proxy = at(&nodes, place);
                }
            }
        }
        proxies
    }

    /// Returns the cost of a form's subscribers, and its subset of the set as bits.
    fn subset(&self, form: usize, set: &[usize]) -> (f64, u32) {
        let all = u32::MAX.checked_shr(32 - u32::try_from(set.len()).unwrap_or(32)).unwrap_or(0);
        let cost = |subset: u32| {
            let nodes: Vec<usize> = chosen(set, subset).collect();
            let ends = (0..self.serve.len()).filter(|&to| at(&self.of, to) == form);
            let serving: f64 = ends
                .map(|to| nodes.iter().fold(f64::INFINITY, |c, &node| c.min(self.serve(to, node))))
                .sum();
            serving + at(&self.scale, form) * float(nodes.len())
        };
        if at(&self.scale, form) <= 0.0 {
            return (cost(all), all);
        }
        if set.len() <= COMPARED_MAX {
            let subsets = (1..=all).map(|subset| (cost(subset), subset));
            return subsets.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, all));
        }
        let mut best = (cost(all), all);
        loop {
            let fewer = (0..set.len()).map(|place| best.1 & !(1 << place)).filter(|it| *it != 0);
            let fewer = fewer.map(|subset| (cost(subset), subset));
            match fewer.min_by(|a, b| a.0.total_cmp(&b.0)) {
                Some(better) if better.0 < best.0 => best = better,
                Some(_) | None => return best,
            }
        }
    }

    fn value(&self, set: &[usize]) -> f64 {
        let opened: f64 = set.iter().map(|&node| at(&self.open, node)).sum();
        if self.scale.iter().all(|&scale| scale <= 0.0) {
            let nearest =
                |to| set.iter().fold(f64::INFINITY, |c, &node| c.min(self.serve(to, node)));
            return opened + (0..self.serve.len()).map(nearest).sum::<f64>();
        }
        let used = (0..self.scale.len()).filter(|form| self.of.contains(form));
        opened + used.map(|form| self.subset(form, set).0).sum::<f64>()
    }

    /// Adds the node that helps most until all subscribers are served and no node helps. A
    /// subscriber without a proxy counts more than any cost.
    fn greedy(&self) -> Option<Vec<usize>> {
        let mut set = Vec::new();
        let mut served = vec![f64::INFINITY; self.serve.len()];
        while set.len() < self.most {
            let unserved = served.iter().filter(|cost| cost.is_infinite()).count();
            let gain = |node: usize| {
                if !at(&self.usable, node) || at(&self.open, node).is_infinite() {
                    return (0, f64::INFINITY);
                }
                let (mut more, mut change) = (0_usize, at(&self.open, node));
                for (to, &now) in served.iter().enumerate() {
                    let cost = self.serve(to, node);
                    if cost.is_finite() && now.is_infinite() {
                        more += 1;
                        change += cost;
                    } else if cost < now {
                        change += cost - now;
                    }
                }
                (more, change)
            };
            let gains = (0..self.nodes).map(|node| (gain(node), node));
            let (gained, node) =
                gains.min_by(|(a, _), (b, _)| b.0.cmp(&a.0).then(a.1.total_cmp(&b.1)))?;
            if unserved == 0 && gained.1 >= 0.0 || gained.1.is_infinite() {
                break;
            }
            set.push(node);
            for (to, cost) in served.iter_mut().enumerate() {
                *cost = cost.min(self.serve(to, node));
            }
        }
        (!set.is_empty() && self.value(&set).is_finite()).then_some(set)
    }

    /// Replaces, adds and removes single nodes as long as the cost decreases.
    fn improve(&self, set: &mut Vec<usize>, remaining: &mut Remaining<'_>) {
        let mut best = self.value(set);
        loop {
            let mut found = None;
            for place in 0..=set.len() {
                if remaining().is_zero() {
                    return;
                }
                let mut changed = set.clone();
                if place < set.len() {
                    let _ = changed.remove(place);
                } else if set.len() >= self.most {
                    continue;
                }
                let fewer = self.value(&changed);
                if fewer < best * (1.0 - TOLERANCE) {
                    best = fewer;
                    found = Some(changed.clone());
                }
                changed.push(0);
                for node in (0..self.nodes).filter(|&node| at(&self.usable, node)) {
                    if let Some(last) = changed.last_mut() {
                        *last = node;
                    }
                    let cost = self.value(&changed);
                    if cost < best * (1.0 - TOLERANCE) {
                        best = cost;
                        found = Some(changed.clone());
                    }
                }
            }
            match found {
                Some(changed) => *set = changed,
                None => return,
            }
        }
    }

    /// Returns a lower bound, and the nodes that a cheaper set may contain. Improves the set.
    fn relax(
        &self,
        best: &mut f64,
        set: &mut Vec<usize>,
        remaining: &mut Remaining<'_>,
    ) -> (f64, Vec<usize>) {
        let mut relaxed = Relaxed::new(self, set);
        let (mut bound, mut step) = (f64::NEG_INFINITY, 1.0);
        let mut kept: Vec<usize> = (0..self.nodes).collect();
        let mut since = 0;
        for _ in 0..ITERATIONS {
            let found = relaxed.bound(self, &kept);
            if found.bound > bound {
                bound = found.bound;
                since = 0;
            } else {
                since += 1;
            }
            let chosen: Vec<usize> =
                found.chosen.iter().copied().filter(|&node| at(&self.usable, node)).collect();
            let cost = self.value(&chosen);
            if !chosen.is_empty() && cost < *best {
                *best = cost;
                *set = chosen;
            }
            kept.retain(|&node| {
                set.contains(&node) || found.with(&relaxed, node) < *best * (1.0 - TOLERANCE)
            });
            if bound >= *best * (1.0 - TOLERANCE) || remaining().is_zero() {
                break;
            }
            if since > 10 {
                step *= 0.6;
                since = 0;
            }
            if !relaxed.step(self, &found, step * (*best * 1.02 - found.bound)) {
                break;
            }
        }
        (bound, kept)
    }

    /// Compares all sets of the kept nodes, if they are few. Returns true if it did.
    fn compare_all(&self, kept: &[usize], best: &mut f64, set: &mut Vec<usize>) -> bool {
        if sets(kept.len(), self.most) > SETS_MAX {
            return false;
        }
        if !kept.iter().all(|&node| at(&self.usable, node)) {
            return false;
        }
        let mut stack: Vec<(usize, Vec<usize>)> = vec![(0, Vec::new())];
        while let Some((from, chosen)) = stack.pop() {
            if !chosen.is_empty() {
                let cost = self.value(&chosen);
                if cost < *best {
                    *best = cost;
                    set.clone_from(&chosen);
                }
            }
            if chosen.len() < self.most {
                for (place, &node) in kept.iter().enumerate().skip(from) {
                    let mut longer = chosen.clone();
                    longer.push(node);
                    stack.push((place + 1, longer));
                }
            }
        }
        true
    }
}

fn chosen(set: &[usize], subset: u32) -> impl Iterator<Item = usize> {
    set.iter().enumerate().filter(move |(place, _)| subset >> place & 1 == 1).map(|(_, &node)| node)
}

/// Returns the number of sets with up to `most` of `count` items, at most [`usize::MAX`].
fn sets(count: usize, most: usize) -> usize {
    let (mut sum, mut product) = (0_usize, 1_usize);
    for size in 1..=most.min(count) {
        product = product.saturating_mul(count + 1 - size) / size;
        sum = sum.saturating_add(product);
    }
    sum
}

/// The multipliers of the relaxation.
#[derive(Debug)]
struct Relaxed {
    prices: Vec<f64>,
    /// The reduced cost of each node.
    reduced: Vec<f64>,
}

/// A value of the relaxation.
#[derive(Debug)]
struct Found {
    bound: f64,
    chosen: Vec<usize>,
    /// The reduced cost of the last chosen node if all k are chosen.
    worst: f64,
}

impl Found {
    /// Returns the bound of all sets with this node.
    fn with(&self, relaxed: &Relaxed, node: usize) -> f64 {
        match self.chosen.contains(&node) {
            true => self.bound,
            false => self.bound + at(&relaxed.reduced, node) - self.worst,
        }
    }
}

impl Relaxed {
    fn new(facility: &Facility, set: &[usize]) -> Self {
        let nearest = |costs: &Vec<f64>| {
            set.iter().fold(f64::INFINITY, |least, &node| least.min(at(costs, node)))
        };
        let prices = facility.serve.iter().map(nearest).collect();
        Self { prices, reduced: vec![0.0; facility.nodes] }
    }

    fn bound(&mut self, facility: &Facility, kept: &[usize]) -> Found {
        let mut by_form = vec![0.0_f64; facility.scale.len()];
        let mut order = Vec::new();
        for &node in kept {
            by_form.iter_mut().for_each(|saved| *saved = 0.0);
            for ((costs, &price), &form) in
                facility.serve.iter().zip(&self.prices).zip(&facility.of)
            {
                if let Some(saved) = by_form.get_mut(form) {
                    *saved += (at(costs, node) - price).min(0.0);
                }
            }
            let saved =
                by_form.iter().zip(&facility.scale).map(|(saved, scale)| (saved + scale).min(0.0));
            let value = at(&facility.open, node) + saved.sum::<f64>();
            if let Some(reduced) = self.reduced.get_mut(node) {
                *reduced = value;
            }
            if value < 0.0 {
                order.push((value, node));
            }
        }
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.truncate(facility.most);
        let full = order.len() == facility.most;
        let worst = order.last().filter(|_| full).map_or(0.0, |(value, _)| *value);
        let sum: f64 = order.iter().map(|(value, _)| value).sum();
        let bound = self.prices.iter().sum::<f64>() + sum;
        Found { bound, chosen: order.into_iter().map(|(_, node)| node).collect(), worst }
    }

    /// Moves the prices along the subgradient. Returns false if it is zero.
    fn step(&mut self, facility: &Facility, found: &Found, distance: f64) -> bool {
        let served = |(to, &price): (usize, &f64)| {
            let form = at(&facility.of, to);
            let takes = |node: &&usize| {
                facility.serve(to, **node) < price && self.is_open(facility, form, **node)
            };
            1.0 - float(found.chosen.iter().filter(takes).count())
        };
        let slopes: Vec<f64> = self.prices.iter().enumerate().map(served).collect();
        let norm: f64 = slopes.iter().map(|slope| slope * slope).sum();
        if norm <= 0.0 {
            return false;
        }
        for (price, slope) in self.prices.iter_mut().zip(&slopes) {
            *price += slope * distance.max(0.0) / norm;
        }
        true
    }

    /// Returns true if scaling to a form at a node lowers the relaxed cost.
    fn is_open(&self, facility: &Facility, form: usize, node: usize) -> bool {
        let scale = at(&facility.scale, form);
        if scale <= 0.0 {
            return true;
        }
        let ends = self.prices.iter().enumerate().filter(|(to, _)| at(&facility.of, *to) == form);
        let saved: f64 = ends.map(|(to, &price)| (facility.serve(to, node) - price).min(0.0)).sum();
        saved + scale < 0.0
    }
}
