//! Picture sizes and their limits.

use std::fmt;
use std::str::FromStr;

use crate::error::{MediaError, excerpt};

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
    /// Returns a checked size.
    ///
    /// # Errors
    /// [`MediaError::Side`] for a side outside 1 to [`SIDE_MAX`], [`MediaError::Pixels`] for more than
    /// [`PIXELS_MAX`] pixels.
    pub fn new(width: u32, height: u32) -> Result<Self, MediaError> {
        let size = Self { width, height };
        size.check()?;
        Ok(size)
    }

    /// Checks a size, for example one from a struct literal.
    ///
    /// # Errors
    /// The same as [`Size::new`].
    pub fn check(self) -> Result<(), MediaError> {
        for (field, value) in [("width", self.width), ("height", self.height)] {
            if !(1..=SIDE_MAX).contains(&value) {
                return Err(MediaError::Side { field, value: value.to_string() });
            }
        }
        if self.pixels() > PIXELS_MAX {
            return Err(MediaError::Pixels { size: self });
        }
        Ok(())
    }

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

impl FromStr for Size {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let Some((width, height)) = text.split_once('x') else {
            return Err(MediaError::SizeText { text: excerpt(text) });
        };
        Self::new(parse_side("width", width)?, parse_side("height", height)?)
    }
}

/// Parses a side in plain decimal digits, without sign or blanks.
pub(crate) fn parse_side(field: &'static str, text: &str) -> Result<u32, MediaError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(side) if plain && (1..=SIDE_MAX).contains(&side) => Ok(side),
        Ok(_) | Err(_) => Err(MediaError::Side { field, value: format!("{:?}", excerpt(text)) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for text in ["1x1", "640x480", "16384x4096", "4096x16384"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        assert_eq!(Size::new(3, 5).unwrap().chroma(), Size { width: 2, height: 3 });
    }

    #[test]
    fn errors_name_the_field_value_range_and_a_fix() {
        let message = |text: &str| text.parse::<Size>().unwrap_err().to_string();
        assert_eq!(
            message("640"),
            "size \"640\" is not WIDTHxHEIGHT; write two whole numbers joined by x, such as 640x480"
        );
        assert_eq!(
            message("640x0"),
            "height is \"0\", must be a whole number from 1 to 16384 (pixels); choose a height in that range"
        );
        assert!(message("70000x1").starts_with("width is \"70000\", must be"));
        assert!(message("+1x1").starts_with("width is \"+1\""));
        assert!(message("1x2x3").starts_with("height is \"2x3\""));
        assert!(message(" 1x2").starts_with("width is"));
        assert_eq!(
            message("16384x16384"),
            "size 16384x16384 has 268435456 pixels, must be at most 67108864; choose a smaller width or height"
        );
        assert!(message(&"9".repeat(5000)).len() < 300);
    }
}
