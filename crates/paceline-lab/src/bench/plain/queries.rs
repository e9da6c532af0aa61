//! A query from one plain program to another, through two nodes and through one plain Zenoh router.

use super::{
    Args, NodePair, clock, free_port, in_turn, interrupt, of, plain_error, ratio_of, read_cpu,
    zenoh,
};
use crate::bench::child::Child;
use crate::bench::machine::Watch;
use crate::bench::protocol::Role;
use crate::bench::report::{Section, Unit};
use crate::bench::stats::{Samples, float};
use ::zenoh::{Session, Wait as _};
use anyhow::{Result, ensure};
use paceline_tool::scratch::Scratch;
use std::time::{Duration, Instant};

const KEY: &str = "robot/service";
/// The size of the query and of its answer.
const BYTES: usize = 64;
/// The number of initial queries that are not counted.
const WARM_UP: u32 = 200;
/// Queries per run for each second of its duration. They run one after the other and end sooner.
const EACH_SECOND: u32 = 200;
/// The longest wait until the other node knows the service.
const PATIENCE: Duration = Duration::from_secs(20);

struct Trip {
    p50_us: f64,
    p99_us: f64,
    /// Processor time per query of the querying and of the answering node, in microseconds.
    cpu_us: [f64; 2],
}

pub(super) fn measure(args: &Args, scratch: &Scratch) -> Result<Section> {
    let watch = Watch::begin()?;
    let [through, routed] = in_turn(
        args,
        "queries",
        || through_nodes(args, scratch),
        || through_a_router(args, scratch),
    )?;
    let mut section = Section::new(format!(
        "Queries of {BYTES} bytes with answers of the same size, one at a time ({} pairs of {})",
        args.pairs,
        EACH_SECOND * args.seconds
    ));
    let ratio = ratio_of(&through, &routed, |f| f.p50_us);
    section.show("p50 / p50 through one router", Unit::Ratio, ratio, f64::NAN);
    section.show("p50", Unit::Micros, of(&through, |f| f.p50_us), of(&routed, |f| f.p50_us));
    section.show("p99", Unit::Micros, of(&through, |f| f.p99_us), of(&routed, |f| f.p99_us));
    let [ask, answer] = [of(&through, |f| f.cpu_us[0]), of(&through, |f| f.cpu_us[1])];
    section.show("processor time of the querying node, per query", Unit::Micros, ask, f64::NAN);
    section.show("processor time of the answering node, per query", Unit::Micros, answer, f64::NAN);
    section.load(Some(watch.load()?), None);
    Ok(section)
}

fn through_nodes(args: &Args, scratch: &Scratch) -> Result<Trip> {
    let rule = "[[query]]\nkey = \"robot/**\"";
    let pair = NodePair::start(scratch, [rule, rule])?;
    drive(args, [pair.here, pair.there], &pair.processes())
}

fn through_a_router(args: &Args, scratch: &Scratch) -> Result<Trip> {
    let port = free_port()?;
    let listen = format!("tcp/127.0.0.1:{port}");
    let mut router = Child::start("router", &Role::Router { listen }, None, &scratch.host())?;
    router.expect_ready()?;
    drive(args, [port, port], &[])
}

/// Sends queries one after the other at the second port; a service at the first port answers them.
fn drive(args: &Args, [answers, asks]: [u16; 2], processes: &[u32]) -> Result<Trip> {
    let session = |port| zenoh::open("client", &[], &[format!("tcp/127.0.0.1:{port}")], &[]);
    let (answering, asking) = (session(answers)?, session(asks)?);
    let queryable = answering.declare_queryable(KEY).complete(true).callback(|query| {
        // A failed reply is not repeated: the query counts as missing.
        let _ = query.reply(KEY, vec![7; BYTES]).wait();
    });
    let queryable = queryable.wait().map_err(plain_error)?;
    let until = Instant::now() + PATIENCE;
    while !ask(&asking)? {
        ensure!(Instant::now() < until, "no query was answered within {PATIENCE:?}");
        interrupt::sleep(Duration::from_millis(10))?;
    }
    let count = EACH_SECOND * args.seconds;
    let mut nanos = Vec::new();
    let mut used = [0.0; 2];
    for turn in 0..WARM_UP + count {
        interrupt::check()?;
        if turn == WARM_UP {
            read_cpu(processes, &mut used)?;
        }
        let start = clock::now();
        ensure!(ask(&asking)?, "query {turn} was not answered");
        if turn >= WARM_UP {
            nanos.push(clock::now() - start);
        }
    }
    let before = used;
    read_cpu(processes, &mut used)?;
    drop(queryable);
    let trips = Samples::new(nanos);
    let micros = |per_mille| trips.percentile(per_mille).map_or(f64::NAN, |it| float(it) / 1e3);
    // The answering node is the first one.
    let ([answer, ask], [answer_before, ask_before]) = (used, before);
    let spent = [ask - ask_before, answer - answer_before].map(|s| s * 1e6 / f64::from(count));
    let cpu_us = if processes.is_empty() { [f64::NAN; 2] } else { spent };
    Ok(Trip { p50_us: micros(500), p99_us: micros(990), cpu_us })
}

/// Returns true if an answer of the right length arrived.
fn ask(session: &Session) -> Result<bool> {
    let get = session.get(KEY).payload(vec![7; BYTES]).timeout(PATIENCE);
    let replies = get.wait().map_err(plain_error)?;
    let mut good = false;
    for reply in replies {
        good |= reply.result().is_ok_and(|sample| sample.payload().len() == BYTES);
    }
    Ok(good)
}
