//! The reason for which a problem has no plan: the subscriber, the smallest feasible delay and the
//! binding constraint.

use crate::budget::Remaining;
use crate::error::{Binding, PlanError};
use crate::list::at;
use crate::model::Model;
use crate::problem::PlanProblem;
use crate::search::{Found, search};
use paceline_sched::Duration;

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
    let binding = binding(model, remaining);
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
    // No single delay bound helps. Name the first subscriber of the binding constraint.
    let (tag, to) = ends.first().copied().unwrap_or((0, 0));
    infeasible(model, tag, to, None, binding)
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

/// Returns the constraint without which there is a plan: the number of proxies if there are no
/// limits, else the link or node that is most in demand.
fn binding(model: &Model<'_>, remaining: &mut Remaining<'_>) -> Binding {
    let mut free = model.problem.clone();
    free.links.iter_mut().for_each(|link| link.capacity = None);
    free.nodes.iter_mut().for_each(|node| node.cpu = None);
    let scarce = Model::new(&free).ok().and_then(|free| match search(&free, remaining) {
        Found::Plan(assignment, _) => {
            let mut loads = vec![0.0; model.limits.len()];
            for (tag, proxies) in assignment.iter().enumerate() {
                model.add(&mut loads, &model.usage(tag, proxies), 1.0);
            }
            most_exceeded(model, &loads)
        }
        Found::None(_) | Found::Unknown => None,
    });
    let priced = match search(model, remaining) {
        Found::None(resource) => resource,
        Found::Plan(..) | Found::Unknown => None,
    };
    // The price is nearer to a proof than one plan without limits.
    let Some(resource) = scarce.and(priced).or(scarce) else {
        return Binding::Proxies(model.problem.proxies);
    };
    match model.problem.links.get(resource) {
        Some(link) => Binding::Link {
            from: model.name(link.from),
            to: model.name(link.to),
            capacity: link.capacity.map_or(0, |capacity| capacity.bits_per_s()),
        },
        None => {
            let node = resource - model.first_node();
            Binding::Cpu { node: model.name(node), limit: at(&model.limits, resource) }
        }
    }
}

fn most_exceeded(model: &Model<'_>, loads: &[f64]) -> Option<usize> {
    let over = loads.iter().zip(&model.limits).enumerate();
    let over = over.filter(|(_, (load, limit))| crate::usage::is_over(**load, **limit));
    let part = |load: f64, limit: f64| if limit > 0.0 { load / limit } else { f64::INFINITY };
    over.max_by(|(_, a), (_, b)| part(*a.0, *a.1).total_cmp(&part(*b.0, *b.1))).map(|(of, _)| of)
}
