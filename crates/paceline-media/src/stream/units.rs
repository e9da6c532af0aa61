//! Access units of H.264 and H.265, and temporal units of AV1.

use super::{End, SAMPLE_MAX, Step, seek};
use crate::annexb::find_start_code;
use crate::av1;
use crate::codec::Codec;
use crate::error::MediaError;
use crate::h264;
use crate::h265;
use crate::video::UNIT_NALS_MAX;

/// The bytes behind a start code from which the header of a slice can be read.
const HEADER_MAX: usize = 64;
/// A temporal delimiter and the header of a sequence header: where decoding of AV1 can start.
const AV1_START: &[u8] = b"\x12\x00\x0a";

/// Finds the ends of units.
#[derive(Debug)]
pub(crate) struct UnitCutter {
    codec: Codec,
    h264: h264::Cutter,
    /// The number of bytes of the current unit that were searched for start codes, or for the start of AV1.
    searched: usize,
    /// The offset of the last start code in them, or of a start of AV1 that may be hidden by damage.
    last: Option<usize>,
    codes: usize,
    /// The NAL units to the last start code were scanned without finding an end.
    scanned: bool,
}

impl UnitCutter {
    pub(crate) fn new(codec: Codec) -> Self {
        let h264 = h264::Cutter::default();
        Self { codec, h264, searched: 0, last: None, codes: 0, scanned: false }
    }

    /// Returns true if a pause may end the current unit.
    pub(super) fn is_open(&self) -> bool {
        self.searched > 0
    }

    /// Forgets the bytes of the current unit.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.codec);
    }

    pub(crate) fn step(&mut self, bytes: &[u8], end: End) -> Step {
        if bytes.is_empty() {
            return Step::More;
        }
        let step = match self.codec {
            Codec::H264 | Codec::H265 => self.annexb(bytes, end),
            Codec::Av1 => self.obus(bytes, end),
        };
        if matches!(step, Step::More) {
            self.searched = self.searched.max(1);
        } else {
            *self = Self { h264: std::mem::take(&mut self.h264), ..Self::new(self.codec) };
        }
        step
    }

    fn annexb(&mut self, bytes: &[u8], end: End) -> Step {
        self.search(bytes);
        let Some(first) = find_start_code(bytes, 0) else {
            // The begin of a start code may be at the end.
            let junk = if end == End::Ended { bytes.len() } else { bytes.len().saturating_sub(3) };
            let only_zeros = bytes.iter().all(|byte| *byte == 0);
            return match junk {
                0 => Step::More,
                junk if only_zeros => Step::Used(junk),
                junk => Step::Damaged(junk, self.no_unit(bytes.len(), 0)),
            };
        };
        let zeros = bytes.get(..first).unwrap_or_default();
        if zeros.iter().any(|byte| *byte != 0) {
            // At most one zero belongs to the start code.
            let keep = usize::from(zeros.last() == Some(&0));
            return Step::Damaged(first - keep, self.no_unit(first, 0));
        }
        let whole = end != End::Open;
        let last = self.last.unwrap_or(first);
        let readable = bytes.len() >= last + 3 + HEADER_MAX;
        if !whole && (self.scanned || !readable && last == first) {
            return self.wait(bytes);
        }
        // A NAL unit of which too little has arrived does not count yet.
        let upto = if whole || readable { bytes.len() } else { last };
        let known = bytes.get(..upto).unwrap_or_default();
        let unit = match self.codec {
            Codec::H264 => self.h264.first(known, whole),
            Codec::H265 | Codec::Av1 => h265::first_unit(known, whole),
        };
        match unit {
            Ok(Some(unit)) if unit.end < known.len() || whole => {
                Step::Sample(unit.end, bytes.get(unit).unwrap_or_default().to_vec())
            }
            Err(error) if end == End::Ended => Step::Damaged(bytes.len(), error),
            Ok(_) | Err(_) => {
                self.scanned = readable;
                self.wait(bytes)
            }
        }
    }

    /// Searches the new bytes for start codes.
    fn search(&mut self, bytes: &[u8]) {
        let mut from = self.searched.saturating_sub(2);
        while let Some(code) = find_start_code(bytes, from) {
            (self.last, self.scanned) = (Some(code), false);
            self.codes += 1;
            from = code + 3;
        }
        self.searched = bytes.len().max(from);
    }

    /// Waits for more bytes, unless the unit is above a bound.
    fn wait(&self, bytes: &[u8]) -> Step {
        let last = self.last.unwrap_or(0);
        if (bytes.len() <= SAMPLE_MAX && self.codes <= UNIT_NALS_MAX) || last == 0 {
            return if bytes.len() > 2 * SAMPLE_MAX { self.skip(bytes.len()) } else { Step::More };
        }
        self.skip(last)
    }

    fn skip(&self, bytes: usize) -> Step {
        Step::Damaged(bytes, self.no_unit(bytes, 0))
    }

    fn no_unit(&self, bytes: usize, at: usize) -> MediaError {
        let (codec, fix) = match self.codec {
            Codec::H264 => (
                "h264",
                "pass an Annex B byte stream; convert mp4 with ffmpeg: -bsf:v h264_mp4toannexb",
            ),
            Codec::H265 => (
                "h265",
                "pass an Annex B byte stream; convert mp4 with ffmpeg: -bsf:v hevc_mp4toannexb",
            ),
            Codec::Av1 => ("av1", "pass OBUs with sizes, with ffmpeg: -f obu"),
        };
        MediaError::VideoStream { codec, at, reason: format!("{bytes} bytes without a unit"), fix }
    }

    fn obus(&mut self, bytes: &[u8], end: End) -> Step {
        match av1::first_unit(bytes) {
            Ok(Some(at)) if at < bytes.len() || end != End::Open => {
                Step::Sample(at, bytes.get(..at).unwrap_or_default().to_vec())
            }
            Ok(_) if end != End::Ended && bytes.len() <= SAMPLE_MAX => match self.hidden(bytes) {
                Some(at) => Step::Damaged(at, cut_off()),
                None => Step::More,
            },
            found => {
                let next = seek(bytes, 1, AV1_START);
                let known = bytes.get(next..).unwrap_or_default().starts_with(AV1_START);
                let skip = if known || end != End::Ended { next } else { bytes.len() };
                Step::Damaged(skip, found.err().unwrap_or_else(cut_off))
            }
        }
    }

    /// Returns the position of a whole unit within the OBU whose end has not arrived: the length of that OBU is damaged.
    fn hidden(&mut self, bytes: &[u8]) -> Option<usize> {
        loop {
            let at = match self.last {
                Some(at) => at,
                None => {
                    let at = seek(bytes, self.searched.max(1), AV1_START);
                    self.searched = at;
                    bytes.get(at..)?.starts_with(AV1_START).then_some(at)?
                }
            };
            let rest = bytes.get(at..)?;
            match av1::first_unit(rest) {
                Ok(Some(end)) if end < rest.len() => return Some(at),
                // Coded data may contain the same bytes.
                Err(_) => (self.last, self.searched) = (None, at + 1),
                Ok(_) => {
                    self.last = Some(at);
                    return None;
                }
            }
        }
    }
}

fn cut_off() -> MediaError {
    let reason = "the last temporal unit is cut off".to_owned();
    let fix = "pass whole temporal units";
    MediaError::VideoStream { codec: "av1", at: 0, reason, fix }
}
