//! The format of a payload, and its encoding string.

use std::fmt;
use std::str::FromStr;

use crate::av1;
use crate::check::parse_side;
use crate::codec::Codec;
use crate::error::{MediaError, excerpt};
use crate::h264;
use crate::h265;
use crate::jpeg;
use crate::pixel::{ColourRange, PixelFormat};
use crate::png;
use crate::ros::{self, RosMessage};
use crate::size::Size;

/// The format of a message payload that is one picture.
///
/// As an encoding string:
/// - `image/jpeg` and `image/png`: the payload contains the size;
/// - `video/h264` and `video/h265`: an access unit in Annex B; units with an SPS contain the size;
/// - `video/av1`: a temporal unit of low-overhead OBUs; units with a sequence header contain the size;
/// - `video/raw;format=i420;width=640;height=480`, with `;range=limited` or `;range=full` if it is known;
/// - `video/raw;format=rgb;width=640;height=480`;
/// - `application/cdr;sensor_msgs/msg/Image` and `application/cdr;sensor_msgs/msg/CompressedImage`: a message of
///   ROS 2 that contains a picture and its size.
///
/// Parsing accepts the parameters in any order with blanks around the semicolons. Each parameter must
/// occur exactly once, `range` at most once, and others are rejected.
///
/// ```
/// use paceline_media::{Format, Size};
///
/// let format: Format = "video/raw;width=640;height=480;format=i420".parse()?;
/// assert_eq!(format, Format::I420(Size::new(640, 480)?, None));
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
    /// One H.265 access unit (see [`h265`]): a picture that may depend on others. Not scaled.
    H265,
    /// One AV1 temporal unit (see [`av1`]): a picture that may depend on others. Not scaled.
    Av1,
    /// One [`PixelFormat::I420`] picture of this size, with the range of its samples if it is known.
    I420(Size, Option<ColourRange>),
    /// One [`PixelFormat::Rgb8`] picture of this size.
    Rgb8(Size),
    /// A message of ROS 2 with one picture (see [`ros`]).
    Ros(RosMessage),
}

/// The media type of messages of ROS 2. As in Zenoh, the name of their type follows a semicolon.
const CDR: &str = "application/cdr";

impl Format {
    /// Returns the size of the picture in `payload`, from its header or from the format, without
    /// decoding pixels.
    ///
    /// # Errors
    /// The errors of [`jpeg::dimensions`] for JPEG, of [`png::dimensions`] for PNG, and of
    /// [`h264::info`], [`h265::info`] and [`av1::info`] for video; those of [`ros::picture_size`] for messages of
    /// ROS 2. [`MediaError::VideoNoSize`] for a unit without an SPS or sequence header. The errors of
    /// [`crate::Picture::new`] otherwise.
    pub fn picture_size(&self, payload: &[u8]) -> Result<Size, MediaError> {
        let (format, size) = match *self {
            Self::Jpeg => return jpeg::dimensions(payload),
            Self::Png => return png::dimensions(payload),
            Self::Ros(message) => return ros::picture_size(message, payload),
            Self::H264 => {
                let none = h264::no_size(payload.len());
                return h264::info(payload)?.map(|info| info.size).ok_or(none);
            }
            Self::H265 => {
                let none = h265::no_size(payload.len());
                return h265::info(payload)?.map(|info| info.size).ok_or(none);
            }
            Self::Av1 => {
                let none = av1::no_size(payload.len());
                return av1::info(payload)?.map(|info| info.size).ok_or(none);
            }
            Self::I420(size, _) => (PixelFormat::I420, size),
            Self::Rgb8(size) => (PixelFormat::Rgb8, size),
        };
        format.check_len(size, payload.len())?;
        Ok(size)
    }

    /// Returns the codec of an encoding string; `None` for other formats and unknown strings.
    #[must_use]
    pub fn codec_of(encoding: &str) -> Option<Codec> {
        encoding.parse::<Self>().ok()?.codec()
    }

    /// Returns the codec, if the picture may depend on others.
    #[must_use]
    pub const fn codec(&self) -> Option<Codec> {
        match self {
            Self::H264 => Some(Codec::H264),
            Self::H265 => Some(Codec::H265),
            Self::Av1 => Some(Codec::Av1),
            Self::Jpeg | Self::Png | Self::I420(..) | Self::Rgb8(_) | Self::Ros(_) => None,
        }
    }

    /// Returns the bytes of a picture of an uncompressed format; `None` for others.
    #[must_use]
    pub fn raw_bytes(&self) -> Option<u64> {
        match *self {
            Self::I420(size, _) => Some(PixelFormat::I420.payload_len(size)),
            Self::Rgb8(size) => Some(PixelFormat::Rgb8.payload_len(size)),
            Self::Jpeg | Self::Png | Self::H264 | Self::H265 | Self::Av1 | Self::Ros(_) => None,
        }
    }

    /// Returns true for JPEG, alone or in a message: a scaler chooses its quality and so its bytes.
    #[must_use]
    pub const fn has_quality(&self) -> bool {
        matches!(self, Self::Jpeg | Self::Ros(RosMessage::CompressedImage))
    }

    /// Returns the same format for a picture of `size`: the format of a payload scaled to `size`.
    #[must_use]
    pub fn with_size(&self, size: Size) -> Self {
        match self {
            Self::Jpeg => Self::Jpeg,
            Self::Png => Self::Png,
            Self::H264 => Self::H264,
            Self::H265 => Self::H265,
            Self::Av1 => Self::Av1,
            Self::I420(_, range) => Self::I420(size, *range),
            Self::Rgb8(_) => Self::Rgb8(size),
            Self::Ros(message) => Self::Ros(*message),
        }
    }
}

