//! `paceline-lab bench schedule`: the cost of one decision of a link's scheduler, next to the papers'
//! figures.

mod count;
mod measure;

use super::child::Child;
use super::protocol::{Message, Role};
use super::report::{Bound, Report, Section, Unit};
use super::stats::float;
use super::{OutputArgs, interrupt};
use anyhow::Result;
use paceline_sched::Policy;
use paceline_sched::discipline::Eligibility;
use paceline_tool::scratch::Scratch;
use std::process::ExitCode;
use std::time::Duration;

/// Cost of one decision of a link's scheduler, for every policy
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Number of streams; can be repeated
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "short",
          default_values_t = [4, 32, 1_024, 100_000, 1_000_000],
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    streams: Vec<u32>,
    /// Only this policy; can be repeated
    #[arg(long, value_name = "POLICY", value_delimiter = ',')]
    policy: Vec<Policy>,
    /// Measured decisions for each policy and number of streams
    #[arg(long, value_name = "N", default_value_t = 2_000_000, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(6_400..=1_000_000_000))]
    decisions: u32,
    /// Also count instructions (needs valgrind)
    #[arg(long)]
    instructions: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// The upper bounds on a decision in nanoseconds, by number of streams.
const BOUNDS: [(u32, f64); 5] =
    [(4, 20.0), (32, 50.0), (1_024, 90.0), (100_000, 150.0), (1_000_000, 250.0)];
/// The number of streams for the memory measurement, large enough to hide the rest of the process.
const MANY: u32 = 1_000_000;
const MANY_SHORT: u32 = 10_000;
const STALLED: u32 = 10_000;

const ELIGIBILITIES: [(Eligibility, &str); 2] = [
    (Eligibility::WorkConserving, "work-conserving"),
    (Eligibility::OncePerPeriod, "once per period"),
];

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let scratch = Scratch::new("schedule")?;
    let mut report = Report::new("The cost of one scheduling decision", &command(args));
    let (args, many) = &match args.output.short {
        true => (Args { streams: vec![4, 1_024], decisions: 6_400, ..args.clone() }, MANY_SHORT),
        false => (args.clone(), MANY),
    };
    let all = Policy::ALL.into_iter();
    let chosen = |policy: &Policy| args.policy.is_empty() || args.policy.contains(policy);
    let policies: Vec<Policy> = all.filter(chosen).collect();
    for &policy in &policies {
        for (eligibility, how) in ELIGIBILITIES {
            eprintln!("{policy}, {how}");
            let title = format!("{policy}, {how}: nanoseconds per packet served");
            let section = decisions(args, policy, eligibility, title)?;
            report.add(section, &args.output);
        }
    }
    report.add(memory(&policies, &scratch, *many)?, &args.output);
    report.add(stall(&policies)?, &args.output);
    report.add(papers(), &args.output);
    report.finish(&args.output)
}

fn command(args: &Args) -> String {
    let mut command = "paceline-lab bench schedule".to_owned();
    if args.instructions {
        command.push_str(" --instructions");
    }
    if args.decisions != 2_000_000 {
        command.push_str(&format!(" --decisions {}", args.decisions));
    }
    command
}

/// Returns true for the disciplines that must meet the bounds.
fn bounded(policy: Policy) -> bool {
    policy == Policy::DWCS || policy == Policy::Vds
}

fn decisions(
    args: &Args,
    policy: Policy,
    eligibility: Eligibility,
    title: String,
) -> Result<Section> {
    let mut section = Section::new(title).alone("Paceline");
    for &streams in &args.streams {
        interrupt::check()?;
        let cost = measure::decisions(policy, eligibility, streams, args.decisions);
        let name = |what: &str| format!("{streams} streams: {what}");
        let bound = BOUNDS.iter().find(|(at, _)| *at == streams && bounded(policy));
        match bound {
            Some(&(_, most)) => {
                let most = Bound::AtMost(most);
                section.must(&name("p50"), Unit::Nanos, cost.p50, f64::NAN, most);
            }
            None => section.show(&name("p50"), Unit::Nanos, cost.p50, f64::NAN),
        }
        section.show(&name("p99"), Unit::Nanos, cost.p99, f64::NAN);
        section.show(&name("p99.9"), Unit::Nanos, cost.p999, f64::NAN);
        section.show(&name("misses per packet"), Unit::Ratio, cost.missed, f64::NAN);
        if args.instructions {
            let counted = count::instructions(policy, eligibility, streams)?;
            section.show(&name("instructions"), Unit::Count, counted, f64::NAN);
        }
    }
    section.note("Percentiles over batches of 64 decisions, including misses and window changes.");
    Ok(section)
}

