//! WAV: a format, then blocks of 20 ms.

use super::{BLOCKS_PER_S, End, Step};
use crate::audio::{Layout, Lengths, read_format, wav_error};
use crate::error::MediaError;

/// The largest chunk before the data that is read.
const CHUNK_MAX: usize = 64 * 1024;
const FIX: &str = "pass a whole file";

/// Reads the chunks before the data, then the data.
#[derive(Debug, Default)]
pub(super) struct WavCutter {
    lengths: Option<Lengths>,
    /// The bytes of a chunk that are skipped.
    skipped: u64,
    pub(super) layout: Option<Layout>,
    /// It has reached the data.
    data: Option<Data>,
}

/// The rest of the data chunk.
#[derive(Debug, Clone, Copy)]
struct Data {
    /// `None` if it extends to the end of the stream.
    left: Option<u64>,
}

/// Returns the frames per block and the blocks per second of sound of this rate.
pub(super) fn pace(rate: u32) -> (usize, f64) {
    let frames = (rate / BLOCKS_PER_S).max(1);
    (usize::try_from(frames).unwrap_or(1), f64::from(rate) / f64::from(frames))
}

impl WavCutter {
    /// Takes the next chunk or block; `at` is the offset of `bytes` in the stream.
    pub(super) fn step(&mut self, bytes: &[u8], end: End, at: usize) -> Result<Step, MediaError> {
        if self.skipped > 0 && !bytes.is_empty() {
            let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(bytes.len());
            self.skipped -= skipped as u64;
            return Ok(Step::Used(skipped));
        }
        match (self.data, self.layout) {
            (Some(data), Some(layout)) => Ok(self.block(bytes, end, data, &layout)),
            _ => self.chunk(bytes, end, at),
        }
    }

    fn chunk(&mut self, bytes: &[u8], end: End, at: usize) -> Result<Step, MediaError> {
        let Some(lengths) = &mut self.lengths else {
            if bytes.len() < 12 && end != End::Ended {
                return Ok(Step::More);
            }
            self.lengths = Some(Lengths::read(bytes)?);
            return Ok(Step::Used(12));
        };
        let Some(&[a, b, c, d, l0, l1, l2, l3]) = bytes.first_chunk::<8>() else {
            let what = if self.layout.is_none() { "format" } else { "data" };
            let cut = || wav_error(bytes.len(), &format!("it has no {what} chunk"), FIX);
            return if end == End::Ended { Err(cut()) } else { Ok(Step::More) };
        };
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        // A chunk of odd length is followed by a padding byte.
        let padded = u64::from(len) + u64::from(len % 2);
        match [a, b, c, d] {
            _ if end == End::Ended && bytes.len() == 8 && len > 0 && &[a, b, c, d] != b"data" => {
                Err(wav_error(0, "a chunk is cut off", FIX))
            }
            id @ ([b'f', b'm', b't', b' '] | [b'd', b's', b'6', b'4']) if self.layout.is_none() => {
                let len = usize::try_from(len).unwrap_or(usize::MAX).min(CHUNK_MAX);
                let body = bytes.get(8..8 + len);
                if body.is_none() && end != End::Ended {
                    return Ok(Step::More);
                }
                let body = body.unwrap_or_else(|| bytes.get(8..).unwrap_or_default());
                if id == *b"fmt " {
                    self.layout = Some(read_format(body, 8)?);
                } else {
                    lengths.note_ds64(body);
                }
                self.skipped = padded;
                Ok(Step::Used(8))
            }
            [b'd', b'a', b't', b'a'] => {
                if self.layout.is_none() {
                    let fix = "have the file written again";
                    return Err(wav_error(0, "the data comes before its format", fix));
                }
                self.data = Some(Data { left: lengths.data(len, at as u64 + 8, None) });
                Ok(Step::Used(8))
            }
            _ => {
                self.skipped = padded;
                Ok(Step::Used(8))
            }
        }
    }

    fn block(&mut self, bytes: &[u8], end: End, data: Data, layout: &Layout) -> Step {
        let (frames, _) = pace(layout.format.rate);
        let left = data.left.unwrap_or(u64::MAX);
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let len = (frames * layout.frame).min(most);
        let available = bytes.len().min(len);
        if len == 0 {
            // Other chunks and padding may follow.
            return if bytes.is_empty() { Step::More } else { Step::Used(bytes.len()) };
        }
        if available < len && end != End::Ended {
            return Step::More;
        }
        let whole = available / layout.frame * layout.frame;
        if whole > 0 {
            self.data = Some(Data { left: data.left.map(|left| left - whole as u64) });
            let block = bytes.get(..whole).unwrap_or_default();
            return Step::Sample(whole, layout.convert(block).into_owned());
        }
        self.data = Some(Data { left: Some(0) });
        // Programs that cannot seek back may also leave a high length.
        let reason = match data.left {
            Some(left) if available < len && left < i32::MAX as u64 / 2 => {
                let missing = left - available as u64;
                format!("the data chunk is cut off: {missing} bytes of it are missing")
            }
            _ if available == 0 => return Step::More,
            _ => format!("the last {available} bytes of the data chunk are no whole frame"),
        };
        Step::Damaged(available, wav_error(0, &reason, FIX))
    }
}
