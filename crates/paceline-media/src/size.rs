//! Picture sizes and their limits.

use std::fmt;

/// Largest width or height, in pixels.
pub const SIDE_MAX: u32 = 16_384;

/// Largest number of pixels in one picture: 64 Mi (8192x8192, or 16384x4096).
pub const PIXELS_MAX: u64 = 64 * 1024 * 1024;

/// The width and height of a picture, in pixels.
///
/// The text form is `640x480`. Each side is 1 to [`SIDE_MAX`] and the product at most [`PIXELS_MAX`].
/// [`Size::new`] and parsing check this. Every function of this crate that takes a size checks it again,
/// so a struct literal is safe too.
///
/// ```
/// use paceline_media::Size;
///
/// let size: Size = "640x480".parse()?;
/// assert_eq!(size, Size::new(640, 480)?);
/// assert_eq!(size.to_string(), "640x480");
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// The pixels per row, 1 to [`SIDE_MAX`].
    pub width: u32,
    /// The number of rows, 1 to [`SIDE_MAX`].
    pub height: u32,
}

impl Size {
    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Returns the size of an I420 chroma plane: half of each side, rounded up.
    #[must_use]
    pub fn chroma(self) -> Self {
        Self { width: self.width.div_ceil(2), height: self.height.div_ceil(2) }
    }

    /// Returns true if neither side is larger than that of `other`.
    #[must_use]
    pub fn fits(self, other: Self) -> bool {
        self.width <= other.width && self.height <= other.height
    }

    /// Returns both sides for indexing. Lossless: pointers have at least 32 bits on all supported
    /// platforms.
    pub(crate) fn usizes(self) -> (usize, usize) {
        (self.width as usize, self.height as usize)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}
