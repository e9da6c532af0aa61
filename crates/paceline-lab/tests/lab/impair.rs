//! An impaired network between real programs. Needs root and /dev/net/tun; otherwise prints which test it
//! skips.

use crate::host::{Ended, Host, LIMIT, Running, arg};
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{File, write};
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NEAR: &str = "10.254.78.1";
const FAR: &str = "10.254.78.2";
const PORT: u16 = 7_602;

/// Returns false and prints a note if the test cannot run.
fn can_run(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    let can = root && PathBuf::from("/dev/net/tun").exists();
    if !can {
        println!("skipped: {test} (needs root and /dev/net/tun)");
    }
    can
}

/// `paceline-lab impair` without programs, and a socket at each end.
struct Network {
    running: Running,
    near: UdpSocket,
    far: UdpSocket,
}

impl Network {
    fn new(host: &Host, flags: &[&str]) -> Self {
        let words = [&["impair", "--json"], flags].concat();
        let mut running = host.start(&words);
        let id = running.child().id();
        let near = socket(&format!("pln{id}"), NEAR, FAR);
        let far = socket(&format!("plf{id}"), FAR, NEAR);
        far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        Self { running, near, far }
    }

    /// Sends numbered packets. Returns the numbers in order of arrival, and the minimum delay.
    fn send(&self, packets: u32, every: Duration) -> (Vec<u32>, Duration) {
        let (start, far) = (Instant::now(), &self.far);
        std::thread::scope(|scope| {
            let arrived = scope.spawn(|| {
                let (mut numbers, mut least, mut buffer) = (Vec::new(), Duration::MAX, [0; 64]);
                while let Ok(12) = far.recv(&mut buffer) {
                    let sent = u64::from_le_bytes(buffer[4..12].try_into().unwrap());
                    least = least.min(start.elapsed() - Duration::from_nanos(sent));
                    numbers.push(u32::from_le_bytes(buffer[..4].try_into().unwrap()));
                }
                (numbers, least)
            });
            for number in 0..packets {
                let sent = u64::try_from(start.elapsed().as_nanos()).unwrap();
                let packet = [&number.to_le_bytes()[..], &sent.to_le_bytes()[..]].concat();
                self.near.send(&packet).unwrap();
                std::thread::sleep(every);
            }
            arrived.join().unwrap()
        })
    }

    /// Ends the command, and returns its final counts from near to far.
    fn ended(self) -> serde_json::Value {
        self.running.signal(Signal::INT);
        let ended = self.running.ended();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.json().pop().unwrap()["near_to_far"].clone()
    }
}

