//! The `paceline` command: a node, its publishers and its subscribers, from the shell.

mod args;
mod bench;
mod demo;
mod exit;
mod ls;
mod node;
mod publish;
mod show;
mod stats;
mod stop;
mod subscribe;
mod table;

use clap::{Parser, Subcommand};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Zenoh warns of what Paceline does on purpose: no gossip, a socket that another process has.
const LOG: &str = "warn,zenoh=error";
const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 it failed while running; 2 wrong usage; 3 refused, or not delivered what was \
required; 130 interrupted before it was done.
PACELINE_LOG sets what is logged to standard error (warn if not set; paceline=debug, trace, off).
PACELINE_RUNTIME_DIR sets the folder that joins the processes of this host.";

/// Publish/subscribe in which every subscriber gets each stream at the rate, size and deadline that
/// it asked for, or is told no.
#[derive(Parser)]
#[command(name = "paceline", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a node until it is told to end.
    Node(node::NodeCommand),
    /// Publishes a test card, a file or standard input on a tag.
    Pub(Box<publish::PubArgs>),
    /// Subscribes to a tag or pattern at a rate, size and deadline of your own.
    Sub(Box<subscribe::SubArgs>),
    /// Lists nodes, publishers, subscriptions and links: asked, delivered, late, dropped and why.
    Ls(ls::LsArgs),
    /// Shows one camera reaching three subscribers, each at its own rate and size, over a thin link.
    Demo(demo::DemoArgs),
    /// Measures.
    Bench(bench::BenchArgs),
    /// One of the nodes of the demo.
    #[command(hide = true)]
    DemoRole(demo::RoleArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    log();
    let done = match cli.command {
        Command::Node(args) => node::run(&args),
        Command::Pub(args) => publish::run(&args),
        Command::Sub(args) => subscribe::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(args),
        Command::DemoRole(args) => demo::run_role(&args),
    };
    done.unwrap_or_else(|error| exit::report(&error))
}

/// Logs to standard error what `PACELINE_LOG` asks for.
fn log() {
    let filter = EnvFilter::try_from_env("PACELINE_LOG").unwrap_or_else(|_| EnvFilter::new(LOG));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
