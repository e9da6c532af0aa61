//! `paceline-lab repro juvva-1999`: the placement of proxies: the star of appendix A, the seven-node
//! program with its errors, and the run times of table 3; live, tables 1, 2 and 4 and figures 5 to 10.
//!
//! The paper's column has only figures that its text and tables state.

mod live;
mod segment;

use crate::bench::OutputArgs;
use crate::bench::report::{Bound, Report, Section, Unit};
use crate::bench::stats::float;
use anyhow::{Context as _, Result};
use paceline_plan::printed::{BitCode, Reading, link_rate, objective, seven_nodes, star};
use paceline_plan::{PlanError, PlanProblem, PlanTag, Planned, exhaustive, integer, plan};
use paceline_sched::Duration;
use std::process::ExitCode;
use std::time::Instant;

/// The star of appendix A, the seven-node program, tables 1 to 4 and figures 5 to 10
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    output: OutputArgs,
}

/// The period T, and the scale with T′ = 5 T: f = 5 and f′ = 1 in units of f′.
const PERIOD: Duration = Duration::from_millis(1);
const SCALE: u32 = 5;
/// Runs of each solver, of which the median is shown.
const RUNS: usize = 101;
const RUNS_SHORT: usize = 3;
/// L and L′ of the seven-node program, as multiples of each other.
const L: (u64, u64) = (10, 2);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut report = Report::new("Juvva 1999", "paceline-lab repro juvva-1999");
    let runs = if args.output.short { RUNS_SHORT } else { RUNS };
    report.add(star_costs()?, &args.output);
    report.add(star_limits(), &args.output);
    report.add(program(), &args.output);
    report.add(rows(), &args.output);
    report.add(by_bound()?, &args.output);
    report.add(table_3(runs)?, &args.output);
    for section in live::sections(live::Effort::new(args.output.short))? {
        report.add(section, &args.output);
    }
    report.finish(&args.output)
}

fn long() -> std::time::Duration {
    std::time::Duration::from_secs(60)
}

/// Returns the plan of a problem whose only tag has its proxy at a node.
fn at(problem: &PlanProblem, node: usize) -> Result<Planned> {
    let mut problem = problem.clone();
    for tag in &mut problem.tags {
        tag.allowed = Some(vec![node]);
        tag.subscribers.iter_mut().for_each(|to| to.within = None);
    }
    plan(&problem, &mut long).context("the star has a plan without delay bounds")
}

fn star_costs() -> Result<Section> {
    let title =
        "Appendix A: costs and delays of the star, with K = 1, f = 5, f′ = 1, T = 1, T′ = 5";
    let mut section = Section::new(title).against_paper().repeatable();
    let problem = star(PERIOD, SCALE, 1, Reading::Corrected);
    let (f, f2, t, t2) = (5.0, 1.0, 1.0, 5.0);
    let printed = [
        ("4f′", 4.0 * f2, [2.0 * t2, 2.0 * t2]),
        ("4f + 4f′", 4.0 * f + 4.0 * f2, [2.0 * (t + t2), 2.0 * (t + t2)]),
        ("4f + 2f′", 4.0 * f + 2.0 * f2, [2.0 * (t + t2), 2.0 * t]),
        ("4f + 2f′", 4.0 * f + 2.0 * f2, [2.0 * t, 2.0 * (t + t2)]),
        ("2f + 2f′", 2.0 * f + 2.0 * f2, [t + t2, t + t2]),
    ];
    // One sample of one byte at f′ on one link.
    let unit = 8.0 * 1e9 / float(PERIOD.as_nanos()) / f64::from(SCALE);
    for (node, (name, cost, delays)) in printed.into_iter().enumerate() {
        let planned = at(&problem, node)?;
        let number = node + 1;
        let row = format!("node {number}: TotalCost = {name}");
        section.must(&row, Unit::Ratio, planned.cost / unit, cost, Bound::Near(cost, 0.0));
        // The paper's subscriber 1 is at node 4, by its distances.
        for (stream, delay) in planned.streams.iter().rev().zip(delays) {
            let ours = float(stream.delay.as_nanos()) / float(PERIOD.as_nanos());
            let row = format!("node {number}: delay to node {}", to(&problem, stream.subscriber));
            section.must(&row, Unit::Ratio, ours, delay, Bound::Near(delay, 0.0));
        }
    }
    let best = plan(&problem, &mut long).context("the star has a plan")?;
    let node = best.proxies.first().map_or(0, |proxy| proxy.node + 1);
    section.must(
        "node of the proxy, within 2T′",
        Unit::Count,
        float(u64::try_from(node)?),
        1.0,
        Bound::Near(1.0, 0.0),
    );
    section.note(
        "The paper prints the costs and delays as formulas; its column evaluates them. It charges the part before the \
         proxy once per subscriber.",
    );
    Ok(section)
}

