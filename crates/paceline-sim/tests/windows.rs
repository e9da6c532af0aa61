//! Loss windows hold at the subscriber, whatever the phases of the sources.

use paceline_sched::{Capacity, Duration, LossTolerance};
use paceline_sim::ask::{Ask as _, all, payloads, pictures};
use paceline_sim::scenario::{Plan, Summary, run};
use paceline_sim::{LinkPlan, World};

const FLOOD: &str = include_str!("../../../examples/scenarios/flood.toml");

/// Returns the flood scenario with sources whose phases drift through all combinations.
fn drifting(flood: &str) -> String {
    let mut text = FLOOD.replace("hz = 1000\nbytes = \"750B\"", flood);
    assert_ne!(text, FLOOD.replace("hz = 1000", ""), "the file has another flood now");
    for (tag, hz) in [("left", "33"), ("right", "33.2"), ("rear", "32.9")] {
        let before = format!("tag = \"robot/{tag}\"\nkind = \"picture\"\nhz = 33\n");
        assert!(text.contains(&before), "the file has other sources now");
        let after =
            format!("tag = \"robot/{tag}\"\nkind = \"picture\"\nhz = {hz}\njitter = \"1ms\"\n");
        text = text.replace(&before, &after);
    }
    text.replace("duration = \"20s\"", "duration = \"60s\"")
}

fn violated(text: &str) -> Vec<(String, u64, u64)> {
    let plan = Plan::read(text, "windows.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let summary = Summary::of(&plan, &run(&plan, 1), 1);
    let flows = summary.flows.into_iter();
    flows.filter_map(|flow| flow.windows.map(|w| (flow.publisher, w.all, w.violated))).collect()
}

#[test]
fn no_window_is_violated_at_the_subscriber_in_any_phase() {
    for flood in
        ["hz = 12\nbytes = \"64kB\"", "hz = 1000\nbytes = \"750B\"", "hz = 5000\nbytes = \"64B\""]
    {
        let windows = violated(&drifting(flood));
        assert_eq!(windows.len(), 3, "{windows:?}");
        for (tag, all, violated) in windows {
            assert!(all > 400, "{tag}: {all} windows");
            assert_eq!(violated, 0, "{tag}: of {all} windows, next to a flood of {flood}");
        }
    }
}

/// Returns the number of samples, of 60, that a camera delivers in time, or the reason for a refusal.
///
/// A picture takes 22 ms on the idle link of 3 Mbit/s.
fn pictures_within(millis: u64) -> Result<usize, String> {
    let mut world = World::new(millis);
    let (here, there) = (world.add_node("here"), world.add_node("there"));
    let capacity = Capacity::from_bits_per_s(3_000_000).ok();
    world.connect(here, there, LinkPlan { capacity });
    let camera = world.publish(here, pictures("camera", 6, 7_560));
    let loss = LossTolerance::new(1, 4).unwrap_or_else(|error| panic!("{error}"));
    let asks = world.subscribe(there, all("camera").within_ms(millis).losing(loss));
    world.run_for(Duration::from_secs(5));
    world.every(camera, Duration::from_nanos(166_666_666), 60, payloads(7_560));
    world.run_for(Duration::from_secs(12));
    if let Some((_, refusal)) = world.refusals(asks).last() {
        assert!(world.delivered(asks).is_empty(), "{millis} ms: it was refused");
        return Err(refusal.to_string());
    }
    let within = Duration::from_millis(millis);
    Ok(world.delivered(asks).iter().filter(|sample| sample.age <= within).count())
}

#[test]
fn a_window_is_granted_only_if_a_whole_sample_ends_in_time() {
    let (mut promised, mut refused) = (0, 0);
    for millis in 15..45 {
        match pictures_within(millis) {
            Ok(arrived) => {
                assert!(arrived >= 45, "{millis} ms: 3 of 4 were granted, {arrived} of 60 arrived");
                promised += 1;
            }
            Err(why) => {
                assert!(why.contains("can't carry it in time"), "{millis} ms: {why}");
                refused += 1;
            }
        }
    }
    assert!(promised > 10 && refused > 8, "{promised} granted, {refused} refused");
}
