//! H.264 (RFC 6184, mode 1) and H.265 (RFC 7798): single NAL units, aggregates of those before a slice, and fragments.

use super::{PacketizeError, Parts};
use crate::depacketize::NalCodec;
use paceline_media::video::nal_units;

/// The bytes of the length before a NAL unit in an aggregate.
const LENGTH_BYTES: usize = 2;

/// Cuts an access unit in Annex B.
pub(super) fn cut(
    codec: NalCodec,
    unit: &[u8],
    most: usize,
    parts: &mut Parts,
) -> Result<(), PacketizeError> {
    // Parameter sets, SEI and delimiters that wait for each other.
    let mut small: Vec<&[u8]> = Vec::new();
    let mut bytes = 0;
    for nal in nal_units(unit).filter(|nal| !nal.is_empty()) {
        check(codec, nal)?;
        let fits = codec.header_bytes() + bytes + LENGTH_BYTES + nal.len() <= most;
        if !small.is_empty() && (codec.is_slice(nal) || !fits) {
            aggregate(codec, &mut small, parts);
            bytes = 0;
        }
        if codec.is_slice(nal) || nal.len() + LENGTH_BYTES + codec.header_bytes() > most {
            single(codec, nal, most, parts);
        } else {
            small.push(nal);
            bytes += LENGTH_BYTES + nal.len();
        }
    }
    aggregate(codec, &mut small, parts);
    parts.mark();
    Ok(())
}

/// Checks that the type of a NAL unit is none that RTP uses for packets.
fn check(codec: NalCodec, nal: &[u8]) -> Result<(), PacketizeError> {
    let first = nal.first().copied().unwrap_or_default();
    let kind = codec.kind(first);
    let known = match codec {
        NalCodec::H264 => (1..=23).contains(&kind),
        NalCodec::H265 => kind <= 47 && nal.len() >= codec.header_bytes(),
    };
    if known && first & 0x80 == 0 { Ok(()) } else { Err(PacketizeError::Nal(kind)) }
}

/// Adds the NAL units that wait, as one packet.
fn aggregate(codec: NalCodec, small: &mut Vec<&[u8]>, parts: &mut Parts) {
    match small.as_slice() {
        [] => return,
        [nal] => parts.add(&[nal], false, 0),
        nals => {
            let header = codec.aggregate_header(nals);
            let mut bytes = header.get(..codec.header_bytes()).unwrap_or_default().to_vec();
            for nal in nals {
                let length = u16::try_from(nal.len()).unwrap_or(u16::MAX);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(nal);
            }
            parts.add(&[&bytes], false, 0);
        }
    }
    small.clear();
}

/// Adds a NAL unit, in fragments if it is larger than a packet.
fn single(codec: NalCodec, nal: &[u8], most: usize, parts: &mut Parts) {
    if nal.len() <= most {
        return parts.add(&[nal], false, 0);
    }
    let (header, body) = nal.split_at_checked(codec.header_bytes()).unwrap_or_default();
    let first = header.first().copied().unwrap_or_default();
    let kind = codec.kind(first);
    let room = most.saturating_sub(codec.header_bytes() + 1).max(1);
    let last = body.len().div_ceil(room).saturating_sub(1);
    for (number, piece) in body.chunks(room).enumerate() {
        let starts = if number == 0 { 0x80 } else { 0 };
        let ends = if number == last { 0x40 } else { 0 };
        let fragment = [starts | ends | kind];
        match codec {
            NalCodec::H264 => parts.add(&[&[first & 0xe0 | 28], &fragment, piece], false, 0),
            NalCodec::H265 => {
                let second = header.get(1).copied().unwrap_or_default();
                let header = [first & 0x81 | 49 << 1, second];
                parts.add(&[&header, &fragment, piece], false, 0);
            }
        }
    }
}

impl NalCodec {
    /// Returns true for the slices of pictures.
    fn is_slice(self, nal: &[u8]) -> bool {
        let kind = self.kind(nal.first().copied().unwrap_or_default());
        match self {
            Self::H264 => (1..=5).contains(&kind),
            Self::H265 => kind < 32,
        }
    }

    /// Returns the header of an aggregate: with the highest importance of H.264, the lowest layer and sub-layer of H.265.
    fn aggregate_header(self, nals: &[&[u8]]) -> [u8; 2] {
        match self {
            Self::H264 => {
                let importance = nals.iter().filter_map(|nal| nal.first()).map(|byte| byte & 0x60);
                [importance.max().unwrap_or_default() | 24, 0]
            }
            Self::H265 => {
                let layers = nals.iter().filter_map(|nal| match nal {
                    [first, second, ..] => Some(u16::from_be_bytes([first & 1, *second])),
                    _ => None,
                });
                let [layer, rest] = layers.min().unwrap_or(1).to_be_bytes();
                [layer | 48 << 1, rest]
            }
        }
    }
}
