//! `paceline-lab bench storm`: contracts on an overloaded thin link, under each discipline.

use super::netns::{self, Rig, Side, THIN_BITS_PER_S};
use super::protocol::{Content, Engine, Source, Want};
use super::report::{Bound, Report, Section, Unit};
use super::stage::{Flow, Listener, Measured, Plan, Stage};
use super::stats::{count, float, millis};
use super::{OutputArgs, interrupt};
use crate::impair::PathArgs;
use anyhow::Result;
use paceline::class::Policy;
use paceline_sched::LossTolerance;
use paceline_sched::discipline::RuleSet;
use paceline_sim::scenario::Windows;
use paceline_tool::scratch::Scratch;
use std::process::ExitCode;

/// Streams with contracts on a 2 Mbit/s link, overloaded at three times its capacity (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time of each measurement
    #[arg(long = "duration", value_name = "TIME", default_value = "20s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<5, 3_600>)]
    seconds: u32,
    /// Only these disciplines, by name
    #[arg(long, value_name = "POLICY")]
    policy: Vec<Policy>,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// DWCS that compares window constraints before deadlines. The later rule set compares deadlines
/// first and windows only between equal deadlines. Deadlines of separate sources are never quite
/// equal.
const DWCS: Policy = Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Later };
/// 33 samples of 2,400 bytes per second use 37 % of the link including headers, so three streams
/// use 111 %. The windows require 0.5, 0.33 and 0.25 of the streams: 40 %, and never more than the
/// link's capacity.
const TOLERANT: Case = Case {
    streams: &[
        Stream { tag: "robot/left", bytes: 2_400, loss: (1, 2) },
        Stream { tag: "robot/right", bytes: 2_400, loss: (2, 3) },
        Stream { tag: "robot/rear", bytes: 2_400, loss: (3, 4) },
    ],
    hz: 33.0,
    within_ms: 50,
    promising: &[Policy::Vds, DWCS],
    short: &[Policy::Vds, DWCS],
    // DWCS with its precondition not met, and disciplines without windows.
    compared: &[Policy::DWCS, Policy::Edf, Policy::StaticPriority, Policy::Fifo],
    title: "",
    note: "Three streams of 33 Hz request more than the link carries. Their windows, with at most 1 \
           of 2, 2 of 3 and 3 of 4 samples late or lost, fit. Windows count at the subscriber, by \
           the source's numbers; a sample that does not arrive within 50 ms is a miss. The links' \
           own count uses their part of the deadline, and includes warm-up and end. VDS and DWCS \
           with windows first (dwcs-original-order) must keep all windows. The others charge every \
           sample, and refuse the third stream.",
};
/// Two streams that fit without any loss: 34 % of the link. A frame of Stop-and-Go takes a third of the deadline,
/// and must have room for a sample of each stream.
const STRICT: Case = Case {
    streams: &[
        Stream { tag: "robot/front", bytes: 2_400, loss: (0, 1) },
        Stream { tag: "robot/back", bytes: 2_400, loss: (0, 1) },
    ],
    hz: 15.0,
    within_ms: 100,
    promising: &[
        Policy::Rcsp,
        Policy::StopAndGo,
        Policy::Rpq,
        Policy::Vds,
        Policy::Edf,
        Policy::StaticPriority,
        Policy::Wf2qPlus,
        Policy::Hfsc,
    ],
    short: &[Policy::Rcsp, Policy::StopAndGo, Policy::Rpq],
    compared: &[],
    title: ", without loss tolerance",
    note: "Two streams of 15 Hz tolerate no loss: every sample must arrive within 100 ms, so a window is one sample. The \
           maximum delays show the orders: samples of both streams and the packet of the overload that the link has begun.",
};
const FLOOD: &str = "robot/flood";
/// The offered payload of the overload in bytes per second: three times the link's capacity.
const OFFERED: f64 = 3.0 * THIN_BITS_PER_S as f64 / 8.0;

/// Streams with contracts, and the disciplines that serve them.
struct Case {
    streams: &'static [Stream],
    hz: f64,
    within_ms: u64,
    /// The disciplines that must not violate any window, and those of a short run.
    promising: &'static [Policy],
    short: &'static [Policy],
    /// The disciplines for comparison.
    compared: &'static [Policy],
    title: &'static str,
    note: &'static str,
}

