//! `paceline whatif`: repeats a recorded load in virtual time, with other capacities, requests or disciplines.

mod change;
mod network;

use crate::args::policy;
use anyhow::{anyhow, bail};
use change::{CapacityChange, Changes, RequestChange};
use paceline::class::Policy;
use paceline_record::{Judgement, RecordedRun, StreamJudgement};
use paceline_sim::scenario::{Flow, Plan, Summary, run as run_plan};
use paceline_tool::exit::REFUSED;
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Name, Align::Right, Table, width};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER: &str = "\
The recording gives the times and sizes of all samples, the request, and the links of the contracts with their capacities, \
which change over time if they were measured. --capacity replaces them by one. \
Samples that did not arrive are filled in, if every sample was requested. The simulated links carry no other load, lose \
nothing and have no delay of their own.
Fields of --set: max_hz, every, within, loss; an empty value removes one. TAG may be a pattern.
Example: paceline whatif run.mcap --capacity 1mbit --set robot/camera.max_hz=10
Exits with code 3 if a contract is refused or broken, so it can guard a change of a network.";

/// Options of `paceline whatif`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct WhatifArgs {
    /// Recording to repeat
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Capacity of all links between hosts, or of one link
    #[arg(long, value_name = "[LINK=]RATE")]
    capacity: Vec<CapacityChange>,
    /// Changes a request
    #[arg(long, value_name = "TAG.FIELD=VALUE")]
    set: Vec<RequestChange>,
    /// Scheduling discipline of all links
    #[arg(long, value_name = "NAME", value_parser = policy)]
    discipline: Option<Policy>,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

/// A stream as it was recorded, and as it was simulated.
#[derive(Debug, Serialize)]
struct Comparison<'a> {
    tag: &'a str,
    /// `granted`, `refused`, `broken` or `best_effort`.
    verdict: &'static str,
    recorded: Option<&'a StreamJudgement>,
    simulated: &'a Flow,
    /// The simulated rate over the time of the recorded samples, as `judge` counts rates.
    simulated_rate_hz: f64,
    /// Samples that the simulated links dropped, by reason.
    dropped_on_links: BTreeMap<&'static str, u64>,
    /// The reason of a refusal.
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    file: String,
    seconds: f64,
    /// Samples that did not arrive in the recorded run and are simulated with the size of the one before.
    filled: u64,
    /// The capacity of each simulated link in bits per second; null without one.
    links: Vec<LinkLine>,
    streams: Vec<Comparison<'a>>,
}

#[derive(Debug, Serialize)]
struct LinkLine {
    name: String,
    capacity_bits_per_s: Option<u64>,
    /// The share of the capacity that the samples used, in millionths.
    used_ppm: Option<u64>,
}

pub(crate) fn run(args: &WhatifArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.as_path();
    let problem = |error: paceline_record::ReadError| anyhow!("{} {error}", file.display());
    let recorded = RecordedRun::of(crate::record::open(file)?).map_err(problem)?;
    let judged = Judgement::of(crate::record::open(file)?).map_err(problem)?;
    let changes = Changes {
        capacities: args.capacity.clone(),
        requests: args.set.clone(),
        discipline: args.discipline,
    };
    let (plan, names) = network::plan(&recorded, &changes)?;
    if plan.subscribers.is_empty() {
        bail!(
            "{}: no stream of another node: all samples were published at the recorder; record at another node",
            file.display()
        );
    }
    let summary = Summary::of(&plan, &run_plan(&plan, plan.seed), plan.seed);
    let report = Report {
        file: file.display().to_string(),
        seconds: judged.seconds,
        filled: recorded.streams.iter().map(|stream| stream.filled).sum(),
        links: links(&plan, &names, &summary),
        streams: summary
            .flows
            .iter()
            .map(|flow| {
                let refused = flow.refused.as_ref();
                let refused = refused.map(|reason| with_names(reason, &plan, &names));
                Comparison { refused, ..comparison(flow, &judged, &summary) }
            })
            .collect(),
    };
    match args.json {
        true => show::json(&report)?,
        false => show::text(&render(&report))?,
    }
    let fails = |stream: &Comparison<'_>| matches!(stream.verdict, "refused" | "broken");
    let code = if report.streams.iter().any(fails) { REFUSED } else { 0 };
    Ok(ExitCode::from(code))
}

