//! Pictures and blocks of sound as all receivers of a feed get them.

use paceline_edge::PayloadPart;
use std::sync::{Arc, OnceLock};

/// A payload with its marker bit and its RTP time after the one of its unit.
pub(crate) type SharedPayload = (Arc<[u8]>, bool, u32);

/// A picture or a block of sound, cut into packets once for all receivers.
#[derive(Debug)]
pub(crate) struct MediaUnit {
    pub(crate) parts: Vec<PayloadPart>,
    /// The presentation time in units of the clock rate, since 1970 UTC.
    pub(crate) time: i64,
    /// The difference of the capture time and `time` for sender reports.
    pub(crate) skew: i64,
    /// The bytes of all payloads.
    pub(crate) bytes: usize,
    pub(crate) role: UnitRole,
    /// It is shown before a picture that precedes it.
    pub(crate) reordered: bool,
    /// The payloads as sessions of WebRTC keep them, for packets that are sent again.
    shared: OnceLock<Vec<SharedPayload>>,
}

impl MediaUnit {
    pub(crate) fn new(parts: Vec<PayloadPart>, (time, skew): (i64, i64), role: UnitRole) -> Self {
        let bytes = parts.iter().map(|part| part.payload.len()).sum();
        Self { parts, time, skew, bytes, role, reordered: false, shared: OnceLock::new() }
    }

    /// Returns the payloads as all sessions of WebRTC share them.
    pub(crate) fn shared(&self) -> &[SharedPayload] {
        let shared = |part: &PayloadPart| (Arc::from(&part.payload[..]), part.marker, part.after);
        self.shared.get_or_init(|| self.parts.iter().map(shared).collect())
    }
}

/// The dependencies of a unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UnitRole {
    /// A picture at which decoding can start.
    Key,
    /// A picture that needs earlier ones.
    Delta,
    /// A picture that no other needs.
    Spare,
    /// A picture that may need others from before the last key picture.
    Leading,
    /// A block of sound.
    Sound,
}

impl UnitRole {
    pub(crate) const fn is_picture(self) -> bool {
        !matches!(self, Self::Sound)
    }
}
