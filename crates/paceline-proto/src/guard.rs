//! How much a neighbour may say: bounded work for each, whatever it sends.
//!
//! Control is work for the one thread that all neighbours and programs of a node share. So each neighbour has a budget, by
//! messages and by bytes, far above what any that works comes to: [`RATE`] messages a second, and [`BURST`] at once.
//! Who goes beyond is muted: its messages are dropped before anybody looks at them, and counted. What it says
//! meanwhile goes on being charged, so a flood stays muted; it is heard again by itself once a quarter of the burst or less is
//! left to pay off. What was dropped is mended as other loss is: digests bring records, reservations are asked for again.

use paceline_sched::{Duration, Instant};

/// Control messages a second that a neighbour may go on sending.
pub const RATE: u64 = 4_096;
/// Control messages that it may send at once.
pub const BURST: u64 = 8 * RATE;

/// What one message costs, and what each of its bytes does: 20 MB/s.
const MESSAGE: Duration = Duration::from_nanos(1_000_000_000 / RATE);
const BYTE: Duration = Duration::from_nanos(50);
/// The debt at which a neighbour is muted, and at which it is heard again.
const DEBT_MAX: Duration = Duration::from_secs(BURST / RATE);
const DEBT_HEARD: Duration = Duration::from_secs(BURST / RATE / 4);

/// The budget of one neighbour.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Guard {
    /// When all that it said is paid off.
    paid_at: Instant,
    muted: bool,
    counters: GuardCounters,
}

/// How often a neighbour was muted, and what was not heard of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct GuardCounters {
    /// How often it was muted.
    pub muted: u64,
    /// Messages that were dropped.
    pub dropped: u64,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hearing {
    /// It is heard.
    Heard,
    /// It is dropped, and from it on the neighbour is muted.
    Muted,
    /// It is dropped, since the neighbour is muted.
    Dropped,
}

impl Guard {
    /// A control message of `bytes` comes.
    pub fn take(&mut self, now: Instant, bytes: usize) -> Hearing {
        self.muted = self.is_muted(now);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let cost = MESSAGE.saturating_add(BYTE.mul_div(bytes, 1));
        // Of a flood no more is remembered than what mutes it: however long it was, it is heard again soon after.
        self.paid_at = (self.paid_at.max(now) + cost).min(now + DEBT_MAX);
        let hearing = match self.muted {
            true => Hearing::Dropped,
            false if self.paid_at.since(now) < DEBT_MAX => return Hearing::Heard,
            false => Hearing::Muted,
        };
        self.counters.muted += u64::from(!self.muted);
        self.counters.dropped += 1;
        self.muted = true;
        hearing
    }

    /// True if the next message will be dropped.
    #[must_use]
    pub fn is_muted(&self, now: Instant) -> bool {
        self.muted && self.paid_at.since(now) > DEBT_HEARD
    }

    /// What it came to so far.
    #[must_use]
    pub const fn counters(&self) -> GuardCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_millis(1_000);

    /// Messages of no bytes, so many a second for so long; how many were heard.
    fn talk(guard: &mut Guard, now: &mut Instant, per_second: u64, seconds: u64) -> u64 {
        let step = Duration::from_nanos(1_000_000_000 / per_second);
        let mut heard = 0;
        for _ in 0..per_second * seconds {
            heard += u64::from(guard.take(*now, 0) == Hearing::Heard);
            *now += step;
        }
        heard
    }

    #[test]
    fn who_works_is_never_muted() {
        let (mut guard, mut now) = (Guard::default(), START);
        // All of a large network at once, and then as fast as may be for a long time.
        let at_once = (1..BURST).filter(|_| guard.take(now, 0) == Hearing::Heard).count() as u64;
        assert_eq!(at_once, BURST - 1);
        assert_eq!(talk(&mut guard, &mut now, RATE - 1, 600), (RATE - 1) * 600);
        assert_eq!(guard.counters(), GuardCounters::default());
    }

    #[test]
    fn a_flood_is_muted_as_long_as_it_goes_on_and_heard_again_by_itself() {
        let (mut guard, mut now) = (Guard::default(), START);
        let heard = talk(&mut guard, &mut now, 100_000, 60);
        // What a minute of it may cost: the burst, once.
        assert!(heard <= BURST * 11 / 10, "{heard}");
        assert!(guard.is_muted(now));
        assert_eq!(guard.counters(), GuardCounters { muted: 1, dropped: 6_000_000 - heard });
        now += Duration::from_secs(5);
        assert!(guard.is_muted(now));
        now += Duration::from_secs(1);
        assert!(!guard.is_muted(now), "nobody has to look for that");
        assert_eq!(guard.take(now, 100), Hearing::Heard);
        let dropped = guard.counters().dropped;
        assert_eq!(talk(&mut guard, &mut now, 100, 10), 1_000);
        assert_eq!(guard.counters(), GuardCounters { muted: 1, dropped });
    }

    #[test]
    fn long_messages_cost_what_they_are_long() {
        let (mut guard, now) = (Guard::default(), START);
        let heard = (0..1_000).filter(|_| guard.take(now, 1 << 20) == Hearing::Heard).count();
        assert!((100..200).contains(&heard), "{heard} MiB at once");
        assert_eq!(guard.counters().muted, 1);
        assert_eq!(guard.take(now, usize::MAX), Hearing::Dropped);
        assert!(!guard.is_muted(now + DEBT_MAX));
    }

    #[test]
    fn clocks_that_go_backward_forgive_nothing_and_harm_nobody_for_long() {
        let (mut guard, mut now) = (Guard::default(), Instant::from_millis(100_000));
        talk(&mut guard, &mut now, 100_000, 1);
        assert!(guard.is_muted(now) && guard.is_muted(START));
        assert_eq!(guard.take(START, 0), Hearing::Dropped);
        assert!(!guard.is_muted(START + DEBT_MAX));
    }
}
