//! Nodes that do not exist: introductions and frames with made-up identifiers, connections that say nothing, and
//! programs that speak something else.

use crate::rogue::Stranger;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use paceline::LinkConfig;
use paceline_proto::wire::frame::FrameHeader;
use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The connections that say nothing at a time.
const SILENT: usize = 500;

/// Returns a random byte.
fn made_up(number: u64) -> u8 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}

/// What a stranger does.
#[derive(Clone, Copy, Debug)]
enum Cry {
    /// Introduces nodes that then leave.
    Introductions,
    /// Sends frames that belong to no hop.
    Frames,
    /// Opens connections and says nothing.
    Silence,
    /// Opens connections and sends random bytes.
    Noise,
}

/// A stranger that acts as fast as it can until it is stopped.
struct Flood {
    over: Arc<AtomicBool>,
    cries: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn begin(endpoint: &str, cry: Cry) -> Self {
        let (over, cries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, count, endpoint) = (over.clone(), cries.clone(), endpoint.to_owned());
        let thread = std::thread::spawn(move || {
            let mut frame = Vec::new();
            FrameHeader { epoch: 1, ..FrameHeader::default() }.write(&mut frame);
            let mut sender = Stranger::connect(&endpoint, 0);
            let mut silent = VecDeque::new();
            while !ends.load(Ordering::Relaxed) {
                let number = count.fetch_add(1, Ordering::Relaxed);
                match cry {
                    Cry::Introductions => drop(Stranger::connect(&endpoint, number)),
                    Cry::Frames if sender.send(&frame) => {}
                    Cry::Frames => sender = Stranger::connect(&endpoint, number),
                    Cry::Silence => silent.push_back(Stranger::silent(&endpoint)),
                    Cry::Noise => {
                        let noise: Vec<u8> = (0..64).map(|at| made_up(number + at)).collect();
                        drop(Stranger::silent(&endpoint).write_all(&noise));
                    }
                }
                if silent.len() > SILENT {
                    silent.pop_front();
                }
                // Yield to other users of the machine.
                if number.is_multiple_of(200) {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        Self { over, cries, thread }
    }

    fn cries(&self) -> u64 {
        self.cries.load(Ordering::Relaxed)
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// During a flood, a stream with a contract continues, and new nodes can join.
fn nobody_is_disturbed(cry: Cry, time: Duration) {
    let endpoint = free_endpoint();
    let operator = isolated("operator", [LinkConfig::new("radio").listen(&endpoint)]);
    let robot = isolated("robot", [LinkConfig::new("radio").connect(&endpoint)]);
    let mut pose = robot.publisher("pose").hz(100.0).declare().unwrap();
    let held = operator.subscriber("pose").within(Duration::from_millis(500));
    let mut held = held.declare().unwrap();
    assert!(pose.wait_matching(SOON));
    let flood = Flood::begin(&endpoint, cry);
    let (began, mut oldest, mut joins) = (Instant::now(), Duration::ZERO, Vec::new());
    let mut number = 0_u64;
    while began.elapsed() < time || flood.cries() < 1_000 {
        assert_eq!(pose.put(number.to_string()).unwrap().dropped, 0);
        let sample = held.recv_timeout(SOON).unwrap();
        assert_eq!(sample.payload, number.to_string(), "none is lost");
        oldest = oldest.max(sample.age);
        if number.is_multiple_of(500) {
            let newcomer = LinkConfig::new("radio").connect(&endpoint);
            let newcomer = isolated("newcomer", [newcomer]);
            let joined = || operator.nodes().iter().any(|(id, _)| *id == newcomer.id());
            joins.push(wait_until("a newcomer joins", joined));
        }
        number += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    let (cries, slowest) = (flood.cries(), joins.iter().max());
    let line = format!(
        "{cry:?}: {cries} in {:.1?}; {number} promised samples, the oldest {oldest:.1?} old on \
         arrival; {} new nodes, the slowest after {slowest:.1?}",
        began.elapsed(),
        joins.len()
    );
    let _ = writeln!(std::io::stderr(), "{line}");
    flood.end();
    let status = operator.status_of(&[operator.id()], SOON);
    assert_eq!(status[0].stalled, []);
    let known: usize = status[0].links.iter().map(|link| link.hops.len()).sum();
    assert!(known <= 2, "{known} neighbours, but fake nodes must not count");
}

#[test]
fn introductions_of_made_up_nodes_have_no_effect() {
    nobody_is_disturbed(Cry::Introductions, Duration::from_secs(4));
}

#[test]
fn frames_of_made_up_nodes_have_no_effect() {
    nobody_is_disturbed(Cry::Frames, Duration::from_secs(4));
}

#[test]
fn connections_that_say_nothing_keep_nobody_out() {
    nobody_is_disturbed(Cry::Silence, Duration::from_secs(4));
}

#[test]
fn connections_that_send_noise_have_no_effect() {
    nobody_is_disturbed(Cry::Noise, Duration::from_secs(4));
}

#[test]
#[ignore = "takes four minutes: cargo xtask long runs it"]
fn a_minute_of_made_up_nodes_has_no_effect() {
    for cry in [Cry::Introductions, Cry::Frames, Cry::Silence, Cry::Noise] {
        nobody_is_disturbed(cry, Duration::from_secs(60));
    }
}

/// A program of another kind at either end is named, and the link works again afterwards.
#[test]
fn other_programs_are_refused() {
    let endpoint = free_endpoint();
    let near = isolated("near", [LinkConfig::new("radio").listen(&endpoint)]);
    for words in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(4), "PACE\u{1}".repeat(20)] {
        let mut stream = Stranger::silent(&endpoint);
        stream.write_all(words.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 53, "only the introduction");
    }
    let far = isolated("far", [LinkConfig::new("radio").connect(&endpoint)]);
    wait_until("they meet", || far.nodes().len() == 2 && near.nodes().len() == 2);
}

/// Each peer has a connection of its own.
#[test]
fn frames_for_others_do_not_arrive() {
    let endpoint = free_endpoint();
    let near = isolated("near", [LinkConfig::new("radio").listen(&endpoint)]);
    let far = isolated("far", [LinkConfig::new("radio").connect(&endpoint)]);
    let rogue = crate::rogue::Rogue::join(&endpoint);
    wait_until("the rogue joins", || rogue.greet());
    let mut publisher = near.publisher("secret").declare().unwrap();
    let mut subscriber = far.subscriber("secret").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    let before = rogue.heard_bytes();
    for _ in 0..50 {
        publisher.put(vec![7; 10_000]).unwrap();
        subscriber.recv_timeout(SOON).unwrap();
    }
    let heard = rogue.heard_bytes() - before;
    assert!(heard < 100_000, "{heard} bytes of 500,000 that are for another peer");
}
