//! The limit of coded pictures, and the least one that is always kept.

use crate::size::Size;

/// The greatest number of bytes of a key picture of one colour: parameter sets and headers, and 10 bits for each 16 by
/// 16 pixels.
const KEY: (u64, (u64, u64)) = (128, (5, 4));

/// The bytes that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The bytes that may be sent now.
    pub now: u64,
    /// The bytes that may be sent at once after a long pause.
    pub full: u64,
}

/// The decision on a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// It is not encoded.
    No,
    /// It is encoded, in as many bytes as it takes.
    Yes,
    /// It is encoded in at most [`Limit::now`] bytes.
    Within(Limit),
}

impl From<bool> for Want {
    fn from(wanted: bool) -> Self {
        if wanted { Self::Yes } else { Self::No }
    }
}

/// Returns the most bytes of a key picture of one colour.
///
/// A limit is kept for every picture if [`Limit::full`] is twice that, if the rate at which [`Limit::now`] grows
/// carries such a key picture in 2 seconds, or in each longer period, and if it carries 40 bytes for each other picture.
#[must_use]
pub fn key_bytes_min(size: Size) -> u64 {
    let side = |pixels: u32| u64::from(pixels.div_ceil(16));
    let (headers, (bytes, of)) = KEY;
    headers + side(size.width) * side(size.height) * bytes / of
}

/// The state of pictures with a limit.
#[derive(Debug, Default)]
pub(super) struct Detail {
    /// The level of blur: a mean of 2^level by 2^level samples.
    pub(super) level: u8,
    /// The pictures until the level may change again.
    pub(super) pause: u64,
    /// The encoder's reference has one colour.
    pub(super) grey: bool,
    /// The encoder's reference was not sent: only a key picture may follow.
    pub(super) broken: bool,
}
