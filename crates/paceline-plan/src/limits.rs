//! Tags that compete for links and nodes: prices for the limited resources (a Lagrangian
//! relaxation), repair and exchange of single tags, and the mixed-integer program for the rest.
//!
//! With any prices, the sum of the cheapest places of the tags is a lower bound of the cost, and
//! places that are too expensive by that bound are excluded. The program decides among the rest.

use crate::budget::Remaining;
use crate::list::{Assignment, TOLERANCE, at, float, least};
use crate::model::Model;
use crate::program::{Answer, choose};
use crate::usage::{Usage, is_over};

/// Iterations of the prices.
const ITERATIONS: usize = 600;
/// Iterations between two attempts to repair the places that the prices choose.
const REPAIR_EVERY: usize = 20;
/// Iterations before prices are raised faster if no plan was found.
const NEAR_MAX: usize = 100;
/// Iterations without a better bound after which the prices are good enough.
const STALLED_MAX: usize = 80;
/// The places of a tag that a repair considers.
const NEAREST: usize = 24;
/// The most variables that remain for the program.
const VARIABLES_MAX: usize = 3_000;
/// The variables of the program if more remain.
const HEURISTIC_MAX: usize = 1_200;

/// A place of all proxies of a tag: one node for each subscriber, and their use.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// The places, by cost.
    pub(crate) places: Vec<(usize, Usage)>,
    /// A lower bound of the cost of places that are not in the pool.
    pub(crate) others: f64,
}

/// The result for tags that compete.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The index of the place of each tag in its pool, or `None` if none was found.
    pub(crate) places: Option<Vec<usize>>,
    pub(crate) bound: f64,
    /// True if it is proved that no places of the pools meet the limits.
    pub(crate) is_infeasible: bool,
}

struct Search<'a, 'b> {
    model: &'a Model<'b>,
    pools: &'a [Pool],
    /// The price of the whole limit of each resource.
    prices: Vec<f64>,
    best: Option<(f64, Vec<usize>)>,
    bound: f64,
    is_infeasible: bool,
    /// False while only the use of limits counts.
    counts_costs: bool,
    /// The prices of the best bound.
    best_prices: Vec<f64>,
    /// The tag, the place and the part of the limit of all uses of each resource.
    uses: Vec<Vec<(usize, usize, f64)>>,
    /// The cost of each place of each tag by the prices.
    reduced: Vec<Vec<f64>>,
}

/// Chooses a place for each tag within the limits.
pub(crate) fn share(model: &Model<'_>, pools: &[Pool], remaining: &mut Remaining<'_>) -> Shared {
    let prices = vec![0.0; model.limits.len()];
    let best_prices = prices.clone();
    let mut search = Search {
        model,
        pools,
        prices,
        best: None,
        bound: f64::NEG_INFINITY,
        is_infeasible: false,
        counts_costs: true,
        best_prices,
        uses: vec![Vec::new(); model.limits.len()],
        reduced: pools.iter().map(|pool| vec![0.0; pool.places.len()]).collect(),
    };
    search.index();
    if search.always_exceeded().is_some() {
        return Shared { places: None, bound: f64::INFINITY, is_infeasible: true };
    }
    search.relax(remaining);
    let is_infeasible =
        search.is_infeasible || search.finish(remaining) || search.proves_infeasible(remaining);
    let (places, bound) = (search.best.map(|best| best.1), search.bound);
    Shared { places, bound, is_infeasible }
}

impl Search<'_, '_> {
    fn unit(&self, resource: usize) -> f64 {
        let limit = at(&self.model.limits, resource);
        if limit > 0.0 { limit } else { 1.0 }
    }

    fn index(&mut self) {
        for (tag, pool) in self.pools.iter().enumerate() {
            for (place, (_, usage)) in pool.places.iter().enumerate() {
                for &(of, amount) in &usage.loads {
                    let part = amount / self.unit(of);
                    self.uses
                        .iter_mut()
                        .skip(of)
                        .take(1)
                        .for_each(|uses| uses.push((tag, place, part)));
                }
            }
        }
    }

    /// Computes the costs of all places by the prices.
    fn reprice(&mut self) {
        for (reduced, pool) in self.reduced.iter_mut().zip(self.pools) {
            for (reduced, (_, usage)) in reduced.iter_mut().zip(&pool.places) {
                *reduced = if self.counts_costs { usage.cost } else { 0.0 };
            }
        }
        for (uses, &price) in self.uses.iter().zip(&self.prices).filter(|(_, price)| **price > 0.0)
        {
            for &(tag, place, part) in uses {
                if let Some(cost) = self.reduced.get_mut(tag).and_then(|it| it.get_mut(place)) {
                    *cost += price * part;
                }
            }
        }
    }

