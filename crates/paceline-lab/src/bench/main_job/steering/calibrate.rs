//! Measures the largest pictures that are admitted in addition to the commands, and their cost on
//! the wire, which includes headers and control.

use super::{Camera, PICTURES_HZ, Stage, commands_only, plan};
use crate::bench::netns::THIN_BITS_PER_S;
use crate::bench::protocol::Engine;
use crate::bench::stats::{count, float};
use anyhow::{Context as _, Result};

const SECONDS: f64 = 6.0;
/// Pictures that would fill the whole link. Control uses 5 % of it, so admission refuses them and
/// offers a smaller size.
const TOO_LARGE: f64 = THIN_BITS_PER_S as f64 / 8.0 / PICTURES_HZ;

/// The capacity that the commands leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The size of the largest pictures that are admitted in addition to the commands.
    pub(super) picture: usize,
    /// The remaining wire bytes per second.
    pub(super) left: f64,
    /// The wire bytes per payload byte of a picture.
    pub(super) per_byte: f64,
}

/// Measures the remaining capacity with commands of `command` bytes.
pub(super) fn room(stage: &Stage<'_>, command: usize) -> Result<Room> {
    eprintln!(
        "commands of {command} bytes: measuring the largest pictures that fit next to them, and \
         their bytes on the wire"
    );
    let with = |bytes| plan(Engine::Paceline, command, Some(Camera::Contracted(bytes)), SECONDS);
    let picture = stage.offered(&with(whole(TOO_LARGE)), 1).context("the contracted camera")?;
    let alone = stage.measure(&commands_only(Engine::Paceline, command, SECONDS))?;
    let commands = alone.wire_to_operator / alone.seconds();
    let both = stage.measure(&with(picture))?;
    let pictures = both.wire_to_operator / both.seconds() - commands;
    let per_byte = (pictures / PICTURES_HZ / count(picture)).clamp(1.0, 1.5);
    Ok(Room { picture, left: float(THIN_BITS_PER_S) / 8.0 - commands, per_byte })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in range")]
fn whole(bytes: f64) -> usize {
    bytes as usize
}
