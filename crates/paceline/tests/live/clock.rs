//! The clock of nodes: a node as a server of others, the processes of a host, and real chronyd servers.

mod keys;
mod neighbours;
mod order;

use crate::hosts::Hosts;
use crate::support::{HostDir, SOON, wait_until};
use paceline::time::{ClockConfig, ClockStatus, SourcePart, TimeOrder, bounds};
use paceline::{Node, Timestamp};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// The system clock in nanoseconds since 1970.
fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

/// Returns an address with a free UDP port.
fn free_address() -> String {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().to_string()
}

fn quick(config: ClockConfig) -> ClockConfig {
    config.poll(Duration::from_millis(250), Duration::from_secs(1))
}

/// Checks `count` readings of a clock whose true time is the system clock plus `ahead`; returns the widest bound.
fn check(node: &Node, ahead: u64, count: u32) -> u64 {
    let clock = node.clock();
    let (mut last, mut widest) = (0, 0);
    for _ in 0..count {
        let before = wall() + ahead;
        let reading = clock.now();
        let after = wall() + ahead;
        let inside = reading.bounds.earliest <= after && before <= reading.bounds.latest;
        assert!(inside, "{before} to {after}: {reading:?}");
        assert!(reading.nanos >= last, "{reading:?} after {last}");
        last = reading.nanos;
        widest = widest.max(reading.error());
        std::thread::sleep(Duration::from_micros(50));
    }
    widest
}

#[test]
fn nodes_serve_time_to_nodes_and_to_the_processes_of_their_hosts() {
    let (address, hosts) = (free_address(), (HostDir::new("cks"), HostDir::new("ckc")));
    let system = ClockConfig::new().system(Duration::from_micros(50)).serve(&address);
    let server = Node::builder().runtime_dir(hosts.0.path()).clock(system).open().unwrap();
    let config = quick(ClockConfig::new().server(&address));
    let client = Node::builder().runtime_dir(hosts.1.path()).clock(config).open().unwrap();
    let process = hosts.1.open("process");
    wait_until("the client is synchronised", || {
        client.clock().status() == ClockStatus::Synchronised
    });
    wait_until("its host knows", || process.clock().status() == ClockStatus::Synchronised);
    for node in [&client, &process] {
        let widest = check(node, 0, 2_000);
        assert!((50_000..1_000_000_000).contains(&widest), "{widest}");
    }
    let report = client.clock().report();
    assert_eq!((report.stratum, report.sources.len()), (Some(11), 1), "{report:?}");
    assert_eq!(report.sources[0].selection, SourcePart::Selected);
    assert!(process.clock().report().is_follower);
    wait_until("the server counts", || {
        server.clock().report().serves.is_some_and(|serves| serves.answered >= 4)
    });

    // Samples carry the time and its bound, also those of the other process.
    let mut publisher = process.publisher("robot/pose").declare().unwrap();
    let mut subscriber = client.subscriber("robot/pose").declare().unwrap();
    assert!(publisher.wait_matching(SOON));
    let before = client.clock().now();
    publisher.put("one").unwrap();
    let captured = subscriber.recv_timeout(SOON).unwrap().captured;
    assert!(captured.error < Timestamp::UNKNOWN_ERROR, "{captured:?}");
    assert_ne!(bounds(captured).order(before.bounds), TimeOrder::Before);
    assert!(bounds(captured).latest >= before.bounds.earliest);

    // The rest of the interface.
    let clock = client.clock();
    let (first, second) = (clock.stamp(), clock.stamp());
    assert!(first.nanos < second.nanos);
    assert!(clock.wait_until_past(second.bounds.latest, SOON));
    assert_eq!(second.bounds.order(clock.now().bounds), TimeOrder::Before);
    assert!(!clock.wait_until_past(u64::MAX - 1, Duration::from_millis(1)));
    let status = server.status_of(&[server.id()], SOON);
    let serves = status[0].clock.as_ref().unwrap().serves.as_ref();
    assert_eq!(serves.map(|serves| &serves.address), Some(&address));

    // A server that ends leaves a bound that remains correct.
    server.close();
    wait_until("nobody answers", || client.clock().status() == ClockStatus::Holdover);
    check(&client, 0, 100);
    client.close();
    assert!(!hosts.1.path().join("clock").exists());
}

#[test]
fn without_servers_the_clock_is_the_system_clock_with_an_unknown_error() {
    let node = Node::builder().isolated().open().unwrap();
    let reading = node.clock().now();
    assert_eq!((reading.status, reading.error()), (ClockStatus::Unsynchronised, u64::MAX));
    assert!(wall() - reading.nanos < 1_000_000_000);
    let wrong =
        Node::builder().isolated().clock(ClockConfig::new().serve("127.0.0.1:11124")).open();
    assert!(wrong.is_err_and(|error| error.to_string().contains("serve needs a reference")));
}

