//! The cost of serving many plain programs at one node, compared with a plain Zenoh router.

use super::{
    Args, NodePair, ONE_DIRECTION, clock, cpu_seconds, free_port, in_turn, interrupt, of,
    plain_error, ratio_of, zenoh,
};
use crate::bench::child::Child;
use crate::bench::machine::Watch;
use crate::bench::protocol::Role;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::float;
use ::zenoh::Wait as _;
use ::zenoh::pubsub::Publisher;
use anyhow::{Result, ensure};
use paceline_tool::scratch::Scratch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The rate in samples per second and the size of each in bytes.
const RATE: u64 = 33;
const BYTES: usize = 252;
/// The longest wait until all declarations are known and every program has received a sample.
const PATIENCE: Duration = Duration::from_secs(60);

/// The figures of one run: processor time per delivery, and the percentage of samples delivered.
struct Cost {
    delivery_us: f64,
    delivered_percent: f64,
}

pub(super) fn measure(args: &Args, scratch: &Scratch) -> Result<Section> {
    let watch = Watch::begin()?;
    let [node, router] = in_turn(
        args,
        &format!("{} programs", args.sessions),
        || at_a_node(args, scratch),
        || at_a_router(args, scratch),
    )?;
    let mut section = Section::new(format!(
        "{RATE} samples of {BYTES} bytes per second to {} programs, from another node ({} pairs of \
         {} s)",
        args.sessions, args.pairs, args.seconds
    ));
    let ratio = ratio_of(&node, &router, |cost| cost.delivery_us);
    let name = "processor time of the node / of the router";
    section.must(name, Unit::Ratio, ratio, f64::NAN, Bound::AtMost(1.5));
    let [ours, plain] = [&node, &router].map(|runs| of(runs, |cost| cost.delivery_us));
    section.show("processor time, per sample and program", Unit::Micros, ours, plain);
    let [ours, plain] = [&node, &router].map(|runs| of(runs, |cost| cost.delivered_percent));
    section.show("samples delivered", Unit::Percent, ours, plain);
    section.load(Some(watch.load()?), None);
    Ok(section)
}

/// Measures a node. The publishing program is at another node, so each sample crosses a link and is
/// exported by a rule.
fn at_a_node(args: &Args, scratch: &Scratch) -> Result<Cost> {
    let pair = NodePair::start(scratch, ONE_DIRECTION)?;
    let [_, serving] = pair.processes();
    drive(args, [pair.here, pair.there], serving)
}

fn at_a_router(args: &Args, scratch: &Scratch) -> Result<Cost> {
    let port = free_port()?;
    let listen = format!("tcp/127.0.0.1:{port}");
    let mut router = Child::start("router", &Role::Router { listen }, None, &scratch.host())?;
    router.expect_ready()?;
    drive(args, [port, port], router.id())
}

/// Publishes at the fixed rate to all programs and measures the processor time of `process`.
fn drive(args: &Args, [from, to]: [u16; 2], process: u32) -> Result<Cost> {
    let arrived = Arc::new(AtomicU64::new(0));
    let mut programs = Vec::new();
    for _ in 0..args.sessions {
        interrupt::check()?;
        let session = zenoh::open("client", &[], &[format!("tcp/127.0.0.1:{to}")], &[])?;
        let count = arrived.clone();
        let declared = session.declare_subscriber(super::KEY).callback(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        declared.background().wait().map_err(plain_error)?;
        programs.push(session);
    }
    let session = zenoh::open("client", &[], &[format!("tcp/127.0.0.1:{from}")], &[])?;
    let publisher = session.declare_publisher(super::KEY).wait().map_err(plain_error)?;
    reach_all(&publisher, &arrived, u64::from(args.sessions))?;

    let total = RATE * u64::from(args.seconds);
    let (used, start) = (cpu_seconds(process)?, clock::now());
    arrived.store(0, Ordering::Relaxed);
    for n in 0..total {
        interrupt::sleep_until(start + n * (1_000_000_000 / RATE))?;
        publisher.put(vec![7; BYTES]).wait().map_err(plain_error)?;
    }
    interrupt::sleep(Duration::from_millis(500))?;
    let used = cpu_seconds(process)? - used;
    let arrived = arrived.load(Ordering::Relaxed);
    ensure!(arrived > 0, "no program received a sample");
    let sent = total * u64::from(args.sessions);
    Ok(Cost {
        delivery_us: used * 1e6 / float(arrived),
        delivered_percent: 100.0 * float(arrived) / float(sent),
    })
}

/// Publishes until every program has received one sample.
fn reach_all(publisher: &Publisher<'_>, arrived: &AtomicU64, programs: u64) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut reached = 0;
    while reached < programs {
        ensure!(
            Instant::now() < until,
            "a sample reached at most {reached} of {programs} programs within {PATIENCE:?}"
        );
        arrived.store(0, Ordering::Relaxed);
        publisher.put(vec![7; BYTES]).wait().map_err(plain_error)?;
        interrupt::sleep(Duration::from_millis(500))?;
        reached = arrived.load(Ordering::Relaxed);
    }
    Ok(())
}
