//! Prints the agreement of the planners on random problems, and the times of the planner.
//!
//! `cargo run --release -p paceline-plan --example placements -- [agree=500] [repeat=5] [nodes=10000]`

#[path = "../tests/placement/random.rs"]
mod random;

use paceline_plan::{
    CostModel, PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag, Planned, SampleCpu,
    exhaustive, integer, plan,
};
use paceline_sched::{Capacity, Duration};
use random::{Random, Sizes};
use std::time::Instant;

/// The arguments, `name=value`.
struct Settings {
    agree: u64,
    repeat: usize,
    nodes: usize,
}

fn main() {
    let value = |name: &str, default: usize| {
        let found = std::env::args().find_map(|arg| arg.strip_prefix(name)?.parse().ok());
        found.unwrap_or(default)
    };
    let settings = Settings {
        agree: u64::try_from(value("agree=", 500)).unwrap_or(u64::MAX),
        repeat: value("repeat=", 5),
        nodes: value("nodes=", 10_000),
    };
    agreement(settings.agree);
    println!("\n| problem | median | longest | status | gap | must hold |");
    println!("| --- | ---: | ---: | --- | ---: | --- |");
    times(&settings);
}

fn agreement(count: u64) {
    for (name, sizes) in [("one tag", Sizes::ONE_TAG), ("tags with limits", Sizes::LIMITED)] {
        let (mut equal, mut infeasible) = (0, 0);
        for seed in 0..count {
            let problem = random::problem(seed.wrapping_add(10_000), sizes);
            let mut hour = || std::time::Duration::from_secs(3_600);
            let (all, planned) = (exhaustive(&problem), plan(&problem, &mut hour));
            let program = integer(&problem, &mut hour);
            match (all, planned, program) {
                (Ok(all), Ok(planned), Ok(program)) => {
                    let near = |cost: f64| (cost - all.cost).abs() <= 1e-6 * all.cost.max(1e-9);
                    equal += u64::from(near(planned.cost) && near(program.cost));
                }
                (Err(_), Err(_), Err(_)) => infeasible += 1,
                other => println!("seed {seed}: {other:?}"),
            }
        }
        println!(
            "{name}: {} of {count} problems agree with the exhaustive search ({equal} with equal \
             costs, {infeasible} infeasible)",
            equal + infeasible
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn times(settings: &Settings) {
    let nodes = settings.nodes;
    let row = |name: &str, problem: &PlanProblem, must: &str| {
        // The planner stops before the required time.
        let seconds: u64 = must.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
        let limit = seconds * 850;
        let mut times = Vec::new();
        let mut last = None;
        for _ in 0..settings.repeat.max(1) {
            let start = Instant::now();
            let end = start + std::time::Duration::from_millis(limit);
            let planned = plan(problem, &mut || end.saturating_duration_since(Instant::now()));
            times.push(start.elapsed());
            last = Some(planned);
        }
        times.sort();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let most = times.last().copied().unwrap_or_default();
        let (status, gap) = match last {
            Some(Ok(Planned { state, gap, .. })) => (state.to_string(), gap),
            Some(Err(error)) => (error.to_string(), f64::NAN),
            None => (String::new(), f64::NAN),
        };
        println!(
            "| {name} | {median:.2?} | {most:.2?} | {status} | {:.2} % | {must} |",
            gap * 100.0
        );
    };
    row("7 nodes, 10 subscribers", &chain(10), "≤ 1 ms");
    let all = [CostModel::PerSubscriber, CostModel::SharedUpstream, CostModel::Multicast];
    for cost in all {
        let problem = network(1, 100.min(nodes), (200, 8), cost);
        row(&format!("100 nodes, 200 tags, {cost:?}"), &problem, "≤ 1 s, optimal");
        for percent in [90, 75, 60] {
            let tight = tightened(&problem, percent);
            let name =
                format!("100 nodes, 200 tags, {cost:?}, links limited to {percent} % of the load");
            row(&name, &tight, "≤ 1 s, gap ≤ 2 %");
        }
    }
    for proxies in [1, 5] {
        for cost in all {
            let mut problem = network(2, 500.min(nodes), (1, 100), cost);
            problem.proxies = proxies;
            let name = format!("500 nodes, 100 subscribers, {cost:?}, {proxies} proxies");
            row(&name, &problem, "≤ 2 s");
        }
    }
    for (tags, subscribers, proxies) in [(100, 10, 1), (1, 200, 1), (1, 200, 8)] {
        for cost in all {
            let mut problem = network(3, nodes, (tags, subscribers), cost);
            problem.proxies = proxies;
            let name = format!(
                "{nodes} nodes, {tags} tags of {subscribers} subscribers, {cost:?}, {proxies} proxies"
            );
            row(&name, &problem, "≤ 5 s, gap ≤ 5 %");
        }
    }
    let tight = tightened(&network(3, nodes, (100, 10), CostModel::SharedUpstream), 75);
    row(
        &format!("{nodes} nodes, 100 tags of 10 subscribers, limits at 75 %"),
        &tight,
        "≤ 5 s, gap ≤ 5 %",
    );
}

/// Returns the path of the paper's program with subscribers at its last nodes.
fn chain(subscribers: usize) -> PlanProblem {
    let mut problem =
        PlanProblem::new((0..7).map(|node| PlanNode::new(&node.to_string())).collect());
    for node in 0..6 {
        let link = PlanLink::new(node, node + 1);
        problem.links.extend([link.back(), link]);
    }
    let mut tag = PlanTag::new("tag", 0, Duration::from_millis(1), 100);
    for number in 0..subscribers {
        let within = Some(Duration::from_millis(15));
        tag.subscribers.push(PlanSubscriber { node: 6 - number % 3, scale: 3, bytes: 50, within });
    }
    problem.tags.push(tag);
    problem
}

/// Returns a network of nodes on a plane, each linked to the two nearest earlier ones, and to a
/// third one if it is the fourth node.
fn network(
    seed: u64,
    count: usize,
    (tags, subscribers): (usize, usize),
    cost: CostModel,
) -> PlanProblem {
    let mut random = Random::new(seed);
    let mut problem = PlanProblem { cost, ..PlanProblem::default() };
    let mut places: Vec<(f64, f64)> = Vec::with_capacity(count);
    for node in 0..count {
        problem.nodes.push(PlanNode::new(&format!("n{node}")));
        let place = (random.below(1 << 20) as f64, random.below(1 << 20) as f64);
        let mut near: Vec<(f64, usize)> = Vec::with_capacity(4);
        for (other, at) in places.iter().enumerate() {
            let distance = (at.0 - place.0).hypot(at.1 - place.1);
            near.push((distance, other));
            near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            near.truncate(if node % 4 == 0 { 3 } else { 2 });
        }
        for (distance, other) in near {
            let mut link = PlanLink::new(node, other);
            link.delay = Duration::from_micros(100 + random.below(10)).saturating_add(
                Duration::from_nanos((1 + random.below(3)) * u64::from(distance > 1e5)),
            );
            link.capacity = Capacity::from_bits_per_s(10_000_000_000).ok();
            problem.links.extend([link.back(), link]);
        }
        places.push(place);
    }
    for number in 0..tags {
        let period = Duration::from_millis(10 * (1 + random.below(5)));
        let bytes = 1_000 * (1 + random.below(20));
        let mut tag = PlanTag::new(&format!("t{number}"), random.index(count), period, bytes);
        tag.cpu = SampleCpu { receive: 2e-6, send: 2e-6, scale: 1e-4 };
        for _ in 0..subscribers {
            let scale = u32::try_from(1 + random.below(4)).unwrap_or(1);
            let node = random.index(count);
            let bytes = bytes / (1 + random.below(4));
            tag.subscribers.push(PlanSubscriber { node, scale, bytes, within: None });
        }
        problem.tags.push(tag);
    }
    bounded(problem, &mut random)
}

/// Gives two thirds of the subscribers a delay bound that a proxy at the subscriber meets, and one
/// at the publisher often does not.
fn bounded(mut problem: PlanProblem, random: &mut Random) -> PlanProblem {
    let planned = plan(&problem, &mut || std::time::Duration::from_secs(60));
    for stream in planned.into_iter().flat_map(|planned| planned.streams) {
        let Some(tag) = problem.tags.get_mut(stream.tag) else { continue };
        let hops = u64::try_from(stream.path.len()).unwrap_or(1).saturating_sub(1).max(1);
        let period = tag.period.as_nanos();
        let Some(to) = tag.subscribers.get_mut(stream.subscriber) else { continue };
        // One proxy serves all, so the bound allows the whole path at the subscriber's period, or a
        // detour at the publisher's.
        let slack = 6 + random.below(10);
        let most = period * u64::from(to.scale) * hops;
        let least = period * (hops + slack * u64::from(to.scale));
        to.within = (random.below(3) > 0).then(|| Duration::from_nanos(most.max(least)));
    }
    problem
}

/// Limits all links to a part of the load that an unlimited plan has on its busiest link.
fn tightened(problem: &PlanProblem, percent: u64) -> PlanProblem {
    let mut tight = problem.clone();
    let planned = plan(problem, &mut || std::time::Duration::from_secs(60));
    let loads = planned.into_iter().flat_map(|planned| planned.link_bits);
    let most: u64 = format!("{:.0}", loads.fold(0.0, f64::max)).parse().unwrap_or(u64::MAX);
    for link in &mut tight.links {
        link.capacity = Capacity::from_bits_per_s(most * percent / 100).ok();
    }
    tight
}
