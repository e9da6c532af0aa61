//! The systems of MPEG (ISO/IEC 13818-1): transport and program streams. Both carry elementary streams in PES packets, which do
//! not end where pictures and blocks end.

mod cut;
mod frames;
mod kind;
mod pes;
mod program;
mod psi;
mod transport;

pub(super) use program::Program;
pub(super) use psi::crc;
pub(super) use transport::Transport;

use super::log::Log;
use super::{FilmTrack, FilmTurn, FilmUnit, TRACKS_MAX, TimeBase};
use crate::damage::Damage;
use frames::Frames;
use kind::StreamKind;
use pes::Pes;
use std::collections::VecDeque;

/// The time after which PTS and DTS begin at 0 again, in ticks.
const WRAP: i64 = 1 << 33;

/// Times without their wraps.
#[derive(Debug, Default)]
struct Wrapped {
    last: Option<i64>,
}

impl Wrapped {
    /// Returns the time nearest to the last one.
    fn unwrapped(&mut self, time: u64) -> i64 {
        let time = i64::try_from(time).unwrap_or(0).rem_euclid(WRAP);
        let last = *self.last.get_or_insert(time);
        let near = last + (time - last + WRAP / 2).rem_euclid(WRAP) - WRAP / 2;
        self.last = Some(near);
        near
    }
}

/// An elementary stream.
#[derive(Debug)]
struct Stream {
    track: usize,
    entry: usize,
    kind: StreamKind,
    frames: Frames,
}

impl Stream {
    /// Returns a stream with a new track; `None` if there are too many.
    fn new(id: u64, kind: StreamKind, log: &mut Log) -> Option<Self> {
        if log.tracks.len() >= TRACKS_MAX {
            return None;
        }
        log.tracks.push(FilmTrack {
            id,
            codecs: vec![kind.codec()],
            tick: TimeBase::MPEG,
            size: None,
            turn: FilmTurn::default(),
        });
        Some(Self { track: log.tracks.len() - 1, entry: 0, kind, frames: Frames::new(kind) })
    }

    /// Changes the content of the stream.
    fn change(&mut self, kind: StreamKind, log: &mut Log, to: &mut VecDeque<FilmUnit>) {
        if self.kind == kind {
            return;
        }
        self.end(&mut log.damage, to);
        if let Some(track) =
            log.tracks.get_mut(self.track).filter(|track| track.codecs.len() < TRACKS_MAX)
        {
            track.codecs.push(kind.codec());
            self.entry = track.codecs.len() - 1;
        }
        (self.kind, self.frames) = (kind, Frames::new(kind));
    }

    /// Takes a whole PES packet.
    fn take(
        &mut self,
        packet: &Pes<'_>,
        clock: &mut Wrapped,
        damage: &mut Damage,
        to: &mut VecDeque<FilmUnit>,
    ) {
        let decode = packet.decode.or(packet.shown).map(|time| clock.unwrapped(time));
        let shown = packet.shown.map(|time| clock.unwrapped(time));
        self.frames.push(packet.payload, shown.zip(decode));
        self.collect(damage, to);
    }

    /// Notes that a packet is missing.
    fn lose(&mut self) {
        self.frames.lose();
    }

    /// Ends the last frame.
    fn end(&mut self, damage: &mut Damage, to: &mut VecDeque<FilmUnit>) {
        self.frames.end();
        self.collect(damage, to);
    }

    fn collect(&mut self, damage: &mut Damage, to: &mut VecDeque<FilmUnit>) {
        while let Some(frame) = self.frames.next(damage) {
            to.push_back(FilmUnit {
                track: self.track,
                entry: self.entry,
                decode: Some(frame.decode),
                shown: frame.shown,
                key: frame.key,
                outside: false,
                bytes: frame.bytes,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_behind_their_wrap() {
        let mut clock = Wrapped::default();
        let end = u64::try_from(WRAP).unwrap();
        assert_eq!(clock.unwrapped(end - 10), WRAP - 10);
        assert_eq!(clock.unwrapped(20), WRAP + 20);
        assert_eq!(clock.unwrapped(end - 5), WRAP - 5, "B pictures step back");
        assert_eq!(clock.unwrapped(90_000), WRAP + 90_000);
    }
}
