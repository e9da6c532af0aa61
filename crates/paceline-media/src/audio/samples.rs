//! Conversion between blocks of bytes and samples from -1 to 1.

use super::format::Coding;
use super::g711::{from_alaw, from_ulaw, to_alaw, to_ulaw};

/// The largest magnitude of a 16-bit sample.
const FULL: f32 = 32_768.0;

/// Decodes the samples of `bytes`; an odd byte at the end is ignored.
pub(super) fn decode(coding: Coding, bytes: &[u8], out: &mut Vec<f32>) {
    let level = |sample: i16| f32::from(sample) / FULL;
    out.clear();
    match coding {
        Coding::S16le => {
            let samples = bytes.as_chunks().0;
            out.extend(samples.iter().map(|&bytes| level(i16::from_le_bytes(bytes))));
        }
        Coding::Ulaw => out.extend(bytes.iter().map(|&code| level(from_ulaw(code)))),
        Coding::Alaw => out.extend(bytes.iter().map(|&code| level(from_alaw(code)))),
    }
}

/// Encodes samples; those above full scale are clipped.
pub(super) fn encode(coding: Coding, levels: &[f32]) -> Vec<u8> {
    let samples = levels.iter().map(|&level| sample(level));
    match coding {
        Coding::S16le => samples.flat_map(i16::to_le_bytes).collect(),
        Coding::Ulaw => samples.map(to_ulaw).collect(),
        Coding::Alaw => samples.map(to_alaw).collect(),
    }
}

/// Returns the nearest 16-bit sample of a level; not-a-number is silence.
#[expect(clippy::cast_possible_truncation, reason = "rounded, and a cast to i16 saturates")]
pub(super) fn sample(level: f32) -> i16 {
    (level * FULL).round() as i16
}
