//! Films: pictures and sound in one file, as MP4, Matroska, MPEG-TS, MPEG-PS or FLV.
//!
//! A [`FilmDemuxer`] takes bytes and returns the units of all tracks in decoding order, with their times. It opens nothing: it
//! names the place that it needs ([`FilmDemuxer::wanted`]), and the caller pushes the bytes from there. [`FilmSamples`] turns the
//! units of a track into message payloads, such as access units of `video/h264`.
//!
//! ```
//! use paceline_media::film::{FilmAccess, FilmDemuxer, FilmFormat};
//!
//! let mut film = FilmDemuxer::new(FilmFormat::Flv, FilmAccess::Pipe);
//! let file = b"FLV\x01\x05\0\0\0\x09\0\0\0\0\x09\0\0\x07\0\0\x28\0\0\0\0\x17\x01\0\0\0\xaa\xbb\0\0\0\x12";
//! film.push(file);
//! let unit = film.poll()?.expect("a unit of H.264");
//! assert_eq!((unit.decode, unit.shown, unit.key, &unit.bytes[..]), (Some(40), 40, true, &b"\xaa\xbb"[..]));
//! # Ok::<(), paceline_media::MediaError>(())
//! ```
//!
//! | format | times | from a pipe |
//! | --- | --- | --- |
//! | MP4, MOV | sample tables or fragments, with edit lists | if `moov` precedes `mdat`, or with fragments |
//! | Matroska, WebM | timestamps of blocks; decoding times are derived from them | yes |
//! | MPEG-TS, MPEG-PS | PTS and DTS, without their wraps after 26.5 hours | yes |
//! | FLV | timestamps of tags with composition times | yes |
//!
//! Bounds: a unit has at most 64 MiB, the index of an MP4 file at most 64 MiB, a film at most 64 tracks.

mod codec;
mod demux;
mod detect;
mod flv;
mod log;
mod matroska;
mod mp4;
mod mpeg;
mod orientation;
mod samples;
mod track;
mod unit;
mod window;
mod write;

pub use codec::{FilmCodec, FilmKind};
pub use demux::FilmDemuxer;
pub use detect::{FilmDetected, FilmFormat};
pub use samples::{FilmSample, FilmSamples};
pub use track::{FilmTrack, FilmTurn, TimeBase};
pub use unit::FilmUnit;
pub use window::{FilmAccess, FilmWant};
pub use write::FilmWriter;

use crate::error::MediaError;

/// The largest unit in bytes.
const UNIT_MAX: usize = crate::video::UNIT_BYTES_MAX;
/// The most tracks of a film.
const TRACKS_MAX: usize = 64;

/// Returns the error of a film that cannot be read.
fn refuse(
    format: &'static str,
    at: u64,
    reason: impl Into<String>,
    fix: &'static str,
) -> MediaError {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    MediaError::Stream { format, at, reason: reason.into(), fix }
}

#[cfg(test)]
mod tests;