    /// Returns a resource whose limit is exceeded even if each tag uses as little of it as it can.
    fn always_exceeded(&self) -> Option<usize> {
        let mut least_loads = vec![0.0; self.model.limits.len()];
        for pool in self.pools.iter().filter(|pool| pool.others.is_infinite()) {
            let (_, first) = pool.places.first()?;
            for &(of, _) in &first.loads {
                let load = |usage: &Usage| {
                    let found = usage.loads.binary_search_by_key(&of, |(of, _)| *of);
                    found.ok().and_then(|place| usage.loads.get(place)).map_or(0.0, |load| load.1)
                };
                let uses = pool.places.iter().map(|(_, usage)| load(usage));
                let usage =
                    Usage { cost: 0.0, loads: vec![(of, uses.fold(f64::INFINITY, f64::min))] };
                self.model.add(&mut least_loads, &usage, 1.0);
            }
        }
        self.model.exceeded(&least_loads)
    }

    /// Returns the cheapest place of each tag by the prices, and the lower bound.
    fn cheapest(&mut self) -> (Vec<usize>, f64) {
        self.reprice();
        let mut bound = 0.0;
        let mut places = Vec::with_capacity(self.pools.len());
        for (pool, reduced) in self.pools.iter().zip(&self.reduced) {
            let (place, price) = least(reduced.iter().copied()).unwrap_or((0, f64::INFINITY));
            bound += price.min(pool.others);
            places.push(place);
        }
        let finite = self.model.limits.iter().enumerate().filter(|(_, limit)| limit.is_finite());
        let limits = finite.map(|(of, limit)| at(&self.prices, of) * limit / self.unit(of));
        (places, bound - limits.sum::<f64>())
    }

    fn usage(&self, tag: usize, place: usize) -> Option<&Usage> {
        self.pools.get(tag)?.places.get(place).map(|(_, usage)| usage)
    }

    fn loads(&self, places: &[usize]) -> Vec<f64> {
        let mut loads = vec![0.0; self.model.limits.len()];
        for (tag, &place) in places.iter().enumerate() {
            if let Some(usage) = self.usage(tag, place) {
                self.model.add(&mut loads, usage, 1.0);
            }
        }
        loads
    }

    /// Returns the cost of the dearest places.
    fn ceiling(&self) -> f64 {
        let dearest = self.pools.iter().map(|pool| {
            let costs = pool.places.iter().map(|(_, usage)| usage.cost);
            if pool.others.is_finite() { f64::INFINITY } else { costs.fold(0.0, f64::max) }
        });
        dearest.sum()
    }

    fn relax(&mut self, remaining: &mut Remaining<'_>) {
        let (mut step, mut since, mut stalled) = (1.0, 0, 0);
        let ceiling = self.ceiling();
        for iteration in 0..ITERATIONS {
            let (places, bound) = self.cheapest();
            since += 1;
            stalled += 1;
            if bound > self.bound {
                if bound > self.bound + self.bound.abs() * 1e-4 {
                    (since, stalled) = (0, 0);
                }
                self.bound = bound;
                self.best_prices.clone_from(&self.prices);
            }
            if iteration % REPAIR_EVERY == REPAIR_EVERY - 1 {
                self.repair(places.clone(), remaining);
            }
            let cost = self.best.as_ref().map(|best| best.0);
            if cost.is_some_and(|cost| self.bound >= cost * (1.0 - TOLERANCE))
                || stalled > STALLED_MAX
                || remaining().is_zero()
            {
                return;
            }
            if since > 8 {
                step *= 0.7;
                since = 0;
            }
            // No plan costs more than the dearest places, so a higher bound proves that there is none.
            if bound > ceiling * (1.0 + TOLERANCE) {
                self.is_infeasible = true;
                return;
            }
            // Small steps find prices of a plan, large ones prove that there is none.
            let is_near = iteration < NEAR_MAX || ceiling.is_infinite();
            let far = if is_near { self.bound.abs() * 1.1 + 1.0 } else { ceiling };
            let target = cost.unwrap_or(far * 1.05);
            if !self.step(&places, step * (target * 1.01 - bound)) {
                return;
            }
        }
    }

    /// Returns true if no plan meets the limits, whatever it costs: prices are found with which the
    /// cheapest use of the limits by all tags is worth more than the limits.
    fn proves_infeasible(&mut self, remaining: &mut Remaining<'_>) -> bool {
        if self.best.is_some() || self.pools.iter().any(|pool| pool.others.is_finite()) {
            return false;
        }
        self.counts_costs = false;
        self.prices.clone_from(&self.best_prices);
        for iteration in 0..ITERATIONS {
            let worth: f64 = self.prices.iter().sum();
            let (places, surplus) = self.cheapest();
            if surplus > worth * TOLERANCE {
                return true;
            }
            let length = worth.max(1.0) * 0.3 / float(iteration + 1).sqrt();
            let norm = self.slopes(&places).iter().map(|slope| slope * slope).sum::<f64>().sqrt();
            if remaining().is_zero() || !self.step(&places, length * norm) {
                return false;
            }
        }
        false
    }

