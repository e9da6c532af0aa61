//! Pictures inside messages of ROS 2, for programs that show pictures only.

use bytes::Bytes;
use paceline_media::ros::{self, RosPicture};
use paceline_media::{Format, MediaError};

/// Returns a picture without the message of ROS 2 around it; other payloads are unchanged. Uncompressed pictures become
/// RGB of 8 bits.
///
/// # Errors
/// [`MediaError::Ros`] for a broken message, and for a picture of a kind that cannot be shown, such as depth.
pub fn unwrapped(format: Format, payload: &Bytes) -> Result<(Format, Bytes), MediaError> {
    let Format::Ros(message) = format else { return Ok((format, payload.clone())) };
    Ok(match ros::picture(message, payload)? {
        RosPicture::Jpeg(jpeg) => (Format::Jpeg, payload.slice_ref(jpeg)),
        RosPicture::Png(png) => (Format::Png, payload.slice_ref(png)),
        RosPicture::Pixels(rgb) => (Format::Rgb8(rgb.size()), rgb.into_bytes().into()),
    })
}
