//! `paceline-lab bench clock`: the error and the bound of a node's clock over a veth pair between two network
//! namespaces.
//!
//! The true time is the system clock of the machine, which both namespaces share: three nodes serve it, or chronyd
//! serves it shifted by 12.345 s from a reference clock that this process feeds. The system clock is never touched.

use super::machine::Watch;
use super::report::{Bound, Report, Section, Unit};
use super::stats::{Samples, float, millis};
use super::{OutputArgs, interrupt};
use crate::netns::{self, Namespace};
use anyhow::{Context as _, Result};
use paceline::Node;
use paceline::time::{ClockConfig, ClockStatus, SourcePart};
use paceline_cli::support::scratch::Scratch;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The error and the bound of a node's clock over a veth pair (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time of the measurement
    #[arg(long = "duration", value_name = "TIME", default_value = "60s", conflicts_with = "short",
          value_parser = paceline_cli::support::args::seconds::<1, 3_600>)]
    seconds: u32,
    /// Follows four chronyd servers instead of three nodes: this program; one of them is 9 s off
    #[arg(long, value_name = "FILE")]
    chronyd: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

const CLIENT: &str = "10.254.78.1";
const SERVER: &str = "10.254.78.2";
/// The offset of the shifted servers, and of the false one, in nanoseconds.
const AHEAD: u64 = 12_345_000_000;
const FALSE: u64 = 3_000_000_000;
/// The time after which the frequency is known to some ppm.
const SETTLE: Duration = Duration::from_secs(15);
/// The distance of readings.
const EVERY: Duration = Duration::from_micros(400);
/// The time for the first synchronisation.
const PATIENCE: Duration = Duration::from_secs(30);

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
    if args.chronyd.is_some() {
        command += " --chronyd /usr/sbin/chronyd";
    }
    let mut report = Report::new("The clock", &command);
    report.add(measure(args.chronyd.as_deref(), seconds)?, &args.output);
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

fn quick(config: ClockConfig) -> ClockConfig {
    config.poll(Duration::from_secs(1), Duration::from_secs(1))
}

fn measure(chronyd: Option<&Path>, seconds: u32) -> Result<Section> {
    let scratch = Scratch::new("clock")?;
    let [near, far] = cable()?;
    let ports: Vec<u16> =
        (0..if chronyd.is_some() { 4 } else { 3 }).map(|at| 10_123 + at).collect();
    let (mut nodes, mut servers) = (Vec::new(), Vec::new());
    for (at, port) in ports.iter().enumerate() {
        if let Some(chronyd) = chronyd {
            let ahead = if at == 3 { FALSE } else { AHEAD };
            servers.push(Shifted::start(chronyd, &far, &scratch.host(), *port, ahead)?);
        } else {
            let system = ClockConfig::new().system(Duration::from_micros(1));
            let config = system.serve(&format!("{SERVER}:{port}"));
            nodes.push(far.inside(|| Node::builder().isolated().clock(config).open())??);
        }
    }
    let follow = || {
        // The servers need some seconds themselves.
        interrupt::sleep(Duration::from_secs(if chronyd.is_some() { 8 } else { 2 }))?;
        let config = ports
            .iter()
            .fold(ClockConfig::new(), |config, port| config.server(&format!("{SERVER}:{port}")));
        let node = near.inside(|| Node::builder().isolated().clock(quick(config)).open())??;
        let ahead = if chronyd.is_some() { AHEAD } else { 0 };
        section(&node, ahead, seconds, chronyd.is_some())
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| feed(&servers, &stop));
        let measured = follow();
        stop.store(true, Ordering::Relaxed);
        measured
    })
}

/// The system clock in nanoseconds since 1970.
fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The readings of a clock.
struct Readings {
    count: u64,
    /// Those whose bounds contain the true time.
    inside: u64,
    /// Those before an earlier one.
    back: u64,
    bounds: Samples,
    errors: Samples,
}

/// Reads the clock of `node`, whose true time is the system clock plus `ahead`, for `time`.
fn read(node: &Node, ahead: u64, time: Duration) -> Result<Readings> {
    let (clock, until) = (node.clock(), Instant::now() + time);
    let (mut errors, mut bounds) = (Vec::new(), Vec::new());
    let (mut count, mut inside, mut back, mut last) = (0_u64, 0, 0, 0);
    while Instant::now() < until {
        let before = wall() + ahead;
        let reading = clock.now();
        let after = wall() + ahead;
        let holds = reading.bounds.earliest <= after && before <= reading.bounds.latest;
        inside += u64::from(holds);
        back += u64::from(reading.nanos < last);
        last = reading.nanos;
        bounds.push(reading.error());
        // An interrupted reading says nothing about the error.
        if after - before < 5_000 {
            errors.push(reading.nanos.abs_diff(before + (after - before) / 2));
        }
        count += 1;
        if count.is_multiple_of(1_000) {
            interrupt::check()?;
        }
        std::thread::sleep(EVERY);
    }
    let (bounds, errors) = (Samples::new(bounds), Samples::new(errors));
    Ok(Readings { count, inside, back, bounds, errors })
}

