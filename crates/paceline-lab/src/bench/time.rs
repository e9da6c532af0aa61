//! `paceline-lab bench clock`: the error and the bound of a node's clock over a veth pair between two network
//! namespaces.
//!
//! Three nodes serve the system clock, which both namespaces share. Then four chronyd serve a shifted time from a
//! reference clock that this process feeds, also one that gains, and one behind relays with asymmetric delays and
//! losses; a chronyd as a client of the same servers is measured next to the node. The system clock is never touched.

mod chrony;
mod measured;
mod relay;
mod truth;

use super::report::{Bound, Report, Section, Unit};
use super::stats::float;
use super::{OutputArgs, interrupt};
use crate::netns::{self, Namespace};
use anyhow::Result;
use chrony::{Chrony, Client, Server};
use measured::Measured;
use paceline::Node;
use paceline::time::{ClockConfig, SourcePart};
use paceline_tool::scratch::Scratch;
use relay::{Relay, Way};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use truth::Truth;

/// The error and the bound of a node's clock over a veth pair (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time of each measurement
    #[arg(long = "duration", value_name = "TIME", default_value = "60s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<1, 3_600>)]
    seconds: u32,
    /// The chronyd to follow and to compare with; by default $PACELINE_CHRONYD, or from the search path
    #[arg(long, value_name = "FILE")]
    chronyd: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

const CLIENT: &str = "10.254.78.1";
const SERVER: &str = "10.254.78.2";
/// The first port of the servers, and of their relays.
const PORT: u16 = 10_123;
const RELAY_PORT: u16 = 11_123;
/// The offset of the shifted servers, and of the false one, in nanoseconds. chronyc prints 25 significant bits, so a
/// smaller offset has more digits.
const AHEAD: u64 = 345_000_000;
const FALSE: u64 = 3_000_000_000;

/// Four chronyd servers.
struct Setup {
    title: &'static str,
    /// The growth of their time.
    gain_ppm: u64,
    /// The ways to them; without, the last one is false.
    ways: Option<[Way; 4]>,
}

const fn way(there_us: u64, back_us: u64, lost: u32) -> Way {
    Way { there: Duration::from_micros(there_us), back: Duration::from_micros(back_us), lost }
}

const SETUPS: [Setup; 3] = [
    Setup { title: "four chronyd servers, one of them false", gain_ppm: 0, ways: None },
    Setup {
        title: "four chronyd servers whose time gains 100 ppm, one of them false",
        gain_ppm: 100,
        ways: None,
    },
    Setup {
        title: "four chronyd servers behind relays: 1 ms there and 3 ms back, 3 and 1 ms, 1 and 1 ms with each 5th packet \
                lost, 0.5 and 4 ms with each 3rd lost",
        gain_ppm: 20,
        ways: Some([
            way(1_000, 3_000, 0),
            way(3_000, 1_000, 0),
            way(1_000, 1_000, 5),
            way(500, 4_000, 3),
        ]),
    },
];

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    if !netns::may_build() {
        eprintln!(
            "paceline-lab bench clock creates network namespaces, which needs root; try sudo"
        );
        return Ok(ExitCode::from(2));
    }
    let seconds = if args.output.short { 2 } else { args.seconds };
    let mut command = "paceline-lab bench clock".to_owned();
    if args.seconds != 60 {
        command += &format!(" --duration {}s", args.seconds);
    }
    let mut report = Report::new("The clock", &command);
    report.add(nodes(seconds)?, &args.output);
    match Chrony::find(args.chronyd.as_deref()) {
        Some(chrony) => {
            for setup in &SETUPS {
                report.add(chronyd(&chrony, setup, seconds)?, &args.output);
            }
        }
        None => eprintln!(
            "skipped: servers of chrony: chronyd not found; install chrony, or name chronyd with --chronyd"
        ),
    }
    report.finish(&args.output)
}

