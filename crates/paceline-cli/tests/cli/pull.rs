//! Pulling from the buffers of a publisher and of a node, over a link, and into files.

use crate::host::{Ended, Host, Running, arg, free_port};
use paceline_media::{Format, Size, mjpeg};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time limit for every wait.
const LIMIT: Duration = Duration::from_secs(30);

/// Publishes numbered lines in a loop at 20 Hz.
fn lines(host: &Host, tag: &str, more: &[&str]) -> Running {
    let file = host.path("lines.txt");
    let text: String = (0..40).map(|n| format!("line {n}\n")).collect();
    std::fs::write(&file, text).expect("a file");
    let mut args = vec!["pub", tag, "--file", arg(&file), "--loop", "--hz", "20"];
    args.extend(more);
    host.start(&args)
}

/// Pulls until the newest sample has at least this sequence number.
fn wait_for_seq(host: &Host, tag: &str, seq: u64) {
    let until = Instant::now() + LIMIT;
    loop {
        let pull = host.run(&["pull", tag, "--json"]);
        let newest = pull.json().first().and_then(|line| line["seq"].as_u64());
        if newest.is_some_and(|newest| newest >= seq) {
            return;
        }
        assert!(Instant::now() < until, "{pull:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn seqs(pull: &Ended) -> Vec<u64> {
    assert_eq!(pull.code, Some(0), "{pull:?}");
    pull.json().iter().filter_map(|line| line["seq"].as_u64()).collect()
}

fn summary(pull: &Ended) -> Value {
    pull.json().last().expect("a summary")["summary"].clone()
}

#[test]
fn buffered_samples_are_pulled_by_number_and_time() {
    let host = Host::new();
    let _pub = lines(&host, "log", &["--history", "1000", "--name", "robot"]);
    wait_for_seq(&host, "log", 12);
    let pull = host.run(&["pull", "log", "--seq", "2..5", "--json"]);
    assert_eq!(seqs(&pull), [2, 3, 4, 5]);
    let first = &pull.json()[0];
    assert_eq!((&first["tag"], &first["bytes"]), (&json!("log"), &json!("line 2".len())));
    assert_eq!(first["encoding"], "text/plain");
    let reported = summary(&pull);
    assert_eq!((&reported["found"], &reported["delivered"]), (&json!(4), &json!(4)));
    assert_eq!(
        (&reported["missing"], &reported["nodes"][0]["name"]),
        (&json!([]), &json!("robot"))
    );
    let [from, to] = [1, 2].map(|line| format!("{}ns", pull.json()[line]["captured_ns"]));
    let pull = host.run(&["pull", "log", "--from", &from, "--to", &to, "--json"]);
    assert_eq!(seqs(&pull), [3, 4]);
    assert_eq!(seqs(&host.run(&["pull", "log", "--seq", "..1", "--json"])), [0, 1]);
    let recent = host.run(&["pull", "log", "--from", "-1h", "--every", "4", "--json"]);
    assert!(seqs(&recent).windows(2).all(|pair| pair[1] - pair[0] == 4), "{recent:?}");
    assert_eq!(seqs(&recent)[0], 0);
    let newest = seqs(&host.run(&["pull", "log", "--newest", "3", "--json"]));
    assert_eq!((newest.len(), newest[2] - newest[0]), (3, 2));
    assert_eq!(seqs(&host.run(&["pull", "log", "--nth", "2", "--json"])).len(), 1);
    let text = host.run(&["pull", "log", "--seq", "2..3"]);
    assert!(text.text().contains(" seq 2 captured "), "{text:?}");
    assert!(text.text().contains("found 2, delivered 2, 12 bytes: 2 from robot"), "{text:?}");
    let payloads = host.run(&["pull", "log", "--seq", "2..3", "--out", "-"]);
    assert_eq!(payloads.text(), "line 2\nline 3\n");
    let publisher = first["publisher"].as_str().unwrap();
    let of = host.run(&["pull", "log", "--seq", "7..7", "--publisher", publisher, "--json"]);
    assert_eq!(seqs(&of), [7]);
}

#[test]
fn a_node_buffers_samples_of_a_link_and_is_listed() {
    let (robot, operator) = (Host::new(), Host::new());
    let port = free_port();
    let listen = format!("name=thin,listen=tcp/127.0.0.1:{port},capacity=2mbit");
    let connect = format!("name=thin,connect=tcp/127.0.0.1:{port},capacity=2mbit");
    let held = "robot/**=samples=500,bytes=20MB,age=10min";
    let _node = robot.start(&["node", "--name", "store", "--buffer", held, "--link", &listen]);
    std::thread::sleep(Duration::from_millis(500));
    let _camera = robot.start(&["pub", "robot/camera", "--test-card", "320x240@20"]);
    wait_for_seq(&robot, "robot/camera", 10);
    let file = operator.path("some.mjpeg");
    let pull = operator.run(&[
        "pull",
        "robot/camera",
        "--newest",
        "8",
        "--at",
        "store",
        "--size",
        "160x120",
        "--out",
        arg(&file),
        "--link",
        &connect,
        "--timeout",
        "30s",
        "--json",
    ]);
    assert_eq!(seqs(&pull).len(), 8);
    assert_eq!(summary(&pull)["nodes"][0]["name"], "store");
    let bytes = std::fs::read(&file).unwrap();
    let pictures: Vec<_> = mjpeg::split(&bytes).map(Result::unwrap).collect();
    assert_eq!(pictures.len(), 8);
    assert_eq!(Format::Jpeg.picture_size(pictures[7]), Size::new(160, 120));

    let ls = robot.run(&["ls", "--json"]);
    let document: Value = serde_json::from_str(&ls.text()).unwrap();
    let nodes = document["nodes"].as_array().unwrap();
    let store = nodes.iter().find(|node| node["name"] == "store").unwrap();
    let buffer = &store["buffers"][0];
    assert_eq!(buffer["pattern"], "robot/**");
    assert_eq!((&buffer["samples_max"], &buffer["bytes_max"]), (&json!(500), &json!(20_000_000)));
    assert_eq!(buffer["age_max_us"], 600_000_000);
    assert!(buffer["samples"].as_u64().unwrap() > 10, "{buffer}");
    assert!(buffer["bytes"].as_u64().unwrap() > 10_000, "{buffer}");
    assert!(buffer["oldest_ns"].as_u64() < buffer["newest_ns"].as_u64(), "{buffer}");
    assert!(!ls.text().contains("@pull"), "{ls:?}");
    let table = robot.run(&["ls"]).text();
    assert!(table.contains("BUFFERS\npattern"), "{table}");
}

#[test]
fn samples_buffered_by_a_subscriber_are_pulled() {
    let host = Host::new();
    let _pub = lines(&host, "log", &[]);
    let _sub = host.start(&["sub", "log", "--history", "100", "--name", "watcher"]);
    wait_for_seq(&host, "log", 5);
    let pull = host.run(&["pull", "log", "--newest", "3", "--json"]);
    assert_eq!((seqs(&pull).len(), &summary(&pull)["nodes"][0]["name"]), (3, &json!("watcher")));
}

#[test]
fn impossible_pulls_are_refused_with_the_fix() {
    let host = Host::new();
    let _pub = lines(&host, "log", &["--history", "5", "--name", "robot"]);
    wait_for_seq(&host, "log", 10);
    host.run(&["pull", "log", "--seq", "0..2"]).said(3, "expired; buffered are ");
    host.run(&["pull", "log", "--seq", "100000.."]).said(3, "did not arrive yet");
    host.run(&["pull", "other"]).said(3, "no node buffers 'other'").said(3, "pub --history 100");
    host.run(&["pull", "log", "--at", "rover"]).said(3, "no node 'rover'").said(3, "robot");
    let file = host.path("card.txt");
    std::fs::write(&file, "x").unwrap();
    let small = host.run(&["pull", "log", "--newest", "2", "--size", "160x120", "--json"]);
    assert_eq!(seqs(&small).len(), 2, "a size means nothing to text");
}

#[test]
fn a_pull_without_a_buffer_ends_by_itself() {
    let host = Host::new();
    host.run(&["pull", "log"]).said(3, "no node buffers 'log'");
}
