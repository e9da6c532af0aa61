//! Checks of sizes and of the lengths of pictures.

use std::str::FromStr;

use crate::error::{MediaError, excerpt};
use crate::pixel::PixelFormat;
use crate::size::{PIXELS_MAX, SIDE_MAX, Size};

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
}

impl FromStr for Size {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let Some((width, height)) = text.split_once(['x', 'X']) else {
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

impl PixelFormat {
    /// Checks `size`, and that `found` is the length of such a picture.
    pub(crate) fn check_len(self, size: Size, found: usize) -> Result<(), MediaError> {
        let expected = checked_len(self, size)?;
        if found == expected {
            return Ok(());
        }
        let (expected, found) = (expected as u64, found as u64);
        Err(MediaError::Length { format: self, size, expected, found })
    }
}

/// Checks `size` and returns the length of such a picture, at most 3 * `PIXELS_MAX` bytes.
pub(crate) fn checked_len(format: PixelFormat, size: Size) -> Result<usize, MediaError> {
    size.check()?;
    usize::try_from(format.payload_len(size)).map_err(|_| MediaError::Pixels { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        for text in ["1x1", "640x480", "16384x4096", "4096x16384"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        assert_eq!("640X480".parse::<Size>(), "640x480".parse());
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
