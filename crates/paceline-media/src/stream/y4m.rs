//! Y4M: a header line, then raw pictures.

use super::{End, Step, seek};
use crate::error::MediaError;
use crate::y4m::{Header, LINE_MAX, first_line};

/// The beginning of each picture.
const FRAME: &[u8] = b"FRAME";

/// Reads the header, then pictures.
#[derive(Debug, Default)]
pub(super) struct Y4mCutter {
    pub(super) header: Option<Header>,
    frame: u64,
}

impl Y4mCutter {
    /// Takes the next line or picture; `at` is the offset of `bytes` in the stream.
    pub(super) fn step(&mut self, bytes: &[u8], end: End, at: usize) -> Result<Step, MediaError> {
        if bytes.is_empty() {
            return Ok(Step::More);
        }
        let line = first_line(bytes);
        let Some(header) = self.header else {
            if line.is_none() && end != End::Ended && bytes.len() < LINE_MAX {
                return Ok(Step::More);
            }
            let (header, len) = Header::read(bytes)?;
            self.header = Some(header);
            return Ok(Step::Used(len));
        };
        let refuse =
            |reason: String, fix| MediaError::Y4mFrame { frame: self.frame, at, reason, fix };
        let word = line.unwrap_or(bytes).get(..FRAME.len()).unwrap_or(bytes);
        if !FRAME.starts_with(word) || line.is_none() && bytes.len() >= LINE_MAX {
            let reason = format!("does not begin with FRAME for pictures of {}", header.size);
            let next = seek(bytes, 1, FRAME);
            let found = bytes.get(next..).unwrap_or_default().starts_with(FRAME);
            let skip = if found || end != End::Ended { next } else { bytes.len() };
            let error = refuse(reason, "check the width and height in the header");
            return Ok(Step::Damaged(skip, error));
        }
        let begin = line.map(|line| line.len() + 1);
        let len = header.picture_bytes()?;
        let upto = begin.and_then(|begin| begin.checked_add(len));
        if let Some((begin, upto)) = begin.zip(upto)
            && let Some(picture) = bytes.get(begin..upto)
        {
            self.frame += 1;
            return Ok(Step::Sample(upto, picture.to_vec()));
        }
        if end != End::Ended {
            return Ok(Step::More);
        }
        let fix = "pass the file up to and including its last frame";
        let reason = match begin {
            Some(begin) => format!("holds {} of {len} bytes", bytes.len().saturating_sub(begin)),
            None => "frame line has no end".to_owned(),
        };
        Ok(Step::Damaged(bytes.len(), refuse(reason, fix)))
    }
}
