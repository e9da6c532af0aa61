//! MP4 and QuickTime files (ISO/IEC 14496-12), with sample tables or fragments. The fields of boxes are read by `mp4-atom`; times,
//! edit lists and places are mapped here.

mod cursor;
mod defaults;
mod edits;
pub(super) mod entry;
mod fragment;
mod movie;
mod tables;

use super::log::{Log, Progress};
use super::window::{FilmAccess, Look, Window};
use super::{FilmUnit, UNIT_MAX, refuse};
use crate::error::MediaError;
use movie::Movie;
use mp4_atom::{Decode as _, FourCC, Header};

/// The largest `moov` or `moof` box in bytes.
const INDEX_MAX: u64 = 64 * 1024 * 1024;
/// The most bytes of a box header.
const HEADER_MAX: usize = 16;
const MOOV: FourCC = FourCC::new(b"moov");
const MOOF: FourCC = FourCC::new(b"moof");
const MDAT: FourCC = FourCC::new(b"mdat");
const REPAIR: &str = "write the film again, with ffmpeg: -c copy";
const FRONT: &str =
    "pass the film as a file, or write it with ffmpeg: -c copy -movflags +faststart";

/// Reads boxes, then the samples that they list.
#[derive(Debug, Default)]
pub(super) struct Mp4 {
    /// The offset of the next box.
    next: u64,
    movie: Option<Movie>,
    /// The samples of the last fragment, in reverse order.
    fragment: Vec<Sample>,
    /// The samples of the tables are being returned.
    tables: bool,
    /// The end of the data from which samples are returned, if they come from a pipe.
    data_end: u64,
    /// A sample whose bytes have not arrived.
    held: Option<Sample>,
}

/// A sample in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    track: usize,
    entry: usize,
    at: u64,
    size: u32,
    decode: i64,
    shown: i64,
    key: bool,
    outside: bool,
}

impl Mp4 {
    pub(super) fn step(
        &mut self,
        window: &mut Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        if let Some(sample) = self.held {
            return Ok(self.give(sample, window, log));
        }
        if let Some(sample) = self.sample(window.access(), log) {
            self.held = Some(sample);
            return Ok(Progress::Again);
        }
        self.boxed(window, log)
    }

    /// Returns the next listed sample.
    fn sample(&mut self, access: FilmAccess, log: &mut Log) -> Option<Sample> {
        // The data of a pipe is behind the boxes that list it.
        if access == FilmAccess::Pipe && self.data_end == 0 {
            return None;
        }
        while let Some(sample) = self.fragment.pop() {
            if log.wants(sample.track) {
                return Some(sample);
            }
        }
        if !self.tables {
            return None;
        }
        let movie = self.movie.as_mut()?;
        let sample = match access {
            FilmAccess::Seek => movie.next_by_time(log),
            FilmAccess::Pipe => movie.next_by_place(log, self.data_end),
        };
        if sample.is_none() && access == FilmAccess::Seek {
            self.tables = false;
        }
        sample
    }

    /// Returns the unit of a sample.
    fn give(&mut self, sample: Sample, window: &mut Window, log: &mut Log) -> Progress {
        let Sample { track, entry, at, size, decode, shown, key, outside } = sample;
        let bytes = usize::try_from(size).unwrap_or(usize::MAX);
        if bytes == 0 {
            self.held = None;
            return Progress::Again;
        }
        if bytes > UNIT_MAX {
            self.held = None;
            log.damage.add(at, size.into(), || {
                format!("a sample has {size} bytes, must have at most {UNIT_MAX}")
            });
            return Progress::Again;
        }
        match window.look(at, bytes) {
            Look::More => return Progress::More,
            Look::Bytes(bytes) => {
                let (bytes, decode) = (bytes.to_vec(), Some(decode));
                self.held = None;
                return Progress::Unit(FilmUnit {
                    track,
                    entry,
                    decode,
                    shown,
                    key,
                    outside,
                    bytes,
                });
            }
            Look::Ended(_) => {
                log.damage.add(at, size.into(), || "the file ends before this sample".to_owned());
                if let Some(movie) = &mut self.movie {
                    movie.end(track);
                }
                // They are in the order of their places.
                self.fragment.clear();
            }
            Look::Passed => log.damage.add(at, size.into(), || {
                "a sample precedes others that were stored before it, and a pipe cannot go back"
                    .to_owned()
            }),
        }
        self.held = None;
        Progress::Again
    }

