//! Flood protection: bounds the work that one neighbour can cause, whatever it sends.
//!
//! Three kinds of input are costly to others ([`Flood`]):
//!
//! - Control messages are work for the one thread that all neighbours and programs of a node share.
//! - Samples without a subscription are buffered next to those of others for a while, because their
//!   subscription may still arrive.
//! - Malformed frames are recognised only after the node has read them.
//!
//! Each neighbour has one budget per kind, in pieces and in bytes: [`RATE`] pieces per second and a burst of
//! [`BURST`] pieces, far above the needs of any correct neighbour. A neighbour that exceeds a budget is muted
//! for that kind: its input is dropped and counted before any other work. Muted input is still charged, so a
//! neighbour stays muted while its flood lasts. The mute ends by itself once the debt is at most a quarter of
//! the burst. Dropped control input is repaired like other loss: digests restore records, and reservations
//! are requested again.

use paceline_sched::{Duration, Instant};

/// The sustained limit of each [`Flood`] kind, in pieces per second.
pub const RATE: u64 = 4_096;
/// The largest burst, in pieces.
pub const BURST: u64 = 8 * RATE;

/// The costs of one piece and of each of its bytes. 50 ns per byte correspond to 20 MB/s.
const PIECE: Duration = Duration::from_nanos(1_000_000_000 / RATE);
const BYTE: Duration = Duration::from_nanos(50);
/// The debts at which a neighbour is muted and at which its mute ends.
const DEBT_MAX: Duration = Duration::from_secs(BURST / RATE);
const DEBT_HEARD: Duration = Duration::from_secs(BURST / RATE / 4);

/// A kind of input that a neighbour may send too much of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Flood {
    /// Control messages. While muted, all control messages are dropped; samples are unaffected.
    Control,
    /// Samples without a subscription on this node. While muted, these are dropped at once; others are
    /// unaffected.
    Unasked,
    /// Malformed frames. While muted, all frames of the neighbour are dropped unread.
    Malformed,
}

impl Flood {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Control, Self::Unasked, Self::Malformed];

    /// Returns the name used in JSON and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Unasked => "unasked",
            Self::Malformed => "malformed",
        }
    }
}

/// The flood budgets of one neighbour.
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

    /// Charges a piece of `bytes` bytes and returns its fate.
    pub fn take(&mut self, flood: Flood, now: Instant, bytes: usize) -> Hearing {
        match flood {
            Flood::Control => self.control.take(now, bytes),
            Flood::Unasked => self.unasked.take(now, bytes),
            Flood::Malformed => self.malformed.take(now, bytes),
        }
    }

    /// Returns true if the next piece would be dropped.
    #[must_use]
    pub fn is_muted(&self, flood: Flood, now: Instant) -> bool {
        self.budget(flood).is_muted(now)
    }

    /// Returns the totals for `flood`.
    #[must_use]
    pub const fn counters(&self, flood: Flood) -> GuardCounters {
        self.budget(flood).counters
    }
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Budget {
    /// The instant at which the debt is paid off.
    paid_at: Instant,
    muted: bool,
    counters: GuardCounters,
}

/// Mutes of a neighbour, and the pieces dropped meanwhile.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct GuardCounters {
    /// Number of times the neighbour was muted.
    pub muted: u64,
    /// Dropped messages, samples or frames.
    pub dropped: u64,
}

/// The fate of a piece.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hearing {
    /// The piece is accepted.
    Heard,
    /// The piece is dropped, and it mutes the neighbour.
    Muted,
    /// The piece is dropped because the neighbour is already muted.
    Dropped,
}

impl Budget {
    fn take(&mut self, now: Instant, bytes: usize) -> Hearing {
        self.muted = self.is_muted(now);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let cost = PIECE.saturating_add(BYTE.mul_div(bytes, 1));
        // The debt is capped, so the mute ends soon after the flood, however long it lasted.
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

    /// Sends empty messages at a fixed rate and returns the number accepted.
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
    fn a_normal_node_is_never_muted() {
        let (mut guard, mut now) = (Budget::default(), START);
        // The burst of a large network first, then the highest sustained rate for a long time.
        let at_once = (1..BURST).filter(|_| guard.take(now, 0) == Hearing::Heard).count() as u64;
        assert_eq!(at_once, BURST - 1);
        assert_eq!(talk(&mut guard, &mut now, RATE - 1, 600), (RATE - 1) * 600);
        assert_eq!(guard.counters, GuardCounters::default());
    }

    #[test]
    fn a_flood_is_muted_while_it_lasts_and_unmuted_automatically() {
        let (mut guard, mut now) = (Budget::default(), START);
        let heard = talk(&mut guard, &mut now, 100_000, 60);
        // A minute of flood costs no more than one burst.
        assert!(heard <= BURST * 11 / 10, "{heard}");
        assert!(guard.is_muted(now));
        assert_eq!(guard.counters, GuardCounters { muted: 1, dropped: 6_000_000 - heard });
        now += Duration::from_secs(5);
        assert!(guard.is_muted(now));
        now += Duration::from_secs(1);
        assert!(!guard.is_muted(now), "nobody has to search for that");
        assert_eq!(guard.take(now, 100), Hearing::Heard);
        let dropped = guard.counters.dropped;
        assert_eq!(talk(&mut guard, &mut now, 100, 10), 1_000);
        assert_eq!(guard.counters, GuardCounters { muted: 1, dropped });
    }

    #[test]
    fn long_messages_are_charged_by_length() {
        let (mut guard, now) = (Budget::default(), START);
        let heard = (0..1_000).filter(|_| guard.take(now, 1 << 20) == Hearing::Heard).count();
        assert!((100..200).contains(&heard), "{heard} MiB at once");
        assert_eq!(guard.counters.muted, 1);
        assert_eq!(guard.take(now, usize::MAX), Hearing::Dropped);
        assert!(!guard.is_muted(now + DEBT_MAX));
    }

    #[test]
    fn backward_clock_steps_grant_nothing_and_heal_quickly() {
        let (mut guard, mut now) = (Budget::default(), Instant::from_millis(100_000));
        talk(&mut guard, &mut now, 100_000, 1);
        assert!(guard.is_muted(now) && guard.is_muted(START));
        assert_eq!(guard.take(START, 0), Hearing::Dropped);
        assert!(!guard.is_muted(START + DEBT_MAX));
    }

    #[test]
    fn a_flood_of_one_kind_leaves_other_kinds_accepted() {
        let mut guard = Guard::default();
        while guard.take(Flood::Unasked, START, 1_000) == Hearing::Heard {}
        let muted = Flood::ALL.map(|flood| guard.is_muted(flood, START));
        assert_eq!(muted, [false, true, false]);
        assert_eq!(guard.take(Flood::Control, START, 10), Hearing::Heard);
        assert_eq!(guard.take(Flood::Malformed, START, 10), Hearing::Heard);
        assert_eq!(guard.counters(Flood::Unasked), GuardCounters { muted: 1, dropped: 1 });
    }

    proptest! {
        /// Compares the budget with a plain model that pays off its debt as time passes. In any time, the
        /// cost accepted is at most the burst plus the amount paid off in that time.
        #[test]
        fn the_guard_accepts_the_same_as_its_reference_within_bounds(
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
