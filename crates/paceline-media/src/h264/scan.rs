//! Finds the end of the access unit at the beginning of a byte stream (7.4.1.2.3).

use super::nal::{Kind, Nals};
use super::params::Params;
use super::picture::{Picture, Place};
use super::{CODEC, PARTS};
use crate::error::MediaError;
use crate::video::{check_bytes, check_parts};

/// The position of an access unit, and its picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan {
    /// The offset of its first start code.
    pub(super) begin: usize,
    /// The offset behind its last byte.
    pub(super) end: usize,
    /// The next unit follows it.
    pub(super) closed: bool,
    pub(super) picture: Picture,
}

/// The NAL units since the last slice that begin a unit if the next slice does.
#[derive(Debug, Clone, Copy, Default)]
struct Border {
    /// The offset of the first one.
    at: Option<usize>,
    /// Not all of them are repeated parameter sets, which some senders put before each slice of a picture.
    ends_picture: bool,
}

/// Scans `stream` from offset `at`, a start code or the beginning, and records parameter sets in
/// `params`. The two fields of a frame belong to one unit, and so do repeated parameter sets between two slices of a
/// picture.
///
/// Returns `Ok(None)` at the end of the stream.
pub(super) fn scan(
    stream: &[u8],
    at: usize,
    params: &mut Params,
) -> Result<Option<Scan>, MediaError> {
    let mut unit: Option<usize> = None;
    let mut picture = Picture::default();
    // A prefix belongs to the unit of the slice that follows it.
    let mut prefix = None;
    // The end of the unit, unless more of its picture or the second field of its frame follows.
    let mut border = Border::default();
    for (count, nal) in Nals::starting(stream, at).enumerate() {
        let begin = *unit.get_or_insert(nal.begin);
        let front = prefix.unwrap_or(nal.begin);
        let mut place = Place::Same;
        match nal.kind() {
            Kind::Sps | Kind::Pps | Kind::Delimiter | Kind::Sei | Kind::Leading
                if picture.begun =>
            {
                border.at.get_or_insert(front);
                border.ends_picture |= !params.repeats(&nal);
                if border.ends_picture && !picture.is_first_field() {
                    let end = border.at.unwrap_or(front);
                    return Ok(Some(Scan { begin, end, closed: true, picture }));
                }
            }
            Kind::Slice { .. } => {
                place = picture.place(&nal, params);
                let ends = match place {
                    Place::Same => border.ends_picture,
                    Place::SecondField => false,
                    Place::Next => true,
                };
                if ends {
                    let end = border.at.unwrap_or(front);
                    return Ok(Some(Scan { begin, end, closed: true, picture }));
                }
                border = Border::default();
            }
            Kind::Sps
            | Kind::Pps
            | Kind::Delimiter
            | Kind::Sei
            | Kind::Leading
            | Kind::Prefix
            | Kind::Other => {}
        }
        check_parts(CODEC, begin, count, PARTS)?;
        check_bytes(CODEC, begin, nal.end - begin)?;
        params.note(&nal);
        prefix = (nal.kind() == Kind::Prefix).then_some(front);
        picture.add(&nal, place, params);
    }
    match unit {
        None if at >= stream.len() => Ok(None),
        Some(begin) if picture.begun => {
            let end = border.at.unwrap_or(stream.len());
            Ok(Some(Scan { begin, end, closed: false, picture }))
        }
        unit => Err(no_slice(stream, unit.unwrap_or(at))),
    }
}

/// Returns the error for bytes at `at` without a picture.
pub(super) fn no_slice(stream: &[u8], at: usize) -> MediaError {
    let bytes = stream.len().saturating_sub(at);
    let (reason, fix) = match (bytes, Nals::new(stream).next()) {
        (0, _) => ("no bytes at all".to_owned(), "pass the bytes of an access unit"),
        (_, None) => (
            format!("{bytes} bytes without a start code (00 00 01)"),
            "pass an Annex B byte stream; convert mp4 with ffmpeg: -bsf:v h264_mp4toannexb",
        ),
        (_, Some(_)) => (
            format!("{bytes} bytes of NAL units without a picture"),
            "pass whole access units, up to and including the last slice",
        ),
    };
    MediaError::VideoStream { codec: CODEC, at, reason, fix }
}
