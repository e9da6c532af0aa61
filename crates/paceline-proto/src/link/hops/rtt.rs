//! Round-trip estimation: path delay and the peer's acknowledgement delay.
//!
//! At the peer, an acknowledgement waits for the frame in transmission and is carried by the next one. The
//! header states this delay for the newest acknowledged frame. The rest of the round trip is the path delay
//! plus queueing below the link. Earlier frames have a longer acknowledgement delay, by the time that they
//! arrived before the newest.

use paceline_sched::time::jitter_step;
use paceline_sched::{Duration, Instant};

/// The length of one of the two windows over which minima and maxima are taken.
const WINDOW: Duration = Duration::from_secs(10);

/// The round rtt to a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct RttEstimator {
    /// The minimum round rtt of two windows, with the starts of the windows.
    least: [(Instant, Duration); 2],
    /// The maximum acknowledgement delays of two windows, with the starts of the windows.
    held: [(Instant, Duration); 2],
    last: Duration,
    /// Sixteen times the jitter of the round trips in nanoseconds; `None` before the first measurement.
    jitter: Option<u64>,
}

impl RttEstimator {
    pub(super) const fn new() -> Self {
        let (least, held) = (Duration::MAX, Duration::ZERO);
        Self {
            least: [(Instant::ZERO, least); 2],
            held: [(Instant::ZERO, held); 2],
            last: Duration::ZERO,
            jitter: None,
        }
    }

    /// Records that the newest of some frames was acknowledged after `trip`, including an acknowledgement
    /// delay of `held`. The oldest of them was acknowledged after `longest`.
    pub(super) fn note(
        &mut self,
        now: Instant,
        (trip, held): (Duration, Duration),
        longest: Duration,
    ) {
        let before = core::mem::replace(&mut self.last, trip.saturating_sub(held));
        let change = self.last.as_nanos().abs_diff(before.as_nanos());
        self.jitter = Some(self.jitter.map_or(0, |scaled| jitter_step(scaled, change)));
        note(&mut self.least, now, self.last, Duration::min);
        // An acknowledgement waits for one frame and is carried by another, so the delay is at most twice the
        // last one. Any excess means that the path was blocked, and no more should be sent into it.
        let waited = longest.saturating_sub(self.last).min(held.saturating_add(held));
        note(&mut self.held, now, waited, Duration::max);
    }

    /// Returns the minimum round trip of the last 10 to 20 s; `None` before the first measurement.
    pub(super) fn least(&self) -> Option<Duration> {
        let [(_, old), (_, new)] = self.least;
        let least = old.min(new);
        (least != Duration::MAX).then_some(least)
    }

    /// Returns the last round trip and the jitter of all, by the running mean of RFC 3550, section 6.4.1; `None` before the
    /// first measurement. Changes of both directions count, without the acknowledgement delay.
    pub(super) fn present(&self) -> Option<(Duration, Duration)> {
        self.jitter.map(|scaled| (self.last, Duration::from_nanos(scaled >> 4)))
    }

    /// Returns the longest acknowledgement delay of the last 10 to 20 s.
    pub(super) fn longest_held(&self) -> Duration {
        let [(_, old), (_, new)] = self.held;
        old.max(new)
    }

    /// Returns the delay of the last acknowledgement beyond the path delay: the queueing below the link.
    pub(super) fn queued(&self) -> Duration {
        self.last.saturating_sub(self.least().unwrap_or_default())
    }
}

fn note(
    windows: &mut [(Instant, Duration); 2],
    now: Instant,
    time: Duration,
    better: impl Fn(Duration, Duration) -> Duration,
) {
    let [_, (since, best)] = *windows;
    if now.since(since) > WINDOW {
        *windows = [(since, best), (now, time)];
    } else {
        windows[1] = (since, better(best, time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn ack_delay_at_the_peer_is_not_local_queueing() {
        let (mut rtt, now) = (RttEstimator::new(), Instant::from_millis(60_000));
        rtt.note(now, (ms(1), ms(0)), ms(1));
        // One frame in transmission and one that carries the acknowledgement; two more frames arrived before
        // the newest.
        rtt.note(now + ms(100), (ms(301), ms(300)), ms(421));
        assert_eq!((rtt.least(), rtt.queued()), (Some(ms(1)), ms(0)));
        assert_eq!(rtt.longest_held(), ms(420));
        rtt.note(now + ms(200), (ms(340), ms(300)), ms(340));
        assert_eq!(rtt.queued(), ms(39), "that waited on the path there");
    }

    #[test]
    fn a_blocked_path_is_not_ack_delay_at_the_peer() {
        let (mut rtt, now) = (RttEstimator::new(), Instant::from_millis(60_000));
        rtt.note(now, (ms(41), ms(1)), ms(260));
        assert_eq!(rtt.longest_held(), ms(2));
    }

    #[test]
    fn old_measurements_are_forgotten() {
        let (mut rtt, now) = (RttEstimator::new(), Instant::from_millis(60_000));
        rtt.note(now, (ms(5), ms(4)), ms(90));
        for second in 1..30 {
            rtt.note(now + ms(second * 1_000), (ms(9), ms(2)), ms(9));
        }
        assert_eq!((rtt.least(), rtt.longest_held()), (Some(ms(7)), ms(2)));
        assert_eq!(RttEstimator::new().least(), None);
    }

    #[test]
    fn the_jitter_is_that_of_the_standard() {
        let (mut rtt, now) = (RttEstimator::new(), Instant::from_millis(60_000));
        assert_eq!(rtt.present(), None);
        let micros = Duration::from_micros;
        for (trip, jitter) in [(1_000, 0), (1_160, 10_000), (1_160, 9_375), (840, 28_789)] {
            rtt.note(now, (micros(trip + 500), micros(500)), micros(trip));
            assert_eq!(rtt.present(), Some((micros(trip), Duration::from_nanos(jitter))));
        }
    }

    #[test]
    fn impossible_times_are_ignored() {
        let mut rtt = RttEstimator::new();
        rtt.note(Instant::from_millis(60_000), (ms(5), Duration::MAX), ms(5));
        assert_eq!((rtt.least(), rtt.queued(), rtt.longest_held()), (Some(ms(0)), ms(0), ms(5)));
    }
}
