//! Windows are held for whoever counts them: at the subscriber, whatever the phases of the sources.

use paceline_sim::scenario::{Plan, Summary, run};

const FLOOD: &str = include_str!("../../../examples/scenarios/flood.toml");

/// The flood with sources whose phases drift through all that there are.
fn drifting(flood: &str) -> String {
    let mut text = FLOOD.replace("hz = 1000\nbytes = 750", flood);
    assert_ne!(text, FLOOD.replace("hz = 1000", ""), "the file has another flood now");
    for (tag, hz) in [("left", "33"), ("right", "33.2"), ("rear", "32.9")] {
        let before = format!("tag = \"robot/{tag}\"\nkind = \"picture\"\nhz = 33\n");
        assert!(text.contains(&before), "the file has other sources now");
        let after =
            format!("tag = \"robot/{tag}\"\nkind = \"picture\"\nhz = {hz}\njitter_ms = 1\n");
        text = text.replace(&before, &after);
    }
    text.replace("duration_s = 20", "duration_s = 60")
}

fn violated(text: &str) -> Vec<(String, u64, u64)> {
    let plan = Plan::read(text, "windows.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let summary = Summary::of(&plan, &run(&plan, 1), 1);
    let flows = summary.flows.into_iter();
    flows.filter_map(|flow| flow.windows.map(|w| (flow.publisher, w.all, w.violated))).collect()
}

#[test]
fn no_window_is_violated_at_the_subscriber_whatever_the_phases() {
    for flood in ["hz = 12\nbytes = 64000", "hz = 1000\nbytes = 750", "hz = 5000\nbytes = 64"] {
        let windows = violated(&drifting(flood));
        assert_eq!(windows.len(), 3, "{windows:?}");
        for (tag, all, violated) in windows {
            assert!(all > 400, "{tag}: {all} windows");
            assert_eq!(violated, 0, "{tag}: of {all} windows, beside a flood of {flood}");
        }
    }
}
