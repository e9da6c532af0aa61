//! The demuxer of a film.

use super::flv::Flv;
use super::log::{Log, Progress};
use super::matroska::Matroska;
use super::mp4::Mp4;
use super::mpeg::{Program, Transport};
use super::window::{FilmAccess, FilmWant, Window};
use super::{FilmFormat, FilmTrack, FilmUnit};
use crate::damage::Damage;
use crate::error::MediaError;

/// Cuts a film into the units of its tracks; see [the module](super).
///
/// Push bytes at [`Self::wanted`] until [`Self::poll`] returns a unit. Its memory is bounded by the largest unit and, for MP4, by
/// the index of the file.
#[derive(Debug)]
pub struct FilmDemuxer {
    state: State,
    window: Window,
    log: Log,
    ended: bool,
}

#[derive(Debug)]
enum State {
    Mp4(Box<Mp4>),
    Matroska(Matroska),
    Transport(Box<Transport>),
    Program(Program),
    Flv(Flv),
}

impl FilmDemuxer {
    /// Returns the demuxer of a film from its beginning.
    #[must_use]
    pub fn new(format: FilmFormat, access: FilmAccess) -> Self {
        let state = match format {
            FilmFormat::Mp4 => State::Mp4(Box::default()),
            FilmFormat::Matroska => State::Matroska(Matroska::default()),
            FilmFormat::MpegTs => State::Transport(Box::default()),
            FilmFormat::MpegPs => State::Program(Program::default()),
            FilmFormat::Flv => State::Flv(Flv::default()),
        };
        Self { state, window: Window::new(access), log: Log::default(), ended: false }
    }

    /// Returns only the units of one track from now on, given by its position in [`Self::tracks`]. From a file, other units are
    /// not read then.
    pub fn select(&mut self, track: usize) {
        self.log.only = Some(track);
    }

    /// Returns the bytes that the demuxer needs; `None` after the end.
    #[must_use]
    pub fn wanted(&self) -> Option<FilmWant> {
        (!self.ended).then(|| self.window.want())
    }

    /// Takes bytes from the place of [`Self::wanted`]. Call [`Self::poll`] until it returns `None` before the next call, so that
    /// memory stays bounded.
    pub fn push(&mut self, bytes: &[u8]) {
        self.window.push(bytes);
    }

    /// Notes that there are no bytes at the place of [`Self::wanted`], and that none will follow.
    pub fn end(&mut self) {
        self.window.end();
    }

    /// Returns the next unit; `None` if it needs more bytes, or after the end.
    ///
    /// # Errors
    /// [`MediaError::Stream`] if the headers of the film cannot be read, or need another access. Other damage is skipped.
    pub fn poll(&mut self) -> Result<Option<FilmUnit>, MediaError> {
        let Self { state, window, log, ended } = self;
        while !*ended {
            let progress = match state {
                State::Mp4(mp4) => mp4.step(window, log)?,
                State::Matroska(matroska) => matroska.step(window, log)?,
                State::Transport(transport) => transport.step(window, log)?,
                State::Program(program) => program.step(window, log)?,
                State::Flv(flv) => flv.step(window, log)?,
            };
            match progress {
                Progress::Unit(unit) => return Ok(Some(unit)),
                Progress::Again => {}
                Progress::More => return Ok(None),
                Progress::Ended => *ended = true,
            }
        }
        Ok(None)
    }

    /// Notes that a unit is left out since it is none of its codec.
    pub fn fault(&mut self, unit: &FilmUnit, error: &MediaError) {
        let length = unit.bytes.len() as u64;
        let at = self.window.want().at.saturating_sub(length);
        self.log.damage.add(at, length, || error.to_string());
    }

    /// Returns the tracks that are known so far. The list grows only.
    #[must_use]
    pub fn tracks(&self) -> &[FilmTrack] {
        &self.log.tracks
    }

    /// Returns the damaged places that were skipped so far.
    #[must_use]
    pub fn damage(&self) -> &Damage {
        &self.log.damage
    }
}
