//! The largest pictures that are promised beside the commands, and what they cost on the wire: measured, because
//! that is not only payload.

use super::{Camera, PICTURES_HZ, Stage, commands_only, plan};
use crate::bench::netns::THIN_BITS_PER_S;
use crate::bench::role::Engine;
use crate::bench::stats::{count, float};
use anyhow::{Context as _, Result};

const SECONDS: f64 = 6.0;
/// Pictures that fill all of the link: 5 % of it are for control, so they are refused, with a size that is not.
const TOO_LARGE: f64 = THIN_BITS_PER_S as f64 / 8.0 / PICTURES_HZ;

/// What commands leave of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The size of the largest pictures that are promised beside them.
    pub(super) picture: usize,
    /// Wire bytes per second that are left beside the commands.
    pub(super) left: f64,
    /// Wire bytes per payload byte of a picture.
    pub(super) per_byte: f64,
}

/// The room beside commands of `command` bytes.
pub(super) fn room(stage: &Stage<'_>, command: usize) -> Result<Room> {
    eprintln!(
        "commands of {command} bytes: how large pictures may be beside them, and what they cost on the wire"
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
