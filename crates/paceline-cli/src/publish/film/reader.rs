//! The units of a film from a file or a pipe.

use crate::publish::input::{Input, Place};
use anyhow::Context as _;
use paceline_media::film::{FilmAccess, FilmDemuxer, FilmFormat, FilmUnit};
use std::io::Read as _;
use std::time::Duration;

/// The bytes of one read.
const READ_MIN: usize = 4 * 1024;
const READ_MAX: usize = 256 * 1024;
/// The age of a file's last change up to which it may still grow.
const GROWS: Duration = Duration::from_secs(3);
/// The interval at which a growing file is read again.
const AGAIN: Duration = Duration::from_millis(200);

/// Reads a film.
pub(super) struct FilmReader {
    place: Place,
    input: Input,
    access: FilmAccess,
    pub(super) demuxer: FilmDemuxer,
    /// The offset of the next byte of the input.
    at: u64,
    part: Vec<u8>,
    /// Waits at the end of a file that is being written.
    pub(super) waits: bool,
}

impl FilmReader {
    /// Opens a file.
    pub(super) fn file(place: &Place, format: FilmFormat) -> anyhow::Result<Self> {
        let input = place.open()?;
        Ok(Self::new(place, input, FilmDemuxer::new(format, FilmAccess::Seek), FilmAccess::Seek))
    }

    /// Returns the reader of an input that cannot seek and begins with `start`.
    pub(super) fn pipe(place: &Place, input: Input, format: FilmFormat, start: &[u8]) -> Self {
        let mut demuxer = FilmDemuxer::new(format, FilmAccess::Pipe);
        demuxer.push(start);
        let at = start.len() as u64;
        Self { at, ..Self::new(place, input, demuxer, FilmAccess::Pipe) }
    }

    fn new(place: &Place, input: Input, demuxer: FilmDemuxer, access: FilmAccess) -> Self {
        let (place, part) = (place.clone(), vec![0; READ_MAX]);
        Self { place, input, access, demuxer, at: 0, part, waits: false }
    }

    /// Returns the next unit; `None` at the end.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<FilmUnit>> {
        loop {
            if let Some(unit) = self.demuxer.poll().with_context(|| self.place.name())? {
                return Ok(Some(unit));
            }
            let Some(want) = self.demuxer.wanted() else { return Ok(None) };
            let cannot = |error: std::io::Error| self.place.cannot(&error);
            if self.access == FilmAccess::Seek && want.at != self.at {
                self.input.seek(want.at).map_err(cannot)?;
                self.at = want.at;
            }
            let length = want.bytes.clamp(READ_MIN, READ_MAX);
            let part = self.part.get_mut(..length).unwrap_or_default();
            let read = self.input.read(part).map_err(cannot)?;
            if read > 0 {
                self.at += read as u64;
                self.demuxer.push(self.part.get(..read).unwrap_or_default());
            } else if self.waits && self.place.changed_within(GROWS) {
                std::thread::sleep(AGAIN);
            } else {
                self.demuxer.end();
            }
        }
    }
}
