//! The sample tables of a track.

use super::{fields, find};
use mp4_atom::{
    Co64, Ctts, CttsEntry, Stco, Stsc, StscEntry, Stss, Stsz, StszSamples, Stts, SttsEntry,
};

/// The sample tables of a track, each as the file has it.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) deltas: Vec<SttsEntry>,
    pub(super) offsets: Vec<CttsEntry>,
    pub(super) chunks: Chunks,
    pub(super) runs: Vec<StscEntry>,
    pub(super) sizes: StszSamples,
    /// The numbers of the key samples, from 1; `None` if all are.
    pub(super) keys: Option<Vec<u32>>,
    /// The samples that make one unit: uncompressed sound has a sample per frame.
    pub(super) frames_max: u32,
}

/// The offsets of chunks.
#[derive(Debug)]
pub(super) enum Chunks {
    /// In 32 bits.
    Short(Vec<u32>),
    /// In 64 bits.
    Long(Vec<u64>),
}

impl Chunks {
    pub(super) fn get(&self, chunk: usize) -> Option<u64> {
        match self {
            Self::Short(offsets) => offsets.get(chunk).map(|at| u64::from(*at)),
            Self::Long(offsets) => offsets.get(chunk).copied(),
        }
    }
}

impl Tables {
    /// Reads the tables in `stbl`; `None` if it lists no samples or lacks a table.
    pub(super) fn read(stbl: &[u8]) -> Option<Self> {
        let chunks = match find(stbl, b"stco") {
            Some(_) => Chunks::Short(fields::<Stco>(stbl)?.entries),
            None => Chunks::Long(fields::<Co64>(stbl)?.entries),
        };
        Some(Self {
            deltas: fields::<Stts>(stbl)?.entries,
            offsets: fields::<Ctts>(stbl).map(|ctts| ctts.entries).unwrap_or_default(),
            chunks,
            runs: fields::<Stsc>(stbl)?.entries,
            sizes: fields::<Stsz>(stbl)?.samples,
            keys: fields::<Stss>(stbl).map(|stss| stss.entries),
            frames_max: 1,
        })
    }

    pub(super) fn count(&self) -> u32 {
        match &self.sizes {
            StszSamples::Identical { count, .. } => *count,
            StszSamples::Different { sizes } => u32::try_from(sizes.len()).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn size(&self, sample: u32) -> u32 {
        match &self.sizes {
            StszSamples::Identical { size, .. } => *size,
            StszSamples::Different { sizes } => {
                usize::try_from(sample).ok().and_then(|at| sizes.get(at)).copied().unwrap_or(0)
            }
        }
    }

    /// Returns how far decoding times precede the table's, so that no composition offset is negative.
    pub(super) fn shift(&self) -> i64 {
        let lowest = self.offsets.iter().map(|entry| entry.sample_offset).min();
        lowest.unwrap_or(0).min(0).saturating_neg()
    }
}
