//! Scaling of pictures in messages of ROS 2.

use super::Scaler;
use crate::error::MediaError;
use crate::format::Format;
use crate::picture::area;
use crate::ros::{Compressed, FileFormat, Image, Pixels, RosMessage, join_422, split_422, to_rgb};
use crate::size::Size;

impl Scaler {
    /// Scales the picture in a message, which keeps its header.
    pub(super) fn scale_ros(
        &mut self,
        message: RosMessage,
        payload: &[u8],
        to: Size,
    ) -> Result<Vec<u8>, MediaError> {
        match message {
            RosMessage::Image => self.scale_image(&Image::read(payload)?, to),
            RosMessage::CompressedImage => {
                let message = Compressed::read(payload)?;
                let limit = self.limit;
                self.limit = limit.map(|limit| limit.saturating_sub(message.overhead()));
                let scaled = message.format().and_then(|format| match format {
                    FileFormat::Jpeg => self.scale(&Format::Jpeg, message.data, to),
                    FileFormat::Png => self.scale(&Format::Png, message.data, to),
                });
                self.limit = limit;
                scaled.map(|scaled| message.with_data(&scaled))
            }
        }
    }

    fn scale_image(&mut self, image: &Image<'_>, to: Size) -> Result<Vec<u8>, MediaError> {
        let (mut pixels, from) = (image.known_pixels()?, image.size);
        let mut image = *image;
        let mut packed = std::mem::take(&mut self.decoded);
        image.pack(pixels, &mut packed);
        if pixels.is_paired() && !to.width.is_multiple_of(2) {
            // Pairs of pixels cannot have this width.
            packed = to_rgb(pixels, &packed, from);
            (image, pixels) = image.as_rgb();
        }
        let scaled = image.with_pixels(to, pixels, |target| match pixels {
            Pixels::Interleaved { samples, .. } => {
                self.resize_samples(samples, (&mut packed, from), (target, to))
            }
            Pixels::Yuv422 { luma_first } => {
                self.resize_422((&packed, from), (target, to), luma_first)
            }
        });
        self.decoded = packed;
        scaled
    }

    fn resize_422(
        &mut self,
        (packed, from): (&[u8], Size),
        (target, to): (&mut [u8], Size),
        luma_first: bool,
    ) -> Result<(), MediaError> {
        let half = |size: Size| Size { width: size.width / 2, ..size };
        let sizes = [(from, to), (half(from), half(to)), (half(from), half(to))];
        let planes = split_422(packed, luma_first);
        let mut small = [Vec::new(), Vec::new(), Vec::new()];
        for ((plane, small), (from, to)) in planes.iter().zip(&mut small).zip(sizes) {
            small.resize(area(to), 0);
            self.resize.rows((plane, from.width as usize, from), (small, to))?;
        }
        join_422(small.each_ref().map(Vec::as_slice), luma_first, target);
        Ok(())
    }
}