/// Two namespaces with a cable.
fn cable() -> Result<[Namespace; 2]> {
    netns::remove_leftovers();
    let [near, far] = [Namespace::new("plr")?, Namespace::new("plo")?];
    near.ip(&format!("link add eth type veth peer name eth netns {}", far.name()))?;
    for (place, address) in [(&near, CLIENT), (&far, SERVER)] {
        place.ip(&format!("addr add {address}/24 dev eth"))?;
        place.ip("link set eth up")?;
    }
    Ok([near, far])
}

/// Opens a node in `place` that requests the time of the servers at these ports once per second.
fn follow(place: &Namespace, ports: &[u16]) -> Result<Node> {
    let server = |config: ClockConfig, port: &u16| config.server(&format!("{SERVER}:{port}"));
    let config = ports.iter().fold(ClockConfig::new(), server);
    let config = config.poll(Duration::from_secs(1), Duration::from_secs(1));
    Ok(place.inside(|| Node::builder().isolated().clock(config).open())??)
}

/// Measures a clock that follows three nodes.
fn nodes(seconds: u32) -> Result<Section> {
    let [near, far] = cable()?;
    let ports = [PORT, PORT + 1, PORT + 2];
    let serve = |port: &u16| -> Result<Node> {
        let system = ClockConfig::new().system(Duration::from_micros(1));
        let config = system.serve(&format!("{SERVER}:{port}"));
        Ok(far.inside(|| Node::builder().isolated().clock(config).open())??)
    };
    let _servers: Vec<Node> = ports.iter().map(serve).collect::<Result<_>>()?;
    // The servers need some seconds themselves.
    interrupt::sleep(Duration::from_secs(2))?;
    let title = format!("three nodes as servers, requests once per second, {seconds} s");
    let mut section = Section::new(title).alone("clock");
    let measured = Measured::of(&follow(&near, &ports)?, None, Truth::new(0, 0), seconds)?;
    measured.rows(&mut section);
    measured.is_near(&mut section);
    Ok(section)
}

/// Measures a clock that follows chronyd servers, next to a chronyd.
fn chronyd(chrony: &Chrony, setup: &Setup, seconds: u32) -> Result<Section> {
    let scratch = Scratch::new("clock")?;
    let folder = scratch.host();
    std::fs::create_dir_all(&folder)?;
    let [near, far] = cable()?;
    let truth = Truth::new(AHEAD, setup.gain_ppm);
    let (mut servers, mut relays, mut ports) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..4_u16 {
        let is_false = setup.ways.is_none() && at == 3;
        let time = if is_false { Truth::new(FALSE, setup.gain_ppm) } else { truth };
        servers.push(Server::start(chrony, &far, &folder, (PORT + at, time))?);
        let Some(way) = setup.ways.and_then(|ways| ways.get(usize::from(at)).copied()) else {
            ports.push(PORT + at);
            continue;
        };
        let ends = [RELAY_PORT, PORT].map(|first| format!("{SERVER}:{}", first + at));
        relays.push(far.inside(|| Relay::start(&ends[0], &ends[1], way))??);
        ports.push(RELAY_PORT + at);
    }
    let compare = || {
        // The servers need some seconds themselves, and more to know a frequency.
        interrupt::sleep(Duration::from_secs(if setup.gain_ppm == 0 { 8 } else { 14 }))?;
        let client = Client::start(chrony, &near, &folder, (SERVER, &ports))?;
        let node = follow(&near, &ports)?;
        let measured = Measured::of(&node, Some(&client), truth, seconds)?;
        let title = format!("{}, requests once per second, {seconds} s", setup.title);
        let mut section = Section::new(title).headings(["clock", "chronyd"]);
        measured.rows(&mut section);
        if setup.ways.is_none() {
            measured.is_near(&mut section);
            let sources = node.clock().report().sources;
            let found = sources.last().is_some_and(|one| one.selection == SourcePart::Falseticker);
            let found = float(u64::from(found));
            section.must("false servers found", Unit::Count, found, f64::NAN, Bound::AtLeast(1.0));
        }
        Ok(section)
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| chrony::feed(&servers, &stop));
        let measured = compare();
        stop.store(true, Ordering::Relaxed);
        measured
    })
}
