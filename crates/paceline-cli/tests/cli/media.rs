//! Links of several hosts on one medium.

use crate::host::{Host, LIMIT, Running, free_port};
use rustix::process::Signal;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The part of 2 Mbit/s that links may have.
const ALL: u64 = 1_875_000;

/// Three hosts on a medium of 2 Mbit/s: a receiver, and two senders that connect to it.
struct Air {
    receiver: Host,
    nodes: Vec<(&'static str, Running)>,
    senders: [Host; 2],
    streams: Vec<Running>,
}

impl Air {
    /// Opens the hosts again until a sender has the lowest identity, which is random.
    fn managed_by_a_sender() -> (Self, String) {
        for _ in 0..12 {
            let air = Self::new();
            let media = air.wait("each link has a third", |media| {
                let rate = |it: &Value| it["allotted_bits_per_s"].as_u64();
                media.len() == 3 && media.iter().all(|(_, it, _)| rate(it) > Some(500_000))
            });
            air.wait_for_sum();
            let manager = media[0].2.clone();
            assert!(media.iter().all(|(_, _, it)| *it == manager), "{media:?}");
            if manager != "receiver" {
                return (air, manager);
            }
        }
        panic!("the receiver always has the lowest identity");
    }

    fn new() -> Self {
        let (receiver, senders) = (Host::new(), [Host::new(), Host::new()]);
        let port = free_port();
        let on = "medium=field-radio,capacity=2mbit";
        let listen = format!("name=radio,listen=tcp/127.0.0.1:{port},{on}");
        let connect = format!("name=radio,connect=tcp/127.0.0.1:{port},{on}");
        let node = |host: &Host, name, link: &str| {
            (name, host.start(&["node", "--name", name, "--link", link]))
        };
        let nodes = vec![
            node(&receiver, "receiver", &listen),
            node(&senders[0], "left", &connect),
            node(&senders[1], "right", &connect),
        ];
        Self { receiver, nodes, senders, streams: Vec::new() }
    }

    /// Publishes a stream of about 400 kbit/s on the host of a sender.
    fn publish(&mut self, sender: usize, tag: &str) {
        let args = ["pub", tag, &"x".repeat(2_500), "--hz", "20"];
        self.streams.push(self.senders[sender].start(&args));
    }

    /// Subscribes with a contract.
    fn request(&self, tag: &str) -> Running {
        self.receiver.start(&["sub", tag, "--within", "400ms", "--require"])
    }

    fn document(&self, host: &Host) -> Option<Value> {
        serde_json::from_str(&host.run(&["ls", "--json"]).text()).ok()
    }

    /// Returns the media of all links that `host` knows, with the names of their nodes and of their managers.
    fn media(&self, host: &Host) -> Vec<(String, Value, String)> {
        let Some(document) = self.document(host) else { return Vec::new() };
        let nodes = document["nodes"].as_array().cloned().unwrap_or_default();
        let name = |id: &Value| {
            let node = nodes.iter().find(|node| node["id"] == *id);
            node.map(|node| node["name"].as_str().unwrap_or_default().to_owned())
        };
        let mut media = Vec::new();
        for node in &nodes {
            for link in node["links"].as_array().into_iter().flatten() {
                let medium = &link["medium"];
                if !medium.is_null() {
                    let manager = name(&medium["manager"]).unwrap_or_default();
                    media.push((
                        node["name"].as_str().unwrap().to_owned(),
                        medium.clone(),
                        manager,
                    ));
                }
            }
        }
        media
    }

    /// Waits until the media of all `links` satisfy a condition.
    fn wait(
        &self,
        what: &str,
        mut fits: impl FnMut(&[(String, Value, String)]) -> bool,
    ) -> Vec<(String, Value, String)> {
        let until = Instant::now() + LIMIT;
        loop {
            let media = self.media(&self.receiver);
            if fits(&media) {
                return media;
            }
            assert!(Instant::now() < until, "{what}: {media:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Air {
    /// Waits until the rates of all links fit the medium in several readings in a row. One reading combines what nodes have
    /// announced at different times: a rate may count twice in it while it moves.
    fn wait_for_sum(&self) {
        let mut fits = 0;
        let fit = |media: &[(String, Value, String)]| {
            fits = if sum(media) <= ALL { fits + 1 } else { 0 };
            fits >= 4
        };
        self.wait("the sum of the rates fits the medium", fit);
    }
}

fn sum(media: &[(String, Value, String)]) -> u64 {
    media.iter().map(|(_, medium, _)| medium["allotted_bits_per_s"].as_u64().unwrap()).sum()
}

fn reserved(media: &[(String, Value, String)]) -> u64 {
    media.iter().map(|(_, it, _)| it["reserved_bits_per_s"].as_u64().unwrap()).max().unwrap_or(0)
}

#[test]
fn three_hosts_share_a_medium_and_another_node_takes_over_when_the_manager_is_killed() {
    let (mut air, manager) = Air::managed_by_a_sender();
    // Two streams of one sender are more than its third, and one of the other sender fits next to them.
    for (sender, tag) in [(0, "a"), (0, "b"), (1, "c"), (1, "d"), (0, "e")] {
        air.publish(sender, tag);
    }
    let mut granted = Vec::new();
    for (count, tag) in [(1, "a"), (2, "b"), (3, "c")] {
        granted.push(air.request(tag));
        let least = count * 400_000;
        air.wait("the contract is reserved", |media| reserved(media) > least);
        air.wait_for_sum();
    }
    let refused =
        air.receiver.run(&["sub", "d", "--within", "400ms", "--require", "--timeout", "20s"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let text = format!("{refused:?}");
    assert!(
        text.contains("the medium 'field-radio' of link 'radio' of 'right' can't carry it"),
        "{text}"
    );
    assert!(
        text.contains("of at most 1.87 Mbit/s") || text.contains("of at most 1.88 Mbit/s"),
        "{text}"
    );
    let at = air.nodes.iter().position(|(name, _)| *name == manager).unwrap();
    let (_, node) = air.nodes.remove(at);
    node.signal(Signal::KILL);
    drop(node);
    let media = air.wait("another node manages", |media| {
        media.len() == 2 && media.iter().all(|(_, _, it)| *it != manager && !it.is_empty())
    });
    println!("{} takes over", media[0].2);
    let tag = if manager == "left" { "d" } else { "e" };
    granted.push(air.request(tag));
    let least = if manager == "left" { 2 * 400_000 } else { 3 * 400_000 };
    air.wait("the next request is granted", |media| reserved(media) > least);
    air.wait_for_sum();
    granted.clear();
    air.wait("everything is released", |media| media.len() == 2 && reserved(media) == 0);
    air.wait_for_sum();
}
