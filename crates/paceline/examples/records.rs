//! The cost of the records that a neighbour delivers: of a decision while they are there, of their arrival and of their end.
//!
//! `cargo run --release --package paceline --example records`, with a smaller number of processes as an argument.

#![expect(clippy::unwrap_used, reason = "all tags and nodes are constants of this program")]

use paceline_proto::control::{Control, ControlOutput, HopInfo, PublisherSpec, SubscriptionSpec};
use paceline_proto::rights::{AccessPolicy, AccessRule, GrantedTags, PeerName, RuleRights};
use paceline_proto::{NodeId, Pattern, Tag};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration as Time, Instant as Clock};

const HERE: NodeId = NodeId(1);
const HOST: NodeId = NodeId(2);
/// The processes of the neighbour's host, unless the argument is another number.
const PROCESSES: u64 = 150;
const EACH: usize = 500;

/// The nodes by id, and the messages between them.
struct Network {
    now: Instant,
    nodes: BTreeMap<NodeId, Control>,
    /// The longest call of the node under test.
    longest: Time,
    all: Time,
}

impl Network {
    fn new(policy: Option<AccessPolicy>) -> Self {
        let now = Instant::from_millis(1);
        let mut here = Control::new(HERE, "here");
        here.set_policy(now, policy);
        here.set_peer(now, HOST, PeerName::Certified("there".to_owned()));
        let mut nodes = BTreeMap::from([(HERE, here), (HOST, Control::new(HOST, "there"))]);
        for process in 0..processes() {
            let id = NodeId(10 + process);
            nodes.insert(id, Control::new(id, &format!("process {process}")));
        }
        Self { now, nodes, longest: Time::ZERO, all: Time::ZERO }
    }

    fn node(&mut self, id: NodeId) -> &mut Control {
        self.nodes.get_mut(&id).unwrap()
    }

    fn join(&mut self, one: NodeId, other: NodeId) {
        let own = one.0 > 1 && other.0 > 1;
        for (at, to) in [(one, other), (other, one)] {
            let now = self.now;
            let hop = HopInfo { own, ..HopInfo::new("link".to_owned(), None) };
            self.node(at).handle_hop_up(now, to, hop);
        }
    }

    fn part(&mut self, one: NodeId, other: NodeId) {
        let now = self.now;
        for (at, to) in [(one, other), (other, one)] {
            self.timed(at, |node| node.handle_hop_down(now, to));
        }
    }

    fn timed(&mut self, at: NodeId, act: impl FnOnce(&mut Control)) {
        let begun = Clock::now();
        act(self.nodes.get_mut(&at).unwrap());
        if at == HERE {
            self.longest = self.longest.max(begun.elapsed());
            self.all += begun.elapsed();
        }
    }

    fn settle(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += Duration::from_millis(1);
            let now = self.now;
            let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
            for id in ids {
                if self.node(id).poll_timeout() <= now {
                    self.timed(id, |node| node.handle_timeout(now));
                }
                let mut sends = Vec::new();
                self.timed(id, |node| {
                    while let Some(output) = node.poll_output() {
                        if let ControlOutput::Send { hop: to, message, .. } = output {
                            sends.push((to, message));
                        }
                    }
                });
                for (to, message) in sends {
                    if self.nodes.contains_key(&to) {
                        self.timed(to, |node| _ = node.handle_message(now, id, message));
                    }
                }
            }
        }
    }

    fn print(&mut self, case: &str) {
        println!("  {case}: longest {:?}, all {:?}", self.longest, self.all);
        (self.longest, self.all) = (Time::ZERO, Time::ZERO);
    }
}

fn run(name: &str, policy: Option<AccessPolicy>, wanted: impl Fn(usize) -> SubscriptionSpec) {
    println!("{name}:");
    let mut network = Network::new(policy);
    for process in 0..processes() {
        network.join(NodeId(10 + process), HOST);
    }
    let now = network.now;
    for number in 0..4 {
        let spec = PublisherSpec {
            period: Some(Duration::from_millis(20)),
            bytes_max: Some(100),
            envelope: None,
            ..PublisherSpec::new(Tag::new(&format!("pub/{number}")).unwrap())
        };
        network.node(HERE).publish(now, spec);
    }
    for process in 0..processes() {
        for number in 0..EACH {
            let spec = wanted(number);
            network.node(NodeId(10 + process)).subscribe(now, spec);
        }
    }
    network.settle(100);
    network.print("before");
    network.join(HERE, HOST);
    network.settle(100);
    network.settle(4_000);
    network.print("arrival");
    let bytes = network.node(HERE).records_bytes();
    println!("  {} records, {bytes} bytes held", network.node(HERE).nodes().count());
    let now = network.now;
    network.node(HERE).publish(now, PublisherSpec::new(Tag::new("pub/9").unwrap()));
    network.settle(2);
    network.print("another publisher");
    network.part(HERE, HOST);
    network.settle(2);
    network.print("end of the link");
    network.nodes.retain(|id, _| *id == HERE);
    network.settle(40_000);
    network.print("40 s later");
    println!("  {} bytes held", network.node(HERE).records_bytes());
}

fn processes() -> u64 {
    std::env::args().nth(1).map_or(PROCESSES, |number| number.parse().unwrap())
}

fn main() {
    let all = |pattern: &str| SubscriptionSpec::all_of(Pattern::new(pattern).unwrap());
    let tags =
        GrantedTags { subscribe: vec![Pattern::new("pub/**").unwrap()], ..GrantedTags::default() };
    let few = || {
        let rights = Arc::new(RuleRights { tags: tags.clone(), ..RuleRights::default() });
        Some(AccessPolicy { rules: vec![AccessRule { peers: vec!["there".to_owned()], rights }] })
    };
    run("no policy, other tags", None, |_| all("a"));
    run("no policy, every tag", None, |_| all("**"));
    run("few rights, other tags", few(), |_| all("a"));
    run("few rights, every tag", few(), |_| all("**"));
}
