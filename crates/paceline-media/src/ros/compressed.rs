//! `sensor_msgs/msg/CompressedImage`.

use super::RosMessage;
use super::cdr::{Order, Reader, Writer};
use crate::error::{MediaError, excerpt};

/// The file format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Jpeg,
    Png,
}

/// A message whose lengths agree with each other.
pub(crate) struct Compressed<'a> {
    /// The bytes before the length of the data: encapsulation, stamp, frame and format.
    head: &'a [u8],
    order: Order,
    /// A name that differs among programs, such as `jpeg` or `rgb8; jpeg compressed bgr8`.
    name: &'a str,
    pub(crate) data: &'a [u8],
}

impl<'a> Compressed<'a> {
    pub(crate) fn read(payload: &'a [u8]) -> Result<Self, MediaError> {
        let mut reader = Reader::new(RosMessage::CompressedImage, payload)?;
        reader.number("header.stamp.sec")?;
        reader.number("header.stamp.nanosec")?;
        reader.text("header.frame_id")?;
        let name = reader.text("format")?;
        let head = payload.get(..reader.at()).unwrap_or_default();
        let data = reader.sequence("data")?;
        reader.end()?;
        Ok(Self { head, order: reader.order, name, data })
    }

    /// Returns the format of the picture, from its first bytes.
    ///
    /// # Errors
    /// [`MediaError::Ros`] if it is neither JPEG nor PNG.
    pub(crate) fn format(&self) -> Result<FileFormat, MediaError> {
        if self.data.starts_with(&[0xff, 0xd8]) {
            return Ok(FileFormat::Jpeg);
        }
        if self.data.starts_with(b"\x89PNG") {
            return Ok(FileFormat::Png);
        }
        Err(MediaError::Ros {
            message: RosMessage::CompressedImage.name(),
            at: self.head.len(),
            reason: format!("its picture ({:?}) is neither JPEG nor PNG", excerpt(self.name)),
            fix: "request the full size, or publish JPEG or PNG",
        })
    }

    /// Returns the bytes of the message without the picture.
    pub(crate) const fn overhead(&self) -> usize {
        // The length of a sequence is aligned.
        self.head.len().next_multiple_of(4) + 4
    }

    /// Returns the message with another picture.
    pub(crate) fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let writer = Writer::new(self.order, self.head, data.len() + 8);
        let mut out = writer.sequence(data.len());
        out.extend_from_slice(data);
        out
    }
}
