//! Processes that are killed and restarted.

use crate::host::{Host, LIMIT, Running};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A command that prints a line per sample, read while it runs.
struct Watched {
    running: Running,
    lines: Receiver<serde_json::Value>,
}

impl Watched {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the command starts");
        let stdout = child.stdout.take().expect("piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).expect("each line is JSON"));
            }
        });
        Self { running: Running::unread(child), lines }
    }

    /// Returns the next `count` samples.
    fn samples(&self, count: usize) -> Vec<serde_json::Value> {
        let until = Instant::now() + LIMIT;
        let next = |_| {
            let left = until.saturating_duration_since(Instant::now());
            self.lines.recv_timeout(left).expect("samples go on")
        };
        (0..count).map(next).collect()
    }
}

/// Returns the sequence numbers of each publisher, in order of arrival.
fn by_publisher(samples: &[serde_json::Value]) -> BTreeMap<String, Vec<u64>> {
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for sample in samples {
        let publisher = sample["publisher"].to_string();
        numbers.entry(publisher).or_default().push(sample["seq"].as_u64().expect("a number"));
    }
    numbers
}

#[test]
fn a_publisher_a_node_and_a_subscriber_are_killed_and_the_others_go_on() {
    let host = Host::new();
    let card = ["pub", "cam", "--test-card", "160x120@20"];
    let node = host.start(&["node", "--name", "hub"]);
    std::thread::sleep(Duration::from_millis(500));
    let publisher = host.start(&card);
    let viewer = Watched::start(host.command(&["sub", "cam", "--json"]));
    let other = Watched::start(host.command(&["sub", "cam", "--json"]));
    let mut samples = viewer.samples(10);
    other.samples(5);

    other.running.signal(Signal::KILL);
    samples.extend(viewer.samples(10));
    publisher.signal(Signal::KILL);
    let publisher = host.start(&card);
    let again = |samples: &[serde_json::Value]| by_publisher(samples).len() == 2;
    while !again(&samples) {
        samples.extend(viewer.samples(1));
    }
    node.signal(Signal::KILL);
    samples.extend(viewer.samples(60));
    let node = host.start(&["node", "--name", "hub"]);
    let third = Watched::start(host.command(&["sub", "cam", "--json"]));
    third.samples(10);
    samples.extend(viewer.samples(10));

    let numbers = by_publisher(&samples);
    assert_eq!(numbers.len(), 2, "the publisher came back as another one");
    for numbers in numbers.values() {
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "once and in order: {numbers:?}");
    }
    drop((node, publisher));
}

#[test]
fn two_nodes_may_have_one_name() {
    let host = Host::new();
    let _one = host.start(&["pub", "a", "--test-card", "160x120@10", "--name", "twin"]);
    let _two = host.start(&["pub", "b", "--test-card", "160x120@10", "--name", "twin"]);
    for tag in ["a", "b"] {
        let sub = host.run(&["sub", tag, "--count", "3", "--timeout", "30s", "--json"]);
        assert_eq!(sub.code, Some(0), "{sub:?}");
    }
    // The process that listens for the host may have ended a moment ago: the next one is found within 2 s.
    let until = Instant::now() + LIMIT;
    loop {
        let document: serde_json::Value =
            serde_json::from_str(&host.run(&["ls", "--json"]).text()).unwrap();
        let nodes = document["nodes"].as_array().unwrap();
        let twins = nodes.iter().filter(|node| node["name"] == "twin");
        let ids: std::collections::BTreeSet<String> =
            twins.map(|node| node["id"].to_string()).collect();
        if ids.len() == 2 {
            return;
        }
        assert!(ids.len() < 2 && Instant::now() < until, "{document}");
    }
}