/// A stream with a window constraint.
struct Stream {
    tag: &'static str,
    bytes: usize,
    loss: (u32, u32),
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !netns::can_build("storm") {
        return Ok(ExitCode::from(2));
    }
    interrupt::install()?;
    let rig = Rig::over(&args.path, THIN_BITS_PER_S)?;
    let scratch = Scratch::new("storm")?;
    let stage = Stage::new(&rig, &scratch, args.output.short);
    let mut report = Report::new("Contracts on an overloaded link", &args.command());
    for (case, flood) in [(&TOLERANT, 64), (&TOLERANT, 64_000), (&STRICT, 64)] {
        if !args.policies(case).is_empty() {
            report.add(section(args, &stage, (case, flood))?, &args.output);
        }
    }
    report.finish(&args.output)
}

impl Args {
    /// Returns the command line that repeats this measurement.
    fn command(&self) -> String {
        let mut command = "paceline-lab bench storm".to_owned();
        if self.seconds != 20 {
            command.push_str(&format!(" --duration {}s", self.seconds));
        }
        self.policy.iter().for_each(|policy| command.push_str(&format!(" --policy {policy}")));
        command + &self.path.to_string()
    }

    fn policies(&self, case: &Case) -> Vec<Policy> {
        let all = || case.promising.iter().chain(case.compared).copied();
        match self.policy.as_slice() {
            // With the disciplines for comparison a subscription may wait for its first sample until
            // the timeout, which takes too long for a short run.
            [] if self.output.short => case.short.to_vec(),
            [] => all().collect(),
            asked => all().filter(|policy| asked.contains(policy)).collect(),
        }
    }
}

fn section(args: &Args, stage: &Stage<'_>, (case, flood): (&Case, usize)) -> Result<Section> {
    let title = format!("overload with {flood}-byte samples, 3 × the capacity{}", case.title);
    let mut section = Section::new(title);
    for policy in args.policies(case) {
        eprintln!("{policy}, overload with {flood}-byte samples: {} s", args.seconds);
        let plan = plan(case, (policy, flood, f64::from(args.seconds)));
        match stage.measure(&plan) {
            Ok(measured) => {
                add_rows(&mut section, (case, policy), &measured)?;
                section.load(measured.load, None);
            }
            // If the overload fills the link, no other sample may ever arrive. That is a result,
            // too.
            Err(error) if !case.promising.contains(&policy) => {
                interrupt::check()?;
                section.note(format!("{policy}: {error:#}"));
            }
            Err(error) => return Err(error),
        }
    }
    section.note(case.note);
    section.warn_if_busy();
    Ok(section)
}

fn plan(case: &Case, (policy, flood, seconds): (Policy, usize, f64)) -> Plan {
    let source = |tag: &str, hz, bytes| Source {
        tag: tag.to_owned(),
        hz,
        content: Content::Noise(bytes),
        urgent: false,
    };
    let mut sources: Vec<_> =
        case.streams.iter().map(|s| source(s.tag, case.hz, s.bytes)).collect();
    sources.push(source(FLOOD, OFFERED / count(flood), flood));
    let within_ms = Some(case.within_ms);
    let contracted = case.streams.iter().map(|stream| Want {
        tag: stream.tag.to_owned(),
        within_ms,
        loss: (stream.loss.0 > 0).then_some(stream.loss),
        ..Want::default()
    });
    let flooded = Want { tag: FLOOD.to_owned(), ..Want::default() };
    Plan {
        engine: Engine::Paceline,
        policy,
        sources,
        listeners: vec![Listener {
            name: "operator",
            side: Side::Operator,
            want: contracted.chain([flooded]).collect(),
        }],
        seconds,
    }
}

