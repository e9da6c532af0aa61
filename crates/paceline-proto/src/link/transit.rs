//! How long frames are on their way: a time that all share, and what each takes for its bytes.
//!
//! A serial line has a frame only when its last byte has left. A shaped one, and one that is faster than
//! it is told to be, lets whole frames through at once: whoever counted their bytes against them would
//! take samples for late that are not. Nobody can configure which of both it is, but the answers tell: a
//! long frame that is answered before its bytes can have left was no burden to the wire. Where the way
//! itself takes longer than that nothing tells, and frames take all the time of their bytes: rather too
//! old than late.

use paceline_sched::Duration;

/// Frames of at least so many bytes on the wire tell what bytes take; in shorter ones they are the least
/// of it.
const LONG: u64 = 800;
/// All of the time that a frame's bytes need, in the unit of [`Transit::part`].
const WHOLE: u64 = 1 << 10;

/// What the answers to frames tell of the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transit {
    /// How much of the time that its bytes need a frame takes at most.
    part: u64,
    /// The least round trip, but for what bytes take.
    trip: Option<Duration>,
}

impl Transit {
    pub(super) const fn new() -> Self {
        Self { part: WHOLE, trip: None }
    }

    /// A frame of `bytes` on the wire, which keep it busy for `wire_time`, was answered after `took`. For
    /// `held` of that the answer waited for its turn, or was itself on the wire.
    pub(super) fn note(
        &mut self,
        bytes: u64,
        (took, held): (Duration, Duration),
        wire_time: Duration,
    ) {
        if bytes >= LONG && took < wire_time {
            let part = u128::from(took.as_nanos()) * u128::from(WHOLE);
            let part = part.div_ceil(u128::from(wire_time.as_nanos().max(1)));
            self.part = self.part.min(u64::try_from(part).unwrap_or(WHOLE));
        }
        let trip = took.saturating_sub(wire_time).saturating_sub(held);
        self.trip = Some(self.trip.map_or(trip, |least| least.min(trip)));
    }

    /// The round trip of a frame without bytes; `None` before the first answer.
    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.trip
    }

    /// How long a frame whose bytes need `wire_time` is on its way for them.
    pub(super) fn of(&self, wire_time: Duration) -> Duration {
        wire_time.mul_div(self.part, WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// 2 Mbit/s.
    fn wire(bytes: u64) -> Duration {
        micros(bytes * 4)
    }

    fn answered(frames: &[(u64, u64)]) -> Transit {
        let mut transit = Transit::new();
        for &(bytes, took) in frames {
            transit.note(bytes, (micros(took), Duration::ZERO), wire(bytes));
        }
        transit
    }

    #[test]
    fn a_serial_line_takes_the_time_of_all_bytes() {
        let transit = answered(&[(1_200, 25_100), (100, 21_300), (1_000, 24_000), (1_200, 31_800)]);
        assert_eq!(transit.of(micros(4_800)), micros(4_800));
        assert_eq!(transit.round_trip(), Some(micros(20_000)));
    }

    #[test]
    fn answers_to_short_frames_that_wait_for_others_tell_nothing() {
        let transit = answered(&[(1_200, 4_900), (100, 5_600), (170, 5_500)]);
        assert_eq!(transit.of(micros(4_800)), micros(4_800));
        assert_eq!(transit.round_trip(), Some(micros(100)));
    }

    #[test]
    fn a_shaped_one_lets_frames_through_at_once() {
        let transit = answered(&[(1_200, 300), (100, 90)]);
        assert_eq!(transit.of(micros(4_800)), micros(300));
        assert_eq!(transit.round_trip(), Some(Duration::ZERO));
    }

    #[test]
    fn one_that_is_twice_as_fast_takes_half_the_time() {
        let transit = answered(&[(1_200, 2_400)]);
        assert_eq!(transit.of(micros(1_000)), micros(500));
    }

    #[test]
    fn what_an_answer_takes_itself_is_no_part_of_the_way() {
        let mut transit = Transit::new();
        // On a thin way back the answer alone takes 12.5 ms, and before it went a long frame.
        transit.note(1_200, (micros(4_800 + 100 + 12_500), micros(12_500)), wire(1_200));
        transit.note(1_200, (micros(4_800 + 140 + 160_000), micros(160_000)), wire(1_200));
        assert_eq!(transit.round_trip(), Some(micros(100)));
    }

    #[test]
    fn without_a_capacity_bytes_take_no_time() {
        let mut transit = Transit::new();
        transit.note(1_200, (micros(90), Duration::ZERO), Duration::ZERO);
        assert_eq!(transit.of(Duration::ZERO), Duration::ZERO);
        assert_eq!(transit.round_trip(), Some(micros(90)));
    }
}
