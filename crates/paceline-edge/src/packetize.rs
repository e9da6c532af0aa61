//! Pictures and blocks of sound to RTP packets.

mod aac;
mod h26x;
mod jpeg;

#[cfg(test)]
mod tests;

pub(crate) use aac::{AdtsBlock, samples as aac_samples};

use crate::depacketize::NalCodec;
use crate::track::TrackFormat;
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use thiserror::Error;

/// The largest payload of a packet in bytes: with all headers, it fits the packets of Ethernet, of tunnels and of IPv6.
pub const PAYLOAD_MAX: usize = 1_380;
/// Most packets of a unit.
const PACKETS_MAX: usize = 65_000;

/// A packet of a unit, without its RTP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadPart {
    /// The payload, a part of memory that all packets of the unit share.
    pub payload: Bytes,
    /// The marker bit.
    pub marker: bool,
    /// The RTP time after the one of the unit, in units of the clock rate.
    pub after: u32,
}

/// The reason why a unit cannot be carried in RTP.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PacketizeError {
    /// It has no picture or sound.
    #[error("it is empty")]
    Empty,
    /// It needs too many packets.
    #[error("it needs more than {PACKETS_MAX} packets")]
    Long,
    /// A NAL unit has a type that RTP uses itself.
    #[error("a NAL unit has the type {0}, which RTP does not carry")]
    Nal(u8),
    /// It is no block of AAC in ADTS.
    #[error("it is no AAC in ADTS: {0}")]
    Adts(&'static str),
    /// It is no JPEG picture.
    #[error("it is no JPEG picture: {0}")]
    NotJpeg(&'static str),
    /// RTP does not carry this kind of JPEG picture.
    #[error("RTP does not carry this JPEG picture: {what}; {fix}")]
    Jpeg {
        /// The property of the picture.
        what: &'static str,
        /// The remedy.
        fix: &'static str,
    },
}

/// Cuts the units of one track into packets; the reverse of [`crate::Depacketizer`].
///
/// ```
/// use paceline_edge::{Packetizer, TrackFormat};
///
/// let packetizer = Packetizer::new(TrackFormat::L16 { rate: 8_000, channels: 1 });
/// let parts = packetizer.cut(&[1, 0, 2, 0])?;
/// assert_eq!((parts.len(), &parts[0].payload[..]), (1, &[0, 1, 0, 2][..]));
/// # Ok::<(), paceline_edge::PacketizeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Packetizer {
    format: TrackFormat,
    most: usize,
}

impl Packetizer {
    /// Returns the packetizer of a track, whose payloads have at most [`PAYLOAD_MAX`] bytes.
    #[must_use]
    pub const fn new(format: TrackFormat) -> Self {
        Self { format, most: PAYLOAD_MAX }
    }

    /// Returns a packetizer whose payloads have at most `bytes` bytes, 64 at least.
    #[must_use]
    pub const fn with_payload_max(format: TrackFormat, bytes: usize) -> Self {
        Self { format, most: if bytes < 64 { 64 } else { bytes } }
    }

    /// Returns the packets of a unit. The last one of a picture has the marker bit.
    ///
    /// # Errors
    /// [`PacketizeError`] for a unit that is not of the track's format, or that RTP cannot carry.
    pub fn cut(&self, unit: &[u8]) -> Result<Vec<PayloadPart>, PacketizeError> {
        if unit.is_empty() {
            return Err(PacketizeError::Empty);
        }
        let mut parts = Parts::new(unit.len());
        match self.format {
            TrackFormat::H264 => h26x::cut(NalCodec::H264, unit, self.most, &mut parts)?,
            TrackFormat::H265 => h26x::cut(NalCodec::H265, unit, self.most, &mut parts)?,
            TrackFormat::Jpeg => jpeg::cut(unit, self.most, &mut parts)?,
            TrackFormat::Aac { .. } => aac::cut(unit, self.most, &mut parts)?,
            // A packet of Opus cannot be divided (RFC 7587, 4.2).
            TrackFormat::Opus { .. } => parts.add(&[unit], false, 0),
            TrackFormat::Pcmu { channels, .. } | TrackFormat::Pcma { channels, .. } => {
                self.cut_samples(unit, usize::from(channels.max(1)), &mut parts, |bytes| {
                    bytes.to_vec()
                });
            }
            TrackFormat::L16 { channels, .. } => {
                let frame = usize::from(channels.max(1)) * 2;
                self.cut_samples(unit, frame, &mut parts, crate::depacketize::swapped);
            }
        }
        parts.finish()
    }

    /// Cuts sound between frames of `frame` bytes. Bytes behind the last frame are left out.
    fn cut_samples(
        &self,
        unit: &[u8],
        frame: usize,
        parts: &mut Parts,
        write: impl Fn(&[u8]) -> Vec<u8>,
    ) {
        let frames = (self.most / frame).max(1);
        for (number, bytes) in unit.chunks(frames * frame).enumerate() {
            let whole = bytes.len() / frame * frame;
            let Some(bytes) = bytes.get(..whole).filter(|bytes| !bytes.is_empty()) else { return };
            let after = u32::try_from(number * frames).unwrap_or(u32::MAX);
            parts.add(&[&write(bytes)], false, after);
        }
    }
}

/// The packets of a unit while they are cut.
struct Parts {
    bytes: BytesMut,
    /// The bytes, the marker and the time of each packet.
    ranges: Vec<(Range<usize>, bool, u32)>,
}

impl Parts {
    fn new(bytes: usize) -> Self {
        // The headers of the packets take less than a sixteenth.
        Self { bytes: BytesMut::with_capacity(bytes + bytes / 16 + 64), ranges: Vec::new() }
    }

    /// Adds a packet whose payload is the concatenation of `pieces`.
    fn add(&mut self, pieces: &[&[u8]], marker: bool, after: u32) {
        let begin = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.ranges.push((begin..self.bytes.len(), marker, after));
    }

    /// Sets the marker of the last packet.
    fn mark(&mut self) {
        if let Some((_, marker, _)) = self.ranges.last_mut() {
            *marker = true;
        }
    }

    fn finish(self) -> Result<Vec<PayloadPart>, PacketizeError> {
        if self.ranges.is_empty() {
            return Err(PacketizeError::Empty);
        }
        if self.ranges.len() > PACKETS_MAX {
            return Err(PacketizeError::Long);
        }
        let bytes = self.bytes.freeze();
        let part =
            |(range, marker, after)| PayloadPart { payload: bytes.slice(range), marker, after };
        Ok(self.ranges.into_iter().map(part).collect())
    }
}