    /// Returns by how much each resource is exceeded, in parts of its limit. Prices of 0 stay.
    fn slopes(&self, places: &[usize]) -> Vec<f64> {
        let loads = self.loads(places);
        let all = loads.iter().zip(&self.model.limits).zip(&self.prices).enumerate();
        all.map(|(of, ((load, limit), price))| {
            let slope = (load - limit) / self.unit(of);
            if limit.is_infinite() || slope < 0.0 && *price <= 0.0 { 0.0 } else { slope }
        })
        .collect()
    }

    /// Raises the prices of exceeded resources and lowers the others. Returns false if all prices
    /// stay.
    fn step(&mut self, places: &[usize], distance: f64) -> bool {
        let slopes = self.slopes(places);
        let norm: f64 = slopes.iter().map(|slope| slope * slope).sum();
        if norm <= 0.0 {
            return false;
        }
        for (price, slope) in self.prices.iter_mut().zip(slopes) {
            *price = (*price + slope * distance.max(0.0) / norm).max(0.0);
        }
        true
    }

    /// Returns by how much the loads exceed the limits, in parts of the limits.
    fn excess(&self, loads: &[f64]) -> f64 {
        let over = loads.iter().zip(&self.model.limits).enumerate();
        let over = over.filter(|(_, (load, limit))| is_over(**load, **limit));
        over.map(|(of, (load, limit))| (load - limit) / self.unit(of)).sum()
    }

    /// Moves single tags until the limits are met, then as long as the cost decreases. Keeps the
    /// result if it is the best.
    fn repair(&mut self, mut places: Vec<usize>, remaining: &mut Remaining<'_>) {
        let near = self.near(NEAREST);
        let mut loads = self.loads(&places);
        let mut excess = self.excess(&loads);
        let most_moves = places.len() * 4 + 16;
        for _ in 0..most_moves {
            let is_valid = self.model.exceeded(&loads).is_none();
            if (is_valid || self.best.is_some()) && remaining().is_zero() {
                break;
            }
            match self.best_move(&near, &places, &loads, excess) {
                Some((tag, place)) => {
                    self.apply(&mut places, &mut loads, tag, place);
                    excess = self.excess(&loads);
                }
                None => break,
            }
        }
        if self.model.exceeded(&loads).is_some() {
            return;
        }
        let costs = places.iter().enumerate().map(|(tag, &place)| self.usage(tag, place));
        let cost: f64 = costs.map(|usage| usage.map_or(0.0, |usage| usage.cost)).sum();
        if self.best.as_ref().is_none_or(|best| cost < best.0) {
            self.best = Some((cost, places));
        }
    }

    /// Returns the places of each tag that are cheapest by the prices, in the order of their cost.
    fn near(&self, most: usize) -> Vec<Vec<usize>> {
        let nearest = |reduced: &Vec<f64>| {
            let mut order: Vec<(f64, usize)> =
                reduced.iter().enumerate().map(|(place, &cost)| (cost, place)).collect();
            order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let mut places: Vec<usize> =
                order.into_iter().take(most).map(|(_, place)| place).collect();
            places.sort_unstable();
            places
        };
        self.reduced.iter().map(nearest).collect()
    }

    fn apply(&self, places: &mut [usize], loads: &mut [f64], tag: usize, place: usize) {
        if let Some(now) = places.get_mut(tag) {
            if let Some(usage) = self.usage(tag, *now) {
                self.model.add(loads, usage, -1.0);
            }
            *now = place;
        }
        if let Some(usage) = self.usage(tag, place) {
            self.model.add(loads, usage, 1.0);
        }
    }

