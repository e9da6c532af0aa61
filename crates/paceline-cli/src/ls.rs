//! `paceline ls`: lists nodes, publishers, subscriptions, links and streams with their requests,
//! deliveries and drops, or the shared objects of a world.

mod media;
mod objects;
mod players;
mod reservations;
mod selection;
mod timed;
mod view;

use crate::args;
use crate::config::NodeArgs;
use crate::demo;
use crate::status::settle;
use paceline::Pattern;
use paceline_http::status::StatusDocument;
use paceline_tool::stop::Stop;
use paceline_tool::{show, table};
use std::process::ExitCode;
use std::time::Duration;
pub(crate) use view::tables;

/// Options of `paceline ls`.
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Shows only what concerns the tags of this pattern, such as robot/camera or robot/**
    #[arg(value_parser = Pattern::new)]
    pattern: Option<Pattern>,
    /// Shows one row per published tag: type, rate, publishers and subscribers
    #[arg(long, conflicts_with_all = ["json", "reservations"])]
    tags: bool,
    /// Shows the shared objects and participants of this world instead, such as town
    ///
    /// Joins it for 2 s as an observer of everything.
    #[arg(long, value_name = "WORLD", conflicts_with_all = ["pattern", "tags", "reservations"])]
    objects: Option<String>,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
    /// Shows whole names on a terminal too, over several lines if necessary
    #[arg(long)]
    wide: bool,
    /// Shows the reservations instead: publisher, subscription, path, and the resources on each
    /// node
    #[arg(long)]
    reservations: bool,
    /// Gives up after this time on nodes that are not found or do not answer
    ///
    /// A process that takes over the host from one that has ended is found within 2 s.
    #[arg(long, value_name = "TIME", value_parser = args::wait, default_value = "2.5s")]
    timeout: Duration,
    #[command(flatten)]
    node: NodeArgs,
}

/// Lists once.
pub(crate) fn run(args: &LsArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    if args.wide {
        table::keep_whole();
    }
    let node = args.node.open_guest("ls")?;
    settle(&node, args.timeout, &stop);
    if let Some(world) = &args.objects {
        let document = objects::observe(&node, world, &stop)?;
        node.close();
        if args.json {
            show::json_pretty(&document)?;
        } else {
            show::text(&objects::tables(&document))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Running nodes answer at once. The reading may wait longer for one that has just ended.
    let mut document = StatusDocument::read(&node, args.timeout);
    node.close();
    let published = selection::published(&document);
    if let Some(pattern) = &args.pattern {
        selection::select(&mut document, pattern);
    }
    if args.json {
        show::json_pretty(&document)?;
    } else if let Some(pattern) = args.pattern.as_ref().filter(|_| document.nodes.is_empty()) {
        show::text(&selection::nothing(pattern, &published))?;
    } else if args.tags {
        show::text(&selection::tags(&document))?;
    } else if args.reservations {
        show::text(&reservations::tables(&document))?;
    } else {
        show::text(&tables(&document))?;
        if document.nodes.is_empty() {
            for robot in demo::running() {
                let command = demo::list_command(&robot)?;
                show::line(&format!("a demo runs on this host, with nodes of its own: {command}"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
