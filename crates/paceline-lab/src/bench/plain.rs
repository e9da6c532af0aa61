//! `paceline-lab bench plain`: the cost of connecting two plain Zenoh programs through two nodes, and
//! of serving many at one node.

mod queries;
mod sessions;

use super::machine::{Watch, cpu_seconds};
use super::report::{Bound, Report, Section, Unit};
use super::stats::{Samples, float, median};
use super::{OutputArgs, clock, interrupt, program, zenoh};
use ::zenoh::{Session, Wait};
use anyhow::{Context as _, Result, anyhow};
use paceline_tool::scratch::Scratch;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Two plain Zenoh programs over TCP on loopback: a direct connection, or two nodes with one rule
/// each
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Alternating pairs of runs, through the nodes and direct; reports medians
    #[arg(long, value_name = "N", default_value_t = 3, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(1..=99))]
    pairs: u32,
    /// Time of each run
    #[arg(long = "duration", value_name = "TIME", default_value = "5s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<1, 3_600>)]
    seconds: u32,
    /// Programs connected to one node, and to a Zenoh router
    #[arg(long, value_name = "N", default_value_t = 1_000, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(1..=4_000))]
    sessions: u32,
    #[command(flatten)]
    output: OutputArgs,
}

/// Samples per second.
const RATE: u64 = 1_000;
const KEY: &str = "robot/imu";
/// The rules of the importing and of the exporting node.
const ONE_DIRECTION: [&str; 2] =
    ["[[import]]\nkey = \"robot/**\"", "[[export]]\ntag = \"robot/**\""];
/// The number of initial samples that are not counted, because discovery is not complete yet.
const WARM_UP: u64 = 500;
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let scratch = Scratch::new("plain")?;
    let Args { pairs, seconds, sessions, .. } = *args;
    let command = match (pairs, seconds, sessions) {
        (3, 5, 1_000) => "paceline-lab bench plain".to_owned(),
        _ => format!(
            "paceline-lab bench plain --pairs {pairs} --duration {seconds}s --sessions {sessions}"
        ),
    };
    let args = &if args.output.short {
        // Long enough for both to use a processor time well above the clock's resolution.
        Args { pairs: 1, seconds: 3, sessions: 50, ..args.clone() }
    } else {
        args.clone()
    };
    let mut report = Report::new("Plain Zenoh programs through two nodes", &command);
    for bytes in [64, 252] {
        report.add(measure(args, &scratch, bytes)?, &args.output);
    }
    report.add(queries::measure(args, &scratch)?, &args.output);
    report.add(sessions::measure(args, &scratch)?, &args.output);
    report.finish(&args.output)
}

struct Figures {
    p50_us: f64,
    p99_us: f64,
    /// Processor time per sample of the importing and of the exporting node, in microseconds.
    cpu_us: [f64; 2],
}

fn measure(args: &Args, scratch: &Scratch, bytes: usize) -> Result<Section> {
    let watch = Watch::begin()?;
    let [through, direct] = in_turn(
        args,
        &format!("{bytes} bytes"),
        || through_nodes(args, scratch, bytes),
        || directly(args, bytes),
    )?;
    let mut section = Section::new(format!(
        "{RATE} samples of {bytes} bytes per second, in one direction over TCP on loopback ({} \
         pairs of {} s)",
        args.pairs, args.seconds
    ));
    let ratio = ratio_of(&through, &direct, |f| f.p50_us);
    let name = "p50 / direct p50";
    match bytes {
        64 => section.must(name, Unit::Ratio, ratio, f64::NAN, Bound::AtMost(5.0)),
        _ => section.show(name, Unit::Ratio, ratio, f64::NAN),
    }
    section.show("p50", Unit::Micros, of(&through, |f| f.p50_us), of(&direct, |f| f.p50_us));
    section.show("p99", Unit::Micros, of(&through, |f| f.p99_us), of(&direct, |f| f.p99_us));
    let [import, export] = [of(&through, |f| f.cpu_us[0]), of(&through, |f| f.cpu_us[1])];
    section.show(
        "processor time of the importing node, per sample",
        Unit::Micros,
        import,
        f64::NAN,
    );
    section.show(
        "processor time of the exporting node, per sample",
        Unit::Micros,
        export,
        f64::NAN,
    );
    section.load(Some(watch.load()?), None);
    Ok(section)
}

/// Alternates runs of ours and of plain Zenoh, so that both find the machine in the same state.
fn in_turn<T>(
    args: &Args,
    what: &str,
    ours: impl Fn() -> Result<T>,
    plain: impl Fn() -> Result<T>,
) -> Result<[Vec<T>; 2]> {
    let mut runs = [Vec::new(), Vec::new()];
    for pair in 0..args.pairs {
        eprintln!("{what}: pair {} of {}", pair + 1, args.pairs);
        runs[0].push(ours()?);
        runs[1].push(plain()?);
    }
    Ok(runs)
}

/// Returns the median of a figure over several runs.
fn of<T>(runs: &[T], figure: fn(&T) -> f64) -> f64 {
    median(&runs.iter().map(figure).collect::<Vec<_>>())
}

/// Returns the median of the ratios of ours to plain Zenoh, pair by pair.
fn ratio_of<T>(ours: &[T], plain: &[T], figure: fn(&T) -> f64) -> f64 {
    let ratios = ours.iter().zip(plain).map(|(ours, plain)| figure(ours) / figure(plain));
    median(&ratios.collect::<Vec<_>>())
}

/// A node process; dropping this ends it.
struct Node(Child);

