//! The ranges of the values that builders accept.

use paceline_media::audio::{CHANNELS_MAX, RATE_MAX, RATE_MIN};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

/// The highest rate of a publisher or a request, in Hz.
pub(crate) const HERTZ_MAX: f64 = 1_000_000.0;
/// The longest side of a requested picture, in pixels.
pub(crate) const SIDE_MAX: u32 = paceline_media::SIDE_MAX;
/// Valid sampling rates of a request, in Hz.
pub(crate) const AUDIO_RATES: RangeInclusive<u32> = RATE_MIN..=RATE_MAX;
/// Valid numbers of channels of a request.
pub(crate) const AUDIO_CHANNELS: RangeInclusive<u8> = 1..=CHANNELS_MAX;
/// The largest number of links of a node, not counting its host link.
pub(crate) const LINKS_MAX: usize = 16;

/// The reason why a node declares no more.
pub(crate) const TOO_MANY: &str = "this node has too many publishers and subscriptions: at most 65536 of each, and 3 MB of \
                                   declarations; end some, or declare more in another process";

/// Returns a rate from 0.001 to 1,000,000 Hz in millihertz; `None` for any other number.
pub(crate) fn millihertz(hertz: f64) -> Option<NonZeroU32> {
    if !(hertz > 0.0 && hertz <= HERTZ_MAX) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let millihertz = (hertz * 1_000.0).round() as u32;
    NonZeroU32::new(millihertz)
}
