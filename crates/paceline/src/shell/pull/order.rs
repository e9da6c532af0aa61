//! The order of a buffer at a named node, before a pull from it.

use super::super::command::{Command, Commands, Holders, PullCommand, Reply};
use super::Pipe;
use super::lookup::{ASKED_MAX, LOOK_EVERY, Lookup, NEWS_WITHIN, Wanted, look};
use crate::summary::PullError;
use paceline_proto::NodeId;
use paceline_proto::pull::{Answer, Question, Selection};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The longest wait for samples in an ordered buffer.
const FILL_WITHIN: Duration = Duration::from_secs(10);
/// The interval of checks for them.
const FILL_EVERY: Duration = Duration::from_millis(200);
/// The size of the order and of its answer in bytes, at most.
const ORDER_BYTES: u64 = 1_024;

/// Orders a buffer of `samples` samples, and finds the requested ones when it has them.
pub(super) fn look_in_ordered(
    commands: &Commands,
    wanted: &Wanted,
    samples: u32,
    pipe: &Pipe,
) -> Result<Lookup, PullError> {
    place(commands, wanted, samples, pipe)?;
    let enough = enough(&wanted.find.selection, samples);
    let until = filled_until(wanted);
    loop {
        let found = look(commands, wanted, pipe);
        let is_over = Instant::now() >= until || pipe.is_closed();
        match found {
            Ok(lookup) if is_over || lookup.plan.items.len() >= enough => return Ok(lookup),
            Err(error) if is_over || !matches!(error, PullError::Nothing(_)) => return Err(error),
            Ok(_) | Err(_) => std::thread::sleep(FILL_EVERY),
        }
    }
}

/// Returns the number of samples to wait for: the newest ones as far as the buffer has room, otherwise the first.
fn enough(selection: &Selection, samples: u32) -> usize {
    let count = match selection {
        Selection::Newest(n) => (*n).min(samples),
        Selection::Nth(_) | Selection::Seq { .. } | Selection::Time { .. } => 1,
    };
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns the end of the wait for samples: with a timeout at its half, so that time is left to fetch them.
fn filled_until(wanted: &Wanted) -> Instant {
    let now = Instant::now();
    let half = wanted.until.map(|until| until.saturating_duration_since(now) / 2);
    now + half.map_or(FILL_WITHIN, |half| half.min(FILL_WITHIN))
}

/// Orders a buffer of `samples` samples at the node that the pull names. Returns when the node keeps it.
fn place(commands: &Commands, wanted: &Wanted, samples: u32, pipe: &Pipe) -> Result<(), PullError> {
    let (node, holders) = named(commands, wanted, pipe)?;
    let (reply, inbox) = channel();
    for _ in 0..ASKED_MAX {
        let question = Question::Order { tag: wanted.find.tag.clone(), samples };
        let reply = Some(reply.clone());
        commands.send(Command::Pull(PullCommand::Ask { to: node, question, token: 0, reply }));
        let until = wanted.until(holders.patience(ORDER_BYTES));
        match inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Reply { answer: Answer::Ordered, .. }) => return Ok(()),
            Ok(Reply { answer: Answer::Refused(why), .. }) => {
                return Err(PullError::Refused(format!("node {}: {why}", holders.name(node))));
            }
            Ok(Reply { answer: Answer::Held(_) | Answer::Fetching { .. }, .. }) | Err(_) => {}
        }
        if pipe.is_closed() || wanted.is_over() {
            break;
        }
    }
    Err(PullError::NoAnswer(vec![holders.name(node)]))
}

/// Waits until the named node is known: a node that was just opened knows none.
fn named(
    commands: &Commands,
    wanted: &Wanted,
    pipe: &Pipe,
) -> Result<(NodeId, Holders), PullError> {
    let until = wanted.until(NEWS_WITHIN);
    let name = wanted.from.as_deref().unwrap_or_default();
    loop {
        let holders = Holders::now(commands, &wanted.find)?;
        match holders.node(name) {
            Ok(node) => return Ok((node, holders)),
            Err(error) if Instant::now() >= until || pipe.is_closed() => return Err(error),
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}
