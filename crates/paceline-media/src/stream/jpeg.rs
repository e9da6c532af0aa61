//! JPEG pictures, one after the other.

use super::{End, SAMPLE_MAX, Step, seek};
use crate::error::MediaError;
use crate::markers::picture_end;

/// The beginning of a picture and of its first segment.
const BEGIN: &[u8] = b"\xff\xd8\xff";
/// The end of a picture.
const EOI: &[u8] = b"\xff\xd9";

/// Finds the ends of pictures.
#[derive(Debug, Default)]
pub(super) struct JpegCutter {
    /// The number of bytes of the current picture in which no end remains to be looked for.
    searched: usize,
}

impl JpegCutter {
    pub(super) fn step(&mut self, bytes: &[u8], end: End) -> Step {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if zeros > 0 {
            return Step::Used(zeros);
        }
        // A picture ends at a marker of an end, but not at each: a thumbnail has one as well.
        let at = seek(bytes, self.searched, EOI);
        let has_end = bytes.get(at..at + EOI.len()) == Some(EOI);
        let begins = bytes.get(..2).is_none_or(|begin| BEGIN.starts_with(begin));
        if begins && !has_end && end != End::Ended && bytes.len() <= SAMPLE_MAX {
            self.searched = at;
            return Step::More;
        }
        match picture_end(bytes, 0) {
            Ok(end) => {
                self.searched = 0;
                Step::Sample(end, bytes.get(..end).unwrap_or_default().to_vec())
            }
            Err(MediaError::JpegTruncated { .. }) if bytes.is_empty() => Step::More,
            Err(MediaError::JpegTruncated { .. })
                if end != End::Ended && bytes.len() <= SAMPLE_MAX =>
            {
                self.searched = at + EOI.len();
                Step::More
            }
            Err(error) => self.skip(bytes, end, error),
        }
    }

    /// Skips to the next picture.
    fn skip(&mut self, bytes: &[u8], end: End, error: MediaError) -> Step {
        self.searched = 0;
        let from = if let MediaError::JpegCorrupt { at, .. } = error {
            // The marker at which the picture breaks off may begin the next one.
            at.saturating_sub(1).max(1)
        } else {
            1
        };
        let next = seek(bytes, from, BEGIN);
        let ended = end == End::Ended && !bytes.get(next..).unwrap_or_default().starts_with(BEGIN);
        Step::Damaged(if ended { bytes.len() } else { next }, error)
    }
}
