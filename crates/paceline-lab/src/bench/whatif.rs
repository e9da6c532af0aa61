//! `paceline-lab bench whatif`: the agreement of a repetition in virtual time with the run that was recorded, and its speed.
//!
//! Each session records random streams over a link of 2 Mbit/s, with a contract or without one, and repeats the recording
//! under its own capacity with `paceline whatif`. The recording's figures are those of `paceline judge`.

use super::netns::{self, ROBOT_ADDRESS, Rig, Side, THIN_BITS_PER_S};
use super::report::{Bound, Report, Section, Table, Unit};
use super::stats::{count, float};
use super::terminal::Terminal;
use super::{OutputArgs, interrupt, program};
use anyhow::{Context as _, Result, ensure};
use paceline::{Node, Publisher};
use paceline_sim::Random;
use paceline_tool::scratch::Scratch;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A repetition in virtual time, compared with the recorded run (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Number of sessions
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    sessions: u32,
    /// Time of each session
    #[arg(long = "duration", value_name = "TIME", default_value = "20s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<5, 3_600>)]
    seconds: u32,
    #[command(flatten)]
    output: OutputArgs,
}

const ROBOT: &str = "robot";
const OPERATOR: &str = "operator";
const PORT: u16 = 7_600;
/// The time before the recorder ends in which publishers begin.
const SETTLE: Duration = Duration::from_secs(1);
const HEADINGS: [&str; 8] = [
    "stream",
    "Hz recorded",
    "Hz simulated",
    "samples",
    "late recorded",
    "late simulated",
    "missing recorded",
    "dropped simulated",
];
const RATE_OFF_PERCENT_MAX: f64 = 2.0;
const LATE_OFF_PERCENT_MAX: f64 = 1.0;
const FASTER_MIN: f64 = 200.0;

/// A published stream.
#[derive(Clone, Copy, Debug)]
struct Source {
    hertz: u64,
    bytes: u64,
}

impl Source {
    fn random(random: &mut Random) -> Self {
        let hertz = 1 + random.below(100);
        // Up to 1 Mbit/s each, so that some sessions exceed the link.
        Self { hertz, bytes: 20 + random.below(1_000_000 / 8 / hertz) }
    }

    /// Publishes samples of half to all of its bytes until `is_over`.
    fn publish(
        self,
        mut publisher: Publisher,
        random: &mut Random,
        is_over: &AtomicBool,
    ) -> Result<()> {
        let begun = Instant::now();
        for index in 1.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let bytes = self.bytes / 2 + random.below(self.bytes / 2 + 1);
            publisher.put(vec![7; usize::try_from(bytes)?])?;
            let due = begun + Duration::from_secs(1) * index / u32::try_from(self.hertz)?;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}

/// The greatest differences of all sessions.
#[derive(Debug, Default)]
struct Worst {
    rate_percent: f64,
    late_percent: f64,
    seconds: f64,
    repeated_in: f64,
    verdicts: usize,
    streams: usize,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !netns::can_build("whatif") {
        return Ok(ExitCode::from(2));
    }
    interrupt::install()?;
    let (sessions, seconds) =
        if args.output.short { (1, 5) } else { (args.sessions, args.seconds) };
    let command = match (args.sessions, args.seconds) {
        (10, 20) => "paceline-lab bench whatif".to_owned(),
        (sessions, seconds) => {
            format!("paceline-lab bench whatif --sessions {sessions} --duration {seconds}s")
        }
    };
    let mut report = Report::new("A recorded run, repeated in virtual time", &command);
    let scratch = Scratch::new("whatif")?;
    let (mut table, mut worst) = (Table::new(HEADINGS.map(str::to_owned).into()), Worst::default());
    for session in 0..sessions {
        let bench = Session { number: session, time: Duration::from_secs(seconds.into()) };
        worst.add(&bench.run(&scratch)?, &mut table, &bench)?;
    }
    let mut section = Section::new("recorded and simulated").alone("value");
    section.table(table);
    worst.rows(&mut section);
    report.add(section, &args.output);
    report.finish(&args.output)
}

#[derive(Clone, Copy, Debug)]
struct Session {
    number: u32,
    time: Duration,
}

impl Session {
    /// Every second session has contracts.
    fn has_contracts(self) -> bool {
        self.number.is_multiple_of(2)
    }

