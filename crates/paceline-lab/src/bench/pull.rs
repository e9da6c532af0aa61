//! `paceline-lab bench pull`: the effect of a late joiner's large pull on live streams.

use super::netns::{self, Rig, Side};
use super::protocol::{Content, Engine, Source, Want};
use super::report::{Bound, Report, Section, Unit};
use super::stage::{Actions, Hosts, Listener, Measured, Plan, Stage};
use super::stats::{Samples, count, float, millis};
use super::terminal::Terminal;
use super::{OutputArgs, interrupt};
use anyhow::{Context as _, Result};
use paceline::class::Policy;
use paceline_tool::scratch::Scratch;
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// 25 samples of 1 MB pulled over 8 Mbit/s during live streams (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time of the live streams, without and with the pull
    #[arg(long = "duration", value_name = "TIME", default_value = "40s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<30, 3_600>)]
    seconds: u32,
    #[command(flatten)]
    output: OutputArgs,
}

const BITS_PER_S: u64 = 8_000_000;
const PULLED: usize = 25;
const PULLED_BYTES: usize = 1_000_000;
const STEERING: usize = 0;
const CAMERA: usize = 1;
/// The transmission time of one full frame, 2 ms plus headers. A live sample may have to wait for
/// such a frame.
const SEGMENT_MS: f64 = 2.18;

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !netns::can_build("pull") {
        return Ok(ExitCode::from(2));
    }
    interrupt::install()?;
    let rig = Rig::new(BITS_PER_S)?;
    let scratch = Scratch::new("pull")?;
    let stage = Stage::new(&rig, &scratch, args.output.short);
    let plan = plan(f64::from(args.seconds));
    let samples = if args.output.short { 1 } else { PULLED };
    // The node with the pull buffer runs in both measurements; only the pull differs.
    let holder = Mutex::new(None);
    let before = |hosts: &Hosts| {
        // The previous node's host no longer exists.
        drop(lock(&holder).take());
        *lock(&holder) = Some(start_holder(&rig, hosts, samples)?);
        Ok(())
    };
    eprintln!("the live streams alone: {} s", args.seconds);
    let alone = stage.measure_with(&plan, &Actions { before: &before, meanwhile: &|_| Ok(()) })?;
    eprintln!("the live streams with the pull");
    let pull = Mutex::new(None);
    let meanwhile = |hosts: &Hosts| {
        *lock(&pull) = Some(pull_all(&rig, hosts, samples)?);
        Ok(())
    };
    let with_pull =
        stage.measure_with(&plan, &Actions { before: &before, meanwhile: &meanwhile })?;
    let pulled = *lock(&pull);
    drop(holder);
    let command = match args.seconds {
        40 => "paceline-lab bench pull".to_owned(),
        seconds => format!("paceline-lab bench pull --duration {seconds}s"),
    };
    let mut report = Report::new("A large pull during live streams", &command);
    report.add(section(samples, (&alone, &with_pull), pulled.unwrap_or_default()), &args.output);
    report.finish(&args.output)
}

/// Plans steering with a deadline and a camera of 2.4 Mbit/s without a contract.
fn plan(seconds: f64) -> Plan {
    let source =
        |tag: &str, hz, content, urgent| Source { tag: tag.to_owned(), hz, content, urgent };
    let want = |tag: &str| Want { tag: tag.to_owned(), ..Want::default() };
    let steering = Want { within_ms: Some(50), ..want("robot/steering") };
    Plan {
        engine: Engine::Paceline,
        policy: Policy::default(),
        sources: vec![
            source("robot/steering", 100.0, Content::Noise(64), true),
            source("robot/camera", 10.0, Content::Noise(30_000), false),
        ],
        listeners: vec![Listener {
            name: "operator",
            side: Side::Operator,
            want: vec![steering, want("robot/camera")],
        }],
        seconds,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Pulled {
    samples: u64,
    bytes: u64,
    seconds: f64,
}

fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Starts a node on the robot's host and fills its pull buffer.
fn start_holder(rig: &Rig, hosts: &Hosts, samples: usize) -> Result<Terminal> {
    let robot = rig.namespace(Side::Robot);
    let file = hosts.robot.with_extension("bulk");
    std::fs::write(&file, vec![7; samples * PULLED_BYTES]).context("samples to pull")?;
    let file = file.to_str().context("a path that is text")?;
    let buffer = format!("bulk=samples={samples},bytes=64MB");
    let holder = ["node", "--name", "holder", "--json", "--buffer", &buffer];
    let mut holder = Terminal::start(&holder, &hosts.robot, Some(robot))?;
    holder.first_line()?;
    let chunk = format!("{PULLED_BYTES}B");
    let publish = ["pub", "bulk", "--file", file, "--chunk", &chunk, "--hz", "20", "--json"];
    let mut publisher = Terminal::start(&publish, &hosts.robot, Some(robot))?;
    publisher.rest(Duration::from_secs(20))?;
    Ok(holder)
}

/// Pulls everything with a command at the operator's end.
fn pull_all(rig: &Rig, hosts: &Hosts, samples: usize) -> Result<Pulled> {
    let operator = rig.namespace(Side::Operator);
    let began = Instant::now();
    let newest = samples.to_string();
    let pull = ["pull", "bulk", "--newest", &newest, "--json", "--timeout", "120s"];
    let mut pull = Terminal::start(&pull, &hosts.operator, Some(operator))?;
    let lines = pull.rest(Duration::from_secs(150))?;
    let mut pulled = Pulled { seconds: began.elapsed().as_secs_f64(), ..Pulled::default() };
    for line in lines {
        let sample: Value = serde_json::from_str(&line.text).context("paceline pull --json")?;
        if let Some(bytes) = sample.get("bytes").and_then(Value::as_u64) {
            pulled.samples += 1;
            pulled.bytes += bytes;
        }
    }
    Ok(pulled)
}

fn section(samples: usize, (alone, with_pull): (&Measured, &Measured), pulled: Pulled) -> Section {
    let mut section = Section::new(format!(
        "{samples} samples of 1 MB over 8 Mbit/s, next to 100 Hz steering and a camera of 2.4 \
         Mbit/s"
    ));
    let whole = count(samples) - float(pulled.samples);
    section.must("samples not pulled", Unit::Count, whole, f64::NAN, Bound::AtMost(0.0));
    let rate = float(pulled.bytes) * 8.0 / 1e6 / pulled.seconds;
    section.show("pulled, Mbit/s", Unit::Ratio, rate, f64::NAN);
    for (name, source) in [("steering", STEERING), ("camera", CAMERA)] {
        let delays = |measured: &Measured| measured.flow(source, (0, source), usize::MAX);
        let (before, after) = (delays(alone), delays(with_pull));
        for (what, per_mille) in [("p50", 500), ("p99", 990), ("p99.9", 999)] {
            let of = |samples: Samples| millis(samples.percentile(per_mille));
            let (before, after) = (of(before.delays()), of(after.delays()));
            section.show(&format!("{name} alone: {what}"), Unit::Millis, before, f64::NAN);
            let name = format!("{name} with the pull: {what}");
            let most = Bound::AtMost(before + SEGMENT_MS);
            section.must(&name, Unit::Millis, after, f64::NAN, most);
        }
        let lost = count(after.lost());
        let none = Bound::AtMost(0.0);
        section.must(&format!("{name}: lost with the pull"), Unit::Count, lost, f64::NAN, none);
    }
    section.load(with_pull.load, None);
    section.warn_if_busy();
    section.note(
        "Each bound is the delay without the pull plus one segment: 2 ms of link time and its \
         headers.",
    );
    section
}
