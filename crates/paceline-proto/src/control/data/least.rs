//! The least budgets that the coders of scaled samples keep, whatever the samples show.
//!
//! At run time a coder lowers the quality until a picture fits. At these budgets the lowest setting always fits, so no
//! picture is left out. `paceline-media` states the bounds of the coders; a test compares them.

use super::spec::PublisherSpec;
use crate::form::{Form, Size};
use paceline_sched::Duration;

/// The headers of a JPEG picture, with room for segments with its properties.
const JPEG_HEADERS: u64 = 384;
/// The bytes of 16 by 16 pixels of a JPEG picture whose blocks have one colour each.
const JPEG_BLOCK_BYTES: u64 = 8;
/// The headers of a PNG picture, the pixels of one colour per byte, and the bytes of a row.
const PNG: (u64, u64, u64) = (256, 16, 2);
/// The other fields of a message of ROS 2 with a picture.
pub(in crate::control) const ROS_FIELDS: u64 = 256;
/// The headers of a key picture of video, and the bytes of each further 16 by 16 pixels of one colour, as a fraction.
const VIDEO_KEY: (u64, (u64, u64)) = (128, (5, 4));
/// The bytes of a picture of video that repeats the one before.
const VIDEO_SAME: u64 = 40;
/// The longest time between two key pictures of scaled video.
const VIDEO_KEYS: Duration = Duration::from_secs(2);
/// The lowest bit rate of Opus.
const OPUS_BITS_MIN: u64 = 6_000;

/// Returns the number of squares of 16 by 16 pixels.
fn squares(size: Size) -> u64 {
    u64::from(size.width.div_ceil(16)) * u64::from(size.height.div_ceil(16))
}

/// Returns the least limit for a JPEG picture.
fn jpeg_bytes(size: Size) -> u64 {
    JPEG_HEADERS + JPEG_BLOCK_BYTES * squares(size)
}

/// Returns the least limit for a PNG picture.
fn png_bytes(size: Size) -> u64 {
    let (headers, pixels, row) = PNG;
    headers + size.pixels() / pixels + row * u64::from(size.height)
}

/// Returns the most bytes of a key picture of one colour.
fn video_key_bytes(size: Size) -> u64 {
    let (headers, (bytes, of)) = VIDEO_KEY;
    headers + squares(size) * bytes / of
}

/// Returns the least rate in bytes per second of video with a picture per `period`: three quarters of a second hold two
/// key pictures of one colour, and the rate carries such key pictures and repeated ones for ever.
fn video_bytes_per_s(size: Size, period: Duration) -> u64 {
    let key = u128::from(video_key_bytes(size));
    let nanos = u128::from(period.as_nanos().max(1));
    let second = 1_000_000_000_u128;
    // A picture may use its whole period at once.
    let burst = (key * 8).div_ceil(3) * second / nanos.max(second);
    let keys = key * second / nanos.max(VIDEO_KEYS.as_nanos().into());
    let others = u128::from(VIDEO_SAME) * second / nanos;
    u64::try_from(burst.max(keys + others)).unwrap_or(u64::MAX)
}

impl PublisherSpec {
    /// Returns the least number of bytes of a scaled picture that its coder keeps, whatever it shows; 0 if the number of
    /// bytes is not chosen, or no size is known.
    pub(in crate::control) fn least_bytes(&self, form: Form) -> u64 {
        let Some(size) = form.size.or(self.size) else { return 0 };
        match self.encoding.as_str() {
            "image/png" => png_bytes(size),
            _ if self.is_ros_compressed() => jpeg_bytes(size).max(png_bytes(size)) + ROS_FIELDS,
            _ if self.is_jpeg() => jpeg_bytes(size),
            _ => 0,
        }
    }

    /// Returns the least bit rate of `form` that its coder keeps, whatever the samples show; `None` if it does not
    /// choose the bit rate, or if that depends on something unknown.
    #[must_use]
    pub fn least_bitrate(&self, form: Form) -> Option<u64> {
        if self.is_pcm() {
            return Some(OPUS_BITS_MIN);
        }
        let (size, period) = (form.size.or(self.size)?, form.rate.period(self.period)?);
        if self.kind.is_video() {
            return Some(video_bytes_per_s(size, period).saturating_mul(8));
        }
        let bits = u128::from(self.least_bytes(form)) * 8_000_000_000;
        let bits = bits.div_ceil(period.as_nanos().max(1).into());
        u64::try_from(bits).ok().filter(|bits| *bits > 0)
    }
}
