//! Uncompressed pictures with a checked length.

use crate::check::checked_len;
use crate::error::MediaError;
use crate::pixel::{ColourRange, PixelFormat};
use crate::size::Size;

/// A borrowed uncompressed picture whose length matches its size.
///
/// ```
/// use paceline_media::{Picture, PixelFormat, Size};
///
/// let bytes = [0; 9 + 2 * 4];
/// let picture = Picture::new(PixelFormat::I420, Size::new(3, 3)?, &bytes)?;
/// assert_eq!(picture.luma(2, 2), Some(0));
/// assert!(Picture::new(PixelFormat::Rgb8, Size::new(3, 3)?, &bytes).is_err());
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture<'a> {
    format: PixelFormat,
    size: Size,
    bytes: &'a [u8],
}

impl<'a> Picture<'a> {
    /// Wraps the bytes of exactly one picture.
    ///
    /// # Errors
    /// [`MediaError::Length`] if the length of `bytes` does not match the size, and the errors of
    /// [`Size::check`].
    pub fn new(format: PixelFormat, size: Size, bytes: &'a [u8]) -> Result<Self, MediaError> {
        format.check_len(size, bytes.len())?;
        Ok(Self { format, size, bytes })
    }

    /// Returns the layout of the samples.
    #[must_use]
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// Returns the width and height in pixels.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns all samples, in the order of [`PixelFormat`].
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the luma, Cb and Cr planes; `None` unless the picture is I420.
    #[must_use]
    pub fn planes(&self) -> Option<[&'a [u8]; 3]> {
        match self.format {
            PixelFormat::I420 => {
                let (luma, chroma) = self.bytes.split_at_checked(area(self.size))?;
                let (cb, cr) = chroma.split_at_checked(area(self.size.chroma()))?;
                Some([luma, cb, cr])
            }
            PixelFormat::Rgb8 => None,
        }
    }

    /// Returns the brightness of one pixel, 0 to 255; `None` outside the picture.
    ///
    /// RGB is weighted as in BT.601: 0.299 red, 0.587 green, 0.114 blue.
    #[must_use]
    pub fn luma(&self, x: u32, y: u32) -> Option<u8> {
        if x >= self.size.width || y >= self.size.height {
            return None;
        }
        let pixel = y as usize * self.size.width as usize + x as usize;
        match self.format {
            PixelFormat::I420 => self.bytes.get(pixel).copied(),
            PixelFormat::Rgb8 => match self.bytes.get(pixel * 3..pixel * 3 + 3)? {
                [red, green, blue] => Some(jpeg_encoder::rgb_to_ycbcr(*red, *green, *blue).0),
                _ => None,
            },
        }
    }

    /// Returns a copy as RGB. I420 is converted with full-range BT.601, as in JPEG.
    #[must_use]
    pub fn to_rgb8(&self) -> PictureBuf {
        let mut bytes = Vec::with_capacity(area(self.size) * 3);
        match self.planes() {
            None => bytes.extend_from_slice(self.bytes),
            Some([luma, cb, cr]) => {
                let (width, _) = self.size.usizes();
                let (chroma_width, _) = self.size.chroma().usizes();
                for (row, line) in luma.chunks_exact(width).enumerate() {
                    let at = row / 2 * chroma_width;
                    let cb = cb.get(at..).unwrap_or_default();
                    let cr = cr.get(at..).unwrap_or_default();
                    for (pair, (cb, cr)) in line.chunks(2).zip(cb.iter().zip(cr)) {
                        for luma in pair {
                            bytes.extend_from_slice(&ycbcr_to_rgb(*luma, *cb, *cr));
                        }
                    }
                }
            }
        }
        PictureBuf { format: PixelFormat::Rgb8, size: self.size, bytes }
    }

    /// Returns a copy with samples of the full range, as in JPEG. `range` is the range of I420 samples; an unknown one
    /// counts as full.
    #[must_use]
    pub fn to_full_range(&self, range: Option<ColourRange>) -> PictureBuf {
        let mut bytes = self.bytes.to_vec();
        if self.format == PixelFormat::I420 && range == Some(ColourRange::Limited) {
            let (luma, chroma) = bytes.split_at_mut(area(self.size));
            luma.iter_mut().for_each(|sample| *sample = widened(*sample, 16, 219, 0));
            chroma.iter_mut().for_each(|sample| *sample = widened(*sample, 128, 224, 128));
        }
        PictureBuf { format: self.format, size: self.size, bytes }
    }
}

/// Maps a sample from a range of `span` to the full one, so that `zero` becomes `full_zero`.
fn widened(sample: u8, zero: i32, span: i32, full_zero: i32) -> u8 {
    let scaled = (i32::from(sample) - zero) * 255 * 2;
    let rounded = (scaled + scaled.signum() * span) / (2 * span);
    u8::try_from((rounded + full_zero).clamp(0, 255)).unwrap_or(u8::MAX)
}

