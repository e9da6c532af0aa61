//! Pictures in messages of ROS 2, without ROS 2.
//!
//! Reads and writes `sensor_msgs/msg/Image` and `sensor_msgs/msg/CompressedImage` as plain CDR (XCDR version
//! 1), little- and big-endian. Their header (stamp and frame) is kept byte for byte.
//!
//! | message | scaled | not scaled |
//! |---|---|---|
//! | `Image` | `mono8`, `8UC1`, `mono16`, `rgb8`, `bgr8`, `8UC3`, `rgba8`, `bgra8`, `rgb16`, `bgr16`, `rgba16`, `bgra16`, `yuv422`, `uyvy`, `yuv422_yuy2`, `yuyv` | Bayer patterns, depth (`16UC1`, `32FC1`), others |
//! | `CompressedImage` | JPEG, PNG | others, such as `compressedDepth` |
//!
//! A YUV picture that is scaled to an odd width becomes `rgb8`, since YUV has pairs of pixels.
//! Bayer patterns and depth are not scaled, because the mean of their neighbours is another colour or a distance at
//! which nothing is.

mod cdr;
mod compressed;
mod convert;
mod image;
mod pixels;

use std::fmt;
use std::str::FromStr;

use crate::error::MediaError;
use crate::jpeg;
use crate::picture::PictureBuf;
use crate::pixel::PixelFormat;
use crate::png;
use crate::size::Size;

pub(crate) use compressed::{Compressed, FileFormat};
pub(crate) use convert::{join_422, split_422, to_rgb};
pub(crate) use image::Image;
pub(crate) use pixels::Pixels;

/// A type of message that contains a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RosMessage {
    /// `sensor_msgs/msg/Image`: an uncompressed picture.
    Image,
    /// `sensor_msgs/msg/CompressedImage`: a picture in a file format.
    CompressedImage,
}

impl RosMessage {
    /// Returns the name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "sensor_msgs/msg/Image",
            Self::CompressedImage => "sensor_msgs/msg/CompressedImage",
        }
    }
}

impl fmt::Display for RosMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RosMessage {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        [Self::Image, Self::CompressedImage].into_iter().find(|it| it.name() == name).ok_or(())
    }
}

/// The picture in a message, for programs that show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RosPicture<'a> {
    /// A JPEG picture.
    Jpeg(&'a [u8]),
    /// A PNG picture.
    Png(&'a [u8]),
    /// An uncompressed picture, converted to RGB of 8 bits.
    Pixels(PictureBuf),
}

/// Returns the size of the picture in a message, without decoding pixels.
///
/// # Errors
/// [`MediaError::Ros`] for a message that is cut off or contradicts itself; the errors of [`jpeg::dimensions`] and
/// [`png::dimensions`] for the picture in a `CompressedImage`.
pub fn picture_size(message: RosMessage, payload: &[u8]) -> Result<Size, MediaError> {
    match message {
        RosMessage::Image => Image::read(payload).map(|image| image.size),
        RosMessage::CompressedImage => {
            let message = Compressed::read(payload)?;
            match message.format()? {
                FileFormat::Jpeg => jpeg::dimensions(message.data),
                FileFormat::Png => png::dimensions(message.data),
            }
        }
    }
}

/// Returns false if the message contains a picture of a kind that is not scaled; `None` for bytes that are no
/// such message.
#[must_use]
pub fn is_scalable(message: RosMessage, payload: &[u8]) -> Option<bool> {
    match message {
        RosMessage::Image => Some(Image::read(payload).ok()?.pixels.is_some()),
        RosMessage::CompressedImage => {
            let message = Compressed::read(payload).ok()?;
            match message.format() {
                Ok(FileFormat::Jpeg) => jpeg::is_decodable(message.data),
                Ok(FileFormat::Png) => png::is_decodable(message.data),
                Err(_) => Some(false),
            }
        }
    }
}

/// Returns the picture in a message.
///
/// Uncompressed pictures are converted: of 16 bits the upper 8 remain, alpha is left out, and YUV is full-range
/// BT.601, as in JPEG.
///
/// # Errors
/// [`MediaError::Ros`] for a message that is cut off or contradicts itself, and for a picture of another kind.
pub fn picture(message: RosMessage, payload: &[u8]) -> Result<RosPicture<'_>, MediaError> {
    match message {
        RosMessage::Image => {
            let image = Image::read(payload)?;
            let pixels = image.known_pixels()?;
            let mut packed = Vec::new();
            image.pack(pixels, &mut packed);
            let rgb = to_rgb(pixels, &packed, image.size);
            PictureBuf::new(PixelFormat::Rgb8, image.size, rgb).map(RosPicture::Pixels)
        }
        RosMessage::CompressedImage => {
            let message = Compressed::read(payload)?;
            Ok(match message.format()? {
                FileFormat::Jpeg => RosPicture::Jpeg(message.data),
                FileFormat::Png => RosPicture::Png(message.data),
            })
        }
    }
}

#[cfg(test)]
mod tests;
