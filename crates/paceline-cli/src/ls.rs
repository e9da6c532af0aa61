//! `paceline ls`: lists nodes, publishers, subscriptions, links and streams with their requests,
//! deliveries and drops.

mod document;
mod gather;
mod neighbour;
mod reservation;
mod view;

#[cfg(test)]
pub(crate) use document::{
    Ages, Asked, Closed, Contract, Mended, Muted, Stalled, tests::status as test_status,
};
pub(crate) use document::{
    Buffer, Class, Document, Link, Node, Publisher, Stream, Subscription, bits_per_s,
};
pub(crate) use gather::{Reader, settle};
#[cfg(test)]
pub(crate) use neighbour::Neighbour;
pub(crate) use reservation::ReservedHop;
#[cfg(test)]
pub(crate) use reservation::{Processor, Reservation};

use crate::args::{self, NodeArgs};
use crate::show::{self, Block};
use crate::stop::Stop;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

/// Options of `paceline ls`.
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Prints one JSON document; with --watch one per second, each on its own line
    #[arg(long)]
    json: bool,
    /// Shows the reservations instead: publisher, subscription, path, and the resources on each
    /// node
    #[arg(long)]
    reservations: bool,
    /// Repeats the output every second until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Gives up after this time on nodes that are not found or do not answer
    ///
    /// A process that takes over the host from one that has ended is found within 2 s.
    #[arg(long, value_name = "TIME", value_parser = args::wait, default_value = "2.5s")]
    timeout: Duration,
    #[command(flatten)]
    node: NodeArgs,
}

/// Lists once, or repeatedly with `--watch`.
pub(crate) fn run(args: &LsArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let node = args.node.open_guest()?;
    settle(&node, args.timeout, &stop);
    let mut reader = Reader::new(args.timeout);
    let mut document = reader.read(&node);
    let mut due = Instant::now() + EVERY;
    let mut block = Block::on_stdout();
    if !args.watch {
        // The use of a link is the difference between two readings.
        if document.has_links() && !stop.wait_until(due) {
            document = reader.read(&node);
        }
        print(&document, args, &mut block)?;
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        print(&document, args, &mut block)?;
        if stop.wait_until(due) {
            break;
        }
        due += EVERY;
        document = reader.read(&node);
    }
    node.close();
    Ok(ExitCode::SUCCESS)
}

fn print(document: &Document, args: &LsArgs, block: &mut Block) -> anyhow::Result<()> {
    match (args.json, args.watch) {
        (true, true) => show::json(document),
        (true, false) => show::json_pretty(document),
        (false, _) if args.reservations => block.update(&reservation::tables(document)),
        (false, _) => block.update(&view::tables(document)),
    }
}
