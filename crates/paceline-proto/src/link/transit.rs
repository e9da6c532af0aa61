//! How long frames are on their way: a time that all share, and what each takes for its bytes.
//!
//! A serial line has a frame only when its last byte has left. A shaped one, and one that is faster than
//! it is told to be, lets whole frames through at once: whoever counted their bytes against them would
//! take samples for late that are not. Which of both it is can't be configured, as nobody knows it, but
//! the answers tell: on a serial line those to long frames come later than those to short ones.

use paceline_sched::Duration;

/// Frames of at most so many bytes on the wire are short …
const SHORT: u64 = 400;
/// … and of at least so many long. What is between tells nothing.
const LONG: u64 = 800;
/// All of the time that a frame's bytes need, in the unit of [`Transit::part`].
const WHOLE: u64 = 1 << 10;

/// The frame that was answered soonest of its kind.
#[derive(Clone, Copy, Debug)]
struct Answered {
    bytes: u64,
    took: Duration,
}

/// What the answers to short and to long frames tell of the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transit {
    short: Option<Answered>,
    long: Option<Answered>,
    /// How much of the time that its bytes need a frame really takes.
    part: u64,
    trip: Option<Duration>,
}

impl Transit {
    /// Until both kinds were answered frames take all the time of their bytes: rather too old than late.
    pub(super) const fn new() -> Self {
        Self { short: None, long: None, part: WHOLE, trip: None }
    }

    /// A frame of `bytes` on the wire was answered after `took`. Its bytes alone need `wire_time`.
    pub(super) fn note(&mut self, bytes: u64, took: Duration, wire_time: impl Fn(u64) -> Duration) {
        let kind = match bytes {
            ..=SHORT => &mut self.short,
            LONG.. => &mut self.long,
            _ => return self.tell(&wire_time),
        };
        if kind.is_none_or(|soonest| took < soonest.took) {
            *kind = Some(Answered { bytes, took });
        }
        self.tell(&wire_time);
    }

    fn tell(&mut self, wire_time: &impl Fn(u64) -> Duration) {
        if let (Some(short), Some(long)) = (self.short, self.long) {
            let grew = long.took.saturating_sub(short.took).as_nanos();
            let bytes = wire_time(long.bytes).saturating_sub(wire_time(short.bytes)).as_nanos();
            let part = u128::from(grew) * u128::from(WHOLE) / u128::from(bytes.max(1));
            self.part = u64::try_from(part).unwrap_or(WHOLE).min(WHOLE);
        }
        let least =
            |answered: Answered| answered.took.saturating_sub(self.of(wire_time(answered.bytes)));
        self.trip = self.short.into_iter().chain(self.long).map(least).min();
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

    #[test]
    fn a_serial_line_takes_the_time_of_all_bytes() {
        let mut transit = Transit::new();
        for (bytes, queued) in [(1_200, 300), (100, 900), (1_000, 0), (80, 0), (1_200, 7_000)] {
            transit.note(bytes, wire(bytes).saturating_add(micros(20_000 + queued)), wire);
        }
        assert_eq!(transit.of(micros(4_800)), micros(4_800));
        assert_eq!(transit.round_trip(), Some(micros(20_000)));
    }

    #[test]
    fn a_shaped_one_lets_frames_through_at_once() {
        let mut transit = Transit::new();
        transit.note(1_200, micros(20_000), wire);
        assert_eq!(transit.of(micros(4_800)), micros(4_800), "nothing tells yet");
        transit.note(100, micros(20_000), wire);
        assert_eq!(transit.of(micros(4_800)), Duration::ZERO);
        assert_eq!(transit.round_trip(), Some(micros(20_000)));
    }

    #[test]
    fn one_that_is_twice_as_fast_takes_half_the_time() {
        let mut transit = Transit::new();
        transit.note(1_200, micros(5_000 + 2_400), wire);
        transit.note(200, micros(5_000 + 400), wire);
        assert_eq!(transit.of(micros(1_000)), micros(500));
        assert_eq!(transit.round_trip(), Some(micros(5_000)));
    }

    #[test]
    fn without_a_capacity_bytes_take_no_time() {
        let mut transit = Transit::new();
        transit.note(1_200, micros(90), |_| Duration::ZERO);
        transit.note(100, micros(70), |_| Duration::ZERO);
        assert_eq!(transit.of(Duration::ZERO), Duration::ZERO);
        assert_eq!(transit.round_trip(), Some(micros(70)));
    }
}
