//! Finds the end of the access unit at the beginning of a byte stream (7.4.1.2.3), and its class.

use super::bits::Bits;
use super::nal::{Kind, Nal, Nals};
use super::params::Params;
use super::slice::Slice;
use super::{Class, UNIT_BYTES_MAX, UNIT_NALS_MAX};
use crate::error::MediaError;

/// The position and class of an access unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scan {
    /// The offset of its first start code.
    pub(super) begin: usize,
    /// The offset behind its last byte.
    pub(super) end: usize,
    pub(super) class: Class,
    /// The id of the PPS of its first slice; `None` if no slice header could be read.
    pub(super) pps: Option<u32>,
}

/// The current picture while its unit is scanned.
#[derive(Debug, Clone, Copy)]
struct Picture {
    /// Its latest readable slice.
    slice: Option<Slice>,
    first_seen: bool,
    class: Class,
    pps: Option<u32>,
}

/// Scans `stream` from offset `at`, a start code or the beginning, and records parameter sets in
/// `params`.
///
/// Returns `Ok(None)` at the end of the stream.
pub(super) fn scan(
    stream: &[u8],
    at: usize,
    params: &mut Params,
) -> Result<Option<Scan>, MediaError> {
    let mut unit: Option<usize> = None;
    let mut picture: Option<Picture> = None;
    // A prefix belongs to the unit of the slice that follows it.
    let mut prefix = None;
    for (count, nal) in Nals::starting(stream, at).enumerate() {
        let begin = *unit.get_or_insert(nal.begin);
        let border = match (nal.kind(), &picture) {
            (Kind::Sps | Kind::Pps | Kind::Delimiter | Kind::Leading, Some(_)) => true,
            (Kind::Slice { .. }, Some(picture)) => begins_picture(picture, &nal, params),
            _ => false,
        };
        if border && let Some(picture) = picture {
            let end = prefix.unwrap_or(nal.begin);
            return Ok(Some(found(begin, end, picture)));
        }
        check_nals(begin, count)?;
        check_bytes(begin, nal.end - begin)?;
        params.note(&nal);
        prefix = (nal.kind() == Kind::Prefix).then(|| prefix.unwrap_or(nal.begin));
        if let Kind::Slice { idr } = nal.kind() {
            let picture = picture.get_or_insert(Picture::new(idr, &nal));
            picture.add(Slice::read(&nal, params));
        }
    }
    match (unit, picture) {
        (None, _) if at >= stream.len() => Ok(None),
        (Some(begin), Some(picture)) => Ok(Some(found(begin, stream.len(), picture))),
        (unit, _) => Err(no_slice(stream, unit.unwrap_or(at))),
    }
}

impl Picture {
    fn new(idr: bool, nal: &Nal<'_>) -> Self {
        let class = Class::of(idr, nal.reference());
        Self { slice: None, first_seen: false, class, pps: None }
    }

    fn add(&mut self, slice: Option<Slice>) {
        if let Some(slice) = slice {
            self.first_seen |= slice.is_first();
            self.pps = self.pps.or(Some(slice.pps));
            self.slice = Some(slice);
        }
    }
}

fn begins_picture(picture: &Picture, nal: &Nal<'_>, params: &Params) -> bool {
    match (Slice::read(nal, params), picture.slice) {
        (Some(slice), Some(before)) => slice.begins_picture(&before, picture.first_seen),
        // If a header is damaged, decide by its readable part.
        _ => {
            let class = Class::of(nal.kind() == Kind::Slice { idr: true }, nal.reference());
            class != picture.class || Bits::new(nal.payload()).ue() == Some(0)
        }
    }
}

fn found(begin: usize, end: usize, picture: Picture) -> Scan {
    Scan { begin, end, class: picture.class, pps: picture.pps }
}

/// Checks the length of the unit that begins at `at`.
pub(super) fn check_bytes(at: usize, bytes: usize) -> Result<(), MediaError> {
    if bytes <= UNIT_BYTES_MAX {
        return Ok(());
    }
    Err(MediaError::H264Stream {
        at,
        reason: format!("access unit has {bytes} bytes, must be at most {UNIT_BYTES_MAX}"),
        mend: "encode smaller pictures or at a lower rate",
    })
}

/// Checks that the unit that begins at `at` may have another NAL unit in addition to `count`.
pub(super) fn check_nals(at: usize, count: usize) -> Result<(), MediaError> {
    if count < UNIT_NALS_MAX {
        return Ok(());
    }
    Err(MediaError::H264Stream {
        at,
        reason: format!("access unit has more than {UNIT_NALS_MAX} NAL units"),
        mend: "encode with fewer slices per picture",
    })
}

/// Returns the error for bytes at `at` without a picture.
pub(super) fn no_slice(stream: &[u8], at: usize) -> MediaError {
    let bytes = stream.len().saturating_sub(at);
    let (reason, mend) = match (bytes, Nals::new(stream).next()) {
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
    MediaError::H264Stream { at, reason, mend }
}