/// Measures the resident memory of a stream, each policy in its own process.
fn memory(policies: &[Policy], scratch: &Scratch, many: u32) -> Result<Section> {
    let mut section =
        Section::new(format!("Resident bytes per stream without its queue, with {many} streams"))
            .alone("Paceline");
    for &policy in policies {
        let role = Role::Streams { policy: policy.name().to_owned(), streams: many };
        let mut child = Child::start("streams", &role, None, &scratch.host())?;
        let bytes = child.expect("result", Duration::from_secs(120), |message| {
            let Message::Streams { bytes_each } = message else { return None };
            Some(bytes_each)
        })?;
        match policy {
            Policy::Dwcs { .. } | Policy::Vds | Policy::Edf | Policy::DelayEdd => {
                let most = Bound::AtMost(128.0);
                section.must(policy.name(), Unit::Count, bytes, f64::NAN, most);
            }
            Policy::Hfsc => {
                let most = Bound::AtMost(512.0);
                section.must(policy.name(), Unit::Count, bytes, f64::NAN, most);
            }
            Policy::Fifo
            | Policy::StaticPriority
            | Policy::Rcsp
            | Policy::StopAndGo
            | Policy::Rpq
            | Policy::Drr
            | Policy::Wf2qPlus => {
                section.show(policy.name(), Unit::Count, bytes, f64::NAN);
            }
        }
    }
    Ok(section)
}

/// Measures the recovery from a stalled link, after every stream has missed periods.
fn stall(policies: &[Policy]) -> Result<Section> {
    let title = format!("The first iterations after a stall of 30 s, with {STALLED} streams");
    let mut section = Section::new(title).alone("Paceline");
    for &policy in policies {
        interrupt::check()?;
        let stall = measure::stall(policy, STALLED);
        let longest = format!("{policy}: longest iteration of {} misses", measure::TURN);
        let most = Bound::AtMost(1.0);
        match bounded(policy) {
            true => section.must(&longest, Unit::Millis, stall.longest_ms, f64::NAN, most),
            false => section.show(&longest, Unit::Millis, stall.longest_ms, f64::NAN),
        }
        let all = format!("{policy}: all iterations");
        section.show(&all, Unit::Millis, stall.whole_ms, f64::NAN);
        let misses = format!("{policy}: misses reported");
        section.show(&misses, Unit::Count, float(stall.misses), f64::NAN);
    }
    Ok(section)
}

/// Returns the papers' published figures.
fn papers() -> Section {
    let mut section =
        Section::new("The papers' figures for one decision of DWCS").alone("published");
    for (name, nanos) in [
        ("UltraSPARC, 300 MHz, Solaris", 50_000.0),
        ("network interface: i960RD, 66 MHz, fixed point, data cache", 67_000.0),
        ("i960RD, fixed point, without data cache", 78_000.0),
        ("i960RD, floating point in software, without data cache", 95_000.0),
        ("StrongARM SA-110, 85.7 MHz, simulated", 17_480.0),
        ("StrongARM SA-110, 287 MHz, simulated", 5_210.0),
        ("ShareStreams FPGA, Virtex II, 4 streams", 39.7),
        ("ShareStreams FPGA, Virtex II, 32 streams", 132.0),
        ("ShareStreams FPGA, Virtex II, 1024 streams", 1_650.0),
    ] {
        section.show(name, Unit::Nanos, nanos, f64::NAN);
    }
    section.note("Krishnamurthy et al., tables 1 to 3. The host's figure is from West & Schwan.");
    section
}
