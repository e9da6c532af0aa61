//! `paceline-lab bench hop`: the cost of one hop over a unix socket, compared with plain Zenoh.

use super::child::Child;
use super::machine::Watch;
use super::protocol::{Engine, Message, Place, Role};
use super::report::{Bound, Report, Section, Unit};
use super::stats::{Samples, float, median};
use super::{OutputArgs, clock, interrupt};
use anyhow::Result;
use paceline::class::Policy;
use paceline_tool::scratch::Scratch;
use std::process::ExitCode;
use std::time::Duration;

/// Cost of one hop over a unix socket: round trip and throughput
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Alternating pairs of runs, Paceline and plain Zenoh; reports the median of their ratios
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(1..=999))]
    pairs: u32,
    /// Time of each throughput run
    #[arg(long = "duration", value_name = "TIME", default_value = "2s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<1, 3_600>)]
    seconds: u32,
    #[command(flatten)]
    output: OutputArgs,
}

const WARM_UP: u32 = 500;
const ROUND_TRIPS: u32 = 5_000;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let scratch = Scratch::new("hop")?;
    let command = match (args.pairs, args.seconds) {
        (5, 2) => "paceline-lab bench hop".to_owned(),
        (pairs, seconds) => format!("paceline-lab bench hop --pairs {pairs} --duration {seconds}s"),
    };
    let args = &if args.output.short {
        Args { pairs: 1, seconds: 1, ..args.clone() }
    } else {
        args.clone()
    };
    let mut report = Report::new("The cost of one hop", &command);
    report.add(round_trips(args, &scratch)?, &args.output);
    for (bytes, name) in [(1_000, "1 KB"), (64_000, "64 KB")] {
        report.add(throughput(args, &scratch, bytes, name)?, &args.output);
    }
    report.finish(&args.output)
}

/// The figures of both engines, one per pair.
#[derive(Default)]
struct Pairs {
    ours: Vec<f64>,
    plain: Vec<f64>,
}

impl Pairs {
    /// Measures both engines alternately. The engine that starts changes from pair to pair.
    fn measure(count: u32, mut one: impl FnMut(Engine) -> Result<f64>) -> Result<Self> {
        let mut pairs = Self::default();
        for pair in 0..count {
            eprintln!("pair {} of {count}", pair + 1);
            let mut order = [Engine::Paceline, Engine::Plain];
            if pair % 2 == 1 {
                order.reverse();
            }
            for engine in order {
                let figure = one(engine)?;
                match engine {
                    Engine::Paceline => pairs.ours.push(figure),
                    Engine::Plain => pairs.plain.push(figure),
                }
            }
        }
        Ok(pairs)
    }

    /// Returns the median of the ratios of the pairs.
    fn ratio(&self) -> f64 {
        let ratios = self.ours.iter().zip(&self.plain).map(|(ours, plain)| ours / plain);
        median(&ratios.collect::<Vec<_>>())
    }
}

fn round_trips(args: &Args, scratch: &Scratch) -> Result<Section> {
    let watch = Watch::begin()?;
    let pairs = Pairs::measure(args.pairs, |engine| round_trip(engine, scratch))?;
    let mut section = Section::new(format!(
        "Round trip of 64 bytes over a unix socket ({} pairs of {ROUND_TRIPS})",
        args.pairs
    ));
    let ratio = pairs.ratio();
    let name = "p50 / bare Zenoh's p50";
    section.must(name, Unit::Ratio, ratio, f64::NAN, Bound::AtMost(1.5));
    section.show("p50", Unit::Micros, median(&pairs.ours), median(&pairs.plain));
    section.load(Some(watch.load()?), None);
    Ok(section)
}

fn round_trip(engine: Engine, scratch: &Scratch) -> Result<f64> {
    let [host, guest] = places(engine, scratch);
    let dir = scratch.host();
    let mut pong = Child::start("pong", &Role::Pong { place: host }, None, &dir)?;
    pong.expect_ready()?;
    pong.go()?;
    let ping = Role::Ping { place: guest, warm_up: WARM_UP, count: ROUND_TRIPS };
    let mut ping = Child::start("ping", &ping, None, &dir)?;
    ping.expect_ready()?;
    ping.go()?;
    let nanos = ping.expect("round trips", PATIENCE, |message| {
        if let Message::RoundTrips { nanos } = message { Some(nanos) } else { None }
    })?;
    ping.stop()?;
    pong.stop()?;
    Ok(Samples::new(nanos).percentile(500).map_or(f64::NAN, |nanos| float(nanos) / 1e3))
}

fn throughput(args: &Args, scratch: &Scratch, bytes: usize, name: &str) -> Result<Section> {
    let watch = Watch::begin()?;
    let pairs = Pairs::measure(args.pairs, |engine| rate(engine, scratch, bytes, args.seconds))?;
    let mut section = Section::new(format!(
        "Throughput of samples of {name} over a unix socket ({} pairs of {} s)",
        args.pairs, args.seconds
    ));
    let ratio = pairs.ratio();
    section.must("rate / bare Zenoh's rate", Unit::Ratio, ratio, f64::NAN, Bound::AtLeast(0.9));
    section.show("samples", Unit::PerSecond, median(&pairs.ours), median(&pairs.plain));
    section.load(Some(watch.load()?), None);
    Ok(section)
}

fn rate(engine: Engine, scratch: &Scratch, bytes: usize, seconds: u32) -> Result<f64> {
    let [host, guest] = places(engine, scratch);
    let dir = scratch.host();
    let mut flood = Child::start("flood", &Role::Flood { place: host, bytes }, None, &dir)?;
    flood.expect_ready()?;
    let mut sink = Child::start("sink", &Role::Sink { place: guest }, None, &dir)?;
    sink.expect_ready()?;
    flood.go()?;
    sink.expect("first sample", PATIENCE, |message| {
        matches!(message, Message::First { .. }).then_some(())
    })?;
    interrupt::sleep_until(clock::now() + 500_000_000)?;
    sink.go()?;
    interrupt::sleep_until(clock::now() + u64::from(seconds) * 1_000_000_000)?;
    sink.stop()?;
    let (samples, nanos) = sink.expect("count", PATIENCE, |message| {
        if let Message::Counted { samples, nanos } = message {
            Some((samples, nanos))
        } else {
            None
        }
    })?;
    flood.stop()?;
    Ok(float(samples) * 1e9 / float(nanos.max(1)))
}

/// Returns the places of the process that starts first and of the one that joins it.
fn places(engine: Engine, scratch: &Scratch) -> [Place; 2] {
    let endpoint = format!("unixsock-stream/{}.sock", scratch.host().display());
    let socket = (engine == Engine::Plain).then_some(endpoint);
    let place = |name: &str, listen, connect| Place {
        engine,
        name: name.to_owned(),
        listen,
        connect,
        capacity: None,
        policy: Policy::default().name().to_owned(),
    };
    [place("host", socket.clone(), None), place("guest", None, socket)]
}
