//! Measures the emulator's own delay and throughput on this host.

use super::link::{Link, THREAD};
use super::{FAR, NEAR};
use crate::netns::Namespace;
use anyhow::{Context as _, Result, bail};
use paceline_tool::stats::Histogram;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PORT: u16 = 7_601;
const PINGS: u64 = 1_000;
const PING_EVERY: Duration = Duration::from_millis(2);
/// The payload of a full packet: 1,500 bytes without IP and UDP headers.
const FULL: usize = 1_472;
const FULL_PACKET_BITS: u64 = 12_000;
/// The offered rates, one after another.
const RATES_MBIT: [u64; 3] = [100, 200, 400];
const FLOOD: Duration = Duration::from_secs(2);
/// The number of packets sent without a pause, as applications do.
const BURST: u64 = 8;
/// The longest wait for packets in flight.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures and prints; checks no bound.
pub(super) fn run(near: &Namespace, far: &Namespace, link: &Link) -> Result<ExitCode> {
    let server = far.inside(|| UdpSocket::bind((FAR, PORT)))?.context("socket of the far end")?;
    let client =
        near.inside(|| UdpSocket::bind((NEAR, PORT)))?.context("socket of the near end")?;
    client.connect((FAR, PORT)).context("address of the far end")?;
    server.connect((NEAR, PORT)).context("address of the near end")?;
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_millis(200))).context("time of a socket")?;
    }
    let trips = ping(&client, &server)?;
    let half = |permille| trips.permille(permille) / 2;
    println!(
        "one direction, half of {PINGS} round trips of small packets: median {} µs, 99 % within \
         {} µs",
        half(500),
        half(990)
    );
    for mbit in RATES_MBIT {
        let ([before, _], idle) = (link.traffic(), busy()?);
        let start = Instant::now();
        let (sent, arrived) = flood(&client, &server, mbit)?;
        let share = (busy()? - idle).as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
        let carried = link.traffic()[0].counters.delivered - before.counters.delivered;
        println!(
            "{mbit} Mbit/s of full packets: {sent} sent, {carried} carried, {arrived} read in time \
             at the other end; the emulator's thread used {share:.0} % of a core"
        );
    }
    let [there, back] = link.traffic();
    let lost = there.refused
        + back.refused
        + near.sent(near.name())?.dropped
        + far.sent(far.name())?.dropped;
    println!("the kernel dropped {lost} packets before or after the emulator");
    Ok(ExitCode::SUCCESS)
}

/// Returns the round-trip times in microseconds.
fn ping(client: &UdpSocket, server: &UdpSocket) -> Result<Histogram> {
    let (mut trips, mut buffer) = (Histogram::new(), [0; FULL]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| echo(server, &done));
        for number in 0..PINGS {
            let sent = Instant::now();
            client.send(&number.to_le_bytes()).context("send")?;
            client.recv(&mut buffer).context("no answer arrived")?;
            trips.add(u64::try_from(sent.elapsed().as_micros())?);
            std::thread::sleep(PING_EVERY);
        }
        done.store(true, Ordering::Relaxed);
        Ok(trips)
    })
}

fn echo(server: &UdpSocket, done: &AtomicBool) {
    let mut buffer = [0; FULL];
    while !done.load(Ordering::Relaxed) {
        if let Ok(len) = server.recv(&mut buffer) {
            let _ = server.send(buffer.get(..len).unwrap_or_default());
        }
    }
}

/// Sends full packets at a rate; returns the number of sent and of arrived packets.
fn flood(client: &UdpSocket, server: &UdpSocket, mbit: u64) -> Result<(u64, u64)> {
    let gap = Duration::from_nanos(BURST * FULL_PACKET_BITS * 1_000 / mbit);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let arrived = scope.spawn(|| count(server, &done));
        let (start, mut due, mut sent) = (Instant::now(), Instant::now(), 0);
        while start.elapsed() < FLOOD {
            for _ in 0..BURST {
                sent += u64::from(client.send(&[0; FULL]).is_ok());
            }
            due += gap;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        std::thread::sleep(SETTLE);
        done.store(true, Ordering::Relaxed);
        Ok((sent, arrived.join().unwrap_or_default()))
    })
}

fn count(server: &UdpSocket, done: &AtomicBool) -> u64 {
    let (mut arrived, mut buffer) = (0, [0; FULL]);
    while !done.load(Ordering::Relaxed) {
        arrived += u64::from(server.recv(&mut buffer).is_ok());
    }
    arrived
}

/// Returns the processor time of the emulator's thread, which the kernel counts in hundredths of a
/// second.
fn busy() -> Result<Duration> {
    for task in std::fs::read_dir("/proc/self/task").context("threads of this process")?.flatten() {
        // The thread's name is in parentheses; numeric fields follow.
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let Some((_, numbers)) = stat.split_once(&format!("({THREAD}) ")) else { continue };
        let ticks = numbers.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>);
        return Ok(Duration::from_millis(ticks.sum::<u64>() * 10));
    }
    bail!("the thread {THREAD} has ended")
}
