//! Payloads of text and JSON on a terminal, one line each.

use super::SubArgs;
use crate::payload::text_line;
use paceline::Sample;
use paceline_tool::show;
use std::io::{self, IsTerminal as _};

/// Prints payloads of text and JSON on a terminal, as `ros2 topic echo` and `nats sub` do.
#[derive(Debug)]
pub(super) struct Lines {
    to_terminal: bool,
    /// True if the samples can have several tags, so that each line needs its own.
    names_tags: bool,
    /// True while the newest sample was printed.
    printed: bool,
}

impl Lines {
    pub(super) fn of(args: &SubArgs) -> Self {
        let elsewhere = args.json || args.play || args.out.is_some();
        Self {
            to_terminal: !elsewhere && io::stdout().is_terminal(),
            names_tags: !args.pattern.is_tag(),
            printed: false,
        }
    }

    /// Prints a sample of text or JSON. Returns false if the sample is something else, or if nothing is printed.
    pub(super) fn print(&mut self, sample: &Sample) -> anyhow::Result<bool> {
        let line = if self.to_terminal { text_line(sample) } else { None };
        self.printed = line.is_some();
        match line {
            Some(line) if self.names_tags => show::line(&format!("[{}] {line}", sample.tag))?,
            Some(line) => show::line(&line)?,
            None => {}
        }
        Ok(self.printed)
    }

    /// Returns true if the newest sample was printed: the line of each second would hide the payloads.
    pub(super) const fn are_printed(&self) -> bool {
        self.printed
    }
}