impl Node {
    fn start(dir: &Path, config: &str) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("folder {}", dir.display()))?;
        let file = dir.join("config.toml");
        std::fs::write(&file, config).with_context(|| format!("{}", file.display()))?;
        let mut command = Command::new(program::path()?);
        command.args(["node", "--config"]).arg(&file).env("PACELINE_RUNTIME_DIR", dir);
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start a node")?;
        let stdout = child.stdout.take().context("output of a node")?;
        let node = Self(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("output of a node")?;
        anyhow::ensure!(line.contains("plain Zenoh at"), "a node did not open: {line}");
        Ok(node)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both calls fail harmlessly if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two nodes joined by a link, each with rules for plain programs.
struct NodePair {
    nodes: [Node; 2],
    /// The ports for plain programs at the first node (`here`) and at the second (`there`).
    here: u16,
    there: u16,
}

impl NodePair {
    fn start(scratch: &Scratch, rules: [&str; 2]) -> Result<Self> {
        let [link, here, there] = [free_port()?, free_port()?, free_port()?];
        let config = |kind: &str, port: u16, rule: &str| {
            format!(
                "[[link]]\nname = \"wire\"\n{kind} = [\"tcp/127.0.0.1:{link}\"]\n\
                 [plain]\nlisten = [\"tcp/127.0.0.1:{port}\"]\n{rule}\n"
            )
        };
        let [one, other] = [config("listen", here, rules[0]), config("connect", there, rules[1])];
        let nodes = [Node::start(&scratch.host(), &one)?, Node::start(&scratch.host(), &other)?];
        Ok(Self { nodes, here, there })
    }

    fn processes(&self) -> [u32; 2] {
        self.nodes.each_ref().map(|node| node.0.id())
    }
}

fn through_nodes(args: &Args, scratch: &Scratch, bytes: usize) -> Result<Figures> {
    let pair = NodePair::start(scratch, ONE_DIRECTION)?;
    let publisher = zenoh::open("client", &[], &[format!("tcp/127.0.0.1:{}", pair.here)], &[])?;
    let subscriber = zenoh::open("client", &[], &[format!("tcp/127.0.0.1:{}", pair.there)], &[])?;
    drive(args, [&publisher, &subscriber], bytes, &pair.processes())
}

fn directly(args: &Args, bytes: usize) -> Result<Figures> {
    let endpoint = format!("tcp/127.0.0.1:{}", free_port()?);
    let publisher = zenoh::open("peer", std::slice::from_ref(&endpoint), &[], &[])?;
    let subscriber = zenoh::open("peer", &[], &[endpoint], &[])?;
    drive(args, [&publisher, &subscriber], bytes, &[])
}

/// Publishes at the fixed rate and collects the delays of the received samples.
fn drive(
    args: &Args,
    [from, to]: [&Session; 2],
    bytes: usize,
    processes: &[u32],
) -> Result<Figures> {
    let delays = Arc::new(Mutex::new(Vec::new()));
    let seen = delays.clone();
    let subscriber = to
        .declare_subscriber(KEY)
        .callback(move |sample| {
            let now = clock::now();
            let payload = sample.payload().to_bytes();
            let sent = payload.first_chunk().map_or(0, |sent| u64::from_le_bytes(*sent));
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(now.saturating_sub(sent));
        })
        .wait()
        .map_err(plain_error)?;
    let publisher = from.declare_publisher(KEY).wait().map_err(plain_error)?;
    let mut payload = vec![7; bytes];
    let mut put = || {
        if let Some(front) = payload.first_chunk_mut() {
            *front = clock::now().to_le_bytes();
        }
        publisher.put(payload.clone()).wait().map_err(plain_error)
    };
    let until = std::time::Instant::now() + PATIENCE;
    let count = || delays.lock().unwrap_or_else(PoisonError::into_inner).len();
    while count() == 0 {
        anyhow::ensure!(std::time::Instant::now() < until, "no sample arrived within {PATIENCE:?}");
        put()?;
        interrupt::sleep(Duration::from_millis(10))?;
    }
    let total = WARM_UP + RATE * u64::from(args.seconds);
    let start = clock::now();
    let mut used = [0.0; 2];
    for n in 0..total {
        if n == WARM_UP {
            delays.lock().unwrap_or_else(PoisonError::into_inner).clear();
            read_cpu(processes, &mut used)?;
        }
        interrupt::sleep_until(start + n * (1_000_000_000 / RATE))?;
        put()?;
    }
    interrupt::sleep(Duration::from_millis(200))?;
    let before = used;
    read_cpu(processes, &mut used)?;
    drop((subscriber, publisher));
    let delays = std::mem::take(&mut *delays.lock().unwrap_or_else(PoisonError::into_inner));
    let arrived = delays.len();
    let sent = total - WARM_UP;
    if u64::try_from(arrived).unwrap_or(0) < sent {
        eprintln!("{arrived} of {sent} samples arrived");
    }
    let delays = Samples::new(delays);
    let micros = |per_mille| delays.percentile(per_mille).map_or(f64::NAN, |it| float(it) / 1e3);
    let each = |at: usize| {
        let spent = used.get(at).zip(before.get(at)).map_or(f64::NAN, |(now, then)| now - then);
        if processes.is_empty() { f64::NAN } else { spent * 1e6 / float(sent) }
    };
    Ok(Figures { p50_us: micros(500), p99_us: micros(990), cpu_us: [each(0), each(1)] })
}

fn read_cpu(processes: &[u32], used: &mut [f64; 2]) -> Result<()> {
    for (process, used) in processes.iter().zip(used) {
        *used = cpu_seconds(*process)?;
    }
    Ok(())
}

fn plain_error(error: ::zenoh::Error) -> anyhow::Error {
    anyhow!("plain Zenoh: {error}")
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("a free port")?;
    Ok(listener.local_addr().context("a free port")?.port())
}
