//! `paceline watch --print`: prints samples in readable form.

mod payload;

use super::args::{EchoFlags, LookArgs};
use super::meter::Meter;
use super::session::Target;
use super::watch::{Seen, Watch};
use crate::payload::SampleLine;
use paceline::Node;
use paceline_tool::show;
use payload::{Payload, PayloadLine};
use serde::Serialize;
use std::time::Instant;

/// Prints each sample.
pub(super) struct Printing<'a> {
    flags: &'a EchoFlags,
    look: &'a LookArgs,
    /// Limit of the bytes printed of binary payloads.
    bytes_max: usize,
    /// True once the note about a missing field was printed.
    noted: bool,
}

#[derive(Serialize)]
struct EchoLine<'a> {
    #[serde(flatten)]
    sample: SampleLine,
    #[serde(flatten)]
    payload: PayloadLine<'a>,
}

impl<'a> Printing<'a> {
    pub(super) fn new(flags: &'a EchoFlags, look: &'a LookArgs) -> Self {
        Self { flags, look, bytes_max: flags.bytes_max(), noted: false }
    }

    fn print(&self, seen: &Seen, payload: &Payload) -> anyhow::Result<()> {
        let delivery = &seen.delivery;
        if self.look.json {
            let sample = SampleLine::new(delivery, false);
            return show::json(&EchoLine { sample, payload: payload.line() });
        }
        let head = match self.look.names_several() {
            true => format!(
                "[{}] seq {} age {} ms\n",
                delivery.tag,
                delivery.seq,
                show::millis(show::micros(delivery.age))
            ),
            false => String::new(),
        };
        let text = payload.text(delivery);
        show::payload(&format!("{head}{}\n---", text.trim_end_matches('\n')))
    }
}

impl Target for Printing<'_> {
    fn meter(&self) -> Option<Meter> {
        None
    }

    fn count(&self) -> Option<u64> {
        self.flags.count(self.look)
    }

    fn take(&mut self, seen: &Seen, _node: &Node) -> anyhow::Result<bool> {
        let delivery = &seen.delivery;
        let mut payload = Payload::read(delivery, self.bytes_max);
        if let Some(path) = &self.flags.field {
            match payload.field(path) {
                Ok(part) => payload = part,
                Err(why) => {
                    if !std::mem::replace(&mut self.noted, true) {
                        show::note(&format!(
                            "--field {path}: sample {} of {} {why}; such samples are left out",
                            delivery.seq, delivery.tag
                        ));
                    }
                    return Ok(true);
                }
            }
        }
        self.print(seen, &payload).map(|()| true)
    }

    fn report(&mut self, _watch: &mut Watch, _now: Instant, _named: bool) -> anyhow::Result<()> {
        Ok(())
    }

    fn end(&mut self, watch: &mut Watch, _node: &Node) -> anyhow::Result<()> {
        if let Some(sum) = watch.sum() {
            show::note(&sum);
        }
        Ok(())
    }
}
