//! The wire of a link: its capacity, its carrier and the length of its frames.

use super::CATCH_UP;
use crate::budget::{BURST, counted, in_the_way, is_fast, piece_on_wire};
use crate::carrier::{Carrier, WIRE_OVERHEAD, off_wire, on_wire};
use paceline_sched::discipline::Left;
use paceline_sched::{Capacity, Duration, Policy};

/// The size of our own headers in a frame with one segment of a typical sample, in bytes.
const FRAME_HEADERS: u64 = 64;

/// The minimum size of a piece, in bytes, when a sample or message is cut to fill the rest of a frame. Shorter ones are never
/// cut.
pub(in crate::link) const PIECE_MIN: usize = 256;

/// The wire of a link.
#[derive(Clone, Copy, Debug)]
pub(in crate::link) struct Wire {
    /// `None` if frames are not paced.
    pub(in crate::link) capacity: Option<Capacity>,
    pub(in crate::link) carrier: Carrier,
    /// The maximum frame length, in bytes.
    pub(in crate::link) frame_bytes: u64,
}

impl Wire {
    pub(in crate::link) fn new(capacity: Option<Capacity>, carrier: Carrier) -> Self {
        Self { capacity, carrier, frame_bytes: carrier.frame_bytes(capacity) }
    }

    /// Returns `true` if the link has a capacity, so that its frames are spaced.
    pub(in crate::link) const fn is_paced(&self) -> bool {
        self.capacity.is_some()
    }

    /// Limits frames to those of datagrams, when only the other end knew that frames may be lost.
    pub(in crate::link) fn expect_loss(&mut self) {
        self.frame_bytes = self.frame_bytes.min(Carrier::Datagrams.frame_bytes_max());
    }

    /// Returns the time for which `bytes` occupy the wire; zero without a capacity.
    #[must_use]
    pub(in crate::link) fn time_of(&self, bytes: u64) -> Duration {
        self.capacity.map_or(Duration::ZERO, |capacity| capacity.time_for(bytes))
    }

    /// Returns the time for which a full frame keeps the link busy.
    pub(in crate::link) fn frame_time(&self) -> Duration {
        self.time_of(self.frame_on_wire())
    }

    /// Returns the size of a full frame on the wire, in bytes.
    pub(in crate::link) const fn frame_on_wire(&self) -> u64 {
        on_wire(self.frame_bytes)
    }

    /// Returns the time that counts as none on this wire: that of a full frame, or [`CATCH_UP`] if that is longer. Threads
    /// do not wake up more exactly.
    pub(in crate::link) fn grain(&self) -> Duration {
        self.frame_time().max(CATCH_UP)
    }

    /// Returns the longest delay of acknowledgements, zero where only a few frames fit into it. Each answer costs both
    /// ends a wake-up of several threads, and so much may be in flight beyond the path.
    pub(in crate::link) fn answers_within(&self) -> Duration {
        let is_fast = |it: Capacity| is_fast(it, self.carrier.frame_on_wire(it));
        let several = self.capacity.is_some_and(is_fast);
        if several { BURST } else { Duration::ZERO }
    }

    /// Returns the time on the wire of the frames that leave together: that of one frame, or [`BURST`] where several
    /// fit into it, so that they share the wake-ups of the threads at both ends.
    pub(in crate::link) fn burst(&self) -> Duration {
        self.frame_time().max(self.answers_within())
    }

    /// Returns the bytes that a frame of `bytes` occupies on this wire. A link without a capacity is usually
    /// loopback or a unix socket, which adds no per-packet overhead.
    pub(in crate::link) fn occupied(&self, bytes: u64) -> u64 {
        self.capacity.map_or(bytes + WIRE_OVERHEAD, |_| on_wire(bytes))
    }

    /// Returns the bytes that the wire carries in `time`; 0 without a capacity.
    pub(in crate::link) fn carried(&self, time: Duration) -> u64 {
        self.capacity.map_or(0, |capacity| capacity.bytes_in(time))
    }

