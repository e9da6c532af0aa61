//! Pacing: keeps a link within its capacity.

mod wire;

pub(super) use wire::{PIECE_MIN, Wire, spent};

use crate::budget::CONTROL_SHARE;
use paceline_sched::{Capacity, Duration, Instant};

/// The time by which the link may catch up after a late wake-up.
const CATCH_UP: Duration = Duration::from_millis(1);
/// Control may send at least one full frame in this time, even beyond its share.
const CONTROL_FRAME_EVERY: Duration = Duration::from_millis(20);

/// Spaces frames by their transmission times, and limits control to its share.
#[derive(Debug)]
pub(super) struct Pacer {
    pub(super) wire: Wire,
    busy_until: Instant,
    /// The time at which the wire is free: like [`Self::busy_until`], but without catching up.
    free_at: Instant,
    /// The wire was free and nothing was queued. The time since then is not caught up. Otherwise each pause
    /// would cause a queue below the link that lasts until the next pause.
    idle: bool,
    /// Until this instant on the wire, frames leave together with the first one of the burst.
    burst_ends: Instant,
    /// The last instant at which frames left late.
    caught_up_at: Instant,
    control_free_at: Instant,
    /// The frame length that bounds the price of control.
    control_frame: u64,
}

impl Pacer {
    /// Returns a pacer for a wire. Without a capacity it never delays frames.
    #[must_use]
    pub(super) const fn new(wire: Wire) -> Self {
        let (busy_until, free_at, control_free_at) = (Instant::ZERO, Instant::ZERO, Instant::ZERO);
        let (burst_ends, caught_up_at) = (Instant::ZERO, Instant::ZERO);
        let control_frame = wire.frame_bytes;
        Self {
            wire,
            busy_until,
            free_at,
            idle: true,
            burst_ends,
            caught_up_at,
            control_free_at,
            control_frame,
        }
    }

    /// Returns the time at which the next frame may leave; a time in the past within a burst.
    #[must_use]
    pub(super) fn ready_at(&self) -> Instant {
        if self.busy_until < self.burst_ends { Instant::ZERO } else { self.busy_until }
    }

    /// Returns the time at which the transmission of a frame begins that leaves at `now`: after those of its burst.
    #[must_use]
    pub(super) fn starts_at(&self, now: Instant) -> Instant {
        self.busy_until.max(now)
    }

    /// Returns the time at which the next background frame may leave: when the wire is free, even if earlier
    /// frames left early to catch up.
    #[must_use]
    pub(super) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Returns the time at which the next control segment may leave.
    #[must_use]
    pub(super) const fn control_ready_at(&self) -> Instant {
        self.control_free_at
    }

    /// Changes the capacity from `now` on. Bytes that are still on the wire take their time at the new
    /// capacity.
    pub(super) fn set_capacity(&mut self, now: Instant, capacity: Capacity) {
        let wire = Wire::new(Some(capacity), self.wire.carrier);
        let before = core::mem::replace(&mut self.wire, wire);
        if let Some(before) = before.capacity {
            let rest = |until: Instant| capacity.time_for(before.bytes_in(until.since(now)));
            self.busy_until = self.busy_until.min(now) + rest(self.busy_until);
            self.free_at = self.free_at.min(now) + rest(self.free_at);
            self.burst_ends = Instant::ZERO;
            self.control_free_at = self.control_free_at.min(now) + rest(self.control_free_at);
        }
        self.control_frame = self.wire.frame_bytes;
    }

    /// Counts a frame of `bytes` on the wire as sent.
    pub(super) fn handle_sent(&mut self, now: Instant, bytes: u64) {
        let catch_up = if self.idle { Duration::ZERO } else { CATCH_UP };
        let start = self.busy_until.max(now - catch_up);
        if self.busy_until >= self.burst_ends {
            // The first frame of a burst. All of them end within its time, or by now if they catch up: then a single frame
            // follows, because those before it have just reached the wire.
            let rest = self.wire.burst().saturating_sub(self.wire.frame_time());
            let follows = self.caught_up_at == now;
            self.burst_ends = if follows { now } else { (start + rest).max(now) };
            self.caught_up_at = if start < now { now } else { self.caught_up_at };
        }
        self.busy_until = start + self.wire.time_of(bytes);
        self.free_at = self.free_at.max(now) + self.wire.time_of(bytes);
        self.idle = false;
    }

    /// Counts a background frame of `bytes` as sent. Neither it nor the frames after it catch up: live
    /// samples find the wire as after a pause, once the frame has left.
    pub(super) fn handle_background(&mut self, now: Instant, bytes: u64) {
        self.free_at = self.free_at.max(now) + self.wire.time_of(bytes);
        self.busy_until = self.free_at;
        self.idle = true;
        self.burst_ends = Instant::ZERO;
    }

    /// Notes that a frame could have left at `now`, but none was queued. This ends a burst.
    pub(super) fn handle_idle(&mut self, now: Instant) {
        self.burst_ends = Instant::ZERO;
        self.idle |= now >= self.busy_until;
    }

