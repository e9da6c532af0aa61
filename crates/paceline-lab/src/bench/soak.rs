//! `paceline-lab bench soak`: runs the demo's scenario for any duration while it kills and stops
//! processes at random.

mod cast;
mod fault;
pub(super) mod sums;
mod vitals;

use super::report::{Bound, Report, Section, Unit};
use super::stats::{Samples, count, millis};
use super::{OutputArgs, interrupt};
use anyhow::{Result, bail};
use cast::Cast;
use fault::{Fault, Plan};
use paceline_tool::scratch::Scratch;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use vitals::Growth;

/// Kills and stops processes of a small network at random and checks the others
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time with faults
    #[arg(long = "duration", value_name = "TIME", default_value = "30min", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<10, 86_400>)]
    seconds: u32,
    /// Seed that selects the processes and times of the faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// Time with faults in a short run; the last fault may take longer.
const SHORT_SECONDS: u32 = 5;
/// The longest wait for all subscribers to receive samples after a fault; beyond it the run fails.
const GIVES_UP_AFTER: Duration = Duration::from_secs(20);
const RESUMES_WITHIN_MS: f64 = 10_000.0;
const SLICE: Duration = Duration::from_millis(20);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The growth of memory that is not a leak: bytes that an allocator keeps for later.
const GROWTH_BYTES_MAX: f64 = 4_000_000.0;

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let scratch = Scratch::new("soak")?;
    let mut soak = Soak { cast: Cast::start(&scratch)?, kills: 0, stops: 0, resumed: Vec::new() };
    soak.wait_for_all(Instant::now())?;
    let seconds = if args.output.short { SHORT_SECONDS } else { args.seconds };
    let end = Instant::now() + Duration::from_secs(seconds.into());
    let mut plan = Plan::new(args.seed);
    while Instant::now() < end {
        soak.suffer(plan.next(soak.cast.victims()))?;
        soak.pass(Instant::now() + plan.pause())?;
    }
    let unequal = soak.cast.finish()?;
    let command = match args.output.short {
        true => format!("paceline-lab bench soak --seed {}", args.seed),
        false => format!("paceline-lab bench soak --duration {seconds}s --seed {}", args.seed),
    };
    let mut report = Report::new("Random faults", &command);
    report.add(soak.section(seconds, unequal), &args.output);
    report.finish(&args.output)
}

struct Soak {
    cast: Cast,
    kills: u64,
    stops: u64,
    /// The recovery time of all subscribers after each fault, in nanoseconds.
    resumed: Vec<u64>,
}

impl Soak {
    /// Injects one fault and waits for the recovery.
    fn suffer(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill { victim, away } => {
                self.kills += 1;
                self.cast.kill(victim)?;
                self.pass(Instant::now() + away)?;
                self.cast.restart(victim)?;
            }
            Fault::Stop { victim, away } => {
                self.stops += 1;
                self.cast.stop(victim)?;
                self.pass(Instant::now() + away)?;
                self.cast.go_on(victim)?;
            }
        }
        let since = Instant::now();
        self.wait_for_all(since)?;
        self.resumed.push(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Waits until `until` and checks the processes meanwhile.
    fn pass(&mut self, until: Instant) -> Result<()> {
        loop {
            interrupt::check()?;
            self.cast.look(LOOK_EVERY)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    /// Waits until every subscriber has received a sample after `since`.
    fn wait_for_all(&mut self, since: Instant) -> Result<()> {
        loop {
            self.pass(Instant::now() + SLICE)?;
            let silent = self.cast.silent_since(since);
            if silent.is_empty() {
                return Ok(());
            }
            if since.elapsed() > GIVES_UP_AFTER {
                bail!(
                    "within {} s after a fault, no sample reached {} (kills {}, stops {})",
                    GIVES_UP_AFTER.as_secs(),
                    silent.join(", "),
                    self.kills,
                    self.stops,
                );
            }
        }
    }

    fn section(self, seconds: u32, unequal: u64) -> Section {
        let title = format!(
            "{seconds} s on three hosts: a robot, its console, an operator behind 2 Mbit/s"
        );
        let mut section = Section::new(title).alone("measured");
        let none = f64::NAN;
        section.show("processes killed", Unit::Count, count_of(self.kills), none);
        section.show("processes suspended", Unit::Count, count_of(self.stops), none);
        let resumed = Samples::new(self.resumed);
        let most = Bound::AtMost(RESUMES_WITHIN_MS);
        section.show(
            "recovery of all subscribers: p50",
            Unit::Millis,
            millis(resumed.percentile(500)),
            none,
        );
        let longest = millis(resumed.percentile(1_000));
        section.must("recovery of all subscribers: longest", Unit::Millis, longest, none, most);
        let zero = Bound::AtMost(0.0);
        section.must(
            "streams whose counters do not add up",
            Unit::Count,
            count_of(unequal),
            none,
            zero,
        );
        for (name, Growth { bytes, descriptors, threads }) in self.cast.growth() {
            let most = Bound::AtMost(GROWTH_BYTES_MAX);
            section.must(&format!("{name}: memory growth, bytes"), Unit::Count, bytes, none, most);
            let few = Bound::AtMost(2.0);
            section.must(&format!("{name}: descriptors"), Unit::Count, descriptors, none, few);
            section.must(&format!("{name}: threads"), Unit::Count, threads, none, few);
        }
        section.note(
            "Memory, descriptors and threads are measured on processes without faults: the median \
             of the last fifth of the run minus that of the second fifth.",
        );
        section
    }
}

fn count_of(number: u64) -> f64 {
    count(usize::try_from(number).unwrap_or(usize::MAX))
}
