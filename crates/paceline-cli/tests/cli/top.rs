//! `top` and `trace`: tables without a terminal, a screen on a terminal, and the path of samples.

use crate::host::{Ended, Host, LIMIT, Running, free_port};
use rustix::process::Signal;
use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn without_a_terminal_it_prints_tables() {
    let host = Host::new();
    let _node = host.start_node();
    let _card = host.start(&["pub", "robot/cam", "--test-card", "160x120@20"]);
    let _sub = host.start(&["sub", "robot/cam", "--max-hz", "5", "--json"]);
    host.wait_for_subscriptions(1);
    std::thread::sleep(Duration::from_secs(2));
    let once = host.run(&["top", "--once", "--sort", "rate"]);
    let text = once.text();
    assert_eq!(once.code, Some(0), "{once:?}");
    assert!(text.starts_with("paceline top: 3 nodes, "), "{text}");
    for part in ["\nLINKS\nlink ", "\nSTREAMS\ntag ", "\nSUBSCRIPTIONS\npattern "] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains('\x1b'), "{text:?}");
    let row = text.lines().rev().find(|line| line.starts_with("robot/cam")).unwrap();
    assert!(row.contains("  5 Hz  "), "{row}");
    let batch = host.start(&["top", "--batch", "--interval", "0.5s"]);
    std::thread::sleep(Duration::from_secs(5));
    batch.signal(Signal::INT);
    let batch = batch.ended();
    assert_eq!(batch.code, Some(0), "{batch:?}");
    assert!(batch.text().matches("paceline top: ").count() >= 3, "{batch:?}");
}

#[test]
fn a_node_that_dies_is_shown_as_gone_and_rates_stay_right() {
    let host = Host::new();
    let _node = host.start_node();
    let _other = host.start(&["pub", "other", "--test-card", "160x120@10"]);
    let _sub = host.start(&["sub", "other", "--json"]);
    let mut card = host.start(&["pub", "cam", "--test-card", "160x120@10", "--name", "robot"]);
    let batch = host.start(&["top", "--batch"]);
    std::thread::sleep(Duration::from_secs(4));
    card.child().kill().unwrap();
    let _ = card.child().wait();
    std::thread::sleep(Duration::from_secs(7));
    batch.signal(Signal::INT);
    let batch = batch.ended();
    let text = batch.text();
    assert!(text.contains("gone: robot\n"), "{text}");
    // Waiting for the dead process delays readings, which must not change the rates.
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("other ") && line.contains(" all "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert!(rows.len() > 4, "{text}");
    for row in rows {
        let form = row.iter().position(|cell| *cell == "all").unwrap();
        let rate: f64 = row[form + 1].parse().unwrap();
        assert!(rate < 25.0, "{row:?} in {text}");
    }
}

#[test]
fn invalid_arguments_are_refused_and_standard_output_may_close() {
    let host = Host::new();
    let empty = host.run(&["top", "--once", "--timeout", "300ms"]);
    assert!(empty.text().starts_with("no other node answers"), "{empty:?}");
    host.run(&["top", "--sort", "x"])
        .said(2, "must be tag, node, rate, bits, delay, late or drops");
    host.run(&["top", "--interval", "0s"]).said(2, "must be from 500ms to 1min");
    host.run(&["trace", "a/*"]).said(2, "must be one tag, without * and **");
    let _card = host.start(&["pub", "cam", "--test-card", "160x120@10"]);
    let mut top = Running::unread(host.command(&["top", "--interval", "0.5s"]).spawn().unwrap());
    assert!(top.first_line().starts_with("paceline top: "));
    assert_eq!(top.status().code(), Some(0));
}

/// Runs `words` in a terminal of 80 columns and 24 lines, and prints the terminal modes afterwards. Types
/// `typed` after three seconds. Returns `None` if script(1), which provides the terminal, is not installed.
fn in_terminal(host: &Host, words: &str, typed: &str) -> Option<Ended> {
    let paceline = env!("CARGO_BIN_EXE_paceline");
    let line = format!("stty cols 80 rows 24; {paceline} {words}; echo ended $?; stty -a");
    let command = host.command(&[]);
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").current_dir(host.path("."));
    for (key, value) in command.get_envs().filter_map(|(key, value)| Some((key, value?))) {
        script.env(key, value);
    }
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().ok()?;
    let mut keys = child.stdin.take()?;
    let typed = typed.to_owned();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        let _ = keys.write_all(typed.as_bytes());
        // The end of the input would end the terminal.
        std::thread::sleep(LIMIT);
    });
    Some(Running::gathered(child).ended())
}

