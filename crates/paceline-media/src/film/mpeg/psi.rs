//! Program tables: which packets carry which streams.

use super::kind::StreamKind;

/// The longest section in bytes.
const SECTION_MAX: usize = 1_024 + 3;

/// A section that arrives in packets.
#[derive(Debug, Default)]
pub(super) struct Section {
    bytes: Vec<u8>,
}

impl Section {
    /// Takes the payload of a packet, and returns a section that it completes.
    pub(super) fn push(&mut self, payload: &[u8], begins: bool) -> Option<Vec<u8>> {
        let mut rest = payload;
        if begins {
            let (pointer, behind) = payload.split_first()?;
            self.bytes.clear();
            rest = behind.get(usize::from(*pointer)..)?;
        } else if self.bytes.is_empty() {
            return None;
        }
        let room = SECTION_MAX - self.bytes.len().min(SECTION_MAX);
        self.bytes.extend_from_slice(rest.get(..room.min(rest.len()))?);
        let [_, high, low] = *self.bytes.first_chunk::<3>()?;
        let length = 3 + (usize::from(high & 0xf) << 8 | usize::from(low));
        let section = self.bytes.get(..length)?.to_vec();
        self.bytes.clear();
        (crc(&section) == 0).then_some(section)
    }
}

/// Returns the checksum of a section, 0 for a whole one (ISO/IEC 13818-1, annex A).
pub(in crate::film) fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            if crc & 0x8000_0000 == 0 { crc << 1 } else { crc << 1 ^ 0x04c1_1db7 }
        })
    })
}

fn pid(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high & 0x1f, low])
}

/// Returns the PIDs of the tables of all programs.
pub(super) fn programs(section: &[u8]) -> Vec<u16> {
    if section.first() != Some(&0) {
        return Vec::new();
    }
    let entries = section.get(8..section.len().saturating_sub(4)).unwrap_or_default();
    let entries = entries.chunks_exact(4).filter_map(|entry| entry.first_chunk::<4>());
    // Program 0 names the network's table.
    entries
        .filter(|[n0, n1, ..]| (*n0, *n1) != (0, 0))
        .map(|[_, _, p0, p1]| pid(*p0, *p1))
        .collect()
}

/// Returns the streams of a program: their PIDs and contents.
pub(super) fn streams(section: &[u8]) -> Vec<(u16, StreamKind)> {
    let mut streams = Vec::new();
    if section.first() != Some(&2) {
        return streams;
    }
    let Some(&[high, low]) = section.get(10..).and_then(<[u8]>::first_chunk::<2>) else {
        return streams;
    };
    let skip = 12 + (usize::from(high & 0xf) << 8 | usize::from(low));
    let mut rest = section.get(skip..section.len().saturating_sub(4)).unwrap_or_default();
    while let [kind, p0, p1, l0, l1, behind @ ..] = rest {
        let length = usize::from(l0 & 0xf) << 8 | usize::from(*l1);
        let Some((descriptors, behind)) = behind.split_at_checked(length) else { break };
        streams.push((pid(*p0, *p1), StreamKind::of(*kind, descriptors)));
        rest = behind;
    }
    streams
}
