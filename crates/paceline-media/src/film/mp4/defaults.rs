//! The values that many samples of fragments share.

use mp4_atom::{Tfhd, Trex};

/// The values of samples that a run does not state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Defaults {
    pub(super) entry: u32,
    pub(super) duration: u32,
    pub(super) size: u32,
    pub(super) flags: u32,
}

impl From<&Trex> for Defaults {
    fn from(trex: &Trex) -> Self {
        Self {
            entry: trex.default_sample_description_index,
            duration: trex.default_sample_duration,
            size: trex.default_sample_size,
            flags: trex.default_sample_flags,
        }
    }
}

impl Defaults {
    pub(super) fn with(self, header: &Tfhd) -> Self {
        Self {
            entry: header.sample_description_index.unwrap_or(self.entry),
            duration: header.default_sample_duration.unwrap_or(self.duration),
            size: header.default_sample_size.unwrap_or(self.size),
            flags: header.default_sample_flags.unwrap_or(self.flags),
        }
    }
}