fn comparison<'a>(flow: &'a Flow, judged: &'a Judgement, summary: &Summary) -> Comparison<'a> {
    let verdict = match (&flow.refused, &flow.windows) {
        (Some(_), _) => "refused",
        (None, Some(windows)) if windows.violated > 0 => "broken",
        (None, Some(_)) => "granted",
        (None, None) => "best_effort",
    };
    let recorded =
        judged.streams.iter().find(|stream| stream.tag.trim_start_matches('/') == flow.publisher);
    Comparison {
        tag: &flow.publisher,
        verdict,
        recorded,
        simulated: flow,
        simulated_rate_hz: rate_hz(flow, recorded),
        dropped_on_links: dropped(summary, &flow.publisher),
        refused: None,
    }
}

/// Returns the rate from the first to the last recorded sample; without one, that over the whole run.
fn rate_hz(flow: &Flow, recorded: Option<&StreamJudgement>) -> f64 {
    let recorded = recorded.filter(|stream| stream.samples > 1 && stream.rate_hz > 0.0);
    match recorded {
        Some(stream) => {
            let steps = |samples: u64| samples.saturating_sub(1) as f64;
            steps(flow.delivered) / steps(stream.samples) * stream.rate_hz
        }
        None => flow.rate_millihertz as f64 / 1_000.0,
    }
}

/// Returns the samples of a tag that links dropped, by reason.
fn dropped(summary: &Summary, tag: &str) -> BTreeMap<&'static str, u64> {
    let mut sums = BTreeMap::new();
    let rows = summary.streams.iter().filter(|row| row.publisher == tag);
    rows.flat_map(|row| &row.dropped).for_each(|(reason, samples)| {
        *sums.entry(*reason).or_default() += samples;
    });
    sums
}

/// Names the links of a refusal as in the recording: the simulator names them after their nodes.
fn with_names(reason: &str, plan: &Plan, names: &[String]) -> String {
    let mut reason = reason.to_owned();
    for (link, name) in plan.links.iter().zip(names) {
        let [from, to] = link.between.map(|node| plan.node(node));
        let short = name.split(' ').next().unwrap_or_default();
        reason = reason.replace(&format!("'{from}-{to}'"), &format!("'{short}'"));
    }
    reason
}

/// Returns the links in the direction of the samples.
fn links(plan: &Plan, names: &[String], summary: &Summary) -> Vec<LinkLine> {
    let each = plan.links.iter().zip(names).enumerate();
    each.map(|(at, (link, name))| LinkLine {
        name: name.clone(),
        capacity_bits_per_s: link.capacity.map(|capacity| capacity.first().bits_per_s()),
        used_ppm: summary.links.get(2 * at).and_then(|row| row.used_ppm),
    })
    .collect()
}

fn render(report: &Report<'_>) -> String {
    let mut text = format!("{}: {:.1} s\n", report.file, report.seconds);
    if report.filled > 0 {
        text.push_str(&format!("{} samples that did not arrive are filled in\n", report.filled));
    }
    for link in &report.links {
        let capacity = link.capacity_bits_per_s.map_or_else(
            || "no capacity".to_owned(),
            |bits| {
                let used = link.used_ppm.unwrap_or_default() / 10_000;
                format!("{}, {used} % used", show::bits(bits))
            },
        );
        text.push_str(&format!("link {}: {capacity}\n", link.name));
    }
    let mut table = Table::new(&[
        ("tag", Name),
        ("verdict", Left),
        ("Hz", Right),
        ("recorded", Right),
        ("p99 ms", Right),
        ("recorded", Right),
        ("late", Right),
        ("dropped", Right),
        ("beyond", Right),
    ]);
    for stream in &report.streams {
        let Comparison { tag, verdict, recorded, simulated: flow, dropped_on_links, .. } = stream;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let p99 = flow.delay_ns.map(|delay| show::millis(delay.p99 / 1_000));
        let was = recorded.and_then(|stream| stream.age_us).map(|age| show::millis(age.p99));
        table.row(vec![
            (*tag).to_owned(),
            verdict.replace('_', " "),
            format!("{:.1}", stream.simulated_rate_hz),
            or_none(recorded.map(|stream| format!("{:.1}", stream.rate_hz))),
            or_none(p99),
            or_none(was),
            flow.late.to_string(),
            dropped_on_links.values().sum::<u64>().to_string(),
            or_none(flow.windows.map(|windows| windows.violated.to_string())),
        ]);
    }
    text.push_str(&table.render(width()));
    for Comparison { tag, refused, .. } in &report.streams {
        if let Some(reason) = refused {
            text.push_str(&format!("refused: {tag}: {reason}\n"));
        }
    }
    text
}