/// Measures the clock of `node`, whose true time is the system clock plus `ahead`, for `seconds`.
fn section(node: &Node, ahead: u64, seconds: u32, is_chronyd: bool) -> Result<Section> {
    let begun = Instant::now();
    while node.clock().status() != ClockStatus::Synchronised && begun.elapsed() < PATIENCE {
        interrupt::sleep(Duration::from_millis(1))?;
    }
    let first = begun.elapsed().as_secs_f64() * 1e3;
    // The bound is wider until the frequency is known.
    let early = read(node, ahead, if seconds > 2 { SETTLE } else { Duration::from_millis(100) })?;
    let watch = Watch::begin()?;
    let late = read(node, ahead, Duration::from_secs(u64::from(seconds)))?;
    let servers = if is_chronyd {
        "four chronyd servers, one of them false"
    } else {
        "three nodes as servers"
    };
    let title = format!("{servers}, requests once per second, {seconds} s");
    let mut section = Section::new(title).alone("clock");
    let mut must = |name: &str, unit, value, bound| {
        section.must(name, unit, value, f64::NAN, bound);
    };
    let (count, inside) = (early.count + late.count, early.inside + late.inside);
    let share = float(inside) * 100.0 / float(count.max(1));
    let micros = |nanos: Option<u64>| millis(nanos) * 1e3;
    let inside = "readings whose bounds contain the true time";
    must(inside, Unit::Percent, share, Bound::AtLeast(100.0));
    must(
        "readings before an earlier one",
        Unit::Count,
        float(early.back + late.back),
        Bound::AtMost(0.0),
    );
    must("first synchronised", Unit::Millis, first, Bound::AtMost(5_000.0));
    let (bound, error) = (micros(late.bounds.percentile(990)), micros(late.errors.percentile(990)));
    must("bound p99", Unit::Micros, bound, Bound::AtMost(100.0));
    must("error p99", Unit::Micros, error, Bound::AtMost(20.0));
    if is_chronyd {
        let sources = node.clock().report().sources;
        let found = sources.last().is_some_and(|one| one.selection == SourcePart::Falseticker);
        must("false servers found", Unit::Count, float(u64::from(found)), Bound::AtLeast(1.0));
    }
    let mut show = |name: &str, unit, value| section.show(name, unit, value, f64::NAN);
    show("readings", Unit::Count, float(count));
    show("bound p50", Unit::Micros, micros(late.bounds.percentile(500)));
    show("largest bound", Unit::Micros, micros(late.bounds.max()));
    show("bound p99 in the first 15 s", Unit::Micros, micros(early.bounds.percentile(990)));
    show("error p50", Unit::Micros, micros(late.errors.percentile(500)));
    show("largest error", Unit::Micros, micros(late.errors.max()));
    show("error p99 in the first 15 s", Unit::Micros, micros(early.errors.percentile(990)));
    section.load(Some(watch.load()?), None);
    Ok(section)
}

/// A chronyd that serves the system clock plus an offset.
struct Shifted {
    child: Child,
    socket: PathBuf,
    ahead: u64,
}

impl Shifted {
    fn start(chronyd: &Path, place: &Namespace, dir: &Path, port: u16, ahead: u64) -> Result<Self> {
        let file = |name: &str| dir.join(format!("{name}{port}"));
        let text = format!(
            "refclock SOCK {} refid FAKE poll 0 filter 2 precision 1e-6 delay 1e-6\nallow all\nport {port}\n\
             cmdport 0\nbindcmdaddress /\npidfile {}\ndriftfile {}\n",
            file("sock").display(),
            file("pid").display(),
            file("drift").display(),
        );
        std::fs::create_dir_all(dir)?;
        std::fs::write(file("conf"), text)?;
        let program = chronyd.to_str().context("--chronyd must be text")?;
        let mut command = place.command(program);
        command.args(["-x", "-d", "-u", "root", "-f"]).arg(file("conf"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("--chronyd {program}"))?;
        Ok(Self { child, socket: file("sock"), ahead })
    }

    /// Sends one sample of its reference clock.
    fn feed(&self, from: &UnixDatagram) {
        let now = wall();
        let (seconds, micros) = (now / 1_000_000_000, now % 1_000_000_000 / 1_000);
        // The sample's time has microseconds; its offset has the rest.
        let offset = float(self.ahead) / 1e9;
        let words = [seconds.to_ne_bytes(), micros.to_ne_bytes(), offset.to_ne_bytes()];
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

/// Feeds the reference clocks ten times per second.
fn feed(servers: &[Shifted], stop: &AtomicBool) {
    let Ok(from) = UnixDatagram::unbound() else { return };
    while !stop.load(Ordering::Relaxed) && !servers.is_empty() {
        servers.iter().for_each(|server| server.feed(&from));
        std::thread::sleep(Duration::from_millis(100));
    }
}
