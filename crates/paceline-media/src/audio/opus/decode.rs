//! Decoding of packets to blocks of 16-bit sound.

use super::codec::Decoder;
use super::format::OpusFormat;
use crate::audio::format::{AudioFormat, Coding};
use crate::error::MediaError;

/// Decodes the packets of one stream to blocks of 16-bit sound.
///
/// The sound of the first packets begins with the encoder's delay, [`OPUS_LOOK_AHEAD_US`](super::OPUS_LOOK_AHEAD_US).
///
/// ```
/// use paceline_media::audio::{AudioFormat, OpusDecoder, OpusEncoder, OpusFormat};
///
/// # if !cfg!(feature = "opus") { return Ok(()); }
/// let from: AudioFormat = "audio/pcm;format=s16le;rate=48000;channels=1".parse()?;
/// let mut encoder = OpusEncoder::new(from, OpusFormat::new(48_000, 1)?, 32_000)?;
/// let packet = encoder.push(&[0; 960 * 2])?;
/// assert_eq!(packet.len(), 80);
/// let mut decoder = OpusDecoder::new(encoder.output())?;
/// assert_eq!(decoder.output(), from);
/// assert_eq!(decoder.decode(&packet)?.len(), 960 * 2);
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
pub struct OpusDecoder {
    decoder: Decoder,
    output: AudioFormat,
}

impl OpusDecoder {
    /// Returns a decoder for packets of this format.
    ///
    /// # Errors
    /// [`MediaError::OpusRange`] for an unchecked format that Opus does not have, and [`MediaError::OpusMissing`]
    /// in builds without the codec.
    pub fn new(format: OpusFormat) -> Result<Self, MediaError> {
        format.check()?;
        let output = AudioFormat::new(Coding::S16le, format.rate, format.channels)?;
        Ok(Self { decoder: Decoder::new(format)?, output })
    }

    /// Returns the format of the decoded blocks.
    #[must_use]
    pub fn output(&self) -> AudioFormat {
        self.output
    }

    /// Decodes the next packet to a block of the same duration.
    ///
    /// # Errors
    /// [`MediaError::OpusPacket`] if the payload is not one valid packet.
    pub fn decode(&mut self, packet: &[u8]) -> Result<Vec<u8>, MediaError> {
        let samples = self.decoder.decode(packet)?;
        Ok(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
    }
}
