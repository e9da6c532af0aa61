//! Finds the end of the access unit at the beginning of a byte stream (7.4.2.4.4).

use std::ops::Range;

use super::CODEC;
use super::nal::Header;
use crate::annexb::Nals;
use crate::error::MediaError;
use crate::video::{check_bytes, check_parts};

/// The parts of a unit, in error messages.
pub(super) const PARTS: &str = "NAL units";

/// Returns the position of the access unit in `stream` from offset `at`, a start code or the beginning.
/// Returns `Ok(None)` at the end of the stream.
pub(crate) fn scan(stream: &[u8], at: usize) -> Result<Option<Range<usize>>, MediaError> {
    let mut unit = None;
    let mut begun = false;
    for (count, nal) in Nals::starting(stream, at).enumerate() {
        let begin = *unit.get_or_insert(nal.begin);
        let header = Header::of(&nal);
        if begun && header.opens_unit(&nal) {
            return Ok(Some(begin..nal.begin));
        }
        check_parts(CODEC, begin, count, PARTS)?;
        check_bytes(CODEC, begin, nal.end - begin)?;
        begun |= header.begins_picture(&nal);
    }
    match unit {
        None if at >= stream.len() => Ok(None),
        Some(begin) if begun => Ok(Some(begin..stream.len())),
        unit => Err(no_picture(stream, unit.unwrap_or(at))),
    }
}

/// Returns the error for bytes at `at` without a picture.
pub(super) fn no_picture(stream: &[u8], at: usize) -> MediaError {
    let bytes = stream.len().saturating_sub(at);
    let (reason, fix) = match (bytes, Nals::new(stream).next()) {
        (0, _) => ("no bytes at all".to_owned(), "pass the bytes of an access unit"),
        (_, None) => (
            format!("{bytes} bytes without a start code (00 00 01)"),
            "pass an Annex B byte stream; convert mp4 with ffmpeg: -bsf:v hevc_mp4toannexb",
        ),
        (_, Some(_)) => (
            format!("{bytes} bytes of NAL units without the first slice of a picture"),
            "pass whole access units, up to and including the last slice",
        ),
    };
    MediaError::VideoStream { codec: CODEC, at, reason, fix }
}
