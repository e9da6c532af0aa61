//! Samples of one length, without headers: raw pictures and sound.

use super::{End, Step};
use crate::error::MediaError;

/// Cuts a stream into samples of `len` bytes. With `parts`, the last one may be shorter by whole `parts`.
pub(super) fn step(bytes: &[u8], end: End, len: usize, part: Option<usize>) -> Step {
    if let Some(sample) = bytes.get(..len) {
        return Step::Sample(len, sample.to_vec());
    }
    if bytes.is_empty() || end != End::Ended {
        return Step::More;
    }
    let whole = part.map_or(0, |part| bytes.len() / part.max(1) * part);
    match bytes.get(..whole) {
        Some(sample) if whole > 0 => Step::Sample(whole, sample.to_vec()),
        _ => Step::Damaged(
            bytes.len(),
            MediaError::Stream {
                format: "raw",
                at: 0,
                reason: format!("the last sample has {} of {len} bytes", bytes.len()),
                fix: "check the size or the format of the encoding",
            },
        ),
    }
}