    /// Returns the length of the longest frame that leaves within `time`; `None` without a capacity.
    pub(in crate::link) fn frame_within(&self, time: Duration) -> Option<usize> {
        let bytes = off_wire(self.capacity?.bytes_in(time));
        Some(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Returns the maximum frame length, in bytes.
    pub(in crate::link) fn limit(&self) -> usize {
        usize::try_from(self.frame_bytes).unwrap_or(usize::MAX)
    }

    /// Returns the size on the wire of a piece of control ahead of contracted samples.
    pub(in crate::link) const fn control_piece(&self) -> u64 {
        piece_on_wire(self.frame_on_wire())
    }

    /// Returns the longest time for which traffic already on the link can delay a stream, however early its
    /// deadline is.
    pub(in crate::link) fn blocked(&self, policy: Policy) -> Duration {
        let bytes = |capacity| in_the_way(policy, capacity, self.carrier);
        self.time_of(self.capacity.map_or(0, bytes))
    }

    /// Returns the time that the link needs for `bytes` of payload, divided into frames.
    pub(in crate::link) fn service(&self, bytes: usize) -> Duration {
        let (frames, headers) = self.frames_of(bytes as u64);
        self.time_of(bytes as u64 + frames * headers)
    }

    /// Returns the number of frames for `bytes` of payload, and the header bytes of each.
    pub(in crate::link) fn frames_of(&self, bytes: u64) -> (u64, u64) {
        let frames = bytes.div_ceil(self.frame_bytes - FRAME_HEADERS).max(1);
        let frame = (bytes + FRAME_HEADERS).min(self.frame_bytes);
        (frames, FRAME_HEADERS + on_wire(frame) - frame)
    }

    /// Returns the service demand of `bytes` of payload for the discipline.
    pub(in crate::link) fn left(&self, bytes: usize) -> Left {
        let frame = usize::try_from(self.frame_bytes - FRAME_HEADERS).unwrap_or(usize::MAX);
        let segment = spent(bytes, bytes.min(frame));
        Left { service: self.service(bytes), segment, last: bytes < PIECE_MIN.min(frame + 1) }
    }

    /// Returns the size of a sample on the wire, if it is sent alone.
    pub(in crate::link) fn sample_bytes(&self, payload: usize) -> u64 {
        let (frames, headers) = self.frames_of(payload as u64);
        payload as u64 + frames * headers
    }
}

/// Returns the charge for a segment of `len` bytes from a sample with `left` unsent bytes. The charges of
/// all segments add up to the size used by admission, however the sample is divided. Otherwise a stream
/// that is scheduled by bytes would receive less than its reservation.
pub(in crate::link) fn spent(left: usize, len: usize) -> u32 {
    let rest = left.saturating_sub(len) as u128;
    let after = if rest == 0 { 0 } else { counted(rest) };
    u32::try_from(counted(left as u128).saturating_sub(after)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_takes_two_milliseconds_and_each_frame_has_headers() {
        let wire =
            Wire::new(Some(Capacity::from_bits_per_s(80_000_000).unwrap()), Carrier::Ordered);
        assert_eq!(wire.frame_bytes, 20_000);
        assert_eq!(wire.frames_of(0), (1, 64 + 100));
        assert_eq!(wire.frames_of(19_936), (1, 64 + 100 + 14 * 80));
        assert_eq!(wire.frames_of(19_937).0, 2);
        assert_eq!(wire.sample_bytes(1_000), 1_000 + 64 + 100);
        assert_eq!(wire.service(1_000), wire.time_of(1_164));
        assert_eq!(wire.frame_within(wire.frame_time()), Some(19_920), "rounded down by a packet");
    }

    #[test]
    fn without_a_capacity_nothing_takes_time() {
        let mut wire = Wire::new(None, Carrier::Local);
        assert_eq!((wire.frame_time(), wire.service(1 << 20)), (Duration::ZERO, Duration::ZERO));
        assert_eq!((wire.occupied(5_000), wire.frame_within(Duration::ZERO)), (5_100, None));
        wire.expect_loss();
        assert_eq!(wire.limit(), 1_350);
    }

    #[test]
    fn the_charges_of_a_samples_segments_add_up_however_it_is_divided() {
        let whole = spent(10_000, 10_000);
        for cut in [1, 700, 1_090, 9_999] {
            assert_eq!(spent(10_000, cut) + spent(10_000 - cut, 10_000 - cut), whole);
        }
    }
}
