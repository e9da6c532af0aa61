//! `paceline node`: a node on its own.

use crate::args::NodeArgs;
use crate::show;
use crate::stop::Stop;
use serde::Serialize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// `paceline node`.
#[derive(Debug, clap::Args)]
pub(crate) struct NodeCommand {
    /// Prints who the node is as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Serialize)]
struct NodeLine {
    id: String,
    name: String,
    links: Vec<LinkLine>,
}

#[derive(Serialize)]
struct LinkLine {
    name: String,
    listen: Vec<String>,
    connect: Vec<String>,
    capacity_bits_per_s: Option<u64>,
    policy: String,
}

/// Runs a node until a signal ends it.
pub(crate) fn run(args: &NodeCommand) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let node = args.node.open()?;
    let line = NodeLine {
        id: node.id().to_string(),
        name: node.name().to_owned(),
        links: (1..)
            .zip(&args.node.link)
            .map(|(number, link)| LinkLine {
                name: link.name(number),
                listen: link.listen.clone(),
                connect: link.connect.clone(),
                capacity_bits_per_s: link.capacity.map(paceline::Capacity::bits_per_s),
                policy: link.policy.to_string(),
            })
            .collect(),
    };
    if args.json {
        show::json(&line)?
    } else {
        show::line(&told(&line))?
    }
    while !stop.wait_until(Instant::now() + Duration::from_secs(3_600)) {}
    node.close();
    Ok(ExitCode::SUCCESS)
}

fn told(node: &NodeLine) -> String {
    let mut text = format!("node {} {}", node.name, node.id);
    for link in &node.links {
        text.push_str(&format!("; link {}", link.name));
        for endpoint in &link.listen {
            text.push_str(&format!(" listens on {endpoint}"));
        }
        for endpoint in &link.connect {
            text.push_str(&format!(" connects to {endpoint}"));
        }
        if let Some(bits) = link.capacity_bits_per_s {
            text.push_str(&format!(" at {}", show::bits(bits)));
        }
    }
    text
}
