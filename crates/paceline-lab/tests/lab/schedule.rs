//! The schedules of the papers and their model, computed from the example files.

use crate::host::{Ended, Host, arg};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/schedule")
}

/// Returns the description of an example.
fn example(name: &str) -> Value {
    let path = examples().join(name).with_extension("json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// Runs the command with a description on standard input.
fn run(description: &str, args: &[&str]) -> Ended {
    use std::io::Write as _;
    let host = Host::new();
    let all: Vec<&str> = ["schedule", "-"].iter().chain(args).copied().collect();
    let mut child = host.command(&all).stdin(Stdio::piped()).spawn().unwrap();
    // The command may exit before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(description.as_bytes());
    crate::host::Running::gathered(child).ended()
}

fn lines(ended: &Ended) -> Vec<Value> {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the decisions and the summary.
fn decided(description: &Value, args: &[&str]) -> (Vec<Value>, Value) {
    let mut lines = lines(&run(&description.to_string(), args));
    let summary = lines.pop().unwrap()["summary"].take();
    (lines, summary)
}

/// Returns the stream served in each slot of 1 ms, `.` for an empty slot.
fn schedule(decisions: &[Value]) -> String {
    let mut slots = String::new();
    for line in decisions.iter().filter(|line| !line["finish_ns"].is_null()) {
        while (slots.len() as u64) < line["t_ns"].as_u64().unwrap() / 1_000_000 {
            slots.push('.');
        }
        slots.push_str(line["stream"].as_str().unwrap());
    }
    slots
}

/// Returns the concatenated names of the streams with a violated window.
fn violated(summary: &Value) -> String {
    let streams = summary["streams"].as_array().unwrap().iter();
    let violated = streams.filter(|stream| stream["violations"].as_u64().unwrap() > 0);
    violated.map(|stream| stream["stream"].as_str().unwrap()).collect()
}

/// Checks an example under another discipline: its schedule, and the streams with violated windows.
fn under(name: &str, discipline: &str, expected: &str, whose: &str) {
    let mut description = example(name);
    description["discipline"] = json!(discipline);
    description["duration"] = json!(format!("{}ms", expected.len()));
    let (decisions, summary) = decided(&description, &[]);
    assert_eq!(schedule(&decisions), expected, "{name} {discipline}");
    assert_eq!(violated(&summary), whose, "{name} {discipline}");
}

#[test]
fn the_later_rules_of_dwcs_give_their_schedules() {
    under("e1-half-quarter-quarter", "dwcs", &"1213".repeat(8), "");
    under("e2-mixed-periods", "dwcs", "AAAAAAAAABAAAAAAAAACAAAA", "BC");
    under("e3-overload", "dwcs", "BABABABA", "AB");
    under("e4-five-sixths", "dwcs", "CABCACBCACBACABCACBCACBA", "");
    under("e5-deadlines-alone", "dwcs", "ABABACABABAC", "");
    under("e6-run-of-misses", "dwcs", &"ABABAA".repeat(5), "");
    under("e7-four-periods", "dwcs", "ABCAADABCAACABCAABABCAAB", "");
    under("e8-full-link", "dwcs", &"ECABECDEABECEABCDE".repeat(3), "");
}

#[test]
fn the_original_rules_of_dwcs_give_their_schedules() {
    under("e1-half-quarter-quarter", "dwcs-original", &"1213".repeat(8), "");
    under("e2-mixed-periods", "dwcs-original", "BCAAAAAAAABCAAAAAAAABCAA", "");
    under("e3-overload", "dwcs-original", "BABABBAB", "AB");
    under("e4-five-sixths", "dwcs-original", "BCACBACABCACBACABCACBACA", "");
    under("e5-deadlines-alone", "dwcs-original", "ABABACABABAC", "");
    under("e6-run-of-misses", "dwcs-original", "ABABAABAABAABAAB", "");
    under("e7-four-periods", "dwcs-original", "ABACADABACABABABACABACAB", "");
    under("e8-full-link", "dwcs-original", &"ECABECDEABECEABCDE".repeat(3), "");
}

#[test]
fn virtual_deadlines_give_their_schedules() {
    under("e2-mixed-periods", "vds", "ABCAAAAAAAABCAAAAAAAABCA", "");
    under("e4-five-sixths", "vds", "CABCABCAABCACABCABCAABCA", "");
    under("e5-deadlines-alone", "vds", "ABABACABABAC", "");
    under("e6-run-of-misses", "vds", &"ABABAA".repeat(5), "");
    under("e7-four-periods", "vds", "ABACADABACABABABACABACAB", "");
    under("e8-full-link", "vds", &"ECABECDEABECEABCDE".repeat(3), "");
    for earliest in ["edf", "delay-edd"] {
        under("e5-deadlines-alone", earliest, "ABABACABABAC", "");
    }
}

/// Rule sets selected by options equal those selected by the discipline's name.
#[test]
fn ordering_and_adjustment_choose_the_rules() {
    let mut description = example("e3-overload");
    for (options, expected) in [
        (json!({"ordering": "original", "adjustment": "O"}), "BABABBAB"),
        (json!({"ordering": "N", "adjustment": "later"}), "BABABABA"),
    ] {
        description["options"] = options;
        assert_eq!(schedule(&decided(&description, &[]).0), expected);
    }
}

/// Returns the states before each decision, in the format of the model's traces.
fn trace(name: &str, deadlines: bool, count: usize) -> Vec<(String, String)> {
    let ended = run(&example(name).to_string(), &["--trace"]);
    let state = |state: &Value| {
        let mut text = state["window"].as_str().unwrap().to_owned();
        if deadlines {
            text.push_str(&format!("({})", state["deadline_ns"].as_u64().unwrap() / 1_000_000));
        }
        text.push_str(if state["tagged"] == true { "*" } else { "" });
        text
    };
    let before = |line: &Value| {
        let states = line["state"].as_array()?.iter().map(state).collect::<Vec<_>>().join(" ");
        Some((states, line["chosen"].as_str()?.to_owned()))
    };
    lines(&ended).iter().filter_map(before).take(count).collect()
}

fn assert_trace(found: &[(String, String)], expected: &[(&str, &str)]) {
    for (slot, (found, (state, chosen))) in found.iter().zip(expected).enumerate() {
        assert_eq!((found.0.as_str(), found.1.as_str()), (*state, *chosen), "slot {slot}");
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn a_trace_prints_the_state_before_each_choice() {
    let e1 = [
        ("1/2 3/4 6/8", "1"),
        ("1/1 2/3 5/7", "2"),
        ("1/2 2/2 4/6", "1"),
        ("1/1 1/1 3/5", "3"),
        ("1/2 3/4 3/4", "1"),
        ("1/1 2/3 2/3", "2"),
        ("1/2 2/2 1/2", "1"),
        ("1/1 1/1 0/1", "3"),
    ];
    assert_trace(&trace("e1-half-quarter-quarter", false, 32), &e1.repeat(4));
    let e3 = [
        ("0/1(1) 0/2(1)", "B"),
        ("0/2(2)* 0/1(2)", "A"),
        ("0/1(3) 0/2(3)*", "B"),
        ("0/2(4)* 0/2(4)", "A"),
        ("0/1(5) 0/3(5)*", "B"),
        ("0/2(6)* 0/2(6)", "A"),
        ("0/1(7) 0/3(7)*", "B"),
        ("0/2(8)* 0/2(8)", "A"),
    ];
    assert_trace(&trace("e3-overload", true, 8), &e3);
    let e8 = trace("e8-full-link", true, 7);
    assert_trace(&e8[..1], &[("1/2(3) 1/2(3) 1/3(3) 2/3(3) 0/1(3)", "E")]);
    assert_trace(
        &e8[2..4],
        &[("1/2(3) 1/2(3) 1/2(6) 2/3(3) 0/1(6)", "A"), ("1/1(6) 0/1(6) 1/2(6) 1/2(6) 0/1(6)", "B")],
    );
    assert_trace(&e8[6..], &[("1/2(9) 1/2(9) 1/1(9) 0/1(9) 0/1(9)", "D")]);
}

#[test]
fn the_summary_agrees_with_the_decision_lines() {
    let (decisions, summary) = decided(&example("e6-run-of-misses"), &[]);
    for stream in summary["streams"].as_array().unwrap() {
        let of = decisions.iter().filter(|line| line["stream"] == stream["stream"]);
        let count =
            |outcome: &str| of.clone().filter(|line| line["outcome"] == outcome).count() as u64;
        for outcome in ["on_time", "late", "dropped", "policed"] {
            assert_eq!(stream[outcome], json!(count(outcome)), "{outcome}");
        }
        let decided = count("on_time") + count("late") + count("dropped");
        let waiting = stream["waiting"].as_u64().unwrap();
        assert_eq!(stream["offered"].as_u64(), Some(decided + waiting));
        let delays: Vec<_> = of.clone().filter_map(|line| line["delay_ns"].as_u64()).collect();
        assert_eq!(stream["delay_ns"]["max"], json!(delays.iter().max().unwrap()));
    }
    assert_eq!(summary["streams"][1]["miss_run_max"], 3);
    assert_eq!(summary["utilisation"], 0.833333);
    assert_eq!((&summary["decided"], &summary["link_use"]), (&json!(60), &json!(1.0)));
    let (alone, again) = decided(&example("e6-run-of-misses"), &["--summary"]);
    assert_eq!((alone.len(), again), (0, summary));
}

#[test]
fn a_warning_names_missing_window_guarantees() {
    let e2 = example("e2-mixed-periods");
    let ended = run(&e2.to_string(), &["--summary"]);
    ended.said(
        0,
        "warning: dwcs guarantees windows only if all periods are equal, and here they are",
    );
    ended.said(0, "from 1 ms to 10 ms");
    let (_, summary) = decided(&e2, &[]);
    let warnings = summary["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().contains("try vds"), "{warnings:?}");
    let (_, summary) = decided(&example("e8-full-link"), &[]);
    assert_eq!(summary["warnings"], json!([]));
    run(&e2.to_string(), &["--check"]).said(3, "windows had more misses than");
    assert_eq!(run(&example("e8-full-link").to_string(), &["--check"]).code, Some(0));
}

#[test]
fn a_thin_link_carries_streams_of_all_kinds() {
    let (decisions, summary) = decided(&example("thin-link"), &[]);
    let of = |name: &str| {
        let streams = summary["streams"].as_array().unwrap();
        streams.iter().find(|stream| stream["stream"] == name).unwrap().clone()
    };
    for stream in ["steering", "camera"] {
        assert_eq!(of(stream)["violations"], 0, "{stream}");
    }
    assert_eq!(
        (&of("steering")["offered"], &of("steering")["waiting"]),
        (&json!(6_000), &json!(0))
    );
    assert!(of("steering")["on_time"].as_u64().unwrap() >= 5_700);
    assert_eq!((&of("log")["on_time"], &of("log")["policed"]), (&json!(3), &json!(1)));
    let policed = decisions.iter().find(|line| line["outcome"] == "policed").unwrap();
    assert_eq!((&policed["seq"], &policed["t_ns"]), (&json!(1), &json!(1_000_000)));
    assert!(of("file")["on_time"].as_u64().unwrap() > 0);
    assert!(decisions.iter().any(|line| line["stream"] == "file" && line["window"].is_null()));
    let times: Vec<_> = decisions.iter().map(|line| line["t_ns"].as_u64().unwrap()).collect();
    assert!(times.is_sorted());
}

fn of<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let streams = summary["streams"].as_array().unwrap();
    streams.iter().find(|stream| stream["stream"] == name).unwrap()
}

/// The first segment of the curve, 160 bytes within 3 ms, determines the delay. At the rate alone they would
/// take 20 ms.
#[test]
fn a_steep_first_piece_gives_a_low_rate_a_short_delay() {
    let mut description = example("hfsc");
    let (_, summary) = decided(&description, &["--summary"]);
    let longest = |summary: &Value| of(summary, "voice")["delay_ns"]["max"].as_u64().unwrap();
    // At most the duration of one longest packet, 0.96 ms, later than the curve.
    assert!(longest(&summary) <= 3_960_000, "{summary}");
    assert!(of(&summary, "bulk")["bytes"].as_u64() > of(&summary, "rest")["bytes"].as_u64());
    description["streams"][0]["real_time"] = json!("64kbit");
    let (_, flat) = decided(&description, &["--summary"]);
    assert!(longest(&flat) > 3_960_000, "{flat}");
}

#[test]
fn overload_by_one_tenant_does_not_affect_contracts_of_another() {
    let mut description = example("tenants");
    let (_, summary) = decided(&description, &["--summary"]);
    for stream in ["steering", "camera"] {
        assert_eq!(
            (&of(&summary, stream)["violations"], &of(&summary, stream)["dropped"]),
            (&json!(0), &json!(0))
        );
    }
    let classes = summary["classes"].as_array().unwrap();
    assert_eq!(classes[0]["bytes"], classes[1]["bytes"], "{classes:?}");
    assert_eq!(classes[2]["bytes"], of(&summary, "storm")["bytes"]);
    assert!(summary["warnings"][0].as_str().unwrap().contains("guarantees service curves"));
    // In one queue with the flood the contracts are violated.
    description["discipline"] = json!("fifo");
    description.as_object_mut().unwrap().remove("classes");
    for stream in description["streams"].as_array_mut().unwrap() {
        stream.as_object_mut().unwrap().remove("class");
        if stream["id"] == "storm" {
            stream["size"] = json!("64kB");
        }
    }
    let (_, alike) = decided(&description, &["--summary"]);
    assert!(alike["violations"].as_u64().unwrap() > 0, "{alike}");
}

#[test]
fn overload_violates_no_counted_window() {
    let small = example("flood");
    let mut large = small.clone();
    large["streams"][3]["size"] = json!("64kB");
    large["streams"][3]["arrivals"]["every"] = json!("170666667ns");
    for description in [small, large] {
        for (discipline, violated) in [
            ("vds", 0),
            ("dwcs-original-order", 0),
            ("dwcs", 132),
            ("edf", 132),
            ("static-priority", 132),
            ("fifo", 431),
        ] {
            let mut description = description.clone();
            description["discipline"] = json!(discipline);
            let (_, summary) = decided(&description, &["--summary"]);
            assert_eq!(summary["violations"], violated, "{discipline}");
        }
    }
}

#[test]
fn text_output_has_columns() {
    let host = Host::new();
    let path = examples().join("e3-overload.json");
    let text = host.run(&["schedule", arg(&path), "--text", "--trace"]);
    assert_eq!(text.code, Some(0), "{text:?}");
    let all = text.text();
    assert!(all.contains("[A 0/2*(2 ms), B 0/1(2 ms)]"), "{all}");
    assert!(all.contains("ON TIME") && all.contains("window violated"), "{all}");
    assert!(all.contains("contracts reserve 2.000 of the link"), "{all}");
    let summary = host.run(&["schedule", arg(&path), "--text", "--summary"]).text();
    assert!(summary.starts_with("STREAM") && summary.lines().count() == 4, "{summary}");
}

#[test]
fn every_example_has_a_test() {
    let here = include_str!("schedule.rs");
    for entry in std::fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(here.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn invalid_input_is_refused_with_its_field() {
    let host = Host::new();
    host.run(&["schedule", "no-such.json"]).said(1, "cannot open no-such.json");
    host.run(&["schedule"]).said(2, "<FILE>");
    host.run(&["bench", "hop", "--seconds=5"]).said(2, "'--seconds': write --duration 10s");
    host.run(&["bench", "hop", "--duration", "5"]).said(2, "needs a unit: 5s, 5000ms");
    host.run(&["schedule", "-", "--json", "--text"]).said(2, "cannot be used with");
    run("", &[]).said(2, "standard input: EOF while parsing a value at line 1 column 0");
    run("{", &[]).said(2, "standard input: EOF while parsing an object");
    let mut description = example("e3-overload");
    description["streams"][1]["loss"] = json!("3/2");
    let refused = run(&description.to_string(), &[]);
    refused.said(2, "streams[1].loss is \"3/2\": loss tolerance 3/2: x must be from 0 to y");
    assert!(refused.stdout.is_empty());
    // An endless input is rejected at its first byte.
    host.run(&["schedule", "/dev/zero"]).said(2, "/dev/zero: expected value");
}

#[test]
fn a_million_streams_are_scheduled() {
    let mut description =
        String::from(r#"{"discipline":"vds","slot":"1ns","duration":"3us","streams":["#);
    for id in 0..1_000_000 {
        description.push_str(if id == 0 { "" } else { "," });
        description.push_str(&format!(r#"{{"id":{id},"period":"2ms","loss":"1/2"}}"#));
    }
    description.push_str("]}");
    let ended = run(&description, &["--text", "--summary"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = ended.text();
    assert!(all.contains("and 999900 more streams; --json lists all"), "{all}");
    assert!(all.contains("vds once-per-period: 3000 decided in 3 µs"), "{all}");
    run(&description, &["--trace"]).said(2, "1000000 streams, must be at most 1000");
}
