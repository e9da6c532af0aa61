//! PNG pictures, one after the other.

use super::{End, SAMPLE_MAX, Step, seek};
use crate::error::MediaError;
use crate::png::SIGNATURE;

/// Finds the end of the picture at the beginning of `bytes`.
pub(super) fn step(bytes: &[u8], end: End) -> Step {
    match picture_end(bytes) {
        Some(Ok(at)) => Step::Sample(at, bytes.get(..at).unwrap_or_default().to_vec()),
        None if bytes.is_empty() || end != End::Ended && bytes.len() <= SAMPLE_MAX => Step::More,
        None => skip(bytes, end, MediaError::PngTruncated { len: bytes.len() }),
        Some(Err(error)) => skip(bytes, end, error),
    }
}

fn skip(bytes: &[u8], end: End, error: MediaError) -> Step {
    let next = seek(bytes, 1, &SIGNATURE);
    let found = bytes.get(next..).unwrap_or_default().starts_with(&SIGNATURE);
    Step::Damaged(if found || end != End::Ended { next } else { bytes.len() }, error)
}

/// Returns the offset behind the last chunk; `None` if more bytes are needed.
fn picture_end(bytes: &[u8]) -> Option<Result<usize, MediaError>> {
    let begin = bytes.get(..SIGNATURE.len()).unwrap_or(bytes);
    if !SIGNATURE.starts_with(begin) {
        let found = begin.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
        return Some(Err(MediaError::NotPng { found: found.join(" ") }));
    }
    let mut at = SIGNATURE.len();
    loop {
        let header = bytes.get(at..at + 8)?;
        let (len, id) = header.split_first_chunk::<4>()?;
        let len = u32::from_be_bytes(*len);
        if len > i32::MAX.cast_unsigned() || !id.iter().all(u8::is_ascii_alphabetic) {
            let reason = format!("no chunk at byte {at}");
            return Some(Err(MediaError::PngCorrupt { reason }));
        }
        // The length, the name and the checksum.
        at = at.checked_add(len as usize)?.checked_add(12)?;
        if id == b"IEND" {
            return (at <= bytes.len()).then_some(Ok(at));
        }
    }
}