fn to(problem: &PlanProblem, subscriber: usize) -> usize {
    let tag = problem.tags.first();
    tag.and_then(|tag| tag.subscribers.get(subscriber)).map_or(0, |to| to.node + 1)
}

fn star_limits() -> Section {
    let title = "Appendix A: nodes within the limit, by line 4 of the algorithm";
    let mut section = Section::new(title).headings(["corrected", "literal"]).repeatable();
    for (name, limit) in [("2T", Reading::Literal), ("2T′", Reading::Corrected)] {
        let problem = star(PERIOD, SCALE, 1, limit);
        let count = |reading| {
            let fits = |node: &usize| {
                let Ok(planned) = at(&problem, *node) else { return false };
                let required = problem.tags.iter().flat_map(|tag: &PlanTag| &tag.subscribers);
                planned.streams.iter().zip(required).all(|(stream, to)| {
                    let required = to.within.unwrap_or(Duration::MAX);
                    !paceline_plan::printed::is_infeasible(required, stream.delay, reading)
                })
            };
            float(u64::try_from((0..5).filter(fits).count()).unwrap_or(0))
        };
        let row = format!("nodes within {name}");
        let (corrected, literal) = (count(Reading::Corrected), count(Reading::Literal));
        let expected = if limit == Reading::Literal { 0.0 } else { 2.0 };
        section.must(&row, Unit::Count, corrected, literal, Bound::Near(expected, 0.0));
        let none = matches!(plan(&problem, &mut long), Err(PlanError::Infeasible { .. }));
        let row = format!("the planner refuses {name}");
        let expected = if limit == Reading::Literal { 1.0 } else { 0.0 };
        let value = if none { 1.0 } else { 0.0 };
        section.must(&row, Unit::Count, value, f64::NAN, Bound::Near(expected, 0.0));
    }
    section.note(
        "Line 4 prints \"Δ > δ\" as the test for an infeasible path, which is inverted. The printed limit 2T excludes the \
         paper's own answer, node 1 with 2T′: no node serves both subscribers within 2T. Within 2T′ there are nodes 1 and 5.",
    );
    section
}

fn program() -> Section {
    let title = "Seven-node program: objective by code XYZ, with L = 10 and L′ = 2";
    let mut section = Section::new(title).headings(["corrected", "literal"]);
    let number = |value: Option<u64>| value.map_or(f64::NAN, float);
    for code in BitCode::all() {
        let [x, y, z] = [code.x, code.y, code.z].map(u8::from);
        let value = |reading| number(objective(code, L.0, L.1, reading));
        let row = format!("code {x}{y}{z}");
        section.show(&row, Unit::Count, value(Reading::Corrected), value(Reading::Literal));
    }
    section.note(
        "Code 111 is no node. As printed it costs 0, also in the delay constraint, and is the optimum. The corrected \
         program excludes it. The printed product a = XY lacks a ≤ x (it has d − x ≤ 0), and b = YZ lacks b ≤ y: both may be 1 \
         while that factor is 0. The one-hot program has no products.",
    );
    section
}

