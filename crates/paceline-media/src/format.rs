//! The format of a payload, and its encoding string.

use std::fmt;
use std::str::FromStr;

use crate::check::parse_side;
use crate::error::{MediaError, excerpt};
use crate::h264;
use crate::jpeg;
use crate::pixel::PixelFormat;
use crate::png;
use crate::size::Size;

/// The format of a message payload that is one picture.
///
/// As an encoding string:
/// - `image/jpeg` and `image/png`: the payload contains the size;
/// - `video/h264`: an access unit in Annex B; units with an SPS contain the size;
/// - `video/raw;format=i420;width=640;height=480`;
/// - `video/raw;format=rgb;width=640;height=480`.
///
/// Parsing accepts the parameters in any order with blanks around the semicolons. Each parameter must
/// occur exactly once, and others are rejected.
///
/// ```
/// use paceline_media::{Format, Size};
///
/// let format: Format = "video/raw;width=640;height=480;format=i420".parse()?;
/// assert_eq!(format, Format::I420(Size::new(640, 480)?));
/// assert_eq!(format.to_string(), "video/raw;format=i420;width=640;height=480");
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JPEG picture.
    Jpeg,
    /// One PNG picture.
    Png,
    /// One H.264 access unit (see [`h264`]): a picture that may depend on others.
    H264,
    /// One [`PixelFormat::I420`] picture of this size.
    I420(Size),
    /// One [`PixelFormat::Rgb8`] picture of this size.
    Rgb8(Size),
}

impl Format {
    /// Returns the size of the picture in `payload`, from its header or from the format, without
    /// decoding pixels.
    ///
    /// # Errors
    /// The errors of [`jpeg::dimensions`] for JPEG, of [`png::dimensions`] for PNG, and of
    /// [`h264::info`] for H.264. [`MediaError::H264NoSize`] for a unit without an SPS. The errors of
    /// [`crate::Picture::new`] otherwise.
    pub fn picture_size(&self, payload: &[u8]) -> Result<Size, MediaError> {
        let (format, size) = match *self {
            Self::Jpeg => return jpeg::dimensions(payload),
            Self::Png => return png::dimensions(payload),
            Self::H264 => {
                let info = h264::info(payload)?;
                let none = MediaError::H264NoSize { bytes: payload.len() };
                return info.map(|info| info.size).ok_or(none);
            }
            Self::I420(size) => (PixelFormat::I420, size),
            Self::Rgb8(size) => (PixelFormat::Rgb8, size),
        };
        format.check_len(size, payload.len())?;
        Ok(size)
    }

    /// Returns the same format for a picture of `size`: the format of a payload scaled to `size`.
    #[must_use]
    pub fn with_size(&self, size: Size) -> Self {
        match self {
            Self::Jpeg => Self::Jpeg,
            Self::Png => Self::Png,
            Self::H264 => Self::H264,
            Self::I420(_) => Self::I420(size),
            Self::Rgb8(_) => Self::Rgb8(size),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (format, size) = match self {
            Self::Jpeg => return f.write_str("image/jpeg"),
            Self::Png => return f.write_str("image/png"),
            Self::H264 => return f.write_str("video/h264"),
            Self::I420(size) => (PixelFormat::I420, size),
            Self::Rgb8(size) => (PixelFormat::Rgb8, size),
        };
        write!(f, "video/raw;format={format};width={};height={}", size.width, size.height)
    }
}

impl FromStr for Format {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let refuse = |reason: String| MediaError::Encoding { text: excerpt(text), reason };
        let mut parts = text.split(';').map(str::trim);
        match parts.next() {
            Some("image/jpeg") => match parts.next() {
                None => Ok(Self::Jpeg),
                Some(extra) => Err(refuse(format!("image/jpeg has no {:?}", excerpt(extra)))),
            },
            Some("image/png") => match parts.next() {
                None => Ok(Self::Png),
                Some(extra) => Err(refuse(format!("image/png has no {:?}", excerpt(extra)))),
            },
            Some("video/h264") => match parts.next() {
                None => Ok(Self::H264),
                Some(extra) => Err(refuse(format!("video/h264 has no {:?}", excerpt(extra)))),
            },
            Some("video/raw") => parse_raw(parts, refuse),
            kind => {
                let kind = excerpt(kind.unwrap_or_default());
                Err(refuse(format!(
                    "type {kind:?} is neither image/jpeg, image/png, video/h264 nor video/raw"
                )))
            }
        }
    }
}

/// Parses the parameters after `video/raw`.
fn parse_raw<'a>(
    parts: impl Iterator<Item = &'a str>,
    refuse: impl Fn(String) -> MediaError,
) -> Result<Format, MediaError> {
    let (mut format, mut width, mut height) = (None, None, None);
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let slot = match name {
            "format" => &mut format,
            "width" => &mut width,
            "height" => &mut height,
            _ => return Err(refuse(format!("parameter {:?} is not known", excerpt(name)))),
        };
        if slot.replace(value).is_some() {
            return Err(refuse(format!("parameter {name} is given twice")));
        }
    }
    let (Some(format), Some(width), Some(height)) = (format, width, height) else {
        let missing = [("format", format), ("width", width), ("height", height)]
            .into_iter()
            .filter_map(|(name, value)| value.is_none().then_some(name))
            .collect::<Vec<_>>();
        return Err(refuse(format!("{} missing", missing.join(" and "))));
    };
    let size = Size::new(parse_side("width", width)?, parse_side("height", height)?)?;
    match format {
        "i420" => Ok(Format::I420(size)),
        "rgb" => Ok(Format::Rgb8(size)),
        _ => Err(refuse(format!("format {:?} is neither i420 nor rgb", excerpt(format)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_in_any_order() {
        let size = Size::new(640, 480).unwrap();
        for format in
            [Format::Jpeg, Format::Png, Format::H264, Format::I420(size), Format::Rgb8(size)]
        {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let text = "video/raw; height=480 ;width=640; format=rgb";
        assert_eq!(text.parse(), Ok(Format::Rgb8(size)));
    }

    #[test]
    fn invalid_strings_are_explained() {
        for (text, part) in [
            ("", "type \"\" is neither"),
            ("image/gif", "type \"image/gif\" is neither image/jpeg, image/png, video/h264 nor"),
            ("image/png;width=1", "image/png has no \"width=1\""),
            ("image/jpeg;width=1", "image/jpeg has no \"width=1\""),
            ("video/h264;rate=1", "video/h264 has no \"rate=1\""),
            ("video/raw", "format and width and height missing"),
            ("video/raw;format=i420;width=2", "height missing"),
            ("video/raw;format=nv12;width=2;height=2", "format \"nv12\" is neither i420 nor rgb"),
            ("video/raw;format=rgb;width=2;width=2;height=2", "width is given twice"),
            ("video/raw;format=rgb;width=2;height=2;depth=8", "parameter \"depth\" is not known"),
            ("video/raw;format=rgb;width=0;height=2", "width is \"0\""),
            ("video/raw;format=rgb;width=2;height=20000", "height is \"20000\""),
            ("video/raw;format=rgb;width= 2;height=2", "width is \" 2\""),
            ("video/raw;format=rgb;width=2;height=2;", "parameter \"\" is not known"),
        ] {
            let message = text.parse::<Format>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