impl From<Codec> for Format {
    fn from(codec: Codec) -> Self {
        match codec {
            Codec::H264 => Self::H264,
            Codec::H265 => Self::H265,
            Codec::Av1 => Self::Av1,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (format, size) = match self {
            Self::Jpeg => return f.write_str("image/jpeg"),
            Self::Png => return f.write_str("image/png"),
            Self::H264 => return f.write_str("video/h264"),
            Self::H265 => return f.write_str("video/h265"),
            Self::Av1 => return f.write_str("video/av1"),
            Self::Ros(message) => return write!(f, "{CDR};{message}"),
            Self::I420(size, _) => (PixelFormat::I420, size),
            Self::Rgb8(size) => (PixelFormat::Rgb8, size),
        };
        write!(f, "video/raw;format={format};width={};height={}", size.width, size.height)?;
        if let Self::I420(_, Some(range)) = self {
            write!(f, ";range={}", range.name())?;
        }
        Ok(())
    }
}

impl FromStr for Format {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let refuse = |reason: String| MediaError::Encoding { text: excerpt(text), reason };
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let plain = match kind {
            "image/jpeg" => Self::Jpeg,
            "image/png" => Self::Png,
            "video/h264" => Self::H264,
            "video/h265" => Self::H265,
            "video/av1" => Self::Av1,
            "video/raw" => return parse_raw(parts, refuse),
            CDR => return parse_ros(parts, refuse),
            _ => {
                return Err(refuse(format!(
                    "type {:?} is neither image/jpeg, image/png, video/h264, video/h265, video/av1 nor video/raw",
                    excerpt(kind)
                )));
            }
        };
        match parts.next() {
            None => Ok(plain),
            Some(extra) => Err(refuse(format!("{kind} has no {:?}", excerpt(extra)))),
        }
    }
}

/// Parses the name of the type after `application/cdr`.
fn parse_ros<'a>(
    mut parts: impl Iterator<Item = &'a str>,
    refuse: impl Fn(String) -> MediaError,
) -> Result<Format, MediaError> {
    let (name, more) = (parts.next().unwrap_or_default(), parts.next());
    match name.parse() {
        Ok(message) if more.is_none() => Ok(Format::Ros(message)),
        Ok(_) | Err(()) => Err(refuse(format!(
            "{CDR} contains a picture as {} or {}",
            RosMessage::Image,
            RosMessage::CompressedImage
        ))),
    }
}

/// Parses the parameters after `video/raw`.
fn parse_raw<'a>(
    parts: impl Iterator<Item = &'a str>,
    refuse: impl Fn(String) -> MediaError,
) -> Result<Format, MediaError> {
    let (mut format, mut width, mut height, mut range) = (None, None, None, None);
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let slot = match name {
            "format" => &mut format,
            "width" => &mut width,
            "height" => &mut height,
            "range" => &mut range,
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
    let range = match range {
        None => None,
        Some("limited") => Some(ColourRange::Limited),
        Some("full") => Some(ColourRange::Full),
        Some(other) => {
            return Err(refuse(format!("range {:?} is neither limited nor full", excerpt(other))));
        }
    };
    match format {
        "i420" => Ok(Format::I420(size, range)),
        "rgb" if range.is_some() => Err(refuse("range is only for i420".to_owned())),
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
        let video = [Format::H264, Format::H265, Format::Av1];
        let raw = [
            Format::I420(size, None),
            Format::I420(size, Some(ColourRange::Full)),
            Format::I420(size, Some(ColourRange::Limited)),
            Format::Rgb8(size),
        ];
        let ros = [Format::Ros(RosMessage::Image), Format::Ros(RosMessage::CompressedImage)];
        for format in [&[Format::Jpeg, Format::Png][..], &video, &raw, &ros].concat() {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let text = "video/raw; height=480 ;width=640; format=rgb";
        assert_eq!(text.parse(), Ok(Format::Rgb8(size)));
    }

    #[test]
    fn invalid_strings_are_explained() {
        for (text, part) in [
            ("", "type \"\" is neither"),
            (
                "image/gif",
                "type \"image/gif\" is neither image/jpeg, image/png, video/h264, video/h265, video/av1 nor",
            ),
            ("image/png;width=1", "image/png has no \"width=1\""),
            ("image/jpeg;width=1", "image/jpeg has no \"width=1\""),
            ("video/h264;rate=1", "video/h264 has no \"rate=1\""),
            ("video/av1;rate=1", "video/av1 has no \"rate=1\""),
            ("video/H265", "type \"video/H265\" is neither"),
            ("application/cdr", "application/cdr contains a picture as sensor_msgs/msg/Image or"),
            ("application/cdr;std_msgs/msg/String", "contains a picture as"),
            ("application/cdr;sensor_msgs/msg/Image;x", "contains a picture as"),
            ("video/raw", "format and width and height missing"),
            ("video/raw;format=i420;width=2", "height missing"),
            ("video/raw;format=nv12;width=2;height=2", "format \"nv12\" is neither i420 nor rgb"),
            ("video/raw;format=rgb;width=2;width=2;height=2", "width is given twice"),
            ("video/raw;format=rgb;width=2;height=2;depth=8", "parameter \"depth\" is not known"),
            ("video/raw;format=rgb;width=2;height=2;range=full", "range is only for i420"),
            (
                "video/raw;format=i420;width=2;height=2;range=1",
                "range \"1\" is neither limited nor",
            ),
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
