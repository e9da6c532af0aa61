//! The headers of NAL units (7.3.1).

use crate::annexb::find_start_code;
pub(super) use crate::annexb::{Nal, Nals};

/// The kind of a NAL unit, as far as this module distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A slice, or partition A of one: types 1, 2 and 5.
    Slice { idr: bool },
    /// SPS, type 7.
    Sps,
    /// PPS, type 8.
    Pps,
    /// Access unit delimiter, type 9.
    Delimiter,
    /// Supplemental enhancement information (SEI), type 6.
    Sei,
    /// Other types that begin a unit when they follow a picture: 15 to 18.
    Leading,
    /// A prefix (14), which precedes each slice of a unit.
    Prefix,
    /// All others, and damaged ones: they belong to the current unit.
    Other,
}

impl<'a> Nal<'a> {
    fn header(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    pub(in crate::h264) fn kind(&self) -> Kind {
        let header = self.header();
        if header & 0x80 != 0 {
            return Kind::Other;
        }
        match header & 0x1f {
            1 | 2 => Kind::Slice { idr: false },
            5 => Kind::Slice { idr: true },
            7 => Kind::Sps,
            8 => Kind::Pps,
            9 => Kind::Delimiter,
            6 => Kind::Sei,
            15..=18 => Kind::Leading,
            14 => Kind::Prefix,
            _ => Kind::Other,
        }
    }

    /// Returns true if `nal_ref_idc` is not 0.
    pub(in crate::h264) fn reference(&self) -> bool {
        self.header() & 0x60 != 0
    }

    /// Returns the bytes after the one-byte header.
    pub(in crate::h264) fn payload(&self) -> &'a [u8] {
        self.bytes.get(1..).unwrap_or_default()
    }
}

/// Returns the header of the first slice in `bytes`, without reading further than that.
pub(super) fn first_slice(bytes: &[u8]) -> Option<Kind> {
    let mut at = 0;
    loop {
        let header = find_start_code(bytes, at)? + 3;
        let nal = Nal { begin: 0, end: 0, bytes: bytes.get(header..=header)? };
        if matches!(nal.kind(), Kind::Slice { .. }) {
            return Some(nal.kind());
        }
        at = header;
    }
}
