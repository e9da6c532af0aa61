//! Keeping a link's promise to the wire: never faster than its capacity.

use paceline_sched::{Capacity, Duration, Instant};

/// How far the link may catch up after a late wake-up.
const CATCH_UP: Duration = Duration::from_millis(1);
/// Control may use one part in this many of the capacity …
pub(super) const CONTROL_SHARE: u64 = 20;
/// … and at least one frame in this time.
const CONTROL_FRAME_EVERY: Duration = Duration::from_millis(20);

/// Spaces frames by the time that each keeps the wire busy, and holds control to its share.
#[derive(Debug)]
pub(super) struct Pacer {
    capacity: Option<Capacity>,
    busy_until: Instant,
    /// When the wire has carried everything: as [`Self::busy_until`], but without catching up.
    free_at: Instant,
    /// The wire was free and there was nothing to send: the time since then is not caught up, or
    /// each pause would leave a queue below that lasts until the next one.
    idle: bool,
    control_free_at: Instant,
    frame_bytes: u64,
}

impl Pacer {
    /// A pacer for frames of at most `frame_bytes`; without a capacity it never waits.
    #[must_use]
    pub(super) const fn new(capacity: Option<Capacity>, frame_bytes: u64) -> Self {
        let (busy_until, free_at, control_free_at) = (Instant::ZERO, Instant::ZERO, Instant::ZERO);
        Self { capacity, busy_until, free_at, idle: true, control_free_at, frame_bytes }
    }

    /// When the next frame may leave.
    #[must_use]
    pub(super) const fn ready_at(&self) -> Instant {
        self.busy_until
    }

    /// When the next frame in the background may leave: nothing is on the wire any more, also if frames
    /// before it left sooner, to catch up.
    #[must_use]
    pub(super) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// When the next control segment may leave.
    #[must_use]
    pub(super) const fn control_ready_at(&self) -> Instant {
        self.control_free_at
    }

    /// How long `bytes` keep the wire busy; no time at all without a capacity.
    #[must_use]
    pub(super) fn wire_time(&self, bytes: u64) -> Duration {
        self.capacity.map_or(Duration::ZERO, |capacity| capacity.time_for(bytes))
    }

    /// Another capacity from `now` on: what the wire still has to carry takes its time at that one.
    pub(super) fn set_capacity(&mut self, now: Instant, capacity: Capacity, frame_bytes: u64) {
        if let Some(before) = self.capacity.replace(capacity) {
            let rest = |until: Instant| capacity.time_for(before.bytes_in(until.since(now)));
            self.busy_until = self.busy_until.min(now) + rest(self.busy_until);
            self.free_at = self.free_at.min(now) + rest(self.free_at);
            self.control_free_at = self.control_free_at.min(now) + rest(self.control_free_at);
        }
        self.frame_bytes = frame_bytes;
    }

    /// Counts a frame of `bytes` on the wire as sent.
    pub(super) fn handle_sent(&mut self, now: Instant, bytes: u64) {
        let catch_up = if self.idle { Duration::ZERO } else { CATCH_UP };
        let start = self.busy_until.max(now - catch_up);
        self.busy_until = start + self.wire_time(bytes);
        self.free_at = self.free_at.max(now) + self.wire_time(bytes);
        self.idle = false;
    }

    /// Counts a frame of `bytes` that carries nothing live as sent. Nothing is caught up for it, nor
    /// behind it: live samples find the wire as if it had been idle, once the frame has gone.
    pub(super) fn handle_background(&mut self, now: Instant, bytes: u64) {
        self.free_at = self.free_at.max(now) + self.wire_time(bytes);
        self.busy_until = self.free_at;
        self.idle = true;
    }

    /// A frame could have left at `now`, but none was there.
    pub(super) fn handle_idle(&mut self, now: Instant) {
        self.idle |= now >= self.busy_until;
    }

    /// Counts `bytes` of control as sent: they are paid for at the control share's rate.
    pub(super) fn handle_control(&mut self, now: Instant, bytes: u64) {
        let by_share = self.wire_time(bytes).mul_div(CONTROL_SHARE, 1);
        let by_frame = CONTROL_FRAME_EVERY.mul_div(bytes, self.frame_bytes.max(1));
        let cost = by_share.min(by_frame);
        if self.capacity.is_some() {
            self.control_free_at = self.control_free_at.max(now) + cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_no_faster_than_the_capacity() {
        let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
        let mut pacer = Pacer::new(Some(thin), 1_200);
        let mut now = Instant::from_millis(1_000);
        for _ in 0..1_000 {
            now = now.max(pacer.ready_at());
            pacer.handle_sent(now, 1_250);
        }
        let took = pacer.ready_at().since(Instant::from_millis(1_000));
        assert_eq!(took, Duration::from_millis(5_000));
    }

    #[test]
    fn a_late_wake_up_is_caught_up_but_a_pause_is_not() {
        let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
        let mut pacer = Pacer::new(Some(thin), 1_200);
        pacer.handle_sent(Instant::from_millis(1_000), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_005));
        pacer.handle_sent(Instant::from_millis(1_005) + Duration::from_micros(500), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_010));
        pacer.handle_sent(Instant::from_millis(1_020), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_024), "no more than 1 ms");
        pacer.handle_idle(Instant::from_millis(1_024));
        pacer.handle_sent(Instant::from_millis(1_024) + Duration::from_micros(500), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_029) + Duration::from_micros(500));
    }

    #[test]
    fn the_background_is_not_caught_up_and_waits_for_what_was() {
        let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
        let mut pacer = Pacer::new(Some(thin), 1_200);
        let late = |millis| Instant::from_millis(millis) + Duration::from_micros(500);
        pacer.handle_background(Instant::from_millis(1_000), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_005));
        pacer.handle_background(late(1_005), 1_250);
        assert_eq!((pacer.ready_at(), pacer.free_at()), (late(1_010), late(1_010)));
        // What comes behind it finds the wire as after a pause.
        pacer.handle_sent(late(1_010) + Duration::from_micros(500), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_016));
        pacer.handle_sent(late(1_016), 1_250);
        assert_eq!((pacer.ready_at(), pacer.free_at()), (Instant::from_millis(1_021), late(1_021)));
    }

    #[test]
    fn what_is_on_the_wire_takes_its_time_at_the_new_capacity() {
        let bits = |bits| Capacity::from_bits_per_s(bits).unwrap();
        let mut pacer = Pacer::new(Some(bits(8)), 1_200);
        pacer.handle_sent(Instant::from_millis(1_000), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_251_000));
        pacer.set_capacity(Instant::from_millis(251_000), bits(8_000), 1_200);
        assert_eq!(pacer.ready_at(), Instant::from_millis(252_000), "1,000 bytes are left");
        pacer.set_capacity(Instant::from_millis(260_000), bits(8), 1_200);
        assert_eq!(pacer.ready_at(), Instant::from_millis(252_000), "the wire was free");
    }

    #[test]
    fn control_keeps_to_its_share() {
        let fast = Capacity::from_bits_per_s(100_000_000).unwrap();
        let mut pacer = Pacer::new(Some(fast), 25_000);
        pacer.handle_control(Instant::ZERO, 25_000);
        assert_eq!(pacer.control_ready_at(), Instant::from_millis(20), "a frame in 20 ms");
        let mut free = Pacer::new(None, 60_000);
        free.handle_control(Instant::ZERO, 25_000);
        assert_eq!(free.control_ready_at(), Instant::ZERO);
    }
}
