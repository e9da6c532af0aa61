//! The planner, the mixed-integer program and the exhaustive search have equal costs.

use crate::random::{Sizes, problem};
use paceline_plan::{
    PlanError, PlanProblem, PlanState, PlanTag, Planned, cost_of, exhaustive, integer, plan,
};
use std::time::Duration;

fn long() -> Duration {
    Duration::from_secs(60)
}

/// Returns the costs of the three solvers if there is a plan.
fn compare(seed: u64, problem: &PlanProblem) -> Option<f64> {
    let planned = plan(problem, &mut long);
    let program = integer(problem, &mut long);
    match (exhaustive(problem), planned, program) {
        (Ok(all), Ok(planned), Ok(program)) => {
            for other in [&planned, &program] {
                check(seed, &all, other);
                check_cost_of(seed, problem, other);
            }
            Some(all.cost)
        }
        (Err(all), Err(planned), Err(program)) => {
            assert!(matches!(all, PlanError::Infeasible { .. }), "{seed}: {all}");
            assert_eq!((&planned, &program), (&all, &all), "{seed}");
            None
        }
        (all, planned, program) => {
            panic!("{seed}:\n{all:?}\n{planned:?}\n{program:?}\n{problem:?}")
        }
    }
}

fn check(seed: u64, all: &Planned, other: &Planned) {
    assert!(
        (all.cost - other.cost).abs() <= 1e-5 * all.cost.max(1e-9),
        "{seed}: {all:?}\n{other:?}"
    );
    assert_eq!(other.state, PlanState::Optimal, "{seed}: {all:?}\n{other:?}");
    let late = |it: &&paceline_plan::PlannedStream| it.within.is_some_and(|most| it.delay > most);
    assert_eq!(other.streams.iter().find(late), None, "{seed}");
}

/// Checks that the places of a plan have its cost, and that places for fewer subscribers are refused.
fn check_cost_of(seed: u64, problem: &PlanProblem, planned: &Planned) {
    let of = |tag: &PlanTag| vec![usize::MAX; tag.subscribers.len()];
    let mut places: Vec<Vec<usize>> = problem.tags.iter().map(of).collect();
    assert!(matches!(cost_of(problem, &places), Err(PlanError::Value(_))), "{seed}");
    for stream in &planned.streams {
        places[stream.tag][stream.subscriber] = stream.proxy;
    }
    let cost = cost_of(problem, &places).unwrap();
    assert!((cost - planned.cost).abs() <= 1e-9 * cost, "{seed}: {cost}\n{planned:?}");
    places[0].pop();
    assert!(matches!(cost_of(problem, &places), Err(PlanError::Value(_))), "{seed}");
}

#[test]
fn one_tag_on_500_graphs_of_up_to_8_nodes() {
    let sizes =
        Sizes { nodes: 8, tags: 1, publishers: 2, subscribers: 4, proxies: 3, limits: false };
    let feasible = (0..500).filter(|&seed| compare(seed, &problem(seed, sizes)).is_some());
    let feasible = feasible.count();
    assert!((250..500).contains(&feasible), "{feasible}");
}

#[test]
fn several_tags_with_limits() {
    let sizes =
        Sizes { nodes: 6, tags: 3, publishers: 2, subscribers: 3, proxies: 2, limits: true };
    let feasible = (1_000..1_300).filter(|&seed| compare(seed, &problem(seed, sizes)).is_some());
    let feasible = feasible.count();
    assert!((80..300).contains(&feasible), "{feasible}");
}
