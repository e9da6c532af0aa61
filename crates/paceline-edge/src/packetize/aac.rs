//! AAC in ADTS as RTP (RFC 3640, mode AAC-hbr).

use super::{PacketizeError, Parts};
use crate::track::TrackFormat;
use paceline_media::audio::AacFormat;

/// The bytes of an ADTS header without a checksum.
const ADTS_BYTES: usize = 7;
/// The samples of a block.
const BLOCK: u32 = 1_024;
/// The size of the headers of one block in bits, in front of it.
const HEADER_BITS: [u8; 2] = 16_u16.to_be_bytes();
/// Most blocks of a sample.
const BLOCKS_MAX: u32 = 1_024;

/// A block of AAC, and the fields of its header.
pub(crate) struct AdtsBlock<'a> {
    /// The format of the block.
    pub(crate) format: TrackFormat,
    /// The block without its header.
    body: &'a [u8],
    rest: &'a [u8],
}

impl<'a> AdtsBlock<'a> {
    /// Reads the first block of `bytes`.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, PacketizeError> {
        let cut = PacketizeError::Adts("it is cut off");
        let &[a, b, c, d, e, f, g] = bytes.first_chunk::<ADTS_BYTES>().ok_or(cut)?;
        if a != 0xff || b & 0xf6 != 0xf0 {
            return Err(PacketizeError::Adts("it does not begin with ff f1"));
        }
        if c >> 6 != 1 {
            return Err(PacketizeError::Adts("its profile is not AAC-LC"));
        }
        if g & 3 != 0 {
            return Err(PacketizeError::Adts("it has several blocks behind one header"));
        }
        let rate = AacFormat::rate_of(c >> 2 & 15)
            .ok_or(PacketizeError::Adts("its sample rate is unknown"))?;
        let channels = match (c & 1) << 2 | d >> 6 {
            0 => return Err(PacketizeError::Adts("its header does not state the channels")),
            7 => 8,
            count => count,
        };
        let length = usize::from(d & 3) << 11 | usize::from(e) << 3 | usize::from(f >> 5);
        let header = ADTS_BYTES + if b & 1 == 0 { 2 } else { 0 };
        let (block, rest) = bytes.split_at_checked(length).ok_or(cut)?;
        let body = block.get(header..).filter(|body| !body.is_empty()).ok_or(cut)?;
        Ok(Self { format: TrackFormat::Aac { rate, channels }, body, rest })
    }
}

/// Returns the samples per channel of a unit.
pub(crate) fn samples(unit: &[u8]) -> u32 {
    let (mut rest, mut count) = (unit, 0);
    while let Ok(block) = AdtsBlock::read(rest) {
        (rest, count) = (block.rest, count + BLOCK);
        if count >= BLOCKS_MAX * BLOCK {
            break;
        }
    }
    count
}

/// Cuts a unit of one or more blocks: each is one packet, or several if it is larger than a packet.
pub(super) fn cut(unit: &[u8], most: usize, parts: &mut Parts) -> Result<(), PacketizeError> {
    let (mut rest, mut after) = (unit, 0);
    let room = most.saturating_sub(4).max(1);
    while !rest.is_empty() {
        let block = AdtsBlock::read(rest)?;
        let size = u16::try_from(block.body.len()).unwrap_or(u16::MAX);
        let header = (size << 3).to_be_bytes();
        for piece in block.body.chunks(room) {
            parts.add(&[&HEADER_BITS, &header, piece], false, after);
        }
        parts.mark();
        (rest, after) = (block.rest, after + BLOCK);
        if after > BLOCKS_MAX * BLOCK {
            return Err(PacketizeError::Long);
        }
    }
    Ok(())
}