    /// Records a run and repeats it. Returns the report of the repetition, and the time that it took.
    fn run(self, scratch: &Scratch) -> Result<(Value, f64)> {
        let rig = Rig::new(10 * THIN_BITS_PER_S)?;
        let (robot, operator) = (scratch.host(), scratch.host());
        let place = format!("tcp/{ROBOT_ADDRESS}:{PORT}");
        let mut nodes = [
            node(ROBOT, &format!("listen={place}"), &robot, (&rig, Side::Robot))?,
            node(OPERATOR, &format!("connect={place}"), &operator, (&rig, Side::Operator))?,
        ];
        nodes.iter_mut().try_for_each(|node| node.first_line().map(drop))?;
        let near = Node::builder().name("near").runtime_dir(&robot).open()?;
        let file = operator.join(format!("{}.mcap", self.number));
        let mut random = Random::new(u64::from(self.number) + 1);
        let sources: Vec<Source> =
            (0..3 + random.below(5)).map(|_| Source::random(&mut random)).collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let mut threads = Vec::new();
            for (index, source) in sources.iter().enumerate() {
                let declared = near.publisher(&format!("run/{index}")).hz(float(source.hertz));
                let publisher = declared.bytes_max(source.bytes).declare()?;
                let mut random = Random::new(random.below(u64::MAX));
                let is_over = &is_over;
                threads.push(scope.spawn(move || source.publish(publisher, &mut random, is_over)));
            }
            let recorded = self.record(&file, &operator);
            is_over.store(true, Ordering::Relaxed);
            for thread in threads {
                thread.join().map_err(|_| anyhow::anyhow!("a publisher panicked"))??;
            }
            recorded
        })?;
        drop(nodes);
        repeat(&file)
    }

    fn record(self, file: &Path, host: &Path) -> Result<()> {
        interrupt::sleep(SETTLE)?;
        let mut command = Command::new(program::path()?);
        command.args(["record", "run/**", "--out"]).arg(file).env("PACELINE_RUNTIME_DIR", host);
        command.args(["--duration", &format!("{}s", self.time.as_secs())]);
        if self.has_contracts() {
            command.args(["--within", "200ms", "--loss", "1/10"]);
        }
        let done = command.output().context("record")?;
        let text = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "record ended with {}: {text}", done.status);
        Ok(())
    }
}

fn node(name: &str, place: &str, host: &Path, (rig, side): (&Rig, Side)) -> Result<Terminal> {
    let link = format!("name=path,{place},capacity={THIN_BITS_PER_S}bit,insecure");
    let words = ["node", "--name", name, "--json", "--link", &link];
    Terminal::start(&words, host, Some(rig.namespace(side)))
}

/// Repeats a recording with its own capacity and requests.
fn repeat(file: &Path) -> Result<(Value, f64)> {
    let begun = Instant::now();
    let mut command = Command::new(program::path()?);
    let done = command.arg("whatif").arg(file).arg("--json").output().context("whatif")?;
    let took = begun.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&done.stderr);
    // 3: a contract was refused or broken.
    ensure!(matches!(done.status.code(), Some(0 | 3)), "whatif ended with {}: {text}", done.status);
    let lines: Value = serde_json::from_slice(&done.stdout).context("the report of whatif")?;
    Ok((lines, took))
}

impl Worst {
    fn add(
        &mut self,
        (report, took): &(Value, f64),
        table: &mut Table,
        session: &Session,
    ) -> Result<()> {
        self.seconds += report["seconds"].as_f64().context("seconds")?;
        self.repeated_in += took;
        for stream in report["streams"].as_array().context("streams")? {
            let (recorded, simulated) = (&stream["recorded"], &stream["simulated"]);
            let rate = recorded["rate_hz"].as_f64().unwrap_or(0.0);
            let again = stream["simulated_rate_hz"].as_f64().unwrap_or(0.0);
            let number = |value: &Value| float(value.as_u64().unwrap_or(0));
            let samples = number(&recorded["samples"]);
            let (late, late_again) = (number(&recorded["late"]), number(&simulated["late"]));
            let dropped = &stream["dropped_on_links"];
            let dropped: f64 = dropped
                .as_object()
                .into_iter()
                .flat_map(|of| of.values().map(number))
                .fold(0.0, |a, b| a + b);
            self.streams += 1;
            let verdicts = [&recorded["verdict"], &stream["verdict"]].map(|it| it.as_str());
            let same = match verdicts {
                [Some("kept"), Some("granted")] => true,
                [one, other] => one == other,
            };
            self.verdicts += usize::from(!same);
            if verdicts != [Some("refused"); 2] {
                let off = (again / rate.max(f64::MIN_POSITIVE) - 1.0).abs() * 100.0;
                self.rate_percent = self.rate_percent.max(off);
                let off = (late - late_again).abs() / samples.max(1.0) * 100.0;
                self.late_percent = self.late_percent.max(off);
            }
            let kind = if session.has_contracts() { "contract" } else { "best effort" };
            let tag = stream["tag"].as_str().unwrap_or_default();
            table.row(
                format!("session {}, {tag}, {kind}", session.number + 1),
                vec![rate, again, samples, late, late_again, number(&recorded["missing"]), dropped],
            );
        }
        Ok(())
    }

    fn rows(&self, section: &mut Section) {
        let mut must = |name: &str, unit, value, bound| {
            section.must(name, unit, value, f64::NAN, bound);
        };
        must("streams", Unit::Count, count(self.streams), Bound::AtLeast(1.0));
        must("streams of another verdict", Unit::Count, count(self.verdicts), Bound::AtMost(0.0));
        let most = Bound::AtMost(RATE_OFF_PERCENT_MAX);
        must("greatest difference of a rate", Unit::Percent, self.rate_percent, most);
        let most = Bound::AtMost(LATE_OFF_PERCENT_MAX);
        must("greatest difference of late samples", Unit::Percent, self.late_percent, most);
        let faster = self.seconds / self.repeated_in.max(f64::MIN_POSITIVE);
        must("recorded by repeating time", Unit::Ratio, faster, Bound::AtLeast(FASTER_MIN));
    }
}
