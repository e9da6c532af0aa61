//! Writes docs/benchmarks/scale.md and its picture. All figures are in virtual time, so they are the same on every
//! machine.

use paceline_sched::Capacity;
use paceline_sim::scale::{Network, ScalePlan, registry};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// The node counts of the table.
const NODES: [usize; 6] = [3, 10, 30, 100, 300, 1_000];
/// The node counts of sites on a backbone.
const CONNECTED: [usize; 4] = [20, 40, 60, 100];
/// Connected networks: nodes, and tags per network.
const NETWORKS: [(usize, usize); 8] =
    [(3, 1), (10, 1), (30, 1), (100, 1), (10, 10), (10, 100), (30, 30), (100, 10)];

pub(crate) fn write(folder: &Path) -> io::Result<()> {
    let rates: Vec<(usize, u64)> = NODES.iter().map(|&nodes| (nodes, capacity(nodes))).collect();
    let mut text = HEAD.to_owned();
    for (nodes, rate) in &rates {
        let _ = writeln!(text, "| {nodes} | {} | {rate} | {} |", ends(*nodes), rate / ends(*nodes));
    }
    text.push_str(BACKBONE);
    for nodes in CONNECTED {
        let Connected { sites, local, crossed } = connected(nodes);
        let within = ends(nodes) - sites;
        let _ = writeln!(
            text,
            "| {nodes} | {sites} | {local} | {} | {crossed} | {} |",
            local / within,
            crossed / sites
        );
    }
    text.push_str(REGISTRY);
    for (nodes, tags) in NETWORKS {
        let streams = tags * (nodes - 1);
        let plan = ScalePlan { nodes, site: nodes, streams, ..plan() };
        let cost = registry(1, plan);
        let _ = writeln!(
            text,
            "| {nodes} | {streams} | {} | {} | {} |",
            cost.rest, cost.change, cost.known_after
        );
    }
    text.push_str(TAIL);
    std::fs::create_dir_all(folder)?;
    put(&folder.join("scale.md"), &text)?;
    put(&folder.join("scale.svg"), &picture(&rates))
}

#[allow(clippy::disallowed_methods, reason = "an example that writes a page")]
fn put(file: &Path, text: &str) -> io::Result<()> {
    std::fs::write(file, text)
}

/// One stream per end node, at twice the rate of its links.
fn plan() -> ScalePlan {
    ScalePlan {
        nodes: 0,
        site: 10,
        streams: 0,
        hertz: 250,
        bytes: 1_000,
        capacity: Capacity::from_bits_per_s(1_000_000).ok(),
        backbone: None,
        seconds: 5,
        phases: 10,
    }
}

/// Returns the number of nodes that are not hubs.
fn ends(nodes: usize) -> u64 {
    (nodes - nodes.div_ceil(plan().site)) as u64
}

/// Returns the samples delivered per second when every link is full.
fn capacity(nodes: usize) -> u64 {
    let streams = usize::try_from(ends(nodes)).unwrap_or(usize::MAX);
    let plan = ScalePlan { nodes, streams, ..plan() };
    let outcome = Network::new(1, plan).run();
    // The backlog at the end keeps the links full for the extra second of the run.
    outcome.delivered / (plan.seconds + 1)
}

/// The samples delivered per second over a line of sites, in whole samples.
struct Connected {
    sites: u64,
    /// Within the sites.
    local: u64,
    /// From one site to another.
    crossed: u64,
}

fn connected(nodes: usize) -> Connected {
    let streams = usize::try_from(ends(nodes)).unwrap_or(usize::MAX);
    let backbone = plan().capacity;
    let plan = ScalePlan { nodes, streams, backbone, ..plan() };
    let outcome = Network::new(1, plan).run();
    let per_s = |samples: u64| samples / (plan.seconds + 1);
    let sites = nodes.div_ceil(plan.site) as u64;
    let local = per_s(outcome.delivered - outcome.crossed);
    Connected { sites, local, crossed: per_s(outcome.crossed) }
}

