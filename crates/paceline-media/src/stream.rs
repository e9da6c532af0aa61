//! Streams that arrive in parts: pipes, sockets, and files of any length.
//!
//! [`detect`] finds the type of a stream by its first bytes. A [`StreamReader`] takes the bytes as they arrive, and returns
//! each sample as soon as its end is known. Its memory is bounded by the largest sample.
//!
//! | stream | sample | end of a sample |
//! | --- | --- | --- |
//! | JPEG, PNG | one picture | its last bytes |
//! | Y4M | one raw picture | its length |
//! | H.264, H.265, AV1 as OBUs | an access unit or temporal unit | the beginning of the next one, [`StreamReader::pause`] or the end |
//! | IVF with AV1 | a temporal unit | its length |
//! | WAV, raw sound | a block of 20 ms | its length |
//! | Ogg with Opus | a packet | the end of its page |
//! | raw pictures | one picture | its length |
//!
//! Bytes that are no whole sample, such as a picture that began before the reader, are skipped up to the next sample
//! and counted ([`Skipped`]).
//!
//! ```
//! use paceline_media::stream::{Container, Detected, StreamReader, detect};
//!
//! let file = b"YUV4MPEG2 W2 H2 F25:1\nFRAME\n012345FRAME\n678";
//! assert_eq!(detect(&file[..4], false), Detected::More);
//! assert_eq!(detect(file, false), Detected::Container(Container::Y4m));
//! let mut reader = StreamReader::new(Container::Y4m);
//! reader.push(file);
//! assert_eq!(reader.poll()?.as_deref(), Some(&b"012345"[..]));
//! assert_eq!(reader.poll()?, None);
//! reader.end();
//! assert_eq!(reader.poll()?, None);
//! assert_eq!((reader.skipped().damage.places, reader.skipped().damage.bytes), (1, 9));
//! # Ok::<(), paceline_media::MediaError>(())
//! ```

mod blocks;
mod detect;
mod ivf;
mod jpeg;
mod ogg;
mod png;
mod reader;
mod units;
mod wav;
mod y4m;

pub use detect::{Container, Detected, detect};
pub use reader::{Properties, Skipped, StreamReader};
pub(crate) use units::UnitCutter;

use crate::error::MediaError;

/// The largest sample of a stream in bytes.
const SAMPLE_MAX: usize = crate::video::UNIT_BYTES_MAX;

/// The blocks of sound per second.
const BLOCKS_PER_S: u32 = 50;

/// The knowledge about the bytes behind the buffered ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// More may follow at any time.
    Open,
    /// None followed for a while: the last unit is whole.
    Pause,
    /// None will follow.
    Ended,
}

/// The result of a look at the next bytes.
#[derive(Debug)]
pub(crate) enum Step {
    /// A sample, and the number of bytes that it took.
    Sample(usize, Vec<u8>),
    /// This many bytes belong to no sample: headers and padding.
    Used(usize),
    /// This many bytes are no sample, for this reason.
    Damaged(usize, MediaError),
    /// The end of the next sample is not known yet.
    More,
}

/// Returns the offset of `mark` in `bytes` from `from` on. If there is none, returns the offset from which it may
/// begin when more bytes arrive.
fn seek(bytes: &[u8], from: usize, mark: &[u8]) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let found = rest.windows(mark.len()).position(|part| part == mark);
    let open = (rest.len() + 1).saturating_sub(mark.len());
    from.min(bytes.len()) + found.unwrap_or(open)
}

#[cfg(test)]
mod tests;
