//! Replaces libopus in builds without the feature `opus`.

use super::format::OpusFormat;
use crate::error::MediaError;

/// Has no values.
pub(super) enum Coder {}

impl Coder {
    pub(super) fn new(_: OpusFormat, _: u32) -> Result<Self, MediaError> {
        Err(MediaError::OpusMissing)
    }

    pub(super) fn encode(&mut self, _: &[i16], _: usize) -> Result<Vec<u8>, MediaError> {
        match *self {}
    }
}

/// Has no values.
pub(super) enum Decoder {}

impl Decoder {
    pub(super) fn new(_: OpusFormat) -> Result<Self, MediaError> {
        Err(MediaError::OpusMissing)
    }

    pub(super) fn decode(&mut self, _: &[u8]) -> Result<&[i16], MediaError> {
        match *self {}
    }
}