/// Draws the rates over the node counts, with logarithmic axes.
fn picture(rates: &[(usize, u64)]) -> String {
    let place = |value: u64| {
        let log = f64::from(u32::try_from(value.max(1)).unwrap_or(u32::MAX)).log10();
        log * 80.0
    };
    let x = |nodes: usize| 60.0 + place(nodes as u64) * 1.6;
    let y = |rate: u64| 460.0 - place(rate);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 520 500\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"520\" height=\"500\" fill=\"white\"/>\n",
    );
    for power in 0..=3 {
        let (at, label) = (x(10_usize.pow(power)), 10_u64.pow(power));
        let _ = writeln!(
            svg,
            "<path d=\"M{at:.0} 60V460\" stroke=\"#ddd\"/><text x=\"{at:.0}\" y=\"478\" \
             text-anchor=\"middle\">{label}</text>"
        );
    }
    for power in 0..=5 {
        let (at, label) = (y(10_u64.pow(power)), 10_u64.pow(power));
        let _ = writeln!(
            svg,
            "<path d=\"M60 {at:.0}H460\" stroke=\"#ddd\"/><text x=\"54\" y=\"{:.0}\" \
             text-anchor=\"end\">{label}</text>",
            at + 4.0
        );
    }
    let points: Vec<String> =
        rates.iter().map(|(nodes, rate)| format!("{:.1},{:.1}", x(*nodes), y(*rate))).collect();
    let _ = writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#0a58ca\" stroke-width=\"2\"/>",
        points.join(" ")
    );
    for point in &points {
        if let Some((cx, cy)) = point.split_once(',') {
            let _ = writeln!(svg, "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"3\" fill=\"#0a58ca\"/>");
        }
    }
    svg.push_str(
        "<text x=\"260\" y=\"496\" text-anchor=\"middle\">nodes</text>\n\
         <text x=\"60\" y=\"44\">samples delivered a second, links full</text>\n</svg>\n",
    );
    svg
}

const HEAD: &str = "# Scale

The growth of a network's figures in virtual time, which are the same on every machine. This page is written by
`cargo run -p paceline-sim --example scale -- --table docs/benchmarks`. The cost of simulating a large network depends
on the machine: `cargo run -p paceline-sim --example scale` prints it for ten million samples over a thousand nodes.

## Capacity

Sites of ten nodes: nine ends around a hub, connected by links of 1 Mbit/s. Each end publishes samples of 1,000 bytes at
twice the rate of its link, and the previous end subscribes: two hops, all links full. Sites share nothing, so the sum
grows with the number of nodes by construction. The table checks the cost of simulation, and that nothing leaks between
sites: the rate of an end must not depend on the number of sites.

![Samples delivered per second over the number of nodes](scale.svg)

| nodes | ends | samples delivered per second | per end |
| --- | --- | --- | --- |
";

const BACKBONE: &str = "
## Sites on a backbone

The same sites in one connected network: their hubs are a line of links of 1 Mbit/s. In each site, one end of the nine
subscribes to an end half the line away. All crossing streams of one direction pass the middle link, so the backbone can
deliver 108 samples per second in each direction, 216 in total, whatever the number of sites. The other ends must keep
their rate.

| nodes | sites | within sites, samples per second | per end | across, samples per second | per crossing end |
| --- | --- | --- | --- | --- | --- |
";

const REGISTRY: &str = "
## The registry

In one connected network, every node knows every node, publisher and subscription. Here a hub connects all others by
links of 1 Mbit/s. An idle hop is probed every 0.6 s, and versions are compared every 6 s, or less often if they are many. A change sends
one delta over each link. Bytes count both directions of a link, with all headers.

| nodes | tags | bytes per second and idle link | bytes per link and change | all nodes notified after |
| --- | --- | --- | --- | --- |
";

const TAIL: &str = "
The digests grow with the number of nodes, by eight bytes and a version each, and not with the number of tags. The cost of
a change per link is independent of the number of nodes, but the hub sends it on each of its links.

Each node also stores about 200 bytes per publisher of the network, and computes the shortest paths from every publishing
node at every change, so its work grows with the square of the nodes. Therefore the example with a thousand nodes and a
hundred thousand publishers uses separate sites: otherwise the nodes would need 20 GB in total.
";
