//! The sizes of frames and samples on the wire.

use super::{Carrier, Link, capacity};
use crate::control::counted;
use paceline_sched::discipline::Left;
use paceline_sched::{Capacity, Duration};

/// The overhead per frame below this layer, in bytes: 80 for Zenoh, TCP, IP and Ethernet, and a share of
/// TCP's own acknowledgements on this direction. A value that is too low causes a standing queue below the
/// link.
pub(super) const WIRE_OVERHEAD: u64 = 100;
/// The bytes of a frame that fit into one Ethernet packet.
const PACKET_BYTES: u64 = 1_400;
/// The overhead of each further packet, in bytes.
const PACKET_OVERHEAD: u64 = 80;
/// The size of our own headers in a frame with one segment of a typical sample, in bytes.
const FRAME_HEADERS: u64 = 64;

/// Returns the longest frame of a link in bytes on the wire. A sample may have to wait for one such frame.
pub(super) fn frame_on_wire(capacity: Capacity, carrier: Carrier) -> u64 {
    on_wire(capacity::frame_bytes(Some(capacity), carrier))
}

/// Returns the bytes that a frame of `bytes` occupies on the wire.
pub(super) const fn on_wire(bytes: u64) -> u64 {
    bytes + WIRE_OVERHEAD + bytes / PACKET_BYTES * PACKET_OVERHEAD
}

/// Returns the length of the longest frame that occupies at most `wire` bytes on the wire; 0 if there is
/// none.
pub(super) const fn off_wire(wire: u64) -> u64 {
    let bytes = wire.saturating_sub(WIRE_OVERHEAD);
    // Counts packets as if the headers were part of the frame, which may overestimate by one.
    bytes.saturating_sub(bytes / PACKET_BYTES * PACKET_OVERHEAD)
}

impl Link {
    /// Returns the time that the link needs for `bytes` of payload, divided into frames.
    pub(super) fn service(&self, bytes: usize) -> Duration {
        let (frames, headers) = self.frames_of(bytes as u64);
        self.pacer.wire_time(bytes as u64 + frames * headers)
    }

    /// Returns the number of frames for `bytes` of payload, and the header bytes of each.
    pub(super) fn frames_of(&self, bytes: u64) -> (u64, u64) {
        let frames = bytes.div_ceil(self.frame_bytes - FRAME_HEADERS).max(1);
        let frame = (bytes + FRAME_HEADERS).min(self.frame_bytes);
        (frames, FRAME_HEADERS + on_wire(frame) - frame)
    }

    /// Returns the service demand of `bytes` of payload for the discipline.
    pub(super) fn left(&self, bytes: usize) -> Left {
        let frame = usize::try_from(self.frame_bytes - FRAME_HEADERS).unwrap_or(usize::MAX);
        Left { service: self.service(bytes), segment: Self::spent(bytes, bytes.min(frame)) }
    }

    /// Returns the charge for a segment of `len` bytes from a sample with `left` unsent bytes. The charges of
    /// all segments add up to the size used by admission, however the sample is divided. Otherwise a stream
    /// that is scheduled by bytes would receive less than its reservation.
    pub(super) fn spent(left: usize, len: usize) -> u32 {
        let rest = left.saturating_sub(len) as u128;
        let after = if rest == 0 { 0 } else { counted(rest) };
        u32::try_from(counted(left as u128).saturating_sub(after)).unwrap_or(u32::MAX)
    }
}
