//! RTP packets to pictures and blocks of sound.

mod aac;
mod h26x;
mod jpeg;
mod tables;

#[cfg(test)]
mod tests;

use crate::fault::UnitFault;
use crate::track::TrackFormat;
use aac::Aac;
pub(crate) use h26x::NalCodec;
use h26x::NalUnits;
use jpeg::Jpeg;
use paceline_media::video::UNIT_BYTES_MAX;
pub(crate) use tables::HUFFMAN;

/// An RTP packet of one track, in the order of sequence numbers.
#[derive(Clone, Copy, Debug)]
pub struct RtpPacket<'a> {
    /// The RTP time, without wrapping, in units of the track's clock rate.
    pub time: i64,
    /// The marker bit: for pictures, the last packet of one.
    pub marker: bool,
    /// The number of packets that are missing before this one.
    pub lost: u32,
    /// The payload.
    pub payload: &'a [u8],
}

/// The result of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RtpEvent {
    /// A whole picture, as an access unit in Annex B or a JPEG file, or a block of sound.
    Unit {
        /// Its RTP time.
        time: i64,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A picture or block that is left out, or several of them for which no packet arrived.
    Fault(UnitFault),
}

/// Cuts the packets of one track into units; see [the crate](crate) for an example.
///
/// Pictures end at the marker bit and where the RTP time changes, never at parameter sets. If a camera sets the marker within
/// pictures, they end where the time changes from then on.
#[derive(Clone, Debug)]
pub struct Depacketizer(State);

#[derive(Clone, Debug)]
enum State {
    Nals(NalUnits),
    Jpeg(Box<Jpeg>),
    Aac(Aac),
    /// Each packet is a block.
    Block,
    /// As `Block`, with samples of 16 bits in the other byte order.
    Swapped,
}

impl Depacketizer {
    /// Returns the depacketizer of a track.
    #[must_use]
    pub fn new(format: TrackFormat) -> Self {
        Self(match format {
            TrackFormat::H264 => State::Nals(NalUnits::new(NalCodec::H264)),
            TrackFormat::H265 => State::Nals(NalUnits::new(NalCodec::H265)),
            TrackFormat::Jpeg => State::Jpeg(Box::default()),
            TrackFormat::Aac { rate, channels } => State::Aac(Aac::new(rate, channels)),
            TrackFormat::L16 { .. } => State::Swapped,
            TrackFormat::Pcmu { .. } | TrackFormat::Pcma { .. } | TrackFormat::Opus { .. } => {
                State::Block
            }
        })
    }

    /// Takes the next packet, and appends its results to `events`.
    pub fn push(&mut self, packet: &RtpPacket<'_>, events: &mut Vec<RtpEvent>) {
        match &mut self.0 {
            State::Nals(nals) => nals.push(packet, events),
            State::Jpeg(jpeg) => jpeg.push(packet, events),
            State::Aac(aac) => aac.push(packet, events),
            State::Block => block(packet, events, <[u8]>::to_vec),
            State::Swapped => block(packet, events, swapped),
        }
    }
}

fn block(packet: &RtpPacket<'_>, events: &mut Vec<RtpEvent>, bytes: impl FnOnce(&[u8]) -> Vec<u8>) {
    if packet.lost > 0 {
        events.push(RtpEvent::Fault(UnitFault::Lost));
    }
    if packet.payload.is_empty() {
        events.push(RtpEvent::Fault(UnitFault::Malformed("a packet of sound without payload")));
        return;
    }
    events.push(RtpEvent::Unit { time: packet.time, bytes: bytes(packet.payload) });
}

/// Returns samples of 16 bits in the other byte order (RFC 3551, 4.5.11: RTP has big-endian ones). An odd last byte is left out.
pub(crate) fn swapped(payload: &[u8]) -> Vec<u8> {
    payload.chunks_exact(2).flat_map(|pair| pair.iter().rev().copied()).collect()
}

/// Returns true if a unit of `have` bytes may have `more`.
fn fits(have: usize, more: usize) -> bool {
    have.saturating_add(more) <= UNIT_BYTES_MAX
}
