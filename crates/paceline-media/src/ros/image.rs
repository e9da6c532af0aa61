//! `sensor_msgs/msg/Image`.

use super::RosMessage;
use super::cdr::{Order, Reader, Writer};
use super::pixels::Pixels;
use crate::error::{MediaError, excerpt};
use crate::png::{Colour, Samples};
use crate::size::Size;

/// The largest length of a message without its pixels and texts, with alignment.
const FIELDS: usize = 32;

/// A message whose lengths agree with each other.
#[derive(Clone, Copy)]
pub(crate) struct Image<'a> {
    /// The bytes before the height: encapsulation, stamp and frame.
    head: &'a [u8],
    order: Order,
    pub(crate) size: Size,
    encoding: &'a str,
    /// The layout of the pixels; `None` if they are not scaled.
    pub(crate) pixels: Option<Pixels>,
    /// Samples of 16 bits are big-endian if this is not 0.
    is_bigendian: u8,
    /// The bytes from one row to the next.
    step: usize,
    data: &'a [u8],
}

impl<'a> Image<'a> {
    pub(crate) fn read(payload: &'a [u8]) -> Result<Self, MediaError> {
        let mut reader = Reader::new(RosMessage::Image, payload)?;
        reader.number("header.stamp.sec")?;
        reader.number("header.stamp.nanosec")?;
        reader.text("header.frame_id")?;
        let head = payload.get(..reader.at()).unwrap_or_default();
        let (height, width) = (reader.number("height")?, reader.number("width")?);
        let size = Size::new(width, height)?;
        let encoding = reader.text("encoding")?;
        let is_bigendian = reader.byte("is_bigendian")?;
        let step = reader.number("step")? as usize;
        let at = reader.at();
        let data = reader.sequence("data")?;
        reader.end()?;
        let order = reader.order;
        let pixels = Pixels::of(encoding);
        let image = Self { head, order, size, encoding, pixels, is_bigendian, step, data };
        image.check(at)?;
        Ok(image)
    }

    /// Checks the lengths; `at` is the offset of the data.
    fn check(&self, at: usize) -> Result<(), MediaError> {
        let (width, height) = self.size.usizes();
        let wrong =
            |reason, fix| MediaError::Ros { message: RosMessage::Image.name(), at, reason, fix };
        if let Some(pixels) = self.pixels {
            let least = width * pixels.bytes();
            if self.step < least {
                let (step, encoding) = (self.step, self.encoding);
                return Err(wrong(
                    format!(
                        "step is {step}, must be at least {least} for {width} pixels of {encoding}"
                    ),
                    "have the publisher set step to the bytes of a row",
                ));
            }
            self.check_width(pixels)?;
        }
        let rows = self.step.checked_mul(height);
        if rows != Some(self.data.len()) {
            return Err(wrong(
                format!(
                    "data has {} bytes, must be step * height = {} * {height}",
                    self.data.len(),
                    self.step
                ),
                "have the publisher send whole rows",
            ));
        }
        Ok(())
    }

    /// Checks that a picture of this encoding may be as wide as this one.
    fn check_width(&self, pixels: Pixels) -> Result<(), MediaError> {
        if !pixels.is_paired() || self.size.width.is_multiple_of(2) {
            return Ok(());
        }
        let (size, encoding) = (self.size, self.encoding);
        Err(MediaError::Ros {
            message: RosMessage::Image.name(),
            at: self.head.len(),
            reason: format!("a picture of {size} cannot be {encoding}, which has pairs of pixels"),
            fix: "choose an even width",
        })
    }

    /// Returns the message for pixels of the encoding `rgb8`.
    pub(crate) fn as_rgb(self) -> (Self, Pixels) {
        let samples = Samples { colour: Colour::Rgb, wide: false };
        let pixels = Pixels::Interleaved { samples, bgr: false };
        (Self { encoding: "rgb8", pixels: Some(pixels), ..self }, pixels)
    }

    /// Returns the layout of the pixels.
    ///
    /// # Errors
    /// [`MediaError::Ros`] if they are not scaled.
    pub(crate) fn known_pixels(&self) -> Result<Pixels, MediaError> {
        self.pixels.ok_or_else(|| MediaError::Ros {
            message: RosMessage::Image.name(),
            at: self.head.len(),
            reason: format!("pixels of encoding {:?} are not scaled", excerpt(self.encoding)),
            fix: "request the full size, or publish rgb8, bgr8, mono8, mono16, rgba8 or yuv422",
        })
    }

    /// Copies the pixels to `packed` without padding between rows, and samples of 16 bits as big-endian.
    pub(crate) fn pack(&self, pixels: Pixels, packed: &mut Vec<u8>) {
        let (width, _) = self.size.usizes();
        packed.clear();
        for row in self.data.chunks_exact(self.step) {
            packed.extend_from_slice(row.get(..width * pixels.bytes()).unwrap_or_default());
        }
        self.swap(pixels, packed);
    }

    /// Converts samples of 16 bits between the order of the message and big-endian.
    fn swap(&self, pixels: Pixels, samples: &mut [u8]) {
        if pixels.is_wide() && self.is_bigendian == 0 {
            for sample in samples.as_chunks_mut::<2>().0 {
                sample.reverse();
            }
        }
    }

    /// Returns the message with another picture: `fill` writes its pixels without padding, and samples of 16 bits as
    /// big-endian.
    pub(crate) fn with_pixels(
        &self,
        size: Size,
        pixels: Pixels,
        fill: impl FnOnce(&mut [u8]) -> Result<(), MediaError>,
    ) -> Result<Vec<u8>, MediaError> {
        let (width, height) = size.usizes();
        let row = width * pixels.bytes();
        let bytes = row * height;
        let mut writer = Writer::new(self.order, self.head, FIELDS + self.encoding.len() + bytes);
        writer.number(size.height);
        writer.number(size.width);
        writer.text(self.encoding);
        writer.byte(self.is_bigendian);
        writer.number(u32::try_from(row).unwrap_or(u32::MAX));
        let mut out = writer.sequence(bytes);
        let begin = out.len();
        out.resize(begin + bytes, 0);
        let target = out.get_mut(begin..).unwrap_or_default();
        fill(target)?;
        self.swap(pixels, target);
        Ok(out)
    }
}