#[test]
fn a_terminal_is_restored() {
    let host = Host::new();
    let _node = host.start_node();
    let _card = host.start(&["pub", "robot/cam", "--test-card", "160x120@10"]);
    for (words, keys, code) in [
        ("top", "\tsr h hq", 0),
        ("top", "\x03", 0),
        ("top", "\x1b[B\x1b[5~q", 0),
        ("top & sleep 4; kill -TERM $!; wait $!", "", 0),
        ("top & sleep 4; kill -INT $!; wait $!", "", 0),
    ] {
        let Some(ended) = in_terminal(&host, words, keys) else {
            println!("skipped: a_terminal_is_restored (script(1) is not installed)");
            return;
        };
        let text = ended.text();
        let (enter, leave) = ("\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l");
        let at = |part: &str| {
            text.rfind(part).unwrap_or_else(|| panic!("{words}: no {part:?}: {text:?}"))
        };
        assert!(at(enter) < at(leave), "{words}: {text:?}");
        assert!(at(leave) < at(&format!("ended {code}")), "{words}: {text:?}");
        assert!(text.contains("STREAMS (") && text.contains("q end  s sort"), "{words}: {text:?}");
        let modes = &text[at("ended")..];
        let modes: Vec<&str> = modes.split_whitespace().collect();
        for mode in ["icanon", "echo", "isig"] {
            assert!(modes.contains(&mode), "{words} {keys:?}: {modes:?}");
        }
    }
}

#[test]
fn a_trace_splits_the_age_over_every_hop() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("name=back,connect=tcp/127.0.0.1:{port}");
    let _there = robot.start(&["node", "--name", "robot", "--link", &listen]);
    let _here = operator.start(&["node", "--name", "operator", "--link", &connect]);
    let _camera = robot.start(&["pub", "cam", "--test-card", "320x240@20", "--name", "camera"]);
    let ask = ["trace", "cam", "--max-hz", "5", "--count", "25", "--duration", "30s"];
    let trace = operator.run(&[&ask[..], &["--json"]].concat());
    assert_eq!(trace.code, Some(0), "{trace:?}");
    let lines = trace.json();
    assert_eq!(lines.len(), 26, "{trace:?}");
    let way = &lines[25]["trace"];
    assert_eq!(way["age"]["samples"], 25);
    let parts = way["parts"].as_array().unwrap();
    let at: Vec<&str> = parts.iter().filter_map(|part| part["at"].as_str()).collect();
    assert_eq!(at[0], "camera", "{way}");
    assert!(at.contains(&"robot.thin") && at.contains(&"thin to operator"), "{way}");
    let us = |name: &str, what: &str| {
        let found = parts.iter().find(|part| part["at"] == name);
        found.and_then(|part| part[what].as_u64())
    };
    // 2 Mbit/s carry a picture of 10 kB in 40 ms; the loopback path is much faster.
    assert!(us("robot.thin", "us") > us("thin to operator", "us"), "{way}");
    assert!(us("robot.thin", "us") > Some(10_000), "{way}");
    let [p50, p99, max] = ["p50_us", "p99_us", "max_us"].map(|it| us("robot.thin", it));
    assert!(Some(10_000) < p50 && p50 <= p99 && p99 <= max, "{way}");
    assert_eq!(us("robot.thin", "samples"), Some(25), "{way}");
    // The parts of each sample add up to its age.
    for line in &lines[..25] {
        let its = line["parts"].as_array().unwrap();
        assert_eq!(its.len(), parts.len(), "{line}");
        let sum: Option<u64> = its.iter().map(|part| part["us"].as_u64()).sum();
        assert_eq!(sum, line["age_us"].as_u64(), "{line}");
    }
    let [age, p99, max] = ["us", "p99_us", "max_us"].map(|it| way["age"][it].as_u64().unwrap());
    assert!(age <= max && p99 <= max, "{way}");
    let oldest = lines.iter().filter_map(|line| line["age_us"].as_u64()).max();
    assert_eq!(oldest, Some(max), "{way}");
    // Nodes behind a thin link are queried only with `--all`.
    let near = operator.run(&["top", "--once"]).text();
    assert!(
        near.starts_with("paceline top: 1 node,") && near.contains(", 2 not queried"),
        "{near}"
    );
    let all = operator.run(&["top", "--once", "--all"]).text();
    assert!(all.starts_with("paceline top: 3 nodes,") && all.contains("robot.thin"), "{all}");
    let text = operator.run(&ask);
    assert!(text.text().contains("\n25 samples\nat "), "{text:?}");
    assert!(text.text().contains("No clocks are compared"), "{text:?}");
}