    /// Reads the next box.
    fn boxed(&mut self, window: &mut Window, log: &mut Log) -> Result<Progress, MediaError> {
        let at = self.next;
        // Behind the data of a pipe.
        self.data_end = 0;
        let (header, length) = match window.look(at, 8) {
            Look::More => return Ok(Progress::More),
            Look::Passed => return Err(refuse("mp4", at, "a box ends before its data", REPAIR)),
            Look::Ended(rest) => return self.ended(at, rest.len(), window, log),
            Look::Bytes(bytes) => {
                let long = bytes.starts_with(&[0, 0, 0, 1]);
                let length = if long { HEADER_MAX } else { 8 };
                match window.look(at, length) {
                    Look::Bytes(mut bytes) => (Header::decode(&mut bytes), length as u64),
                    Look::Ended(rest) => {
                        let rest = rest.len();
                        return self.ended(at, rest, window, log);
                    }
                    Look::More | Look::Passed => return Ok(Progress::More),
                }
            }
        };
        let Ok(Header { kind, size }) = header else {
            return Err(refuse("mp4", at, "a box is shorter than its header", REPAIR));
        };
        let body = at.saturating_add(length);
        let size = size.map(|size| size as u64);
        match kind {
            MOOV | MOOF if size.is_none_or(|size| size > INDEX_MAX) => {
                let reason = format!("its {kind} box has no size, or more than {INDEX_MAX} bytes");
                Err(refuse("mp4", at, reason, REPAIR))
            }
            MOOV | MOOF => {
                self.index((at, body), size.unwrap_or_default(), kind == MOOV, window, log)
            }
            MDAT => self.data(at, body, size, window.access()),
            _ => {
                self.next = size.map_or(u64::MAX, |size| body.saturating_add(size));
                Ok(Progress::Again)
            }
        }
    }

    /// Reads the index of the film or of a fragment.
    fn index(
        &mut self,
        (at, body): (u64, u64),
        size: u64,
        is_movie: bool,
        window: &mut Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        // From the header on: the window drops bytes before the place that was looked at last.
        let header = usize::try_from(body - at).unwrap_or(HEADER_MAX);
        let length = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(header);
        let bytes = match window.look(at, length) {
            Look::Bytes(bytes) => bytes.get(header..).unwrap_or_default(),
            Look::Ended(rest) => {
                let rest = rest.len();
                return self.ended(at, rest, window, log);
            }
            Look::More | Look::Passed => return Ok(Progress::More),
        };
        self.next = body.saturating_add(size);
        if is_movie {
            // A second one, as some recorders write it, repeats the first.
            if self.movie.is_none() {
                let movie = Movie::read(bytes, at, log)?;
                self.tables = true;
                self.movie = Some(movie);
            }
            return Ok(Progress::Again);
        }
        let Some(movie) = &mut self.movie else {
            return Err(refuse(
                "mp4",
                at,
                "a fragment precedes the moov box",
                "pass the film from its beginning",
            ));
        };
        match movie.fragment(bytes, at) {
            Ok(samples) => self.fragment = samples,
            Err(reason) => log.damage.add(at, size, || reason),
        }
        Ok(Progress::Again)
    }

    /// Skips the data of samples, or returns the samples of a pipe.
    fn data(
        &mut self,
        at: u64,
        body: u64,
        size: Option<u64>,
        access: FilmAccess,
    ) -> Result<Progress, MediaError> {
        let end = size.map_or(u64::MAX, |size| body.saturating_add(size));
        self.next = end;
        if access == FilmAccess::Pipe {
            if self.movie.is_none() {
                let reason = "its index (moov) is behind its data, and a pipe cannot go back";
                return Err(refuse("mp4", at, reason, FRONT));
            }
            self.data_end = end;
        }
        Ok(Progress::Again)
    }

    /// Ends at the end of the file, of which `rest` bytes at `at` are no whole box.
    fn ended(
        &mut self,
        at: u64,
        rest: usize,
        window: &Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        if self.movie.is_none() {
            let reason = "it has no index (moov): it is cut off, or its writer was interrupted";
            return Err(refuse(
                "mp4",
                window.len().unwrap_or(at),
                reason,
                "record it again, with fragments",
            ));
        }
        let missing = window.len().map_or(0, |end| at.saturating_sub(end));
        if rest > 0 {
            log.damage.add(at, rest as u64, || "the last box is cut off".to_owned());
        } else if missing > 0 && at != u64::MAX && log.damage.is_empty() {
            log.damage.add(at - missing, missing, || "the last box is cut off".to_owned());
        }
        Ok(Progress::Ended)
    }
}

/// The boxes in a box, as their kinds and contents.
struct Boxes<'a>(&'a [u8]);

impl<'a> Iterator for Boxes<'a> {
    type Item = (FourCC, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.0;
        if rest.len() < 8 || rest.starts_with(&[0, 0, 0, 1]) && rest.len() < HEADER_MAX {
            return None;
        }
        let Header { kind, size } = Header::decode(&mut rest).ok()?;
        let (body, behind) = rest.split_at_checked(size.unwrap_or(rest.len()))?;
        self.0 = behind;
        Some((kind, body))
    }
}

/// Returns the content of the first box of this kind in a box.
fn find<'a>(bytes: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    Boxes(bytes).find(|(found, _)| *found == FourCC::new(kind)).map(|(_, body)| body)
}

/// Returns the fields of the first box of this type in a box; `None` if there is none, or if they cannot be read.
fn fields<T: mp4_atom::Atom>(bytes: &[u8]) -> Option<T> {
    let mut boxes = Boxes(bytes);
    let (_, mut body) = boxes.find(|(found, _)| *found == T::KIND)?;
    T::decode_body(&mut body).ok()
}
