//! What frames and samples take of a link.

use super::{Carrier, Link, capacity};
use crate::control::counted;
use paceline_sched::discipline::Left;
use paceline_sched::{Capacity, Duration};

/// What the layers below add to a frame: 80 bytes of Zenoh, TCP, IP and Ethernet, and the share of
/// TCP's own acknowledgements that go our way. Too little here is a queue below us that never empties.
pub(super) const WIRE_OVERHEAD: u64 = 100;
/// What of a frame fits into one packet of Ethernet, and what each further packet costs.
const PACKET_BYTES: u64 = 1_400;
const PACKET_OVERHEAD: u64 = 80;
/// What our own headers take of a frame that holds one segment of a common sample.
const FRAME_HEADERS: u64 = 64;

/// The longest frame of a link, on the wire: how long a sample may wait for what is on it already.
pub(super) fn frame_on_wire(capacity: Capacity, carrier: Carrier) -> u64 {
    on_wire(capacity::frame_bytes(Some(capacity), carrier))
}

/// The bytes that a frame of `bytes` takes on the wire.
pub(super) const fn on_wire(bytes: u64) -> u64 {
    bytes + WIRE_OVERHEAD + bytes / PACKET_BYTES * PACKET_OVERHEAD
}

/// The longest frame that takes at most `wire` bytes on the wire; 0 if none does.
pub(super) const fn off_wire(wire: u64) -> u64 {
    let bytes = wire.saturating_sub(WIRE_OVERHEAD);
    // The packets are counted as if the headers were part of the frame: rather one too many.
    bytes.saturating_sub(bytes / PACKET_BYTES * PACKET_OVERHEAD)
}

impl Link {
    /// Time that the link needs for `bytes` of payload, cut into frames.
    pub(super) fn service(&self, bytes: usize) -> Duration {
        let (frames, headers) = self.frames_of(bytes as u64);
        self.pacer.wire_time(bytes as u64 + frames * headers)
    }

    /// Into how many frames `bytes` of payload are cut, and what the headers of each take.
    pub(super) fn frames_of(&self, bytes: u64) -> (u64, u64) {
        let frames = bytes.div_ceil(self.frame_bytes - FRAME_HEADERS).max(1);
        let frame = (bytes + FRAME_HEADERS).min(self.frame_bytes);
        (frames, FRAME_HEADERS + on_wire(frame) - frame)
    }

    /// What `bytes` of payload are to the discipline.
    pub(super) fn left(&self, bytes: usize) -> Left {
        let frame = usize::try_from(self.frame_bytes - FRAME_HEADERS).unwrap_or(usize::MAX);
        Left { service: self.service(bytes), segment: Self::spent(bytes, bytes.min(frame)) }
    }

    /// What a segment of `len` of the `left` bytes of a sample counts. However a sample is cut, its segments
    /// count together what it was admitted with: whoever is served by bytes would else be short of what
    /// was promised.
    pub(super) fn spent(left: usize, len: usize) -> u32 {
        let rest = left.saturating_sub(len) as u128;
        let after = if rest == 0 { 0 } else { counted(rest) };
        u32::try_from(counted(left as u128).saturating_sub(after)).unwrap_or(u32::MAX)
    }
}
