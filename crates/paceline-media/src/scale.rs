//! Spatial scaling of a payload to a smaller one of the same format.

mod coarse;
mod jpeg;
mod png;
mod ros;

pub use jpeg::bytes_min as jpeg_bytes_min;
pub use png::bytes_min as png_bytes_min;

use fast_image_resize::images::TypedImageRef;
use fast_image_resize::pixels::U8x3;

use crate::av1;
use crate::error::MediaError;
use crate::format::Format;
use crate::h265;
use crate::jpeg::check_quality;
use crate::picture::{area, split_planes};
use crate::pixel::PixelFormat;
use crate::resize::{self, Resize};
use crate::size::Size;
use jpeg::QUALITY;

/// Scales payloads down, in the same format. Reuse one per thread.
///
/// Each output sample is the triangle-weighted mean of all source samples that it covers (bilinear
/// convolution), so no ratio causes aliasing. The output has exactly the requested size, whose aspect
/// ratio is the caller's choice. A JPEG payload is decoded to YCbCr, scaled and encoded again without
/// conversion to RGB. The result of JPEG and PNG keeps the orientation of the Exif metadata, so it is shown the same
/// way up, and sizes count pixels as they are stored. A PNG payload keeps its 8 or 16 bits per sample and its alpha channel (see
/// [`crate::png`]).
///
/// Buffers grow to the largest picture so far and are kept. After the first picture of a size, raw
/// formats allocate only the output and the filter's weights. JPEG also allocates the memory of its
/// decoder and encoder.
#[derive(Debug)]
pub struct Scaler {
    resize: Resize,
    /// The quality of JPEG pictures that was set.
    quality: Option<u8>,
    limit: Option<usize>,
    /// The quality at which the last JPEG picture did not exceed the limit; 0 if none did.
    fitted: u8,
    /// The bytes that the limit saved of the last picture.
    saved: usize,
    decoded: Vec<u8>,
    resized: Vec<u8>,
}

impl Default for Scaler {
    fn default() -> Self {
        Self::new()
    }
}

impl Scaler {
    /// Returns a scaler with empty buffers that encodes JPEG with quality 80.
    #[must_use]
    pub fn new() -> Self {
        Self {
            resize: Resize::new(),
            quality: None,
            limit: None,
            fitted: QUALITY,
            saved: 0,
            decoded: Vec::new(),
            resized: Vec::new(),
        }
    }

    /// Sets the highest quality of JPEG pictures, 1 to 100, also of those that keep their size. By default scaled
    /// pictures have quality 80, and the others stay as they are.
    ///
    /// # Errors
    /// [`MediaError::Quality`] outside that range; the quality then does not change.
    pub fn set_quality(&mut self, quality: u8) -> Result<(), MediaError> {
        check_quality(quality)?;
        (self.quality, self.fitted) = (Some(quality), quality);
        Ok(())
    }

    /// Sets the largest number of bytes of a JPEG or PNG picture. JPEG pictures get a lower quality, PNG pictures more
    /// compression, and both less and less detail, as needed. Limits from [`jpeg_bytes_min`]
    /// and [`png_bytes_min`] are always kept; for a message of ROS 2, in addition to its other fields. Other formats ignore the limit.
    pub const fn set_limit(&mut self, bytes: Option<usize>) {
        self.limit = bytes;
    }

    /// Returns the bytes that the limit saved of the last PNG picture. Its kind loses nothing otherwise, so its size
    /// without the limit is worth knowing.
    #[must_use]
    pub const fn saved(&self) -> usize {
        self.saved
    }

    /// Returns the picture in `payload`, scaled to exactly `to`, in the same format.
    ///
    /// [`Format::with_size`] describes the result. If the picture has that size already, the result is a
    /// copy of the payload, neither decoded nor encoded again, unless a quality was set or it exceeds the limit.
    ///
    /// # Errors
    /// - [`MediaError::SizeAboveSource`] if `to` is wider or higher than the picture.
    /// - [`MediaError::Length`] for a raw payload that does not match its format.
    /// - The errors of [`crate::jpeg::decode`] or [`crate::png::decode`], and of [`Size::check`] for
    ///   `to`.
    /// - [`MediaError::Ros`] for a message of ROS 2 that is cut off or contradicts itself, or whose picture is of a
    ///   kind that is not scaled ([`crate::ros`]).
    /// - [`MediaError::H264Scale`] for H.264, whose units depend on each other.
    /// - [`MediaError::VideoScale`] for H.265 and AV1, which are not decoded.
    pub fn scale(
        &mut self,
        format: &Format,
        payload: &[u8],
        to: Size,
    ) -> Result<Vec<u8>, MediaError> {
        to.check()?;
        // Before the size is read, which a unit need not contain.
        if let Some(error) = refused(format) {
            return Err(error);
        }
        let from = format.picture_size(payload)?;
        if !to.fits(from) {
            return Err(MediaError::SizeAboveSource { asked: to, source_size: from });
        }
        self.saved = 0;
        if to == from && self.passes(format, payload) {
            return Ok(payload.to_vec());
        }
        match format {
            Format::Jpeg => self.scale_jpeg(payload, to),
            Format::Png => self.scale_png(payload, to),
            Format::I420(..) => self.scale_i420(payload, from, to),
            Format::Rgb8(_) => {
                let mut out = vec![0; area(to) * 3];
                let view = TypedImageRef::<U8x3>::from_buffer(from.width, from.height, payload)
                    .map_err(|error| resize::failed(from, to, &error))?;
                self.resize.view(&view, from, (&mut out, to))?;
                Ok(out)
            }
            Format::Ros(message) => self.scale_ros(*message, payload, to),
            Format::H264 | Format::H265 | Format::Av1 => {
                Err(refused(format).unwrap_or(MediaError::H264Scale))
            }
        }
    }

    /// Returns true if a picture that keeps its size needs no coding: it has the quality and the length, or its format has
    /// neither.
    fn passes(&self, format: &Format, payload: &[u8]) -> bool {
        let fits = self.limit.is_none_or(|limit| payload.len() <= limit);
        if *format == Format::Png {
            fits
        } else {
            fits && self.quality.is_none() || !format.has_quality()
        }
    }

    fn scale_i420(&mut self, payload: &[u8], from: Size, to: Size) -> Result<Vec<u8>, MediaError> {
        let len = PixelFormat::I420.payload_len(to);
        let mut out = vec![0; usize::try_from(len).map_err(|_| MediaError::Pixels { size: to })?];
        let source = crate::Picture::new(PixelFormat::I420, from, payload)?.planes();
        if let (Some(source), Some(target)) = (source, split_planes(to, &mut out)) {
            let sizes = [(from, to), (from.chroma(), to.chroma()), (from.chroma(), to.chroma())];
            for ((source, target), (from, to)) in source.into_iter().zip(target).zip(sizes) {
                self.resize.rows((source, from.width as usize, from), (target, to))?;
            }
        }
        Ok(out)
    }
}

/// Returns the error for a format whose payloads depend on each other; `None` for the others.
fn refused(format: &Format) -> Option<MediaError> {
    match format {
        Format::H264 => Some(MediaError::H264Scale),
        Format::H265 => Some(MediaError::VideoScale { codec: h265::CODEC }),
        Format::Av1 => Some(MediaError::VideoScale { codec: av1::CODEC }),
        Format::Jpeg | Format::Png | Format::I420(..) | Format::Rgb8(_) | Format::Ros(_) => None,
    }
}

#[cfg(test)]
mod tests;
