//! Writing of Y4M files.

use super::header::{FULL, FrameRate, LIMITED, MAGIC};
use crate::error::MediaError;
use crate::picture::Picture;
use crate::pixel::{ColourRange, PixelFormat};
use crate::size::Size;

/// Writes Y4M files incrementally: call [`Y4mWriter::append_header`] once, then
/// [`Y4mWriter::append_frame`] for each picture.
///
/// ```
/// use paceline_media::{FrameRate, PictureBuf, PixelFormat, Size, Y4mReader, Y4mWriter};
///
/// let writer = Y4mWriter::new(Size::new(4, 2)?, FrameRate::new(25, 1)?)?;
/// let picture = PictureBuf::grey(PixelFormat::I420, Size::new(4, 2)?)?;
/// let mut file = Vec::new();
/// writer.append_header(&mut file);
/// writer.append_frame(&picture.as_picture(), &mut file)?;
/// assert_eq!(Y4mReader::new(&file)?.count(), 1);
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Y4mWriter {
    size: Size,
    rate: FrameRate,
    range: Option<ColourRange>,
}

impl Y4mWriter {
    /// Returns a writer for pictures of one size.
    ///
    /// # Errors
    /// The errors of [`Size::check`] and [`FrameRate::new`].
    pub fn new(size: Size, rate: FrameRate) -> Result<Self, MediaError> {
        size.check()?;
        Ok(Self { size, rate: FrameRate::new(rate.num, rate.den)?, range: None })
    }

    /// States the range of the samples in the header, `None` not to state it. Default: `None`.
    #[must_use]
    pub fn with_range(self, range: Option<ColourRange>) -> Self {
        Self { range, ..self }
    }

    /// Appends the header: the first bytes of the file.
    pub fn append_header(&self, out: &mut Vec<u8>) {
        let Self { size, rate, range } = self;
        let range = match range {
            Some(ColourRange::Full) => format!(" X{FULL}"),
            Some(ColourRange::Limited) => format!(" X{LIMITED}"),
            None => String::new(),
        };
        let line =
            format!("{MAGIC} W{} H{} F{rate} Ip A1:1 C420jpeg{range}\n", size.width, size.height);
        out.extend_from_slice(line.as_bytes());
    }

    /// Appends one picture.
    ///
    /// # Errors
    /// [`MediaError::Y4mPicture`] unless the picture is I420 of the header's size; `out` is then
    /// unchanged.
    pub fn append_frame(&self, picture: &Picture<'_>, out: &mut Vec<u8>) -> Result<(), MediaError> {
        if picture.size() != self.size || picture.format() != PixelFormat::I420 {
            return Err(MediaError::Y4mPicture {
                expected: self.size,
                found: picture.size(),
                found_format: picture.format(),
            });
        }
        out.reserve(picture.bytes().len() + 6);
        out.extend_from_slice(b"FRAME\n");
        out.extend_from_slice(picture.bytes());
        Ok(())
    }
}
