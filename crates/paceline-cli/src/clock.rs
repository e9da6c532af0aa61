//! `paceline clock`: the time, its bound, and the servers of a node's clock.

mod document;
mod view;

use crate::args;
use crate::config::NodeArgs;
use crate::status::{settle, wait_for};
use anyhow::Context as _;
use document::ClockDocument;
use paceline::status::NodeId;
use paceline::time::ClockConfig;
use paceline::{Node, Pattern};
use paceline_tool::stop::Stop;
use paceline_tool::{exit, show};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The longest time until both ends know the hop to the node of this host.
const HOST_WITHIN: Duration = Duration::from_millis(500);
/// The exit code for a clock whose error is unknown.
const UNKNOWN: u8 = 3;

/// Options of `paceline clock`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClockArgs {
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
    /// Measures this NTP server, HOST:PORT or "HOST:PORT key ID", instead of reading a node's clock; at most 16
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "of")]
    server: Vec<String>,
    /// Reads the symmetric keys of --server from this file, in the format of chrony's key file
    #[arg(long, value_name = "FILE", requires = "server")]
    keys: Option<PathBuf>,
    /// Reads the clock of the node with this name; default: this host's node
    #[arg(long, value_name = "NAME")]
    of: Option<String>,
    /// The interval of requests to the servers of --server, from 62.5ms; the 4 requests are a quarter of it apart, at
    /// most 2 s
    #[arg(long, value_name = "TIME", value_parser = args::some_duration, default_value = "16s", requires = "server")]
    poll: Duration,
    /// Gives up after this time on nodes and servers that do not answer
    #[arg(long, value_name = "TIME", value_parser = args::wait, default_value = "10s")]
    timeout: Duration,
    #[command(flatten)]
    node: NodeArgs,
}

/// Prints the state of a clock once.
pub(crate) fn run(args: &ClockArgs) -> anyhow::Result<ExitCode> {
    let document = if args.server.is_empty() { read(args)? } else { measure(args)? };
    if args.json {
        show::json_pretty(&document)?;
    } else {
        show::text(&view::text(&document))?;
    }
    let is_known = document.clock.error_nanos.is_some();
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::from(UNKNOWN) })
}

/// Measures servers without a node.
fn measure(args: &ClockArgs) -> anyhow::Result<ClockDocument> {
    let config = args.server.iter().fold(ClockConfig::new(), |config, name| config.server(name));
    let config = args.keys.iter().fold(config, ClockConfig::keys);
    let config = config.poll(args.poll, args.poll.max(Duration::from_secs(1_024)));
    config.check().map_err(|what| exit::usage(what.replacen("clock: ", "--", 1)))?;
    let report = config.measure(args.timeout).map_err(anyhow::Error::msg)?;
    Ok(ClockDocument::new(None, report))
}

/// Reads the clock of a node.
fn read(args: &ClockArgs) -> anyhow::Result<ClockDocument> {
    let stop = Stop::on_signals()?;
    let node = args.node.open_guest("clock")?;
    settle(&node, args.timeout.min(Duration::from_millis(2_500)), &stop);
    let found = status(&node, args, &stop);
    node.close();
    found
}

/// Returns the node of this host, once both ends know the hop.
fn host(node: &Node) -> anyhow::Result<Option<NodeId>> {
    let hops = node.network(&Pattern::new("**")?).hops;
    let host = hops.iter().find(|hop| hop.from == node.id() && hop.link == Node::HOST_LINK);
    Ok(host.map(|hop| hop.to))
}

fn status(node: &Node, args: &ClockArgs, stop: &Stop) -> anyhow::Result<ClockDocument> {
    let id = match &args.of {
        Some(name) => {
            let nodes = node.nodes();
            let named = nodes.iter().find(|(_, its)| its == name).map(|(id, _)| *id);
            named.with_context(|| {
                let names: Vec<_> = nodes.iter().map(|(_, name)| name.as_str()).collect();
                format!("--of '{name}': no such node answers; the nodes are {}", names.join(", "))
            })?
        }
        None => {
            let until = Instant::now() + HOST_WITHIN;
            let found = wait_for(until, stop, "no node of this host yet", || host(node))?;
            found.context(
                "no node runs on this host: start `paceline node`, or measure a server with --server HOST:PORT",
            )?
        }
    };
    let statuses = node.status_of(&[id], args.timeout);
    let status = statuses.first().context("the node does not answer; try a longer --timeout")?;
    let report = status.clock.clone().context("the node is of a version without a clock")?;
    Ok(ClockDocument::new(Some(status.name.clone()), report))
}