/// Opens a socket in a namespace, once it exists with a route to the other address.
fn socket(namespace: &str, address: &str, other: &str) -> UdpSocket {
    let place = PathBuf::from("/run/netns").join(namespace);
    let until = Instant::now() + LIMIT;
    loop {
        let open = || {
            let file = File::open(&place).ok()?;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).ok()?;
            let socket = UdpSocket::bind((address, PORT)).ok()?;
            socket.connect((other, PORT)).ok().map(|()| socket)
        };
        // Entering a namespace changes the whole thread, so use a temporary one.
        let opened = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
        if let Some(socket) = opened {
            return socket;
        }
        assert!(Instant::now() < until, "no {address} in {}", place.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn packets_are_delayed_and_lost_as_configured_in_order() {
    if !can_run("packets_are_delayed_and_lost_as_configured_in_order") {
        return;
    }
    let host = Host::new();
    let flags = ["--delay", "20ms", "--jitter", "5ms", "--loss", "5%", "--seed", "3"];
    let network = Network::new(&host, &flags);
    let (numbers, least) = network.send(2_000, Duration::from_micros(500));
    println!("{} of 2000 arrived, at least {least:?} on their way", numbers.len());
    assert!(least >= Duration::from_millis(20), "{least:?}");
    // 5 % of 2,000 are 100; five standard deviations are 49.
    let lost = 2_000 - numbers.len();
    assert!((51..=149).contains(&lost), "{lost} lost");
    assert!(numbers.is_sorted_by(|a, b| a < b), "nobody overtakes");
    let report = network.ended();
    assert_eq!((&report["packets"], &report["reordered"]), (&2_000.into(), &0.into()), "{report}");
    assert_eq!(report["dropped"]["loss"], lost, "{report}");
}

#[test]
fn packets_are_reordered_and_duplicated_as_configured() {
    if !can_run("packets_are_reordered_and_duplicated_as_configured") {
        return;
    }
    let host = Host::new();
    let flags = ["--reorder", "10%", "--reorder-by", "20ms", "--duplicate", "10%"];
    let network = Network::new(&host, &flags);
    let (mut numbers, _) = network.send(500, Duration::from_millis(1));
    let report = network.ended();
    println!("{report}");
    assert!(!numbers.is_sorted());
    numbers.sort_unstable();
    let all = numbers.len();
    numbers.dedup();
    assert_eq!(
        (numbers.len(), all - 500),
        (500, usize::try_from(report["duplicated"].as_u64().unwrap()).unwrap())
    );
    assert!(all > 500 && report["reordered"].as_u64().unwrap() > 0, "{report}");
}

/// Runs a publisher at the far end and a subscriber at the near end.
fn publish_and_subscribe(host: &Host, flags: &[&str], publish: &str, subscribe: &str) -> Ended {
    let paceline = Path::new(crate::BINARY).with_file_name("paceline").display().to_string();
    let link = "tcp/$FAR:7600,capacity=10mbit";
    let far = format!("{paceline} pub data {publish} --link listen={link},insecure > /dev/null");
    let near = format!("{paceline} sub data {subscribe} --link connect={link}");
    host.run(&[&["impair", "--near", &near, "--far", &far], flags].concat())
}

#[test]
fn every_sample_arrives_over_tcp_on_a_lossy_path() {
    if !can_run("every_sample_arrives_over_tcp_on_a_lossy_path") {
        return;
    }
    let host = Host::new();
    let lines: String = (0..400).map(|number| format!("line {number}\n")).collect();
    let (sent, got) = (host.path("sent.txt"), host.path("got.txt"));
    write(&sent, &lines).unwrap();
    let publish = format!("--file {} --hz 100 --late --wait 20s", arg(&sent));
    let subscribe = format!("--count 400 --timeout 35s --out {}", arg(&got));
    let flags = ["--delay", "20ms", "--loss", "1%"];
    let ended = publish_and_subscribe(&host, &flags, &publish, &subscribe);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(std::fs::read_to_string(got).unwrap(), lines);
}

#[test]
fn both_programs_continue_after_a_blackout() {
    if !can_run("both_programs_continue_after_a_blackout") {
        return;
    }
    let host = Host::new();
    let lines = host.path("lines.txt");
    write(&lines, "a line\n".repeat(100)).unwrap();
    let publish = format!("--file {} --hz 20 --loop --wait 20s", arg(&lines));
    let flags = ["--delay", "5ms", "--blackout", "6s+3s"];
    let ended = publish_and_subscribe(&host, &flags, &publish, "--timeout 20s --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("ended already"), "{}", ended.stderr);
    let lines = ended.json();
    let at = |line: &serde_json::Value| {
        Some(line["captured_ns"].as_u64()? / 1_000 + line["age_us"].as_u64()?)
    };
    let at: Vec<u64> = lines.iter().filter_map(at).collect();
    let pauses = at.iter().zip(at.iter().skip(1)).map(|(a, b)| b.saturating_sub(*a));
    let longest = pauses.max().unwrap_or_default();
    println!("{} samples, the longest pause {} ms", at.len(), longest / 1_000);
    assert!(longest >= 2_500_000, "{longest} µs");
}

#[test]
fn a_path_with_a_600_ms_round_trip_connects() {
    if !can_run("a_path_with_a_600_ms_round_trip_connects") {
        return;
    }
    let host = Host::new();
    let lines = host.path("lines.txt");
    write(&lines, "a line\n".repeat(100)).unwrap();
    let publish = format!("--file {} --hz 20 --loop --wait 20s", arg(&lines));
    // A connection takes three round trips.
    let flags = ["--delay", "300ms"];
    let ended = publish_and_subscribe(&host, &flags, &publish, "--count 20 --timeout 30s");
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn the_next_run_removes_the_remains_of_a_killed_run() {
    if !can_run("the_next_run_removes_the_remains_of_a_killed_run") {
        return;
    }
    let host = Host::new();
    let mut killed = Network::new(&host, &[]);
    let id = killed.running.child().id();
    let left = PathBuf::from(format!("/run/netns/pln{id}"));
    assert!(left.exists());
    killed.running.signal(Signal::KILL);
    killed.running.status();
    assert!(left.exists(), "nobody could remove it");
    let next = host.run(&["impair", "--near", "exit 7"]);
    assert_eq!(next.code, Some(7), "{next:?}");
    assert!(!left.exists());
}