fn add_rows(
    section: &mut Section,
    (case, policy): (&Case, Policy),
    measured: &Measured,
) -> Result<()> {
    let windows = at_the_subscriber(case, measured)?;
    let violations = float(windows.violated);
    let name = format!("{policy}: windows violated at the subscriber");
    if case.promising.contains(&policy) {
        section.must(&name, Unit::Count, violations, f64::NAN, Bound::AtMost(0.0));
    } else {
        section.show(&name, Unit::Count, violations, f64::NAN);
    }
    let name = format!("{policy}: windows counted");
    section.show(&name, Unit::Count, float(windows.all), f64::NAN);
    let name = format!("{policy}: windows violated, counted by the links");
    section.show(&name, Unit::Count, float(measured.violations), f64::NAN);
    for (place, stream) in case.streams.iter().enumerate() {
        let flow = measured.flow(place, (0, place), usize::MAX);
        let in_time = flow.delays.values().filter(|&&delay| delay <= case.within_ms * 1_000_000);
        let percent = 100.0 * count(in_time.count()) / count(flow.sent.max(1));
        let (x, y) = stream.loss;
        let name = format!("{policy}: {} ({x}/{y}) in time", stream.tag);
        section.show(&name, Unit::Percent, percent, f64::NAN);
        let p99 = millis(flow.delays().percentile(990));
        section.show(&format!("{policy}: {} p99", stream.tag), Unit::Millis, p99, f64::NAN);
        if stream.loss.0 == 0 {
            let most = millis(flow.delays.values().max().copied());
            section.show(
                &format!("{policy}: {} maximum", stream.tag),
                Unit::Millis,
                most,
                f64::NAN,
            );
        }
    }
    let flood = measured.flow(case.streams.len(), (0, case.streams.len()), usize::MAX);
    let per_second = count(flood.arrived.len()) / measured.seconds();
    section.show(&format!("{policy}: overload delivered"), Unit::PerSecond, per_second, f64::NAN);
    section.show(&format!("{policy}: link used"), Unit::Percent, measured.fill_percent(), f64::NAN);
    measured.remarks.iter().for_each(|remark| section.note(format!("{policy}: {remark}")));
    Ok(())
}

/// Returns the windows of all streams as seen by the subscriber.
fn at_the_subscriber(case: &Case, measured: &Measured) -> Result<Windows> {
    let mut sum = Windows::default();
    for (place, stream) in case.streams.iter().enumerate() {
        let flow = measured.flow(place, (0, place), usize::MAX);
        let windows =
            windows(&flow, LossTolerance::new(stream.loss.0, stream.loss.1)?, case.within_ms);
        sum.all += windows.all;
        sum.violated += windows.violated;
    }
    Ok(sum)
}

/// Returns the windows of one stream. A late or absent sample is a miss.
fn windows(flow: &Flow, loss: LossTolerance, within_ms: u64) -> Windows {
    let in_time = |seq| flow.delays.get(&seq).is_some_and(|delay| *delay <= within_ms * 1_000_000);
    let missed: Vec<bool> = (flow.first..).take(flow.sent).map(|seq| !in_time(seq)).collect();
    Windows::of(&missed, flow.first, loss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_the_source_numbers_and_late_or_absent_samples_are_misses() {
        const WITHIN_MS: u64 = 50;
        // Samples 5 to 13; 7 is late, and 8, 9 and 12 are absent.
        let delays = [(5, 10), (6, WITHIN_MS), (7, WITHIN_MS + 1), (10, 1), (11, 2), (13, 3)];
        let delays = delays.map(|(seq, millis)| (seq, millis * 1_000_000)).into();
        let flow = Flow { sent: 9, first: 5, delays, ..Flow::default() };
        let count = |x, y| {
            let windows = windows(&flow, LossTolerance::new(x, y).unwrap(), WITHIN_MS);
            (windows.all, windows.violated)
        };
        // 6 7, 8 9, 10 11, 12 13.
        assert_eq!(count(1, 2), (4, 1));
        // 6 7 8, 9 10 11, 12 13.
        assert_eq!(count(1, 3), (3, 1));
        // 8 9 10 11, 12 13: the window of 5, 6 and 7 began before the first sample.
        assert_eq!(count(1, 4), (2, 1));
        assert_eq!(count(0, 1), (9, 4));
    }

    /// Returns the fraction of the link for a stream: two frames per sample, each with its headers.
    fn share(stream: &Stream) -> f64 {
        let wire = count(stream.bytes) + 2.0 * 160.0 + 80.0;
        wire * TOLERANT.hz * 8.0 / 2e6
    }

    #[test]
    fn the_streams_exceed_the_link_and_their_windows_fit() {
        let all: f64 = TOLERANT.streams.iter().map(share).sum();
        let promised: f64 = TOLERANT
            .streams
            .iter()
            .map(|s| share(s) * (1.0 - f64::from(s.loss.0) / f64::from(s.loss.1)))
            .sum();
        assert!(all > 1.0, "{all}");
        assert!(promised < 0.8, "{promised}");
    }
}