/// The path of chronyd: `$PACELINE_CHRONYD`, or from the search path.
fn chronyd() -> Option<PathBuf> {
    let named = std::env::var_os("PACELINE_CHRONYD").map(PathBuf::from);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&folders).chain(["/usr/sbin".into()]);
    named.or_else(|| found.find_map(|dir| Some(dir.join("chronyd")).filter(|file| file.exists())))
}

/// A chronyd at port `port` of a host, which serves the system clock plus an offset without touching it.
struct Shifted {
    child: Child,
    socket: PathBuf,
    offset: f64,
}

impl Shifted {
    /// Starts it with more lines `more` of its configuration.
    fn start(hosts: &Hosts, dir: &HostDir, (port, offset): (u16, f64), more: &str) -> Self {
        let chronyd = chronyd().unwrap();
        let file = |name: &str| dir.path().join(format!("{name}{port}"));
        let socket = file("sock");
        let text = format!(
            "refclock SOCK {} refid FAKE poll 0 filter 2 precision 1e-6 delay 1e-6\nallow all\n\
             port {port}\ncmdport 0\nbindcmdaddress /\npidfile {}\ndriftfile {}\n{more}\n",
            socket.display(),
            file("pid").display(),
            file("drift").display(),
        );
        std::fs::write(file("conf"), text).unwrap();
        let start = || {
            let mut command = Command::new(chronyd);
            command.args(["-x", "-d", "-u", "root", "-f"]).arg(file("conf"));
            command.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null());
            command.spawn().unwrap()
        };
        Self { child: hosts.inside(1, start), socket, offset }
    }

    /// Sends one sample of its reference clock.
    fn feed(&self, from: &UnixDatagram) {
        let now = wall();
        let (seconds, micros) = (now / 1_000_000_000, now % 1_000_000_000 / 1_000);
        let words = [seconds.to_ne_bytes(), micros.to_ne_bytes(), self.offset.to_ne_bytes()];
        let ints = [0_i32, 0, 0, 0x534f_434b].map(i32::to_ne_bytes);
        let bytes: Vec<u8> =
            words.into_iter().flatten().chain(ints.into_iter().flatten()).collect();
        let _ = from.send_to(&bytes, &self.socket);
    }
}

impl Drop for Shifted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two hosts and a folder for chronyd; `None` where `test` is skipped.
fn rig(test: &str) -> Option<(Hosts, HostDir)> {
    if chronyd().is_none() {
        println!("skipped: {test} (chronyd is not installed)");
        return None;
    }
    let Some(hosts) = Hosts::new("pl-ck") else {
        println!("skipped: {test} (network namespaces are not permitted)");
        return None;
    };
    let dir = HostDir::new("ckd");
    std::fs::create_dir_all(dir.path()).unwrap();
    Some((hosts, dir))
}

/// Feeds the reference clocks of `servers` while `work` runs.
fn fed(servers: &[Shifted], work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let feeder = scope.spawn(|| {
            let from = UnixDatagram::unbound().unwrap();
            while !stop.load(Ordering::Relaxed) {
                servers.iter().for_each(|server| server.feed(&from));
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        feeder.join().unwrap();
        done.unwrap_or_else(|cause| std::panic::resume_unwind(cause));
    });
}

#[test]
fn real_servers_that_are_shifted_give_their_time_and_one_false_one_is_found() {
    let Some((hosts, dir)) =
        rig("real_servers_that_are_shifted_give_their_time_and_one_false_one_is_found")
    else {
        return;
    };
    let ports = [(123, 12.345), (1_123, 12.345), (2_123, 12.345), (3_123, 3.0)];
    let servers = ports.map(|one| Shifted::start(&hosts, &dir, one, ""));
    fed(&servers, || {
        let config = ports.iter().fold(ClockConfig::new(), |config, (port, _)| {
            config.server(&format!("10.77.0.2:{port}"))
        });
        let node =
            hosts.inside(0, || Node::builder().isolated().clock(quick(config)).open().unwrap());
        let part = |at: usize| node.clock().report().sources.get(at).map(|one| one.selection);
        wait_until("it is synchronised, and the false server is found", || {
            node.clock().status() == ClockStatus::Synchronised
                && part(3) == Some(SourcePart::Falseticker)
        });
        check(&node, 12_345_000_000, 5_000);
    });
}
