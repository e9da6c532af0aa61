//! The service that samples need from a link.

use super::Link;
use crate::budget::counted;
use crate::carrier::on_wire;
use paceline_sched::Duration;
use paceline_sched::discipline::Left;

/// The size of our own headers in a frame with one segment of a typical sample, in bytes.
const FRAME_HEADERS: u64 = 64;

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
