//! How much a neighbour may send that costs others something: bounded work for each, whatever it sends.
//!
//! Control is work for the one thread that all neighbours and programs of a node share; samples that nobody asked for wait a
//! while beside those of others, since their subscription may be on its way; and of a frame that is malformed nobody knows
//! before it is read. So each neighbour has a budget for each of the three ([`Flood`]), by pieces and by bytes, far above
//! what any that works comes to: [`RATE`] a second, and [`BURST`] at once.
//! Who goes beyond is muted: what it sends of that is dropped before anybody does anything for it, and counted. It goes on
//! being charged meanwhile, so a flood stays muted; it is heard again by itself once a quarter of the burst or less is
//! left to pay off. What was dropped is mended as other loss is: digests bring records, reservations are asked for again.

use paceline_sched::{Duration, Instant};

/// Pieces of each [`Flood`] a second that a neighbour may go on sending.
pub const RATE: u64 = 4_096;
/// Pieces that it may send at once.
pub const BURST: u64 = 8 * RATE;

/// What one piece costs, and what each of its bytes does: 20 MB/s.
const PIECE: Duration = Duration::from_nanos(1_000_000_000 / RATE);
const BYTE: Duration = Duration::from_nanos(50);
/// The debt at which a neighbour is muted, and at which it is heard again.
const DEBT_MAX: Duration = Duration::from_secs(BURST / RATE);
const DEBT_HEARD: Duration = Duration::from_secs(BURST / RATE / 4);

/// What a neighbour may send too much of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Flood {
    /// Control messages. Muted, none is heard; samples are carried as before.
    Control,
    /// Samples that nobody here asked for. Muted, they are dropped at once; the others are carried as before.
    Unasked,
    /// Frames that are not understood. Muted, none of its frames is read.
    Malformed,
}

impl Flood {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Control, Self::Unasked, Self::Malformed];

    /// Its name, as JSON and metrics have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Unasked => "unasked",
            Self::Malformed => "malformed",
        }
    }
}

/// The budgets of one neighbour.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Guard {
    control: Budget,
    unasked: Budget,
    malformed: Budget,
}

impl Guard {
    const fn budget(&self, flood: Flood) -> &Budget {
        match flood {
            Flood::Control => &self.control,
            Flood::Unasked => &self.unasked,
            Flood::Malformed => &self.malformed,
        }
    }

    /// A piece of `bytes` comes.
    pub fn take(&mut self, flood: Flood, now: Instant, bytes: usize) -> Hearing {
        match flood {
            Flood::Control => self.control.take(now, bytes),
            Flood::Unasked => self.unasked.take(now, bytes),
            Flood::Malformed => self.malformed.take(now, bytes),
        }
    }

    /// True if the next piece will be dropped.
    #[must_use]
    pub fn is_muted(&self, flood: Flood, now: Instant) -> bool {
        self.budget(flood).is_muted(now)
    }

    /// What it came to so far.
    #[must_use]
    pub const fn counters(&self, flood: Flood) -> GuardCounters {
        self.budget(flood).counters
    }
}

/// The budget of one neighbour for one of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Budget {
    /// When all that it sent is paid off.
    paid_at: Instant,
    muted: bool,
    counters: GuardCounters,
}

/// How often a neighbour was muted, and what was dropped of it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct GuardCounters {
    /// How often it was muted.
    pub muted: u64,
    /// Messages, samples or frames that were dropped.
    pub dropped: u64,
}

/// What becomes of a piece.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hearing {
    /// It is heard.
    Heard,
    /// It is dropped, and from it on the neighbour is muted.
    Muted,
    /// It is dropped, since the neighbour is muted.
    Dropped,
}

