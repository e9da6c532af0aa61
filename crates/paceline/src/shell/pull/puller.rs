//! The thread of a pull: lookup, then fetch.

use super::super::command::Commands;
use super::fetch::Fetch;
use super::lookup::{self, Wanted};
use super::{Pipe, PullEvent, order};
use crate::summary::{PullError, PullSummary};
use std::sync::Arc;

/// Starts a pull on its own thread, which writes to `pipe`.
pub(crate) fn start(commands: Commands, wanted: Wanted, pipe: Arc<Pipe>) -> std::io::Result<()> {
    let named = std::thread::Builder::new().name("paceline-fetch".to_owned());
    named.spawn(move || {
        let end = Ending(&pipe);
        let ended = pull_into(&commands, &wanted, &pipe);
        end.send(ended);
    })?;
    Ok(())
}

/// Sends the end of the pull to the reader, also on a panic: the reader would otherwise wait
/// forever.
struct Ending<'a>(&'a Pipe);

impl Ending<'_> {
    fn send(self, ended: Result<PullSummary, PullError>) {
        self.0.push(PullEvent::End(Box::new(ended)));
        std::mem::forget(self);
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.push(PullEvent::End(Box::new(Err(PullError::Closed))));
    }
}

/// Pulls on this thread, and writes the number of samples and the samples to `pipe`.
pub(crate) fn pull_into(
    commands: &Commands,
    wanted: &Wanted,
    pipe: &Pipe,
) -> Result<PullSummary, PullError> {
    let lookup = match wanted.order {
        Some(samples) => order::look_in_ordered(commands, wanted, samples, pipe)?,
        None => lookup::look(commands, wanted, pipe)?,
    };
    let found = lookup.plan.items.len() as u64;
    let mut fetch = Fetch::new(commands, wanted, pipe, lookup)?;
    if pipe.push(PullEvent::Found(found)) {
        fetch.run();
    }
    Ok(fetch.finish())
}
