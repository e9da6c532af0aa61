//! The NAL units of an Annex B byte stream.

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

/// One NAL unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nal<'a> {
    /// The offset of its start code, including one zero byte before it if there is one.
    pub(super) begin: usize,
    /// The offset of the next NAL unit's `begin`, or the end of the stream.
    pub(super) end: usize,
    /// The header and the payload, without trailing zeros.
    pub(super) bytes: &'a [u8],
}

impl<'a> Nal<'a> {
    fn header(&self) -> u8 {
        self.bytes.first().copied().unwrap_or_default()
    }

    pub(super) fn kind(&self) -> Kind {
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
    pub(super) fn reference(&self) -> bool {
        self.header() & 0x60 != 0
    }

    /// Returns the bytes after the one-byte header.
    pub(super) fn payload(&self) -> &'a [u8] {
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

/// The NAL units of a byte stream, starting at its first start code.
#[derive(Debug, Clone)]
pub(super) struct Nals<'a> {
    bytes: &'a [u8],
    /// The offset at which the search for the next start code begins.
    at: usize,
    /// The end of the preceding NAL unit; zeros before it belong to that unit.
    floor: usize,
}

impl<'a> Nals<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self::starting(bytes, 0)
    }

    /// Returns the NAL units from offset `at`, where a start code is.
    pub(super) fn starting(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, floor: at }
    }

    /// Returns the offsets of the zero byte before the next start code, if there is one, and of the
    /// start code.
    fn start_code(&self, from: usize, floor: usize) -> Option<(usize, usize)> {
        let code = find_start_code(self.bytes, from)?;
        let zero = code.checked_sub(1).filter(|&at| at >= floor);
        let begin = zero.filter(|&at| self.bytes.get(at) == Some(&0)).unwrap_or(code);
        Some((begin, code))
    }
}

impl<'a> Iterator for Nals<'a> {
    type Item = Nal<'a>;

    fn next(&mut self) -> Option<Nal<'a>> {
        let (begin, code) = self.start_code(self.at, self.floor)?;
        let header = code + 3;
        let next = self.start_code(header, header);
        let end = next.map_or(self.bytes.len(), |(begin, _)| begin);
        (self.at, self.floor) = (end, end);
        let bytes = self.bytes.get(header..end).unwrap_or_default();
        let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        Some(Nal { begin, end, bytes: bytes.get(..len).unwrap_or_default() })
    }
}

/// Returns the offset of the first 00 00 01 at or behind `from`.
fn find_start_code(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        // The last of three bytes gives a lower bound for the distance to the next start code.
        match *bytes.get(at..at.checked_add(3)?)? {
            [0, 0, 1] => return Some(at),
            [_, 0, 0] => at += 1,
            [_, _, 0] => at += 2,
            _ => at += 3,
        }
    }
}
