//! The NAL units of an Annex B byte stream, of H.264 or H.265.

use std::borrow::Cow;
use std::ops::Range;

/// One NAL unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nal<'a> {
    /// The offset of its start code, including one zero byte before it if there is one.
    pub(crate) begin: usize,
    /// The offset of the next NAL unit's `begin`, or the end of the stream.
    pub(crate) end: usize,
    /// The header and the payload, without trailing zeros.
    pub(crate) bytes: &'a [u8],
}

/// The NAL units of a byte stream, starting at its first start code.
#[derive(Debug, Clone)]
pub(crate) struct Nals<'a> {
    bytes: &'a [u8],
    /// The offset at which the search for the next start code begins.
    at: usize,
    /// The end of the preceding NAL unit; zeros before it belong to that unit.
    floor: usize,
}

impl<'a> Nals<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::starting(bytes, 0)
    }

    /// Returns the NAL units from offset `at`, where a start code is.
    pub(crate) fn starting(bytes: &'a [u8], at: usize) -> Self {
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

/// Returns a unit with a length of four bytes in place of each start code.
pub(crate) fn lengths(unit: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(unit.len() + 16);
    for nal in Nals::new(unit).filter(|nal| !nal.bytes.is_empty()) {
        out.extend_from_slice(&u32::try_from(nal.bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(nal.bytes);
    }
    out
}

/// Returns `unit` without these ranges, which are in order.
pub(crate) fn without(
    unit: Cow<'_, [u8]>,
    ranges: impl Iterator<Item = Range<usize>>,
) -> Cow<'_, [u8]> {
    let (mut kept, mut from) = (Vec::new(), 0);
    for range in ranges {
        kept.extend_from_slice(unit.get(from..range.start).unwrap_or_default());
        from = range.end;
    }
    match unit.get(from..) {
        Some(rest) if from > 0 => {
            kept.extend_from_slice(rest);
            Cow::Owned(kept)
        }
        _ => unit,
    }
}

/// Returns the offset of the first 00 00 01 at or behind `from`.
pub(crate) fn find_start_code(bytes: &[u8], from: usize) -> Option<usize> {
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
