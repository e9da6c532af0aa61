//! The node under attack, in a process of its own, so that its memory is its own.
//!
//! It prints its counters ten times per second. The test reads them, and the memory of the process.

use crate::carrier::{Carrier, Place};
use paceline::pull::History;
use paceline::{Node, Publisher, Subscriber, SubscriberEvent};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const ENDPOINT: &str = "PACELINE_TEST_VICTIM_ENDPOINT";
const CARRIER: &str = "PACELINE_TEST_VICTIM_CARRIER";
const DIR: &str = "PACELINE_TEST_VICTIM_DIR";
/// The memory for neighbours, in bytes: the least that can be configured.
pub(crate) const BUDGET: u64 = 32_000_000;
/// The rate and number of the promised streams.
pub(crate) const PROMISED_HZ: u32 = 25;
pub(crate) const PROMISED: usize = 4;

/// The policy of the node: the member has few rights, the honest ones have all.
fn policy(member: &str) -> String {
    format!(
        "audit = 'audit.jsonl'\n\
         [[rule]]\npeers = ['{member}']\npublish = 'own/**'\nsubscribe = 'pub/**'\nrate = '10Hz'\n\
         bandwidth = '200kbit'\nstreams = 2\n\
         [[rule]]\npeers = ['console', 'newcomer']\npublish = '**'\nsubscribe = '**'\npull = '**'\n\
         set = '**'\nobserve = true\nrelay = true\n"
    )
}

/// The counters of the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// The samples of the member that it accepted, and those on tags without the right.
    pub(crate) own: u64,
    pub(crate) foreign: u64,
    /// The changes of its subscription.
    pub(crate) changes: u64,
    /// The reason why the node has ended.
    pub(crate) fault: String,
}

/// The process of the node.
pub(crate) struct Victim {
    child: Child,
    counters: Arc<Mutex<Counters>>,
}

impl Victim {
    pub(crate) fn open(place: &Place) -> Self {
        std::fs::write(place.dir.join("policy.toml"), policy(place.carrier.member())).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "victim::a_node_for_the_other_tests", "--ignored", "--nocapture"]);
        command.env(ENDPOINT, &place.endpoint).env(CARRIER, place.carrier.name());
        command.env(DIR, &place.dir).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = |line: std::io::Result<String>| line.unwrap().contains("ready");
        assert!(lines.by_ref().any(ready));
        let counters = Arc::new(Mutex::new(Counters::default()));
        let its = counters.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut parts = line.splitn(5, ' ').skip(1);
                let mut next = || parts.next().unwrap_or_default().to_owned();
                let mut number = || next().parse().unwrap_or_default();
                if !line.starts_with("counters ") {
                    continue;
                }
                let [own, foreign, changes] = std::array::from_fn(|_| number());
                *its.lock().unwrap() = Counters { own, foreign, changes, fault: next() };
            }
        });
        Self { child, counters }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters.lock().unwrap().clone()
    }

    /// Returns the resident memory in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The node of [`Victim`].
#[test]
#[ignore = "a process of the other tests"]
fn a_node_for_the_other_tests() {
    let [Ok(endpoint), Ok(carrier), Ok(dir)] = [ENDPOINT, CARRIER, DIR].map(std::env::var) else {
        return;
    };
    let place = Place { carrier: Carrier::of_name(&carrier), endpoint, dir: dir.into() };
    let builder = Node::builder().name("victim").isolated().neighbour_memory(BUDGET);
    let builder = builder.policy(place.dir.join("policy.toml"));
    let node = builder.link(place.link("victim").listen(&place.endpoint)).open().unwrap();
    let tags = (0..PROMISED).map(|number| format!("work/{number}"));
    let publisher = |tag: &str, hz: u32, bytes: u64| {
        let publisher = node.publisher(tag).hz(hz.into()).bytes_max(bytes);
        publisher.history(History::new().samples(10)).declare().unwrap()
    };
    let mut promised: Vec<_> = tags.map(|tag| publisher(&tag, PROMISED_HZ, 400)).collect();
    let others = ["news", "pub/a", "pub/b", "secret/a"];
    let mut others = others.map(|tag| (tag, publisher(tag, 10, 100)));
    let mut own = node.subscriber("**").queue(65_536).declare().unwrap();
    let watched = node.subscriber("watched").declare().unwrap();
    println!("ready");
    std::thread::scope(|scope| {
        scope.spawn(|| publish(&mut promised, &mut others));
        report(&node, &mut own, &watched);
    });
}

/// Publishes until the process ends.
fn publish(promised: &mut [Publisher], others: &mut [(&str, Publisher)]) {
    let mut next = Instant::now();
    for turn in 0_u64.. {
        promised.iter_mut().for_each(|publisher| put(publisher, "work", 400));
        if turn.is_multiple_of(3) {
            others.iter_mut().for_each(|(tag, publisher)| put(publisher, tag, 60));
        }
        next += Duration::from_secs(1) / PROMISED_HZ;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Prints the counters until the test has ended.
fn report(node: &Node, all: &mut Subscriber, watched: &Subscriber) {
    let mut counters = Counters::default();
    loop {
        while let Some(sample) = all.try_recv() {
            // Forged samples of this node's publishers count too.
            let hostile = sample.payload.starts_with(b"hhhh");
            let may = sample.tag.as_str().starts_with("own/");
            counters.own += u64::from(hostile && may);
            counters.foreign += u64::from(hostile && !may);
        }
        while let Some(event) = watched.try_event() {
            counters.changes += u64::from(matches!(event, SubscriberEvent::Changed { .. }));
        }
        let Counters { own, foreign, changes, .. } = counters;
        let fault = node.fault().unwrap_or_default();
        let line = format!("counters {own} {foreign} {changes} {fault}");
        if writeln!(std::io::stdout(), "{line}").is_err() {
            std::process::exit(0);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Publishes a sample that begins with its tag.
fn put(publisher: &mut Publisher, tag: &str, bytes: usize) {
    let mut payload = tag.as_bytes().to_vec();
    payload.resize(bytes, b' ');
    publisher.put(payload).unwrap();
}
