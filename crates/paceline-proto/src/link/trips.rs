//! How long answers take: what the way needs, and for how long they wait at the other end.
//!
//! An answer waits there for the frame that is on its way back, and rides on the next one. The header that brings it
//! says how long that was for the newest frame that it tells of; what is left is the way, and whatever waits below us.
//! Frames before the newest were answered later by as much as they came before it.

use paceline_sched::{Duration, Instant};

/// The least round trip is the least of this long, and the longest wait the longest.
const WINDOW: Duration = Duration::from_secs(10);

/// Round trips to a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trips {
    /// The least of two windows, and when they began.
    least: [(Instant, Duration); 2],
    /// The longest waits, likewise.
    held: [(Instant, Duration); 2],
    last: Duration,
}

impl Trips {
    pub(super) const fn new() -> Self {
        let (least, held) = (Duration::MAX, Duration::ZERO);
        Self {
            least: [(Instant::ZERO, least); 2],
            held: [(Instant::ZERO, held); 2],
            last: Duration::ZERO,
        }
    }

    /// The newest of some frames was answered after `trip`, for `held` of which the answer waited; the first
    /// of them after `longest`.
    pub(super) fn note(
        &mut self,
        now: Instant,
        (trip, held): (Duration, Duration),
        longest: Duration,
    ) {
        self.last = trip.saturating_sub(held);
        note(&mut self.least, now, self.last, Duration::min);
        // What waited there waited for one frame and rode on another: no longer than twice on the last. The
        // rest is a way that was blocked, into which no more should be put.
        let waited = longest.saturating_sub(self.last).min(held.saturating_add(held));
        note(&mut self.held, now, waited, Duration::max);
    }

    /// The least of the last 10 to 20 seconds; `None` before the first.
    pub(super) fn least(&self) -> Option<Duration> {
        let [(_, old), (_, new)] = self.least;
        let least = old.min(new);
        (least != Duration::MAX).then_some(least)
    }

    /// The longest of the last 10 to 20 seconds that a frame's answer waited.
    pub(super) fn longest_held(&self) -> Duration {
        let [(_, old), (_, new)] = self.held;
        old.max(new)
    }

    /// By how much the last answer was later than the way takes: what waits below us.
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
    fn an_answer_that_waited_at_the_other_end_tells_of_no_queue_here() {
        let (mut trips, now) = (Trips::new(), Instant::from_millis(60_000));
        trips.note(now, (ms(1), ms(0)), ms(1));
        // One frame on its way back, and one to ride on; two more frames came before the newest.
        trips.note(now + ms(100), (ms(301), ms(300)), ms(421));
        assert_eq!((trips.least(), trips.queued()), (Some(ms(1)), ms(0)));
        assert_eq!(trips.longest_held(), ms(420));
        trips.note(now + ms(200), (ms(340), ms(300)), ms(340));
        assert_eq!(trips.queued(), ms(39), "that waited on the way there");
    }

    #[test]
    fn a_way_that_was_blocked_is_no_wait_at_the_other_end() {
        let (mut trips, now) = (Trips::new(), Instant::from_millis(60_000));
        trips.note(now, (ms(41), ms(1)), ms(260));
        assert_eq!(trips.longest_held(), ms(2));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let (mut trips, now) = (Trips::new(), Instant::from_millis(60_000));
        trips.note(now, (ms(5), ms(4)), ms(90));
        for second in 1..30 {
            trips.note(now + ms(second * 1_000), (ms(9), ms(2)), ms(9));
        }
        assert_eq!((trips.least(), trips.longest_held()), (Some(ms(7)), ms(2)));
        assert_eq!(Trips::new().least(), None);
    }

    #[test]
    fn what_cannot_be_true_is_no_time_at_all() {
        let mut trips = Trips::new();
        trips.note(Instant::from_millis(60_000), (ms(5), Duration::MAX), ms(5));
        assert_eq!(
            (trips.least(), trips.queued(), trips.longest_held()),
            (Some(ms(0)), ms(0), ms(5))
        );
    }
}
