//! The example scenario of a radio that fades.

use paceline_sched::Duration;
use paceline_sim::scenario::{Flow, Plan, Summary, oracles, run};

fn plan() -> Plan {
    let text = include_str!("../../../../examples/scenarios/fading-radio.toml");
    Plan::read(text, "fading-radio.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

fn flow<'s>(summary: &'s Summary, publisher: &str) -> &'s Flow {
    summary.flows.iter().find(|flow| flow.publisher == publisher).unwrap()
}

#[test]
fn steering_keeps_its_windows_and_the_camera_returns() {
    let plan = plan();
    for seed in 1..=3 {
        let record = run(&plan, seed);
        let broken = oracles(&plan, &record);
        assert!(broken.is_empty(), "{broken:?}");
        let summary = Summary::of(&plan, &record, seed);
        let (steering, camera) = (flow(&summary, "robot/steering"), flow(&summary, "robot/camera"));
        println!("{seed}: {:?}, late {}", steering.windows, steering.late);
        println!(
            "{seed}: {:?}, {} mHz, late {}",
            camera.steps, camera.rate_millihertz, camera.late
        );
        let windows = steering.windows.unwrap();
        assert!(windows.all > 390 && windows.violated == 0, "{windows:?}");
        let steps = camera.steps.unwrap();
        assert!(steps.reduced >= 2 && steps.restored >= 1 && steps.warned >= 2, "{steps:?}");
        assert!((5_000..25_000).contains(&camera.rate_millihertz), "{}", camera.rate_millihertz);
    }
}

#[test]
fn a_fixed_capacity_is_announced_to_the_nodes() {
    let text = include_str!("../../../../examples/scenarios/fading-radio.toml");
    let text = text.replace("auto 1mbit..50mbit", "20mbit");
    let plan = Plan::read(&text, "fixed.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let summary = Summary::of(&plan, &run(&plan, 1), 1);
    let (steering, camera) = (flow(&summary, "robot/steering"), flow(&summary, "robot/camera"));
    println!("{:?}, {:?}", steering.windows, camera.steps);
    assert_eq!(steering.windows.unwrap().violated, 0);
    let steps = camera.steps.unwrap();
    assert!(steps.reduced >= 2 && steps.restored >= 1, "{steps:?}");
}

#[test]
fn a_compressed_scenario_has_compressed_changes() {
    let plan = plan().squeezed(Duration::from_secs(4));
    assert_eq!(
        (plan.faults[0].at, plan.faults[0].until),
        (Duration::from_millis(800), Some(Duration::from_millis(2_800)))
    );
    let paceline_sim::scenario::FaultKind::Capacity(_, course) = &plan.faults[0].what else {
        panic!()
    };
    assert_eq!(course.changes().last().unwrap().0, Duration::from_millis(800));
}