    /// Returns the move with the least cost per removed excess, or without an excess the one that
    /// saves most.
    fn best_move(
        &self,
        near: &[Vec<usize>],
        places: &[usize],
        loads: &[f64],
        excess: f64,
    ) -> Option<(usize, usize)> {
        let is_valid = excess <= 0.0;
        let mut scratch = loads.to_vec();
        let mut best: Option<(f64, usize, usize)> = None;
        for (tag, (&place, near)) in places.iter().zip(near).enumerate() {
            let Some(now) = self.usage(tag, place) else { continue };
            let crowded =
                |&(of, _): &(usize, f64)| is_over(at(loads, of), at(&self.model.limits, of));
            if !is_valid && !now.loads.iter().any(crowded) {
                continue;
            }
            for &other in near.iter().filter(|other| **other != place) {
                let Some(usage) = self.usage(tag, other) else { continue };
                let change = usage.cost - now.cost;
                // The places are in the order of their cost.
                if is_valid && change >= -now.cost * TOLERANCE {
                    break;
                }
                let moved = excess + self.change_of_excess(&mut scratch, now, usage);
                let value = match is_valid {
                    true if moved > 1e-9 => continue,
                    true => change,
                    false if moved >= excess - 1e-9 => continue,
                    false => (change + 1e-9).max(0.0) / (excess - moved) - (excess - moved) * 1e-12,
                };
                if best.is_none_or(|(least, ..)| value < least) {
                    best = Some((value, tag, other));
                }
            }
        }
        best.map(|(_, tag, place)| (tag, place))
    }

    fn change_of_excess(&self, loads: &mut [f64], now: &Usage, next: &Usage) -> f64 {
        let over = |of: usize, load: f64| {
            let limit = at(&self.model.limits, of);
            if is_over(load, limit) { (load - limit) / self.unit(of) } else { 0.0 }
        };
        let touched = || now.loads.iter().chain(&next.loads);
        let mut change = 0.0;
        self.model.add(loads, now, -1.0);
        self.model.add(loads, next, 1.0);
        let mut seen: Vec<usize> = touched().map(|(of, _)| *of).collect();
        seen.sort_unstable();
        seen.dedup();
        for &of in &seen {
            change += over(of, at(loads, of));
        }
        self.model.add(loads, next, -1.0);
        self.model.add(loads, now, 1.0);
        for &of in &seen {
            change -= over(of, at(loads, of));
        }
        change
    }

    /// Decides among the places that the bound leaves. Returns true if there is no plan.
    fn finish(&mut self, remaining: &mut Remaining<'_>) -> bool {
        let most = self.best.as_ref().map_or(f64::INFINITY, |best| best.0);
        if self.bound >= most * (1.0 - TOLERANCE) {
            return false;
        }
        self.prices.clone_from(&self.best_prices);
        let (_, bound) = self.cheapest();
        let mut kept: Vec<Vec<&(usize, Usage)>> = Vec::with_capacity(self.pools.len());
        let mut is_complete = true;
        for (pool, priced) in self.pools.iter().zip(&self.reduced) {
            let least = priced.iter().copied().fold(pool.others, f64::min);
            is_complete &= bound + (pool.others - least) >= most * (1.0 - TOLERANCE)
                || pool.others.is_infinite();
            let may = |price: &f64| bound + (price - least) < most * (1.0 - TOLERANCE * 1e-3);
            let places = pool.places.iter().zip(priced).filter(|(_, price)| may(price));
            kept.push(places.map(|(place, _)| place).collect());
        }
        if kept.iter().any(Vec::is_empty) && most.is_finite() && is_complete {
            self.bound = most;
            return false;
        }
        if kept.iter().map(Vec::len).sum::<usize>() > VARIABLES_MAX {
            // The program then finds better places, but proves nothing.
            is_complete = false;
            let most = (HEURISTIC_MAX / kept.len().max(1)).max(2);
            for ((kept, pool), near) in kept.iter_mut().zip(self.pools).zip(self.near(most)) {
                *kept = near.into_iter().filter_map(|place| pool.places.get(place)).collect();
            }
        }
        match choose(self.model, &kept, remaining) {
            Answer::Optimal(assignment) => {
                let cost = self.adopt(&assignment);
                if is_complete {
                    self.bound = cost.min(most);
                }
            }
            Answer::Feasible(assignment) => {
                self.adopt(&assignment);
            }
            Answer::Infeasible if most.is_finite() && is_complete => self.bound = most,
            Answer::Infeasible => return most.is_infinite() && is_complete,
            Answer::Unknown => {}
        }
        false
    }

    /// Takes an assignment of single proxies if it is cheaper. Returns its cost.
    fn adopt(&mut self, assignment: &Assignment) -> f64 {
        let mut places = Vec::with_capacity(self.pools.len());
        let mut cost = 0.0;
        for (pool, proxies) in self.pools.iter().zip(assignment) {
            let node = proxies.first().copied();
            let place = pool.places.iter().position(|(at, _)| Some(*at) == node).unwrap_or(0);
            cost += pool.places.get(place).map_or(0.0, |(_, usage)| usage.cost);
            places.push(place);
        }
        if self.best.as_ref().is_none_or(|best| cost < best.0) {
            self.best = Some((cost, places));
        }
        cost
    }
}
