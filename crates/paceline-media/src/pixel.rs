//! The layouts of uncompressed pictures.

use std::fmt;

use crate::size::Size;

/// The layout of the samples of an uncompressed picture. One byte per sample, no padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// A full-size luma plane, then Cb, then Cr, each half as wide and high, rounded up.
    I420,
    /// Red, green, blue for each pixel, row by row.
    Rgb8,
}

impl PixelFormat {
    /// Returns the length of a picture of `size` in bytes. Saturates for sizes that [`Size::check`]
    /// rejects.
    #[must_use]
    pub fn payload_len(self, size: Size) -> u64 {
        match self {
            Self::I420 => size.pixels().saturating_add(size.chroma().pixels().saturating_mul(2)),
            Self::Rgb8 => size.pixels().saturating_mul(3),
        }
    }
}

impl fmt::Display for PixelFormat {
    /// Formats as `i420` or `rgb`, as in encoding strings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::I420 => "i420",
            Self::Rgb8 => "rgb",
        })
    }
}

/// The range of the samples of an uncompressed picture of luma and chroma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColourRange {
    /// 16 to 235 for luma, 16 to 240 for chroma, as in most video.
    Limited,
    /// 0 to 255, as in JPEG.
    Full,
}

impl ColourRange {
    /// Returns the name, as in encoding strings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limited => "limited",
            Self::Full => "full",
        }
    }
}
