//! Errors name the item, its value and a fix.

use paceline_plan::{
    Binding, PlanError, PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag, plan,
};
use paceline_sched::{Capacity, Duration};

/// A path of four nodes, a tag at the first and a subscriber at the last.
fn path() -> PlanProblem {
    let mut problem = PlanProblem::new(["a", "b", "c", "d"].map(PlanNode::new).to_vec());
    problem.links = (0..3).map(|node| PlanLink::new(node, node + 1)).collect();
    let mut tag = PlanTag::new("camera", 0, Duration::from_millis(10), 1_000);
    tag.subscribers.push(PlanSubscriber { node: 3, scale: 4, bytes: 1_000, within: None });
    problem.tags.push(tag);
    problem
}

/// The expected start of an error, and the change that causes it.
type Change = (&'static str, fn(&mut PlanProblem));

fn fails(problem: &PlanProblem) -> PlanError {
    plan(problem, &mut || std::time::Duration::from_secs(60)).unwrap_err()
}

#[test]
fn invalid_values_are_named() {
    let change: &[Change] = &[
        ("nodes has 0 entries", |it| it.nodes.clear()),
        ("nodes[1].id is \"a\" again", |it| it.nodes[1].id = "a".to_owned()),
        ("nodes[0].id is empty", |it| it.nodes[0].id.clear()),
        ("nodes[2].cpu is -1", |it| it.nodes[2].cpu = Some(-1.0)),
        ("nodes[2].cpu is NaN", |it| it.nodes[2].cpu = Some(f64::NAN)),
        ("links[0].to is node 9: must be from 0 to 3", |it| it.links[0].to = 9),
        ("the link b → b is a loop", |it| it.links[0].from = 1),
        ("the link a → b is given twice", |it| it.links.push(PlanLink::new(0, 1))),
        ("tags[0] is node 7", |it| it.tags[0].publishers = vec![7]),
        ("tags[0].publishers is empty", |it| it.tags[0].publishers.clear()),
        ("tags[0].publishers has a node twice", |it| it.tags[0].publishers = vec![0, 0]),
        ("tags[0].tag is empty", |it| it.tags[0].tag.clear()),
        ("tags[1].tag is \"camera\" again", |it| it.tags.push(it.tags[0].clone())),
        ("tags[0].allowed is empty", |it| it.tags[0].allowed = Some(Vec::new())),
        ("tags[0]: period and bytes", |it| it.tags[0].bytes = 0),
        ("tags[0].cpu_send is -0.5", |it| it.tags[0].cpu.send = -0.5),
        ("tags[0].subscribers[0]: scale", |it| it.tags[0].subscribers[0].scale = 0),
        ("proxies is 0", |it| it.proxies = 0),
        ("weight is -1", |it| it.objective = paceline_plan::Objective::Weighted(-1.0)),
    ];
    for (expected, change) in change {
        let mut problem = path();
        change(&mut problem);
        let error = fails(&problem);
        assert!(matches!(error, PlanError::Value(_)), "{error:?}");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn a_disconnected_subscriber_is_named() {
    let mut problem = path();
    problem.links.remove(1);
    let error = fails(&problem);
    assert!(matches!(error, PlanError::Disconnected { .. }), "{error:?}");
    assert!(error.to_string().contains("from the publisher a to the subscriber d"), "{error}");
}

#[test]
fn a_delay_bound_that_no_node_meets_is_named_with_the_smallest() {
    let mut problem = path();
    problem.tags[0].subscribers[0].within = Some(Duration::from_millis(29));
    let error = fails(&problem);
    assert_eq!(
        error.to_string(),
        "camera: infeasible for the subscriber d within 29 ms: the binding constraint is its delay \
         bound; the smallest feasible delay is 30 ms"
    );
    problem.tags[0].subscribers[0].within = Some(Duration::from_millis(30));
    assert!(plan(&problem, &mut || std::time::Duration::from_secs(60)).is_ok());
}

#[test]
fn a_link_that_is_too_thin_is_named_with_the_smallest_delay_beside_it() {
    let mut problem = path();
    // 100 samples of 8,000 bits per second need 800 kbit/s on c → d unless c or an earlier node scales.
    problem.links[2].capacity = Capacity::from_bits_per_s(300_000).ok();
    problem.tags[0].subscribers[0].within = Some(Duration::from_millis(30));
    let error = fails(&problem);
    let PlanError::Infeasible { smallest, binding, .. } = &error else { panic!("{error}") };
    assert_eq!(*smallest, Some(Duration::from_millis(60)), "scaled at c: 10 + 10 + 40 ms");
    let link = Binding::Link { from: "c".to_owned(), to: "d".to_owned(), capacity: 300_000 };
    assert_eq!(**binding, link);
    problem.links[2].capacity = Capacity::from_bits_per_s(100_000).ok();
    let error = fails(&problem);
    assert!(error.to_string().ends_with("no delay bound helps, so raise this limit"), "{error}");
}

#[test]
fn a_processor_that_is_too_slow_is_named() {
    let mut problem = path();
    problem.tags[0].cpu.receive = 0.002;
    problem.nodes[3].cpu = Some(0.01);
    let error = fails(&problem);
    let PlanError::Infeasible { binding, smallest, .. } = &error else { panic!("{error}") };
    assert_eq!(**binding, Binding::Cpu { node: "d".to_owned(), limit: 0.01 });
    assert_eq!(*smallest, None);
}

#[test]
fn without_time_there_is_a_plan_or_a_named_error() {
    let problem = path();
    let planned = plan(&problem, &mut || std::time::Duration::ZERO).unwrap();
    assert!(planned.bound <= planned.cost);
    let mut tight = path();
    tight.tags.push(PlanTag { tag: "second".to_owned(), ..tight.tags[0].clone() });
    tight.links[0].capacity = Capacity::from_bits_per_s(500_000).ok();
    match plan(&tight, &mut || std::time::Duration::ZERO) {
        Ok(planned) => assert!(planned.link_bits[0] <= 500_000.0),
        Err(error) => assert_eq!(error, PlanError::Unknown),
    }
}
