//! Loss detection: decides when an unacknowledged frame is lost, and not merely reordered or late.
//!
//! The rules follow RFC 9002, section 6. A frame is lost once a frame sent three later is acknowledged. It is
//! also lost once any later frame is acknowledged and 9/8 of a round trip has passed. Without any
//! acknowledgement, for instance for the last frame of a burst, a frame is lost after a timeout. The timeout
//! is one RTT plus RTT/8, or plus four times the RTT variation if that is more.
//!
//! Reordering is not loss. A late acknowledgement of an overtaken frame shows the reordering delay of the
//! path. For some time afterwards only time counts, and the time limit grows by that delay. RACK (RFC 8985)
//! does the same, but learns the delay from spurious retransmissions.

use super::smoothed::Smoothed;
use paceline_sched::{Duration, Instant};

/// The packet threshold: a frame is lost when one sent this many frames later was acknowledged.
const LATER_FRAMES: u64 = 3;
/// The time for which observed reordering is remembered.
const REORDERS_FOR: Duration = Duration::from_secs(10);
/// The maximum number of doublings of the timeout during silence.
const DOUBLED_MAX: u32 = 3;

/// The round-trip and reordering estimates of a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    smoothed: Smoothed,
    latest: Duration,
    /// The extra delay of reordered frames.
    reorder: Duration,
    reorders_until: Instant,
    /// The number of consecutive timeouts without an acknowledgement.
    silences: u32,
    /// The time of the last counted timeout.
    silent_since: Instant,
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            smoothed: Smoothed::default(),
            latest: Duration::ZERO,
            reorder: Duration::ZERO,
            reorders_until: Instant::ZERO,
            silences: 0,
            silent_since: Instant::ZERO,
        }
    }
}

impl Losses {
    /// Records a measured round trip.
    pub(super) fn note_trip(&mut self, trip: Duration) {
        self.latest = trip;
        self.smoothed.note(trip);
    }

    /// Records a frame that was acknowledged after later ones, with a round trip of `trip`.
    pub(super) fn note_reordered(&mut self, now: Instant, trip: Duration) {
        let smoothed = self.smoothed.measured().unwrap_or(trip);
        let late = trip.saturating_sub(smoothed).mul_div(9, 8);
        self.reorder = self.reorder.max(late).min(smoothed);
        self.reorders_until = now + REORDERS_FOR;
    }

    /// Records the first acknowledgement of a frame.
    pub(super) const fn note_progress(&mut self) {
        self.silences = 0;
    }

    /// Records a frame that was given up without any acknowledgement.
    pub(super) fn note_silence(&mut self, now: Instant) {
        if self.silences == 0 || now >= self.silent_since + self.smoothed.trip() {
            self.silences += 1;
            self.silent_since = now;
        }
    }

    /// Returns the packet threshold; `None` while only time counts.
    pub(super) fn later_frames(&self, now: Instant) -> Option<u64> {
        (now >= self.reorders_until).then_some(LATER_FRAMES)
    }

    /// Returns the time after departure at which a frame is lost if a later one was acknowledged.
    pub(super) fn overtaken_for(&self, now: Instant) -> Duration {
        let trip = self.smoothed.trip().max(self.latest).mul_div(9, 8);
        trip.saturating_add(self.reorder(now))
    }

    /// Returns the time after departure at which a frame is lost if neither it nor a later one was
    /// acknowledged.
    pub(super) fn silent_for(&self, now: Instant) -> Duration {
        let doubled = self.silences.saturating_sub(1).min(DOUBLED_MAX);
        self.smoothed.timeout().saturating_add(self.reorder(now)).mul_div(1 << doubled, 1)
    }

    fn reorder(&self, now: Instant) -> Duration {
        if now < self.reorders_until { self.reorder } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn steady() -> Losses {
        let mut losses = Losses::default();
        (0..100).for_each(|_| losses.note_trip(millis(40)));
        losses
    }

    #[test]
    fn a_steady_path_is_trusted_within_an_eighth() {
        let losses = steady();
        let now = Instant::from_millis(60_000);
        assert_eq!(losses.overtaken_for(now), millis(45));
        assert_eq!(losses.silent_for(now), millis(45));
        assert_eq!(losses.later_frames(now), Some(3));
        assert!(Losses::default().silent_for(now) >= millis(200), "nothing is known yet");
    }

    #[test]
    fn late_frames_are_awaited_for_a_bounded_time() {
        let mut losses = steady();
        let now = Instant::from_millis(60_000);
        losses.note_reordered(now, millis(56));
        assert_eq!(losses.later_frames(now), None);
        assert_eq!(losses.overtaken_for(now), millis(45 + 18));
        losses.note_reordered(now, millis(4_000));
        assert_eq!(losses.overtaken_for(now), millis(45 + 40), "a round trip at most");
        let later = now + millis(10_000);
        assert_eq!(
            (losses.later_frames(later), losses.overtaken_for(later)),
            (Some(3), millis(45))
        );
    }

    #[test]
    fn silence_backs_off_until_the_next_answer() {
        let mut losses = steady();
        let mut now = Instant::from_millis(60_000);
        losses.note_silence(now);
        losses.note_silence(now + millis(5));
        assert_eq!(losses.silent_for(now), millis(45), "one burst");
        for _ in 0..10 {
            now += millis(100);
            losses.note_silence(now);
        }
        assert_eq!(losses.silent_for(now), millis(45 * 8));
        losses.note_progress();
        assert_eq!(losses.silent_for(now), millis(45));
    }
}