fn rows() -> Section {
    let title = "Seven-node program: rate on links a to f, with L = 10 and L′ = 2";
    let mut section = Section::new(title).headings(["corrected", "literal"]);
    for (link, name) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
        for code in BitCode::all() {
            let rate = |reading| link_rate(link, code, L.0, L.1, reading);
            let (corrected, literal) = (rate(Reading::Corrected), rate(Reading::Literal));
            if corrected != literal {
                let [x, y, z] = [code.x, code.y, code.z].map(u8::from);
                let row = format!("link {name}, code {x}{y}{z}");
                section.show(&row, Unit::Count, float(corrected), float(literal));
            }
        }
    }
    section.note(
        "Only rates that differ. The printed rows have X(1 − Y)(1 − Z) twice, where the second is meant to be X(1 − Y)Z: \
         100 counts twice and 101 not at all.",
    );
    section
}

fn by_bound() -> Result<Section> {
    let title =
        "Seven-node program: node of the proxy by the delay bound Δ, with T = 1 ms and T′ = 3 ms";
    let mut section = Section::new(title).headings(["planner", "program"]).repeatable();
    for bound in [18, 17, 14, 12, 10, 8, 6] {
        let mut problem = seven_nodes(1, PERIOD, 3, 100);
        for to in problem.tags.iter_mut().flat_map(|tag| &mut tag.subscribers) {
            to.within = Some(Duration::from_millis(bound));
        }
        let node = |planned: Planned| {
            planned
                .proxies
                .first()
                .and_then(|proxy| u64::try_from(proxy.node).ok())
                .map_or(f64::NAN, float)
        };
        let ours = node(plan(&problem, &mut long)?);
        let program = node(integer(&problem, &mut long)?);
        let row = format!("Δ = {bound} ms");
        section.must(&row, Unit::Count, ours, program, Bound::Near(program, 0.0));
    }
    Ok(section)
}

/// A solver and its name.
type Method = (&'static str, fn(&PlanProblem) -> Result<Planned, PlanError>);

fn table_3(runs: usize) -> Result<Section> {
    let title = "Table 3: run times for seven nodes and one publisher";
    let mut section = Section::new(title).against_paper();
    let methods: [Method; 3] = [
        ("planner", |problem| plan(problem, &mut long)),
        ("enumeration", exhaustive),
        ("mixed-integer program", |problem| integer(problem, &mut long)),
    ];
    for (subscribers, paper) in [(1, 10.0), (2, 20.0), (5, 30.0), (10, 60.0)] {
        let one = seven_nodes(subscribers, PERIOD, 3, 100);
        let each = one_each(&one);
        for (name, solve) in methods {
            for (kind, problem) in [("one proxy", &one), ("one per subscriber", &each)] {
                let time = median(problem, solve, runs)?;
                let row = format!("{name}, {kind}, subscribers: {subscribers}");
                // The paper states one time for each size, of CPLEX with one proxy.
                let is_theirs = name == "mixed-integer program" && kind == "one proxy";
                let paper = if is_theirs { paper * 1e3 } else { f64::NAN };
                match name {
                    "planner" => section.must(&row, Unit::Micros, time, paper, Bound::AtMost(1e3)),
                    _ => section.show(&row, Unit::Micros, time, paper),
                }
            }
        }
    }
    section.note(
        "Median of the runs, from the problem to the plan with its paths. The paper's times are the sums of its columns \
         \"pre-solution\" and \"solution\", by CPLEX in 1999. With one proxy per subscriber, each subscriber is a tag of its \
         own, as in the paper's program.",
    );
    Ok(section)
}

/// Makes a tag of each subscriber.
fn one_each(problem: &PlanProblem) -> PlanProblem {
    let mut each = problem.clone();
    each.tags.clear();
    for tag in &problem.tags {
        for (number, to) in tag.subscribers.iter().enumerate() {
            let name = format!("{}/{number}", tag.tag);
            each.tags.push(PlanTag { tag: name, subscribers: vec![to.clone()], ..tag.clone() });
        }
    }
    each
}

/// Returns the median time of a solver in microseconds.
fn median(
    problem: &PlanProblem,
    solve: fn(&PlanProblem) -> Result<Planned, PlanError>,
    runs: usize,
) -> Result<f64> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        let planned = solve(problem)?;
        times.push(start.elapsed());
        anyhow::ensure!(planned.gap <= 0.0, "the plan is not optimal: {planned:?}");
    }
    times.sort_unstable();
    let middle = times.get(runs / 2).copied().unwrap_or_default();
    Ok(middle.as_secs_f64() * 1e6)
}
