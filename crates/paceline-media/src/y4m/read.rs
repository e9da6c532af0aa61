//! Reading of Y4M files.

use std::iter::FusedIterator;

use super::header::{FrameRate, Header, first_line};
use crate::error::MediaError;
use crate::picture::Picture;
use crate::pixel::{ColourRange, PixelFormat};
use crate::size::Size;

/// The pictures of a Y4M file in memory, borrowed from it.
///
/// An iterator of I420 pictures. A clone continues from the same position. After an error,
/// which stands for one damaged place, the iterator continues at the next frame line.
///
/// ```
/// use paceline_media::Y4mReader;
///
/// let mut reader = Y4mReader::new(b"YUV4MPEG2 W2 H2 F25:1\nFRAME\n012345")?;
/// assert_eq!(reader.size().to_string(), "2x2");
/// assert_eq!(reader.next().unwrap()?.bytes(), b"012345");
/// assert!(reader.next().is_none());
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Y4mReader<'a> {
    bytes: &'a [u8],
    at: usize,
    frame: u64,
    header: Header,
}

impl<'a> Y4mReader<'a> {
    /// Reads the header of a file: width, height, frame rate and chroma 4:2:0.
    ///
    /// Chroma defaults to 4:2:0. Other chroma, more than 8 bits and interlacing are rejected. The header
    /// may have at most 1024 bytes.
    ///
    /// # Errors
    /// [`MediaError::Y4mHeader`], or the errors of [`Size::new`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, MediaError> {
        let (header, at) = Header::read(bytes)?;
        Ok(Self { bytes, at, frame: 0, header })
    }

    /// Returns the size of every picture.
    #[must_use]
    pub fn size(&self) -> Size {
        self.header.size
    }

    /// Returns the pictures per second.
    #[must_use]
    pub fn rate(&self) -> FrameRate {
        self.header.rate
    }

    /// Returns the range of the samples, if the file states it.
    #[must_use]
    pub fn range(&self) -> Option<ColourRange> {
        self.header.range
    }

    /// Returns the offset of the next frame line from `from` on, or the end of the file.
    fn next_frame(&self, from: usize) -> usize {
        let is_frame = |bytes: &[u8]| matches!(bytes, [b'F', b'R', b'A', b'M', b'E', b' ' | b'\n']);
        let rest = self.bytes.get(from..).unwrap_or_default();
        rest.windows(6).position(is_frame).map_or(self.bytes.len(), |at| from + at)
    }

    /// Returns the picture at `at` and the offset behind it.
    fn read(&self) -> Result<(Picture<'a>, usize), MediaError> {
        let refuse = |reason: String, fix| {
            Err(MediaError::Y4mFrame { frame: self.frame, at: self.at, reason, fix })
        };
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(line) = first_line(rest) else {
            return refuse(
                "frame line has no end".to_owned(),
                "pass the file up to and including its last frame",
            );
        };
        let word = line.split(|&byte| byte == b' ').next();
        if word != Some(b"FRAME") {
            return refuse(
                format!("does not begin with FRAME for pictures of {}", self.size()),
                "check the width and height in the header",
            );
        }
        let begin = self.at + line.len() + 1;
        let len = PixelFormat::I420.payload_len(self.size());
        let end = usize::try_from(len).ok().and_then(|len| begin.checked_add(len));
        match end.and_then(|end| Some((end, self.bytes.get(begin..end)?))) {
            Some((end, bytes)) => {
                Picture::new(PixelFormat::I420, self.size(), bytes).map(|picture| (picture, end))
            }
            None => refuse(
                format!("holds {} of {len} bytes", self.bytes.len().saturating_sub(begin)),
                "pass the file up to and including its last frame",
            ),
        }
    }
}

impl<'a> Iterator for Y4mReader<'a> {
    type Item = Result<Picture<'a>, MediaError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        match self.read() {
            Ok((picture, end)) => {
                self.at = end;
                self.frame += 1;
                Some(Ok(picture))
            }
            Err(error) => {
                self.at = self.next_frame(self.at + 1);
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for Y4mReader<'_> {}