    /// Counts `bytes` of control as sent and charges them at the rate of control's share.
    pub(super) fn handle_control(&mut self, now: Instant, bytes: u64) {
        let by_share = self.wire.time_of(bytes).mul_div(CONTROL_SHARE, 1);
        let by_frame = CONTROL_FRAME_EVERY.mul_div(bytes, self.control_frame.max(1));
        let cost = by_share.min(by_frame);
        if self.wire.is_paced() {
            self.control_free_at = self.control_free_at.max(now) + cost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::BURST;
    use crate::carrier::Carrier;

    fn paced(capacity: Option<Capacity>, frame_bytes: u64) -> Pacer {
        Pacer::new(Wire { capacity, carrier: Carrier::Ordered, frame_bytes })
    }

    #[test]
    fn frames_leave_no_faster_than_the_capacity() {
        let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
        let mut pacer = paced(Some(thin), 1_200);
        let mut now = Instant::from_millis(1_000);
        for _ in 0..1_000 {
            now = now.max(pacer.ready_at());
            pacer.handle_sent(now, 1_250);
        }
        let took = pacer.ready_at().since(Instant::from_millis(1_000));
        assert_eq!(took, Duration::from_millis(5_000));
    }

    #[test]
    fn the_pacer_makes_up_for_a_late_wakeup_but_not_for_a_pause() {
        let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
        let mut pacer = paced(Some(thin), 1_200);
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
    fn frames_of_a_fast_link_leave_in_bursts_at_its_rate() {
        let fast = Capacity::from_bits_per_s(100_000_000).unwrap();
        let (begin, mut now) = (Instant::from_millis(1_000), Instant::from_millis(1_000));
        let wire = Wire { capacity: Some(fast), carrier: Carrier::Datagrams, frame_bytes: 1_150 };
        let mut pacer = Pacer::new(wire);
        let mut bursts = Vec::new();
        for _ in 0..500 {
            if now < pacer.ready_at() {
                now = pacer.ready_at();
                bursts.push(0);
            }
            pacer.handle_sent(now, 1_250);
            assert!(pacer.busy_until.since(now) <= BURST, "0.1 ms each");
            if let Some(burst) = bursts.last_mut() {
                *burst += 1;
            }
        }
        assert_eq!(pacer.busy_until.since(begin), Duration::from_millis(50));
        assert!(bursts.len() == 124 && bursts.iter().all(|burst| *burst == 4), "{bursts:?}");
        // A late wake-up: the frames that should have left meanwhile leave, and no more.
        now = pacer.ready_at() + Duration::from_micros(800);
        let mut together = 0;
        while now >= pacer.ready_at() {
            pacer.handle_sent(now, 1_250);
            together += 1;
        }
        assert_eq!((together, pacer.ready_at().since(now)), (9, Duration::from_micros(100)));
        let end = |pacer: &mut Pacer, what: fn(&mut Pacer, Instant)| {
            let now = pacer.ready_at();
            pacer.handle_sent(now, 1_250);
            assert!(pacer.ready_at() <= now, "within the burst");
            what(pacer, now);
            assert_eq!(pacer.ready_at(), pacer.busy_until, "the burst has ended");
        };
        end(&mut pacer, Pacer::handle_idle);
        end(&mut pacer, |it, now| it.handle_background(now, 1_250));
        end(&mut pacer, |it, now| {
            it.set_capacity(now, Capacity::from_bits_per_s(90_000_000).unwrap())
        });
    }

    #[test]
    fn the_background_makes_up_for_nothing_and_waits_for_earlier_frames() {
        let thin = Capacity::from_bits_per_s(2_000_000).unwrap();
        let mut pacer = paced(Some(thin), 1_200);
        let late = |millis| Instant::from_millis(millis) + Duration::from_micros(500);
        pacer.handle_background(Instant::from_millis(1_000), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_005));
        pacer.handle_background(late(1_005), 1_250);
        assert_eq!((pacer.ready_at(), pacer.free_at()), (late(1_010), late(1_010)));
        // The next live frame finds the wire as after a pause.
        pacer.handle_sent(late(1_010) + Duration::from_micros(500), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_016));
        pacer.handle_sent(late(1_016), 1_250);
        assert_eq!((pacer.ready_at(), pacer.free_at()), (Instant::from_millis(1_021), late(1_021)));
    }

    #[test]
    fn bytes_on_the_wire_take_their_time_at_the_new_capacity() {
        let bits = |bits| Capacity::from_bits_per_s(bits).unwrap();
        let mut pacer = paced(Some(bits(8)), 1_200);
        pacer.handle_sent(Instant::from_millis(1_000), 1_250);
        assert_eq!(pacer.ready_at(), Instant::from_millis(1_251_000));
        pacer.set_capacity(Instant::from_millis(251_000), bits(8_000));
        assert_eq!(pacer.ready_at(), Instant::from_millis(252_000), "1,000 bytes are left");
        pacer.set_capacity(Instant::from_millis(260_000), bits(8));
        assert_eq!(pacer.ready_at(), Instant::from_millis(252_000), "the wire was free");
    }

    #[test]
    fn control_stays_within_its_share() {
        let fast = Capacity::from_bits_per_s(100_000_000).unwrap();
        let mut pacer = paced(Some(fast), 25_000);
        pacer.handle_control(Instant::ZERO, 25_000);
        assert_eq!(pacer.control_ready_at(), Instant::from_millis(20), "a frame in 20 ms");
        let mut free = paced(None, 60_000);
        free.handle_control(Instant::ZERO, 25_000);
        assert_eq!(free.control_ready_at(), Instant::ZERO);
    }
}
