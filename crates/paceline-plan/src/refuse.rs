//! The reason for which a problem has no plan: the subscriber, the smallest feasible delay and the
//! binding constraint.

use crate::budget::Remaining;
use crate::error::{Binding, PlanError};
use crate::list::at;
use crate::model::Model;
use crate::problem::{PlanProblem, PlanTag};
use crate::search::{Found, search};
use crate::usage::is_over;
use paceline_sched::Duration;

/// The most limits that are dropped one by one to find the binding one.
const TRIED_MAX: usize = 16;
/// The most subscribers whose delay bounds are varied to find the smallest feasible one.
const VARIED_MAX: usize = 64;

/// Returns the error for a subscriber that no node serves in time, if there is one.
pub(crate) fn unmet(model: &Model<'_>) -> Option<PlanError> {
    for (tag, spec) in model.problem.tags.iter().enumerate() {
        let nodes = model.candidates(spec);
        for to in 0..spec.subscribers.len() {
            if !nodes.iter().any(|&node| model.in_time(tag, to, node)) {
                let delays = nodes.iter().map(|&node| model.longest(tag, to, node));
                let smallest = delays.min().filter(|delay| *delay < u64::MAX);
                return Some(infeasible(model, tag, to, smallest, Binding::Delay));
            }
        }
    }
    None
}

fn infeasible(
    model: &Model<'_>,
    tag: usize,
    to: usize,
    smallest: Option<u64>,
    binding: Binding,
) -> PlanError {
    let spec = model.problem.tags.get(tag);
    let subscriber = spec.and_then(|spec| spec.subscribers.get(to));
    PlanError::Infeasible {
        tag: spec.map_or_else(String::new, |spec| spec.tag.clone()),
        subscriber: subscriber.map_or_else(String::new, |it| model.name(it.node)),
        within: subscriber.and_then(|it| it.within),
        smallest: smallest.map(Duration::from_nanos),
        binding: Box::new(binding),
    }
}

/// Returns the reason for which the problem has no plan.
pub(crate) fn refuse(model: &Model<'_>, remaining: &mut Remaining<'_>) -> PlanError {
    if let Some(error) = unmet(model) {
        return error;
    }
    let (binding, resource) = binding(model, remaining);
    let ends = model.problem.tags.iter().enumerate().flat_map(|(tag, spec)| {
        spec.subscribers.iter().enumerate().map(move |(to, it)| (tag, to, it.within))
    });
    let ends: Vec<(usize, usize)> =
        ends.filter(|(.., within)| within.is_some()).map(|(tag, to, _)| (tag, to)).collect();
    for &(tag, to) in ends.iter().take(VARIED_MAX) {
        if let Some(smallest) = smallest(model, tag, to, remaining) {
            return infeasible(model, tag, to, Some(smallest), binding);
        }
    }
    // No single delay bound helps.
    let (tag, to) = resource.map_or((0, 0), |resource| greediest(model, resource));
    infeasible(model, tag, to, None, binding)
}

/// Returns the tag and the subscriber that need most of a resource.
fn greediest(model: &Model<'_>, resource: usize) -> (usize, usize) {
    let mut most = (f64::NEG_INFINITY, 0, 0);
    for (tag, spec) in model.problem.tags.iter().enumerate() {
        for to in 0..spec.subscribers.len() {
            let least = least_load(model, tag, to, resource);
            if least > most.0 {
                most = (least, tag, to);
            }
        }
    }
    (most.1, most.2)
}

/// Returns the load of a resource by a subscriber alone, at the node that uses it least.
fn least_load(model: &Model<'_>, tag: usize, to: usize, resource: usize) -> f64 {
    let Some(spec) = model.problem.tags.get(tag) else { return 0.0 };
    let nodes = model.candidates(spec).into_iter().filter(|&node| model.in_time(tag, to, node));
    nodes.map(|node| model.lone(tag, to, node, resource)).fold(f64::INFINITY, f64::min)
}

fn is_feasible(problem: &PlanProblem, remaining: &mut Remaining<'_>) -> bool {
    let model = Model::new(problem);
    model.is_ok_and(|model| matches!(search(&model, remaining), Found::Plan(..)))
}

