//! A benchmark child process: it executes its [`Role`].

mod engine;
mod fanout;
mod flood;
mod paced;
mod ping;
mod playout;
mod proxied;
mod publish;
mod router;
mod scene;
mod schedule;
mod subscribe;

use super::protocol::{Message, Role};
use anyhow::{Context as _, Result, bail};
use std::io::Write as _;
use std::process::ExitCode;

/// Arguments of the hidden command.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Role, as JSON
    role: String,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let role: Role = serde_json::from_str(&args.role).context("role")?;
    match role {
        Role::Publish { place, sources } => publish::run(&place, &sources)?,
        Role::Subscribe { place, wants } => subscribe::run(&place, &wants)?,
        Role::Ping { place, warm_up, count } => ping::ping(&place, warm_up, count)?,
        Role::Pong { place } => ping::pong(&place)?,
        Role::Flood { place, bytes } => flood::flood(&place, bytes)?,
        Role::Fanout { subscriptions, seconds, queues } => {
            fanout::run(subscriptions, seconds, queues)?;
        }
        Role::Streams { policy, streams } => schedule::streams(&policy, streams)?,
        Role::Decide(decisions) => schedule::decide(&decisions)?,
        Role::Router { listen } => router::run(&listen)?,
        Role::Sink { place } => flood::sink(&place)?,
        Role::Playout(task) => playout::run(&task)?,
        Role::Proxied(task) => proxied::run(&task)?,
        Role::Scene(scene) => scene::run(&scene)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends a message to the parent. Errors are ignored: when the parent ends, the closed input ends
/// the role.
fn send(message: &Message) {
    if let Ok(line) = serde_json::to_string(message) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Waits for the parent's `go`.
fn wait_for_go() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("input of the role")?;
    if line.trim() != "go" {
        bail!("the benchmark ended before it began");
    }
    Ok(())
}

/// Waits until the parent sends `stop` or ends.
fn wait_for_stop() {
    let _ = std::io::stdin().read_line(&mut String::new());
}
