//! The control measurement: commands over an otherwise idle link.

use super::steering::{Commands, commands_only};
use crate::bench::protocol::Engine;
use crate::bench::report::{Section, Unit};
use crate::bench::stage::{Measured, Stage};
use crate::bench::stats::{count, millis};
use anyhow::Result;

/// The limit on commands. Fewer than in the loaded runs suffice to see the machine's own delays.
const COMMANDS_MAX: u32 = 3_000;

pub(super) fn measure(stage: &Stage<'_>, commands: u32) -> Result<Section> {
    let commands = commands.min(COMMANDS_MAX);
    let plan = |engine| commands_only(engine, 64, f64::from(commands) / 100.0);
    eprintln!("idle link: {commands} commands, Paceline, then plain Zenoh");
    let ours = stage.measure(&plan(Engine::Paceline))?;
    let plain = stage.measure(&plan(Engine::Plain))?;
    let mut section =
        Section::new("The idle link: 100 commands of 64 bytes per second, nothing else");
    let (a, b) = (Commands::of(&ours, commands), Commands::of(&plain, commands));
    let delay = |commands: &Commands, per_mille| millis(commands.delays.percentile(per_mille));
    for (name, per_mille) in [("delay p50", 500), ("delay p99", 990), ("delay p99.9", 999)] {
        section.show(name, Unit::Millis, delay(&a, per_mille), delay(&b, per_mille));
    }
    section.show("delay max", Unit::Millis, millis(a.delays.max()), millis(b.delays.max()));
    section.show("lost", Unit::Count, count(a.lost), count(b.lost));
    let per_command = |measured: &Measured, commands: &Commands| {
        measured.wire_to_operator / measured.seconds() / commands.hertz
    };
    let (ours_bytes, plain_bytes) = (per_command(&ours, &a), per_command(&plain, &b));
    section.show("wire bytes per command", Unit::Count, ours_bytes, plain_bytes);
    section.load(ours.load, plain.load);
    section.warn_if_busy();
    ours.remarks.iter().for_each(|remark| section.note(remark));
    Ok(section)
}