/// An owned uncompressed picture whose length matches its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureBuf {
    format: PixelFormat,
    size: Size,
    bytes: Vec<u8>,
}

impl PictureBuf {
    /// Takes the bytes of exactly one picture.
    ///
    /// # Errors
    /// The same as [`Picture::new`].
    pub fn new(format: PixelFormat, size: Size, bytes: Vec<u8>) -> Result<Self, MediaError> {
        format.check_len(size, bytes.len())?;
        Ok(Self { format, size, bytes })
    }

    /// Returns a mid-grey picture: every sample is 128.
    ///
    /// # Errors
    /// The errors of [`Size::check`], before any allocation.
    pub fn grey(format: PixelFormat, size: Size) -> Result<Self, MediaError> {
        let bytes = vec![128; checked_len(format, size)?];
        Ok(Self { format, size, bytes })
    }

    /// Returns a borrowed view of the picture.
    #[must_use]
    pub fn as_picture(&self) -> Picture<'_> {
        Picture { format: self.format, size: self.size, bytes: &self.bytes }
    }

    /// Returns the layout of the samples.
    #[must_use]
    pub fn format(&self) -> PixelFormat {
        self.format
    }

    /// Returns the width and height in pixels.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns all samples, in the order of [`PixelFormat`].
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns all samples for modification in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Converts the picture into its samples, for use as a payload.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the luma, Cb and Cr planes of an I420 picture for modification in place.
    pub(crate) fn planes_mut(&mut self) -> Option<[&mut [u8]; 3]> {
        match self.format {
            PixelFormat::I420 => split_planes(self.size, &mut self.bytes),
            PixelFormat::Rgb8 => None,
        }
    }
}

/// Returns the number of pixels of a checked size.
pub(crate) fn area(size: Size) -> usize {
    let (width, height) = size.usizes();
    width * height
}

/// Splits I420 samples into their planes.
pub(crate) fn split_planes(size: Size, bytes: &mut [u8]) -> Option<[&mut [u8]; 3]> {
    let (luma, chroma) = bytes.split_at_mut_checked(area(size))?;
    let (cb, cr) = chroma.split_at_mut_checked(area(size.chroma()))?;
    Some([luma, cb, cr])
}

/// Converts full-range BT.601 in 16-bit fixed point.
pub(crate) fn ycbcr_to_rgb(luma: u8, cb: u8, cr: u8) -> [u8; 3] {
    let luma = (i32::from(luma) << 16) + (1 << 15);
    let (cb, cr) = (i32::from(cb) - 128, i32::from(cr) - 128);
    [luma + 91_881 * cr, luma - 22_554 * cb - 46_802 * cr, luma + 116_130 * cb]
        .map(|value| u8::try_from((value >> 16).clamp(0, 255)).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_round_chroma_up() {
        let len = |width, height| PixelFormat::I420.payload_len(Size { width, height });
        assert_eq!((len(1, 1), len(2, 2), len(3, 5)), (3, 6, 15 + 12));
        assert_eq!(PixelFormat::Rgb8.payload_len(Size { width: 3, height: 5 }), 45);
    }

    #[test]
    fn wrong_length_is_refused() {
        let size = Size::new(2, 2).unwrap();
        let error = Picture::new(PixelFormat::I420, size, &[0; 7]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "i420 picture of 2x2 holds 7 bytes, must hold exactly 6; check the width, height and format of the encoding"
        );
        let huge = Size { width: u32::MAX, height: u32::MAX };
        assert!(PictureBuf::grey(PixelFormat::I420, huge).is_err());
    }

    #[test]
    fn the_limited_range_is_widened_to_the_full_one() {
        let size = Size::new(2, 2).unwrap();
        let samples = [16, 235, 126, 0, 16, 240];
        let picture = Picture::new(PixelFormat::I420, size, &samples).unwrap();
        let wide = picture.to_full_range(Some(ColourRange::Limited));
        assert_eq!(wide.bytes(), [0, 255, 128, 0, 0, 255]);
        for kept in [None, Some(ColourRange::Full)] {
            assert_eq!(picture.to_full_range(kept).bytes(), samples);
        }
        assert_eq!(widened(128, 128, 224, 128), 128, "grey has no colour");
    }

    #[test]
    fn rgb_conversion_keeps_odd_sizes_and_primaries() {
        let size = Size::new(3, 3).unwrap();
        let mut picture = PictureBuf::grey(PixelFormat::I420, size).unwrap();
        let [luma, cb, cr] = picture.planes_mut().unwrap();
        luma.fill(76);
        cb.fill(85);
        cr.fill(255);
        let rgb = picture.as_picture().to_rgb8();
        assert_eq!(rgb.bytes().len(), 27);
        assert_eq!(rgb.bytes()[24..], [254, 0, 0]);
        assert_eq!(rgb.as_picture().luma(2, 2), Some(76));
        assert_eq!(rgb.as_picture().luma(3, 0), None);
    }
}
