//! The decoder of access units.

use openh264::OpenH264API;
use openh264::decoder::{DecodedYUV, Decoder, DecoderConfig, Flush};

use crate::error::MediaError;
use crate::size::Size;

use super::params::Sps;

/// The largest number of pictures that H.264 permits a decoder to buffer for reordering.
const HELD_MAX: u64 = 16;

/// A decoder in the middle of a stream.
pub(super) struct Source {
    decoder: Decoder,
    /// The SPS with which the decoder began: a start code and its NAL unit.
    sps: Vec<u8>,
    pub(super) size: Size,
    /// The number of pictures that the decoder may buffer before it returns one.
    held_max: u64,
    /// Buffered pictures were flushed. openh264 never reuses their buffers, and has only a few.
    worn: bool,
}

impl Source {
    /// Opens a decoder for pictures described by `sps`; `bytes` are that SPS.
    pub(super) fn open(sps: &Sps, bytes: &[u8]) -> Result<Self, MediaError> {
        if sps.unsupported().is_some() {
            return Err(MediaError::H264Unsupported { what: sps.describe() });
        }
        let config = DecoderConfig::new().flush_after_decode(Flush::NoFlush);
        let decoder = Decoder::with_api_config(OpenH264API::from_source(), config)
            .map_err(|error| refused(&error))?;
        let held_max = if sps.in_order() { 0 } else { HELD_MAX };
        Ok(Self { decoder, sps: bytes.to_vec(), size: sps.info().size, held_max, worn: false })
    }

    /// Returns true if the decoder can decode an I unit with this SPS and the units that follow it.
    pub(super) fn is_fit_for(&self, sps: Option<&[u8]>) -> bool {
        self.is_of(sps) && !self.worn
    }

    /// Returns true if the decoder began with this SPS.
    pub(super) fn is_of(&self, sps: Option<&[u8]>) -> bool {
        sps == Some(self.sps.as_slice())
    }

    /// Decodes one unit. Returns the next picture in presentation order, if it is known already.
    pub(super) fn decode(&mut self, unit: &[u8]) -> Result<Option<DecodedYUV<'_>>, MediaError> {
        self.decoder.decode(unit).map_err(|error| refused(&error))
    }

    /// Flushes the buffered pictures, in presentation order.
    pub(super) fn rest(&mut self) -> Vec<DecodedYUV<'_>> {
        let pictures = self.decoder.flush_remaining().unwrap_or_default();
        self.worn |= !pictures.is_empty();
        pictures
    }

    /// Returns true if more pictures are outstanding than the decoder may buffer, so that one was lost
    /// in it.
    pub(super) fn lost(&self, owed: u64) -> bool {
        owed > self.held_max
    }
}

/// Converts the decoder's error. Its code is a set of flags (`DECODING_STATE`).
fn refused(error: &openh264::Error) -> MediaError {
    let flags = [
        (0x01, "part of the picture is missing"),
        (0x02, "a picture that it refers to is missing"),
        (0x04, "damaged bytes"),
        (0x08, "a layer is missing"),
        (0x10, "its parameter sets or an I unit before it are missing"),
        (0x40, "a picture that it refers to is missing"),
        (0x4000, "too large for the decoder"),
    ];
    let code = error.native_code();
    let words = flags.iter().filter(|(flag, _)| code & flag != 0).map(|&(_, word)| word);
    let mut words: Vec<_> = words.collect();
    words.dedup();
    let words = if words.is_empty() { "refused".to_owned() } else { words.join(", ") };
    MediaError::H264Decode {
        reason: format!("{words} (openh264 code {code:#x})"),
        fix: "wait for the next I unit; if every unit fails, have the sender encode the stream again",
    }
}
