//! Finds the end of the access unit at the beginning of a byte stream (7.4.2.4.4).

use std::ops::Range;

use super::CODEC;
use super::nal::{Header, Kind};
use crate::annexb::Nals;
use crate::error::MediaError;
use crate::video::{check_bytes, check_parts};

/// The parts of a unit, in error messages.
pub(super) const PARTS: &str = "NAL units";
/// The most parameter sets before a picture whose repetition is recognized.
const SETS_MAX: usize = 32;

/// Returns the position of the access unit in `stream` from offset `at`, a start code or the beginning.
/// Returns `Ok(None)` at the end of the stream.
///
/// Parameter sets that repeat those before the first slice belong to the unit if another of its slices follows: some
/// senders put them before each slice of a picture.
pub(super) fn scan(stream: &[u8], at: usize) -> Result<Option<Range<usize>>, MediaError> {
    Ok(find(stream, at)?.map(|(unit, _)| unit))
}

/// Returns the position of the first unit of a stream that arrives in parts. The end of the unit is the end of `bytes`
/// unless another one follows it. `whole` states that no more of it will arrive.
pub(crate) fn first_unit(bytes: &[u8], whole: bool) -> Result<Option<Range<usize>>, MediaError> {
    let unit = find(bytes, 0)?;
    Ok(unit.map(|(unit, closed)| if whole || closed { unit } else { unit.start..bytes.len() }))
}

/// Returns the unit from offset `at`, and true if the next one follows it.
fn find(stream: &[u8], at: usize) -> Result<Option<(Range<usize>, bool)>, MediaError> {
    let mut unit = None;
    let mut begun = false;
    let mut sets: Vec<&[u8]> = Vec::new();
    // The end of the unit, unless more of its picture follows.
    let mut border = None;
    for (count, nal) in Nals::starting(stream, at).enumerate() {
        let begin = *unit.get_or_insert(nal.begin);
        let header = Header::of(&nal);
        if begun && header.opens_unit(&nal) {
            let end = *border.get_or_insert(nal.begin);
            if !sets.contains(&nal.bytes) {
                return Ok(Some((begin..end, true)));
            }
        } else if header.kind == Kind::Slice {
            border = None;
        }
        check_parts(CODEC, begin, count, PARTS)?;
        check_bytes(CODEC, begin, nal.end - begin)?;
        if !begun && header.is_set() && sets.len() < SETS_MAX {
            sets.push(nal.bytes);
        }
        begun |= header.begins_picture(&nal);
    }
    match unit {
        None if at >= stream.len() => Ok(None),
        Some(begin) if begun => Ok(Some((begin..border.unwrap_or(stream.len()), false))),
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
