//! The memory of a node while its neighbours leave large samples unfinished.

use crate::rogue::Rogue;
use crate::support::{SOON, free_endpoint, isolated, wait_until, wait_within};
use paceline::{LinkConfig, Node};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const ENDPOINT: &str = "PACELINE_TEST_MEMORY_ENDPOINT";
/// The neighbours, and the bytes that each of them leaves unfinished.
const HOGS: u64 = 10;
const UNFINISHED: usize = 64 << 20;
const FRAME_BYTES: usize = 60_000;
/// The default memory for neighbours.
const BUDGET: u64 = 128 << 20;

/// A node in a process of its own.
struct Process {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn open(endpoint: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "memory::a_node_for_this_test", "--ignored", "--nocapture"]);
        command.env(ENDPOINT, endpoint).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = |line: std::io::Result<String>| line.unwrap().contains("ready");
        assert!(lines.by_ref().any(ready));
        Self { child, lines }
    }

    /// Returns the resident memory in bytes.
    fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }

    /// Returns the text of the next sample that the node has received.
    fn next_sample(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The node of [`Process`]: prints the length of each sample.
#[test]
#[ignore = "a process of the other test"]
fn a_node_for_this_test() {
    let Ok(endpoint) = std::env::var(ENDPOINT) else { return };
    let node = isolated("operator", [LinkConfig::new("radio").listen(&endpoint)]);
    let mut held = node.subscriber("pose").declare().unwrap();
    println!("ready");
    while let Ok(sample) = held.recv() {
        println!("{}", sample.payload.len());
    }
}

/// Publishes samples, each of which must arrive whole.
struct Honest {
    publisher: paceline::Publisher,
    sent: usize,
}

impl Honest {
    fn new(robot: &Node) -> Self {
        let publisher = robot.publisher("pose").declare().unwrap();
        assert!(publisher.wait_matching(SOON));
        Self { publisher, sent: 0 }
    }

    fn send(&mut self, to: &mut Process) {
        self.sent += 1;
        let bytes = 100_000 + self.sent;
        assert_eq!(self.publisher.put(vec![7; bytes]).unwrap().dropped, 0);
        assert_eq!(to.next_sample(), bytes.to_string());
    }
}

#[test]
fn ten_neighbours_leave_large_samples_unfinished() {
    let endpoint = free_endpoint();
    let mut operator = Process::open(&endpoint);
    let robot = isolated("robot", [LinkConfig::new("radio").connect(&endpoint)]);
    let mut honest = Honest::new(&robot);
    (0..20).for_each(|_| honest.send(&mut operator));
    let idle = operator.resident();
    let mut hogs: Vec<_> = (1..=HOGS).map(|id| Rogue::join_as(&endpoint, id)).collect();
    for hog in &hogs {
        wait_until("a hog is a neighbour", || hog.greet());
    }
    let mut most = idle;
    for offset in (0..UNFINISHED - FRAME_BYTES).step_by(FRAME_BYTES) {
        hogs.iter_mut().for_each(|hog| hog.send_part(offset, FRAME_BYTES, UNFINISHED));
        if offset % (10 * FRAME_BYTES) == 0 {
            honest.send(&mut operator);
            most = most.max(operator.resident());
        }
    }
    for hog in &hogs {
        wait_until("all of it is received", || hog.is_heard());
    }
    most = most.max(operator.resident());
    let status = robot.status(Duration::from_secs(2));
    let node = status.iter().find(|node| node.name == "operator").unwrap();
    let memory = node.memory.unwrap();
    assert!(memory.used_bytes <= BUDGET && memory.bytes == BUDGET, "{memory:?}");
    assert!(memory.used_bytes > BUDGET / 4, "{memory:?}");
    drop(hogs);
    let left = Instant::now();
    let limit = idle + idle / 10;
    wait_within("the memory is free", Duration::from_secs(30), || {
        honest.send(&mut operator);
        operator.resident() <= limit
    });
    let line = format!(
        "{HOGS} neighbours with {UNFINISHED} bytes each: resident {} MB idle, {} MB at most, {} MB \
         after {:.1?}; {} samples of a robot arrived",
        idle / 1_000_000,
        most / 1_000_000,
        operator.resident() / 1_000_000,
        left.elapsed(),
        honest.sent
    );
    println!("{line}");
    assert!(most <= (idle + BUDGET) * 3 / 2, "{line}");
    // The memory that is not counted.
    assert!(most <= idle + BUDGET + (16 << 20), "{line}");
}
