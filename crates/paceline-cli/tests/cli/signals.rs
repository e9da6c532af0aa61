//! Ends of commands: Ctrl-C, readers that close the pipe, readers that stop reading.

use crate::host::{Host, Running};
use rustix::process::Signal;
use std::time::Duration;

fn settle() {
    std::thread::sleep(Duration::from_millis(1_500));
}

#[test]
fn a_node_prints_its_name_and_ends_on_a_signal() {
    for signal in [Signal::INT, Signal::TERM] {
        let host = Host::new();
        let node = host.start(&["node", "--name", "gate", "--json"]);
        settle();
        node.signal(signal);
        let node = node.ended();
        assert_eq!(node.code, Some(0), "{node:?}");
        let line = &node.json()[0];
        assert_eq!(line["name"], "gate");
        assert_eq!(line["id"].as_str().map(str::len), Some(16));
        assert_eq!(line["links"], serde_json::json!([]));
    }
}

#[test]
fn ctrl_c_ends_a_stream_with_its_summary_and_code_0() {
    let host = Host::new();
    let _camera = host.start(&["pub", "cam", "--test-card", "160x120@10"]);
    let open = host.start(&["sub", "cam", "--json"]);
    let bounded = host.start(&["sub", "cam", "--count", "1000000"]);
    settle();
    settle();
    for sub in [&open, &bounded] {
        sub.signal(Signal::INT);
    }
    let open = open.ended();
    assert_eq!(open.code, Some(0), "{open:?}");
    assert!(open.json().last().unwrap()["summary"]["delivered"].is_u64());
    assert_eq!(bounded.ended().code, Some(130), "it had more to do");
}

#[test]
fn two_immediate_ctrl_c_count_as_one() {
    let host = Host::new();
    let _camera = host.start(&["pub", "cam", "--test-card", "160x120@10"]);
    let sub = host.start(&["sub", "cam"]);
    settle();
    settle();
    sub.signal(Signal::INT);
    sub.signal(Signal::TERM);
    let sub = sub.ended();
    assert_eq!(sub.code, Some(0), "{sub:?}");
    assert!(sub.text().lines().last().unwrap().starts_with("delivered "), "{sub:?}");
}

#[test]
fn a_closed_standard_output_ends_the_command_quietly() {
    let host = Host::new();
    let _camera = host.start(&["pub", "cam", "--test-card", "160x120@20"]);
    let child = host.command(&["sub", "cam", "--json"]).spawn().unwrap();
    let mut sub = Running::unread(child);
    assert!(sub.first_line().contains("\"tag\":\"cam\""));
    assert_eq!(sub.status().code(), Some(0));
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut sub.child().stderr.take().unwrap(), &mut stderr).unwrap();
    for word in ["panicked", "error: ", "ipe"] {
        assert!(!stderr.contains(word), "{stderr}");
    }
}

#[test]
fn a_subscriber_that_stops_reading_costs_the_others_nothing() {
    let host = Host::new();
    let _camera = host.start(&["pub", "cam", "--test-card", "320x240@20"]);
    let stuck = host.command(&["sub", "cam", "--out", "-"]).spawn().unwrap();
    let _stuck = Running::unread(stuck);
    settle();
    settle();
    let sub = host.run(&["sub", "cam", "--count", "30", "--timeout", "20s", "--json"]);
    assert_eq!(sub.code, Some(0), "{sub:?}");
    let seqs: Vec<u64> = sub.json().iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1), "{seqs:?}");
    let rate = sub.json().last().unwrap()["summary"]["rate_hz"].as_f64().unwrap();
    assert!((16.0..26.0).contains(&rate), "{rate}");
}
