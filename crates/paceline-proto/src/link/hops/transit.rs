//! Transit time of frames: a common path delay, and a part that depends on the frame's length.
//!
//! On a serial line a frame has arrived only when its last byte has left. A shaped line, or one faster than
//! configured, forwards whole frames at once. Charging the serial time there would make samples count as late
//! that are not. The difference cannot be configured, but acknowledgements reveal it. If a long frame is
//! acknowledged before its bytes can have left, it did not occupy the wire for that time. If the path delay
//! exceeds that time, acknowledgements show nothing, and frames are charged the full time of their bytes. The
//! estimate then errs towards ages that are too high.

use paceline_sched::Duration;

/// The minimum length on the wire of frames that are measured, in bytes. In shorter frames other delays
/// dominate.
const LONG: u64 = 800;
/// The value of [`Transit::part`] for the full serial time of a frame's bytes.
const WHOLE: u64 = 1 << 10;

/// The transit estimate from the acknowledgements of frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transit {
    /// An upper bound on the part of the serial time that a frame takes, in units of 1/[`WHOLE`].
    part: u64,
    /// The minimum round trip, without the serial time.
    trip: Option<Duration>,
}

impl Transit {
    pub(super) const fn new() -> Self {
        Self { part: WHOLE, trip: None }
    }

    /// Records that a frame was acknowledged after `took`, with `bytes` on the wire that occupy it for
    /// `wire_time`. For `held` of that time the acknowledgement was delayed at the hop, or was itself on the
    /// wire.
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

    /// Returns the round trip of a frame without bytes; `None` before the first measurement.
    pub(super) const fn round_trip(&self) -> Option<Duration> {
        self.trip
    }

    /// Returns the part of the transit time that depends on the frame's bytes, which need `wire_time` on a
    /// serial line.
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
    fn acks_of_queued_short_frames_give_no_estimate() {
        let transit = answered(&[(1_200, 4_900), (100, 5_600), (170, 5_500)]);
        assert_eq!(transit.of(micros(4_800)), micros(4_800));
        assert_eq!(transit.round_trip(), Some(micros(100)));
    }

    #[test]
    fn a_shaped_line_passes_frames_at_once() {
        let transit = answered(&[(1_200, 300), (100, 90)]);
        assert_eq!(transit.of(micros(4_800)), micros(300));
        assert_eq!(transit.round_trip(), Some(Duration::ZERO));
    }

    #[test]
    fn a_line_twice_as_fast_takes_half_the_time() {
        let transit = answered(&[(1_200, 2_400)]);
        assert_eq!(transit.of(micros(1_000)), micros(500));
    }

    #[test]
    fn the_transmission_time_of_an_ack_is_not_path_delay() {
        let mut transit = Transit::new();
        // On a slow return path the acknowledgement alone takes 12.5 ms, and a long frame precedes it.
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
