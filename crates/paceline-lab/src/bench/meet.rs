//! `paceline-lab bench meet`: the time from the start of two commands to the first sample.

use super::report::{Bound, Report, Section, Unit};
use super::stats::{Samples, median, millis};
use super::terminal::Terminal;
use super::{OutputArgs, interrupt};
use anyhow::{Context as _, Result};
use paceline_tool::scratch::Scratch;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Time until `paceline pub` and `paceline sub` find each other, on one host and over three hops
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Meetings of each kind
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(1..=999))]
    meetings: u32,
    #[command(flatten)]
    output: OutputArgs,
}

const PUB: [&str; 4] = ["pub", "a/b", "--test-card", "320x240@30"];
const SUB: [&str; 3] = ["sub", "a/b", "--json"];
const MET_WITHIN: Bound = Bound::AtMost(1_000.0);
/// Long enough for a command to open its node.
const STANDING: Duration = Duration::from_millis(1_500);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let scratch = Scratch::new("meet")?;
    let command = match args.meetings {
        10 => "paceline-lab bench meet".to_owned(),
        meetings => format!("paceline-lab bench meet --meetings {meetings}"),
    };
    let meetings = if args.output.short { 1 } else { args.meetings };
    let mut report = Report::new("Time until two commands meet", &command);
    report.add(one_host(meetings, &scratch)?, &args.output);
    report.add(three_hops(meetings, &scratch)?, &args.output);
    report.finish(&args.output)
}

/// The command that already runs.
#[derive(Clone, Copy, Debug)]
enum First {
    Neither,
    Publisher,
    Subscriber,
}

fn one_host(meetings: u32, scratch: &Scratch) -> Result<Section> {
    let mut section = Section::new(format!(
        "Two commands in two terminals, without flags: time from the later start to the first \
         picture ({meetings} meetings each)"
    ));
    for (name, first) in [
        ("both at the same time", First::Neither),
        ("publisher first", First::Publisher),
        ("subscriber first", First::Subscriber),
    ] {
        let meet = || {
            let dir = scratch.host();
            meeting(first, &dir, &dir)
        };
        add_rows(&mut section, name, &repeat(meetings, meet)?);
    }
    Ok(section)
}

fn three_hops(meetings: u32, scratch: &Scratch) -> Result<Section> {
    let mut section = Section::new(format!(
        "Over three hops between four running nodes: time from the later start to the first \
         picture ({meetings} meetings each)"
    ));
    let hosts: Vec<PathBuf> = (0..4).map(|_| scratch.host()).collect();
    let _chain = chain(&hosts)?;
    interrupt::sleep(STANDING)?;
    let [near, .., far] = hosts.as_slice() else { unreachable!("there are four hosts") };
    for (name, first) in
        [("publisher first", First::Publisher), ("subscriber first", First::Subscriber)]
    {
        add_rows(&mut section, name, &repeat(meetings, || meeting(first, near, far))?);
    }
    Ok(section)
}

/// Starts one node per host, each linked to the next over TCP.
fn chain(hosts: &[PathBuf]) -> Result<Vec<Terminal>> {
    let ports: Vec<u16> = hosts.iter().skip(1).map(|_| free_port()).collect::<Result<_>>()?;
    let mut nodes = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let before = number.checked_sub(1).and_then(|before| ports.get(before));
        let links = [
            before.map(|port| format!("name=back,connect=tcp/127.0.0.1:{port}")),
            ports.get(number).map(|port| format!("name=on,listen=tcp/127.0.0.1:{port}")),
        ];
        let mut words = vec!["node".to_owned(), "--json".to_owned()];
        for link in links.into_iter().flatten() {
            words.extend(["--link".to_owned(), link]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut node = Terminal::start(&words, host, None)?;
        node.first_line()?;
        nodes.push(node);
    }
    Ok(nodes)
}

/// Returns a port that is currently free.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("a free port")?;
    Ok(listener.local_addr().context("a free port")?.port())
}

fn repeat(meetings: u32, mut meet: impl FnMut() -> Result<u64>) -> Result<Vec<u64>> {
    (0..meetings).map(|_| meet()).collect()
}

/// Returns the nanoseconds from the start of the later command to the first sample.
fn meeting(first: First, publisher: &Path, subscriber: &Path) -> Result<u64> {
    let publish = || Terminal::start(&PUB, publisher, None);
    let (began, mut sub, _camera) = match first {
        First::Neither => {
            let began = Instant::now();
            let camera = publish()?;
            (began, Terminal::start(&SUB, subscriber, None)?, camera)
        }
        First::Publisher => {
            let camera = publish()?;
            interrupt::sleep(STANDING)?;
            (Instant::now(), Terminal::start(&SUB, subscriber, None)?, camera)
        }
        First::Subscriber => {
            let sub = Terminal::start(&SUB, subscriber, None)?;
            interrupt::sleep(STANDING)?;
            (Instant::now(), sub, publish()?)
        }
    };
    let met = sub.first_line()?.duration_since(began);
    Ok(u64::try_from(met.as_nanos()).unwrap_or(u64::MAX))
}

fn add_rows(section: &mut Section, name: &str, nanos: &[u64]) {
    let all: Vec<f64> = nanos.iter().map(|&nanos| millis(Some(nanos))).collect();
    section.show(&format!("{name}: median"), Unit::Millis, median(&all), f64::NAN);
    let longest = millis(Samples::new(nanos.to_vec()).max());
    section.must(&format!("{name}: longest"), Unit::Millis, longest, f64::NAN, MET_WITHIN);
}
