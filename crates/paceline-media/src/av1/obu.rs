//! The open bitstream units (OBUs) of a stream (5.3).

use super::CODEC;
use crate::error::MediaError;
use crate::video::UNIT_BYTES_MAX;

/// The remedy for bytes that are no OBUs with sizes.
const FIX: &str =
    "pass whole temporal units of OBUs with sizes; convert a file with ffmpeg: -c copy -f obu";

/// The kind of an OBU, as far as this module distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A sequence header, type 1.
    Sequence,
    /// A temporal delimiter, type 2.
    Delimiter,
    /// A frame header, alone or with its tiles: types 3 and 6.
    Frame,
    /// All others: tiles, metadata, padding, and repeated frame headers.
    Other,
}

/// One OBU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Obu<'a> {
    /// The offset of its header.
    pub(super) begin: usize,
    /// The offset behind its last byte.
    pub(super) end: usize,
    pub(super) kind: Kind,
    /// `temporal_id` and `spatial_id`.
    pub(super) layer: (u8, u8),
    /// The bytes after header and size.
    pub(super) payload: &'a [u8],
}

/// The OBUs of a byte stream. The iterator ends after the first error.
#[derive(Debug, Clone)]
pub(super) struct Obus<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Obus<'a> {
    /// Returns the OBUs from offset `at`, where an OBU begins.
    pub(super) fn starting(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Returns true if no bytes are left.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Moves behind an OBU that was read.
    pub(super) fn pass(&mut self, obu: &Obu<'_>) {
        self.at = obu.end;
    }

    /// Reads the next OBU. The error states whether the OBU is only cut off.
    pub(super) fn read(&self) -> Result<Obu<'a>, (MediaError, bool)> {
        let begin = self.at;
        let error =
            |reason: String| MediaError::VideoStream { codec: CODEC, at: begin, reason, fix: FIX };
        let refuse = |reason: String| (error(reason), false);
        let byte = |at: usize| {
            let cut = || (error("the header of an OBU is cut off".to_owned()), true);
            self.bytes.get(at).copied().ok_or_else(cut)
        };
        let header = byte(begin)?;
        if header & 0x80 != 0 {
            return Err(refuse(format!(
                "obu_forbidden_bit of header {header:#04x} is 1, must be 0"
            )));
        }
        if header & 2 == 0 {
            return Err(refuse(format!(
                "obu_has_size_field of header {header:#04x} is 0, must be 1"
            )));
        }
        let mut at = begin + 1;
        let mut layer = (0, 0);
        if header & 4 != 0 {
            let extension = byte(at)?;
            layer = (extension >> 5, extension >> 3 & 3);
            at += 1;
        }
        let mut size = 0_u64;
        for place in 0..8 {
            let part = byte(at)?;
            at += 1;
            size |= u64::from(part & 0x7f) << (place * 7);
            if part & 0x80 == 0 {
                break;
            }
            if place == 7 {
                return Err(refuse("obu_size has more than 8 bytes".to_owned()));
            }
        }
        let left = self.bytes.len().saturating_sub(at);
        let size = usize::try_from(size).ok().filter(|&size| size <= left).ok_or_else(|| {
            let (error, _) = refuse(format!(
                "obu_size is {size}, must be at most {left}, the number of bytes left"
            ));
            (error, size <= UNIT_BYTES_MAX as u64)
        })?;
        let end = at + size;
        let kind = match header >> 3 & 0xf {
            1 => Kind::Sequence,
            2 => Kind::Delimiter,
            3 | 6 => Kind::Frame,
            _ => Kind::Other,
        };
        let payload = self.bytes.get(at..end).unwrap_or_default();
        Ok(Obu { begin, end, kind, layer, payload })
    }
}

impl<'a> Iterator for Obus<'a> {
    type Item = Result<Obu<'a>, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end() {
            return None;
        }
        let obu = self.read().map_err(|(error, _)| error);
        self.at = obu.as_ref().map_or(self.bytes.len(), |obu| obu.end);
        Some(obu)
    }
}
