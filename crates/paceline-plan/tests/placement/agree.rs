//! The planner, the mixed-integer program and the exhaustive search have equal costs.

use crate::random::{Sizes, problem};
use paceline_plan::{
    CostModel, PlanError, PlanLink, PlanNode, PlanProblem, PlanState, PlanSubscriber, PlanTag,
    Planned, cost_of, exhaustive, integer, plan,
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
    let feasible = (0..500).filter(|&seed| compare(seed, &problem(seed, Sizes::ONE_TAG)).is_some());
    let feasible = feasible.count();
    assert!((250..500).contains(&feasible), "{feasible}");
}

#[test]
fn links_on_segments_count_a_form_once() {
    for limits in [false, true] {
        let sizes = Sizes { nodes: 6, tags: 2, limits, segments: true, ..Sizes::ONE_TAG };
        let (mut feasible, mut shared) = (0, 0);
        for seed in 2_000..2_150 {
            let problem = problem(seed, sizes);
            let Some(cost) = compare(seed, &problem) else { continue };
            feasible += 1;
            let mut apart = problem;
            apart.links.iter_mut().for_each(|link| link.segment = None);
            // Copies on all links can only cost more, and need the same capacities.
            let without = exhaustive(&apart).unwrap().cost;
            assert!(cost <= without * (1.0 + 1e-9), "{seed}: {cost} {without}");
            shared += usize::from(cost < without * 0.999);
        }
        assert!(feasible > 50 && shared > 8, "{feasible} feasible, {shared} cheaper");
    }
}

/// A publisher and two subscribers on a segment, and a node between that is one more hop.
#[test]
fn two_subscribers_on_a_segment_are_cheaper_to_scale_for_at_the_publisher() {
    let mut problem = PlanProblem::new(["robot", "left", "right"].map(PlanNode::new).to_vec());
    let tag = PlanTag::new("camera", 0, paceline_sched::Duration::from_millis(10), 1_000);
    let to = |node| PlanSubscriber { node, scale: 2, bytes: 1_000, within: None };
    problem.tags = vec![PlanTag { subscribers: vec![to(1), to(2)], ..tag }];
    problem.cost = CostModel::Multicast;
    for (segment, bits, text) in [
        (None, 800_000.0, "for 800.000 kbit/s;"),
        (
            Some(0),
            400_000.0,
            "for 400.000 kbit/s, after multicast on segments saves 400.000 kbit/s;",
        ),
    ] {
        let link = |to| PlanLink { segment, ..PlanLink::new(0, to) };
        problem.links = vec![link(1), link(2), link(1).back(), link(2).back()];
        let planned = plan(&problem, &mut long).unwrap();
        assert!((planned.cost - bits).abs() < 1e-6, "{planned:?}");
        // Admission reserves each copy, so each link has its whole load.
        assert!(planned.link_bits[..2].iter().all(|load| (load - 400_000.0).abs() < 1e-6));
        assert!(planned.because.contains(text), "{}", planned.because);
    }
}

#[test]
fn several_tags_with_limits() {
    let sizes = Sizes { nodes: 6, ..Sizes::LIMITED };
    let feasible = (1_000..1_300).filter(|&seed| compare(seed, &problem(seed, sizes)).is_some());
    let feasible = feasible.count();
    assert!((80..300).contains(&feasible), "{feasible}");
}
