//! Elements of EBML (RFC 8794).

/// The most bytes of an element's header: its id and its size.
pub(super) const HEADER_MAX: usize = 12;

/// The ids of elements.
pub(super) mod id {
    pub(in crate::film::matroska) const EBML: u32 = 0x1a45_dfa3;
    pub(in crate::film::matroska) const SEGMENT: u32 = 0x1853_8067;
    pub(in crate::film::matroska) const SEEK_HEAD: u32 = 0x114d_9b74;
    pub(in crate::film::matroska) const INFO: u32 = 0x1549_a966;
    pub(in crate::film::matroska) const TIMESTAMP_SCALE: u32 = 0x2a_d7b1;
    pub(in crate::film::matroska) const TRACKS: u32 = 0x1654_ae6b;
    pub(in crate::film::matroska) const TRACK_ENTRY: u32 = 0xae;
    pub(in crate::film::matroska) const NUMBER: u32 = 0xd7;
    pub(in crate::film::matroska) const TYPE: u32 = 0x83;
    pub(in crate::film::matroska) const CODEC: u32 = 0x86;
    pub(in crate::film::matroska) const PRIVATE: u32 = 0x63a2;
    pub(in crate::film::matroska) const DEFAULT_DURATION: u32 = 0x23_e383;
    pub(in crate::film::matroska) const CODEC_DELAY: u32 = 0x56aa;
    pub(in crate::film::matroska) const VIDEO: u32 = 0xe0;
    pub(in crate::film::matroska) const WIDTH: u32 = 0xb0;
    pub(in crate::film::matroska) const HEIGHT: u32 = 0xba;
    pub(in crate::film::matroska) const PROJECTION: u32 = 0x7670;
    pub(in crate::film::matroska) const ROLL: u32 = 0x7675;
    pub(in crate::film::matroska) const AUDIO: u32 = 0xe1;
    pub(in crate::film::matroska) const RATE: u32 = 0xb5;
    pub(in crate::film::matroska) const CHANNELS: u32 = 0x9f;
    pub(in crate::film::matroska) const BITS: u32 = 0x6264;
    pub(in crate::film::matroska) const ENCODINGS: u32 = 0x6d80;
    pub(in crate::film::matroska) const ENCODING: u32 = 0x6240;
    pub(in crate::film::matroska) const COMPRESSION: u32 = 0x5034;
    pub(in crate::film::matroska) const ENCRYPTION: u32 = 0x5035;
    pub(in crate::film::matroska) const ALGORITHM: u32 = 0x4254;
    pub(in crate::film::matroska) const SETTINGS: u32 = 0x4255;
    pub(in crate::film::matroska) const CLUSTER: u32 = 0x1f43_b675;
    pub(in crate::film::matroska) const TIMESTAMP: u32 = 0xe7;
    pub(in crate::film::matroska) const SIMPLE_BLOCK: u32 = 0xa3;
    pub(in crate::film::matroska) const BLOCK_GROUP: u32 = 0xa0;
    pub(in crate::film::matroska) const BLOCK: u32 = 0xa1;
    pub(in crate::film::matroska) const BLOCK_DURATION: u32 = 0x9b;
    pub(in crate::film::matroska) const REFERENCE: u32 = 0xfb;
    pub(in crate::film::matroska) const CUES: u32 = 0x1c53_bb6b;
    pub(in crate::film::matroska) const TAGS: u32 = 0x1254_c367;
    pub(in crate::film::matroska) const ATTACHMENTS: u32 = 0x1941_a469;
    pub(in crate::film::matroska) const CHAPTERS: u32 = 0x1043_a770;
    pub(in crate::film::matroska) const VOID: u32 = 0xec;
}

/// The header of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) id: u32,
    /// The bytes of the header.
    pub(super) header: usize,
    /// The bytes of the content; `None` if they are not known.
    pub(super) size: Option<u64>,
}

impl Element {
    /// Reads a header; `None` if it is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let length = usize::try_from(bytes.first()?.leading_zeros()).ok()? + 1;
        let id = bytes.get(..length).filter(|_| length <= 4)?;
        let id = id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let (size, bytes) = number(bytes.get(length..)?)?;
        Some(Self { id, header: length + bytes, size })
    }

    /// Returns true if its id has four bytes, as the parts of a segment have. Damaged bytes rarely look like others.
    pub(super) const fn is_long(self) -> bool {
        self.id > 0xff_ffff
    }
}

/// Reads a number of variable length, and returns the bytes that it takes. `Some(None)` stands for an unknown size.
pub(super) fn number(bytes: &[u8]) -> Option<(Option<u64>, usize)> {
    let first = *bytes.first()?;
    let length = usize::try_from(first.leading_zeros()).ok()? + 1;
    let all = bytes.get(..length).filter(|_| length <= 8)?;
    let value = all.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let mask = (1_u64 << (7 * length)) - 1;
    let value = value & mask;
    Some(((value != mask).then_some(value), length))
}

/// The elements in an element, as their ids and contents.
pub(super) struct Children<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Children<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let element = Element::read(self.0)?;
        let rest = self.0.get(element.header..)?;
        let size = usize::try_from(element.size?).ok()?;
        let (content, behind) = rest.split_at_checked(size)?;
        self.0 = behind;
        Some((element.id, content))
    }
}

/// Reads an unsigned integer.
pub(super) fn unsigned(content: &[u8]) -> u64 {
    content.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Reads a floating-point number.
pub(super) fn float(content: &[u8]) -> f64 {
    if let Ok(bytes) = content.try_into() {
        return f32::from_be_bytes(bytes).into();
    }
    content.try_into().map_or(0.0, f64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_an_id_and_a_size_that_may_be_unknown() {
        let read = |bytes| Element::read(bytes).map(|it| (it.id, it.header, it.size));
        assert_eq!(read(b"\xa3\x85"), Some((id::SIMPLE_BLOCK, 2, Some(5))));
        assert_eq!(
            read(b"\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff"),
            Some((id::CLUSTER, 12, None))
        );
        assert_eq!(read(b"\xa3\x40\x02"), Some((id::SIMPLE_BLOCK, 3, Some(2))));
        for bad in
            [&b""[..], b"\xa3", b"\x00\x81", b"\x08\0\0\0\0\x81", b"\xa3\x01\x00", b"\xa3\x00"]
        {
            assert_eq!(Element::read(bad), None, "{bad:?}");
        }
    }
}