impl Budget {
    fn take(&mut self, now: Instant, bytes: usize) -> Hearing {
        self.muted = self.is_muted(now);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let cost = PIECE.saturating_add(BYTE.mul_div(bytes, 1));
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

    fn is_muted(&self, now: Instant) -> bool {
        self.muted && self.paid_at.since(now) > DEBT_HEARD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: Instant = Instant::from_millis(1_000);

    /// Messages of no bytes, so many a second for so long; how many were heard.
    fn talk(guard: &mut Budget, now: &mut Instant, per_second: u64, seconds: u64) -> u64 {
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
        let (mut guard, mut now) = (Budget::default(), START);
        // All of a large network at once, and then as fast as may be for a long time.
        let at_once = (1..BURST).filter(|_| guard.take(now, 0) == Hearing::Heard).count() as u64;
        assert_eq!(at_once, BURST - 1);
        assert_eq!(talk(&mut guard, &mut now, RATE - 1, 600), (RATE - 1) * 600);
        assert_eq!(guard.counters, GuardCounters::default());
    }

    #[test]
    fn a_flood_is_muted_as_long_as_it_goes_on_and_heard_again_by_itself() {
        let (mut guard, mut now) = (Budget::default(), START);
        let heard = talk(&mut guard, &mut now, 100_000, 60);
        // What a minute of it may cost: the burst, once.
        assert!(heard <= BURST * 11 / 10, "{heard}");
        assert!(guard.is_muted(now));
        assert_eq!(guard.counters, GuardCounters { muted: 1, dropped: 6_000_000 - heard });
        now += Duration::from_secs(5);
        assert!(guard.is_muted(now));
        now += Duration::from_secs(1);
        assert!(!guard.is_muted(now), "nobody has to look for that");
        assert_eq!(guard.take(now, 100), Hearing::Heard);
        let dropped = guard.counters.dropped;
        assert_eq!(talk(&mut guard, &mut now, 100, 10), 1_000);
        assert_eq!(guard.counters, GuardCounters { muted: 1, dropped });
    }

    #[test]
    fn long_messages_cost_what_they_are_long() {
        let (mut guard, now) = (Budget::default(), START);
        let heard = (0..1_000).filter(|_| guard.take(now, 1 << 20) == Hearing::Heard).count();
        assert!((100..200).contains(&heard), "{heard} MiB at once");
        assert_eq!(guard.counters.muted, 1);
        assert_eq!(guard.take(now, usize::MAX), Hearing::Dropped);
        assert!(!guard.is_muted(now + DEBT_MAX));
    }

    #[test]
    fn clocks_that_go_backward_forgive_nothing_and_harm_nobody_for_long() {
        let (mut guard, mut now) = (Budget::default(), Instant::from_millis(100_000));
        talk(&mut guard, &mut now, 100_000, 1);
        assert!(guard.is_muted(now) && guard.is_muted(START));
        assert_eq!(guard.take(START, 0), Hearing::Dropped);
        assert!(!guard.is_muted(START + DEBT_MAX));
    }

    #[test]
    fn who_floods_one_thing_is_heard_of_the_others() {
        let mut guard = Guard::default();
        while guard.take(Flood::Unasked, START, 1_000) == Hearing::Heard {}
        let muted = Flood::ALL.map(|flood| guard.is_muted(flood, START));
        assert_eq!(muted, [false, true, false]);
        assert_eq!(guard.take(Flood::Control, START, 10), Hearing::Heard);
        assert_eq!(guard.take(Flood::Malformed, START, 10), Hearing::Heard);
        assert_eq!(guard.counters(Flood::Unasked), GuardCounters { muted: 1, dropped: 1 });
    }

    proptest! {
        /// A plain twin that pays off as time goes by; and whatever comes, no more is heard in any time than the burst
        /// and what is paid off in that time.
        #[test]
        fn what_is_heard_is_what_a_plain_twin_hears_and_bounded(
            pieces in proptest::collection::vec((0_u64..40_000_000, 0_usize..4_000_000), 1..400),
        ) {
            let (mut budget, mut now) = (Budget::default(), START);
            let (mut debt, mut muted) = (0_u64, false);
            let mut heard = 0;
            for (wait, bytes) in pieces {
                now += Duration::from_nanos(wait);
                debt = debt.saturating_sub(wait);
                muted &= debt > DEBT_HEARD.as_nanos();
                let cost = 1_000_000_000 / RATE + 50 * bytes as u64;
                debt = (debt + cost).min(DEBT_MAX.as_nanos());
                let expected = match (muted, debt < DEBT_MAX.as_nanos()) {
                    (true, _) => Hearing::Dropped,
                    (false, true) => Hearing::Heard,
                    (false, false) => Hearing::Muted,
                };
                muted |= expected != Hearing::Heard;
                prop_assert_eq!(budget.take(now, bytes), expected);
                heard += if expected == Hearing::Heard { cost } else { 0 };
                prop_assert!(heard <= now.since(START).as_nanos() + DEBT_MAX.as_nanos());
            }
        }
    }
}