/// Returns the smallest delay bound of a subscriber for which there is a plan, if there is one.
fn smallest(
    model: &Model<'_>,
    tag: usize,
    to: usize,
    remaining: &mut Remaining<'_>,
) -> Option<u64> {
    let mut problem = model.problem.clone();
    let mut with = |within: Option<u64>, remaining: &mut Remaining<'_>| {
        let subscriber = problem.tags.get_mut(tag).and_then(|tag| tag.subscribers.get_mut(to));
        if let Some(subscriber) = subscriber {
            subscriber.within = within.map(Duration::from_nanos);
        }
        is_feasible(&problem, remaining)
    };
    if !with(None, remaining) {
        return None;
    }
    let spec = model.problem.tags.get(tag)?;
    let nodes = model.candidates(spec).into_iter();
    let mut delays: Vec<u64> = nodes.map(|node| model.longest(tag, to, node)).collect();
    delays.sort_unstable();
    delays.dedup();
    let (mut low, mut high) = (0, delays.len().saturating_sub(1));
    while low < high {
        let middle = low.midpoint(high);
        if with(Some(at(&delays, middle)), remaining) { high = middle } else { low = middle + 1 }
    }
    delays.get(low).copied()
}

/// Returns the constraint without which there is a plan: a link or node that is exceeded without
/// limits, or the number of proxies.
fn binding(model: &Model<'_>, remaining: &mut Remaining<'_>) -> (Binding, Option<usize>) {
    let exceeded = exceeded_without_limits(model, remaining);
    let is_binding = |&&resource: &&usize| {
        let feasible = without(model, &[resource]);
        feasible.is_some_and(|free| matches!(search(&free, remaining), Found::Plan(..)))
    };
    // Without time, and if several limits bind together, the most exceeded one is named.
    let tried = || exceeded.iter().take(TRIED_MAX);
    let always = tried().find(|&&resource| is_always_over(model, resource));
    let resource = always.or_else(|| tried().find(is_binding)).or(exceeded.first()).copied();
    let Some(resource) = resource else {
        return (Binding::Proxies(model.problem.proxies), None);
    };
    let binding = match model.problem.links.get(resource) {
        Some(link) => Binding::Link {
            from: model.name(link.from),
            to: model.name(link.to),
            capacity: link.capacity.map_or(0, |capacity| capacity.bits_per_s()),
        },
        None => {
            let node = resource - model.first_node();
            Binding::Cpu { node: model.name(node), limit: at(&model.limits, resource) }
        }
    };
    (binding, Some(resource))
}

/// Returns true if each tag's subscriber that needs the resource most exceeds its limit, even if the
/// others need none of it.
fn is_always_over(model: &Model<'_>, resource: usize) -> bool {
    let of_tag = |(tag, spec): (usize, &PlanTag)| {
        let ends = 0..spec.subscribers.len();
        ends.map(|to| least_load(model, tag, to, resource)).fold(0.0, f64::max)
    };
    let load: f64 = model.problem.tags.iter().enumerate().map(of_tag).sum();
    is_over(load, at(&model.limits, resource))
}

/// Returns the model without the limits of some resources. Paths stay the same.
fn without<'a>(model: &Model<'a>, resources: &[usize]) -> Option<Model<'a>> {
    let mut free = Model::new(model.problem).ok()?;
    for &resource in resources {
        if let Some(limit) = free.limits.get_mut(resource) {
            *limit = f64::INFINITY;
        }
    }
    Some(free)
}

/// Returns the resources that the cheapest plan without limits exceeds, the most exceeded first.
fn exceeded_without_limits(model: &Model<'_>, remaining: &mut Remaining<'_>) -> Vec<usize> {
    let all: Vec<usize> = (0..model.limits.len()).collect();
    let found = without(model, &all).map(|free| search(&free, remaining));
    let Some(Found::Plan(assignment, _)) = found else { return Vec::new() };
    let mut loads = vec![0.0; model.limits.len()];
    for (tag, proxies) in assignment.iter().enumerate() {
        model.add(&mut loads, &model.usage(tag, proxies), 1.0);
    }
    let part = |load: f64, limit: f64| if limit > 0.0 { load / limit } else { f64::INFINITY };
    let over = loads.iter().zip(&model.limits).enumerate();
    let over = over.filter(|(_, (load, limit))| is_over(**load, **limit));
    let mut over: Vec<(f64, usize)> =
        over.map(|(of, (load, limit))| (part(*load, *limit), of)).collect();
    over.sort_by(|a, b| b.0.total_cmp(&a.0));
    over.into_iter().map(|(_, of)| of).collect()
}
