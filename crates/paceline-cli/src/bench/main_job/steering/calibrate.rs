//! How large pictures must be to fill the link to 95 % beside the commands: measured, because the
//! cost on the wire is not only payload.

use super::{Camera, Stage, commands_only, plan};
use crate::bench::netns::THIN_BITS_PER_S;
use crate::bench::role::Engine;
use crate::bench::stats::float;
use anyhow::Result;

const SECONDS: f64 = 6.0;
const PICTURES_HZ: f64 = 5.0;
const SHARE: f64 = 0.95;
/// Wire bytes per payload byte of a picture, to begin with.
const WIRE_PER_BYTE: f64 = 1.1;

/// What commands leave of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The size of pictures that fill it to 95 % at 5 Hz.
    pub(super) picture: usize,
    /// Wire bytes per second that are left beside the commands.
    pub(super) left: f64,
    /// Wire bytes per payload byte of a picture.
    pub(super) per_byte: f64,
}

/// The room beside commands of `command` bytes.
pub(super) fn room(stage: &Stage<'_>, command: usize) -> Result<Room> {
    eprintln!("commands of {command} bytes: measuring what they cost on the wire");
    let wanted = SHARE * float(THIN_BITS_PER_S) / 8.0;
    let alone = stage.measure(&commands_only(Engine::Paceline, command, SECONDS))?;
    let commands = alone.wire_to_operator / alone.seconds();
    // A little less than will fit, then as much more as the difference is worth.
    let first = 0.95 * (wanted - commands) / PICTURES_HZ / WIRE_PER_BYTE;
    let camera = Camera::Contracted(whole(first));
    let both = stage.measure(&plan(Engine::Paceline, command, Some(camera), SECONDS))?;
    let pictures = both.wire_to_operator / both.seconds() - commands;
    let per_byte = (pictures / PICTURES_HZ / first).clamp(1.0, 1.5);
    let picture = whole((wanted - commands) / PICTURES_HZ / per_byte);
    Ok(Room { picture, left: float(THIN_BITS_PER_S) / 8.0 - commands, per_byte })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size in range")]
fn whole(bytes: f64) -> usize {
    bytes.clamp(100.0, 1e6) as usize
}
