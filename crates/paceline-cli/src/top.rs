//! `paceline top`: shows streams, subscriptions and links, in a terminal or as plain tables.

#[cfg(test)]
mod agree;
mod asker;
mod keys;
mod model;
mod screen;
mod view;

use crate::args;
use crate::config::NodeArgs;
use anyhow::{Context as _, bail};
use asker::Asker;
use keys::{Key, Keys};
use model::{Model, Order};
use paceline_tool::show;
use paceline_tool::stop::{STOP_SLICE, Stop};
use screen::Screen;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use view::{Effect, Look};

const AFTER: &str = "\
Keys: s or > and < choose the sort column, r reverses the order, Tab switches between streams, subscriptions and \
refusals, arrows and Page keys scroll, space pauses, h shows help, q ends. If standard output is not a terminal, it \
prints plain tables, as with --batch.";

/// Arguments of `paceline top`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct TopArgs {
    /// Initial sort column: tag, node, rate, bits, delay, late or drops
    #[arg(long, value_name = "COLUMN", default_value = "bits")]
    sort: Order,
    /// Time between readings, 0.5s to 60s
    #[arg(long, value_name = "TIME", value_parser = args::interval, default_value = "1s")]
    interval: Duration,
    /// Prints the tables once and exits
    #[arg(long)]
    once: bool,
    /// Prints the tables repeatedly
    #[arg(long, conflicts_with = "once")]
    batch: bool,
    /// Also queries nodes behind links with a capacity; queries and answers use those links
    #[arg(long)]
    all: bool,
    /// Gives up after this time on nodes that do not answer
    #[arg(long, value_name = "TIME", value_parser = args::wait, default_value = "2.5s")]
    timeout: Duration,
    #[command(flatten)]
    node: NodeArgs,
}

/// Shows the tables until the user ends it.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let node = args.node.open_guest("top")?;
    let asker = Asker::start(node.clone(), args.all, args.timeout, args.interval, stop.clone())
        .context("cannot start a thread")?;
    let done = if args.once || args.batch || !std::io::stdout().is_terminal() {
        print(args, &asker, &stop)
    } else {
        watch(args, &asker, &stop)
    };
    stop.request();
    asker.end();
    node.close();
    done.map(|()| ExitCode::SUCCESS)
}

/// Prints plain tables. Rates need two readings, so the first reading prints nothing.
fn print(args: &TopArgs, asker: &Asker, stop: &Stop) -> anyhow::Result<()> {
    let mut model = Model::default();
    let (mut readings, mut printed) = (0u64, false);
    while !stop.requested() {
        let Some(reading) = asker.wait(STOP_SLICE) else {
            if asker.has_ended() && !stop.requested() {
                bail!("the thread that queries the nodes has ended; start paceline top again");
            }
            continue;
        };
        model.take(reading.document, reading.at, reading.known);
        readings += 1;
        if readings < 2 && !model.is_empty() {
            continue;
        }
        if printed {
            show::line("")?;
        }
        printed = true;
        show::text(&view::plain(&model.view(args.sort, false)))?;
        if args.once {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs the interactive screen.
fn watch(args: &TopArgs, asker: &Asker, stop: &Stop) -> anyhow::Result<()> {
    let mut screen = Screen::open()?;
    let (mut model, mut look) = (Model::default(), Look::new(args.sort));
    let mut keys = Keys::default();
    let mut drawn: Option<(usize, usize)> = None;
    while !stop.requested() {
        let mut changed = false;
        let typed = screen.typed(STOP_SLICE)?;
        let whole: Vec<Key> = typed.into_iter().filter_map(|byte| keys.take(byte)).collect();
        for key in whole.into_iter().chain(keys.settle(Instant::now())) {
            changed = true;
            if look.press(key) == Effect::End {
                return Ok(());
            }
        }
        while let Some(reading) = asker.wait(Duration::ZERO) {
            model.take(reading.document, reading.at, reading.known);
            changed |= !look.is_held();
        }
        if asker.has_ended() && !stop.requested() {
            bail!("the thread that queries the nodes has ended; start paceline top again");
        }
        let size = screen.size();
        if changed || drawn != Some(size) {
            let view = model.view(look.order(), look.is_turned());
            screen.draw(&view::screen(&view, &mut look, size))?;
            drawn = Some(size);
        }
    }
    Ok(())
}
