//! Nodes that do not exist: beacons and frames with made-up identifiers, and datagrams that are not
//! frames.

use crate::rogue::stranger;
use crate::support::{SOON, free_endpoint, isolated, wait_until};
use paceline::{LinkConfig, Node, Publisher, Subscriber};
use paceline_proto::wire::VERSION;
use paceline_proto::wire::frame::FrameHeader;
use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zenoh::Wait as _;

/// Longer than the detection of a port without a reader.
const SILENCE: Duration = Duration::from_secs(3);

/// Returns unused node identifiers in sequence.
fn made_up(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

/// The kind of a stranger's message.
#[derive(Clone, Copy, Debug)]
enum Cry {
    Beacons,
    Frames,
}

/// A stranger that sends as fast as it can until it is stopped.
struct Flood {
    over: Arc<AtomicBool>,
    cries: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn begin(victim: &Node, endpoint: &str, cry: Cry) -> Self {
        let (session, me) = (stranger(endpoint), victim.id());
        let (over, cries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ends, count) = (over.clone(), cries.clone());
        let thread = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let node = made_up(count.fetch_add(1, Ordering::Relaxed));
                match cry {
                    Cry::Beacons => {
                        let hi = [&[VERSION][..], &node.to_be_bytes()].concat();
                        session.put("p/hi", hi).wait().unwrap();
                    }
                    Cry::Frames => {
                        let mut frame = Vec::new();
                        FrameHeader { epoch: 1, ..FrameHeader::default() }.write(&mut frame);
                        session.put(format!("p/{me}/{node:016x}"), frame).wait().unwrap();
                    }
                }
                // Yield to other users of the machine.
                if count.load(Ordering::Relaxed).is_multiple_of(200) {
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
    let flood = Flood::begin(&operator, &endpoint, cry);
    let (began, mut oldest, mut joins) = (Instant::now(), Duration::ZERO, Vec::new());
    let mut number = 0_u64;
    while began.elapsed() < time || flood.cries() < 20_000 {
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
fn beacons_of_made_up_nodes_have_no_effect() {
    nobody_is_disturbed(Cry::Beacons, Duration::from_secs(4));
}

#[test]
fn frames_of_made_up_nodes_have_no_effect() {
    nobody_is_disturbed(Cry::Frames, Duration::from_secs(4));
}

#[test]
#[ignore = "takes two minutes: cargo xtask long runs it"]
fn a_minute_of_made_up_nodes_has_no_effect() {
    nobody_is_disturbed(Cry::Beacons, Duration::from_secs(60));
    nobody_is_disturbed(Cry::Frames, Duration::from_secs(60));
}

/// Returns an endpoint on a free UDP port.
fn free_datagrams() -> (String, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    (format!("udp/{address}"), address)
}

/// An operator that listens on UDP, a connected robot, and a stream between them.
struct Datagrams {
    operator: Node,
    _robot: Node,
    endpoint: String,
    address: SocketAddr,
    pose: Publisher,
    held: Subscriber,
}

impl Datagrams {
    fn open() -> Self {
        let (endpoint, address) = free_datagrams();
        let operator = isolated("operator", [LinkConfig::new("radio").listen(&endpoint)]);
        let robot = isolated("robot", [LinkConfig::new("radio").connect(&endpoint)]);
        let pose = robot.publisher("pose").declare().unwrap();
        let held = operator.subscriber("pose").declare().unwrap();
        assert!(pose.wait_matching(SOON));
        Self { operator, _robot: robot, endpoint, address, pose, held }
    }

    fn a_newcomer_joins(&self) {
        let node = isolated("newcomer", [LinkConfig::new("radio").connect(&self.endpoint)]);
        let met = || self.operator.nodes().iter().any(|(id, _)| *id == node.id());
        wait_until("a newcomer joins", met);
    }
}

/// Sends random datagrams from one port. Half of them look like the first message of a session.
fn noise(to: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..600_u64 {
        let words = (0..8).flat_map(|at| made_up(number * 8 + at).to_le_bytes());
        let mut bytes: Vec<u8> = words.collect();
        if number.is_multiple_of(2) {
            bytes[0] = 1;
        }
        socket.send_to(&bytes, to).unwrap();
    }
}

#[test]
fn invalid_datagrams_do_not_silence_a_listener() {
    let mut it = Datagrams::open();
    noise(it.address);
    for number in 0..50 {
        let text = format!("pose {number}");
        it.pose.put(text.clone()).unwrap();
        assert_eq!(it.held.recv_timeout(SOON).unwrap().payload, text);
    }
    it.a_newcomer_joins();
}

/// Returns the UDP ports of this process that accept datagrams from any address.
fn own_ports() -> Vec<SocketAddr> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = entries.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    let mine: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    let table = std::fs::read_to_string("/proc/self/net/udp").unwrap();
    let port = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let open =
            fields[2] == "00000000:0000" && mine.contains(&format!("socket:[{}]", fields[9]));
        let port = u16::from_str_radix(fields[1].rsplit_once(':').unwrap().1, 16).unwrap();
        open.then(|| SocketAddr::from(([127, 0, 0, 1], port)))
    };
    table.lines().skip(1).filter_map(port).collect()
}

/// Only a process of this host can do this, or a peer that completes Zenoh's handshake first.
#[test]
fn a_listener_that_zenoh_stopped_reading_is_reopened() {
    let mut it = Datagrams::open();
    let inner = own_ports().into_iter().filter(|port| *port != it.address);
    inner.for_each(noise);
    let began = Instant::now();
    let mut number = 0;
    let arrives = loop {
        number += 1;
        it.pose.put(number.to_string()).unwrap();
        if it.held.recv_timeout(Duration::from_millis(100)).is_ok() && began.elapsed() > SILENCE {
            break began.elapsed();
        }
        assert!(began.elapsed() < 3 * SOON, "nothing arrives");
    };
    let _ = writeln!(std::io::stderr(), "samples arrive again after {arrives:.1?}");
    it.a_newcomer_joins();
}
