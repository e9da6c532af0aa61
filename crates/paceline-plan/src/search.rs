//! The search: exact for each tag alone, and with a bound where tags compete.

use crate::budget::Remaining;
use crate::facility::several;
use crate::group::grouped;
use crate::limits::{Pool, share};
use crate::list::Assignment;
use crate::model::Model;
use crate::problem::CostModel;
use crate::program::{Answer, size, solve};

/// The most places of a tag's proxy that compete for limited resources.
const POOL_MAX: usize = 400;
/// The fewest such places in a large network.
const POOL_MIN: usize = 24;
/// The number of places times nodes from which on the pools are smaller.
const PATHS_MAX: usize = 400_000;
/// The most variables for which the mixed-integer program plans several proxies with limits.
const VARIABLES_MAX: usize = 3_000;

/// The result of a search.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// A plan and a lower bound of the cost of all plans.
    Plan(Assignment, f64),
    /// There is no plan.
    None,
    /// The time ended first.
    Unknown,
}

pub(crate) fn search(model: &Model<'_>, remaining: &mut Remaining<'_>) -> Found {
    let tags = model.problem.tags.len();
    let (mut assignment, mut bound) = (Vec::with_capacity(tags), 0.0);
    let mut loads = vec![0.0; model.limits.len()];
    for tag in 0..tags {
        let Some((proxies, least)) = alone(model, tag, remaining) else { return Found::None };
        model.add(&mut loads, &model.usage(tag, &proxies), 1.0);
        assignment.push(proxies);
        bound += least;
    }
    if model.exceeded(&loads).is_none() {
        return Found::Plan(assignment, bound);
    }
    match model.problem.proxies {
        1 => one_each(model, remaining),
        _ => several_each(model, bound, remaining),
    }
}

/// Returns the best proxies of a tag without limits, and a lower bound of their cost.
fn alone(
    model: &Model<'_>,
    tag: usize,
    remaining: &mut Remaining<'_>,
) -> Option<(Vec<usize>, f64)> {
    let subscribers = model.problem.tags.get(tag)?.subscribers.len();
    if subscribers == 0 {
        return Some((Vec::new(), 0.0));
    }
    if model.problem.proxies == 1 {
        let best = model.ranked(tag).best(model, remaining)?;
        return Some((vec![best.node; subscribers], best.bound));
    }
    let found = match model.problem.cost {
        CostModel::PerSubscriber | CostModel::SharedUpstream => several(model, tag, remaining),
        CostModel::Multicast => grouped(model, tag, remaining),
    }?;
    Some((found.proxies, found.bound))
}

fn one_each(model: &Model<'_>, remaining: &mut Remaining<'_>) -> Found {
    // Each place needs the paths from its node, which take longer in large networks.
    let most = (PATHS_MAX / model.problem.nodes.len()).clamp(POOL_MIN, POOL_MAX);
    let mut pools = Vec::with_capacity(model.problem.tags.len());
    for tag in 0..model.problem.tags.len() {
        let (mut places, others) = model.ranked(tag).pool(model, most, remaining);
        places.sort_by(|a, b| a.1.cost.total_cmp(&b.1.cost));
        pools.push(Pool { places, others });
    }
    let shared = share(model, &pools, remaining);
    match shared.places {
        Some(places) => {
            let taken = pools.iter().zip(&places).zip(&model.problem.tags);
            let assignment = taken.map(|((pool, &place), tag)| {
                let node = pool.places.get(place).map_or(0, |(node, _)| *node);
                vec![node; tag.subscribers.len()]
            });
            Found::Plan(assignment.collect(), shared.bound)
        }
        None if shared.is_infeasible => Found::None,
        None => Found::Unknown,
    }
}

fn several_each(model: &Model<'_>, bound: f64, remaining: &mut Remaining<'_>) -> Found {
    let tags: Vec<usize> = (0..model.problem.tags.len()).collect();
    let mut answer = Answer::Unknown;
    if size(model, &tags) <= VARIABLES_MAX {
        answer = solve(model, &tags, true, remaining);
    }
    match answer {
        Answer::Optimal(assignment) => {
            let cost = model.total(&assignment);
            Found::Plan(assignment, cost)
        }
        Answer::Infeasible => Found::None,
        Answer::Feasible(_) | Answer::Unknown => {
            let single = one_each(model, remaining);
            match (answer, single) {
                (Answer::Feasible(a), Found::Plan(b, _)) => {
                    let better = if model.total(&a) <= model.total(&b) { a } else { b };
                    Found::Plan(better, bound)
                }
                (Answer::Feasible(a), Found::None | Found::Unknown) => Found::Plan(a, bound),
                (_, Found::Plan(b, _)) => Found::Plan(b, bound),
                (_, Found::None | Found::Unknown) => Found::Unknown,
            }
        }
    }
}
