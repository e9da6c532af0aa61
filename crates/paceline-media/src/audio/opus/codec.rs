//! libopus.

use opus::{Application, Bitrate, Channels};

use super::format::OpusFormat;
use super::packet::opus_micros;
use crate::error::MediaError;

fn failed(error: opus::Error) -> MediaError {
    MediaError::OpusCodec { reason: error.to_string() }
}

fn channels(format: OpusFormat) -> Channels {
    if format.channels == 1 { Channels::Mono } else { Channels::Stereo }
}

/// An encoder with a constant bit rate.
pub(super) struct Coder(opus::Encoder);

impl Coder {
    /// Returns an encoder for a checked format and bit rate.
    pub(super) fn new(format: OpusFormat, bits_per_s: u32) -> Result<Self, MediaError> {
        let made = opus::Encoder::new(format.rate, channels(format), Application::Audio);
        let mut made = made.map_err(failed)?;
        made.set_vbr(false).map_err(failed)?;
        let bits = i32::try_from(bits_per_s).unwrap_or(i32::MAX);
        made.set_bitrate(Bitrate::Bits(bits)).map_err(failed)?;
        Ok(Self(made))
    }

    /// Codes interleaved samples, of one of the permitted durations, as a packet of at most `bytes`.
    pub(super) fn encode(&mut self, samples: &[i16], bytes: usize) -> Result<Vec<u8>, MediaError> {
        self.0.encode_vec(samples, bytes).map_err(failed)
    }
}

/// A decoder.
pub(super) struct Decoder {
    decoder: opus::Decoder,
    samples: Vec<i16>,
    format: OpusFormat,
}

impl Decoder {
    /// Returns a decoder to a checked format.
    pub(super) fn new(format: OpusFormat) -> Result<Self, MediaError> {
        let decoder = opus::Decoder::new(format.rate, channels(format)).map_err(failed)?;
        Ok(Self { decoder, samples: Vec::new(), format })
    }

    /// Decodes a packet to interleaved samples.
    pub(super) fn decode(&mut self, packet: &[u8]) -> Result<&[i16], MediaError> {
        let refuse = |reason: String| MediaError::OpusPacket { bytes: packet.len(), reason };
        let micros = opus_micros(packet)
            .ok_or_else(|| refuse("it has no duration from 2.5 to 120 ms".to_owned()))?;
        let frames = u64::from(micros) * u64::from(self.format.rate) / 1_000_000;
        let channels = usize::from(self.format.channels);
        self.samples.resize(usize::try_from(frames).unwrap_or(0) * channels, 0);
        let frames = self.decoder.decode(packet, &mut self.samples, false);
        let frames = frames.map_err(|error| refuse(error.description().to_owned()))?;
        Ok(self.samples.get(..frames * channels).unwrap_or_default())
    }
}
