//! How often a scheduler runs, and how much it does each time.
//!
//! A scheduler that runs whenever there is something costs a turn for every packet; one that runs by a
//! period costs turns for nothing when little comes, and falls behind when much comes: it serves at most
//! budget ÷ period. [`Pace::Adaptive`] lets the rate of turns μ follow the sum of the streams' arrival rates
//! Σλ instead, between two limits, so that each turn finds about what it may do.
//!
//! A turn's work is bounded by a [`Budget`] of packets and of time, and time is charged as packets take
//! it: a fixed part for each packet and a part for its bytes. So a flood of small packets makes turns no
//! longer than large ones do, and whoever has a promise to keep knows for how long a turn can be in the
//! way ([`Turns::longest`]).
//!
//! The caller counts arrivals ([`Turns::handle_arrival`]), asks for the next turn ([`Turns::next_turn`])
//! after whatever changes what waits, begins it ([`Turns::begin`]) and serves packets for as long as
//! [`Turn::take`] says so.
//!
//! Paper: seed 001 §4.2.3 and §5; [`host`] is its figure 7 in virtual time.

pub mod host;
mod meter;

use crate::time::{Duration, Instant};
use core::fmt;
use meter::Meter;

/// An amount of traffic.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Load {
    /// How many packets.
    pub packets: u64,
    /// Their bytes together.
    pub bytes: u64,
}

impl Load {
    /// One packet of `len` bytes.
    #[must_use]
    pub const fn packet(len: u64) -> Self {
        Self { packets: 1, bytes: len }
    }

    /// Both together, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let packets = self.packets.saturating_add(other.packets);
        Self { packets, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// What is left without `other`, at least nothing.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        let packets = self.packets.saturating_sub(other.packets);
        Self { packets, bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// What the scheduler's work takes on a host, measured or given.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cost {
    /// A turn, whatever it finds.
    pub turn: Duration,
    /// Each packet, however short.
    pub packet: Duration,
    /// Each 1,024 bytes of a packet.
    pub kib: Duration,
}

impl Cost {
    /// What serving `load` takes, without the turn itself; rounded up.
    #[must_use]
    pub const fn of(self, load: Load) -> Duration {
        let packets = self.packet.as_nanos() as u128 * load.packets as u128;
        let bytes = (self.kib.as_nanos() as u128 * load.bytes as u128).div_ceil(1_024);
        let nanos = packets.saturating_add(bytes);
        if nanos > u64::MAX as u128 {
            return Duration::MAX;
        }
        #[expect(clippy::cast_possible_truncation, reason = "compared with u64::MAX above")]
        Duration::from_nanos(nanos as u64)
    }
}

/// What one turn may do. One packet may always be served, or a large one would wait for ever.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    /// At most so many packets; not 0.
    pub packets: u32,
    /// At most so much work, after the first packet.
    pub work: Duration,
}

/// When turns happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pace {
    /// Whenever something waits.
    WorkConserving,
    /// Every so often from the first turn on, whether or not something waits. Not zero.
    Periodic(Duration),
    /// When something waits, and a budget's worth of it does or should, at the rate of the streams'
    /// arrivals: at least `least` and at most `most` after the turn before.
    Adaptive {
        /// Bounds what turns cost.
        least: Duration,
        /// Bounds how long a packet waits for its turn. Not zero, not below `least`.
        most: Duration,
    },
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkConserving => f.write_str("work-conserving"),
            Self::Periodic(period) => write!(f, "every {period}"),
            Self::Adaptive { least, most } => write!(f, "adaptive, {least} to {most}"),
        }
    }
}

/// Why a pace or a budget was not accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PaceError {
    /// The period is zero.
    ZeroPeriod,
    /// The longest time between turns is zero, or below the shortest.
    MostBelowLeast {
        /// The shortest time between turns.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// A turn may serve nothing.
    ZeroBudget,
}

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroPeriod => f.write_str(
                "period of the scheduler is 0: must be 1 ns or more; ask for a work-conserving \
                 one to run whenever something waits",
            ),
            Self::MostBelowLeast { least, most } => write!(
                f,
                "longest time between turns is {most}: must be above 0 and at least the shortest \
                 of {least}; raise it or lower the shortest"
            ),
            Self::ZeroBudget => f.write_str(
                "budget of a turn is 0 packets: must be from 1 to 4294967295; 1 serves one packet \
                 a turn",
            ),
        }
    }
}

impl core::error::Error for PaceError {}

/// When one scheduler takes its turns. Bounded memory, no allocation.
#[derive(Clone, Debug)]
pub struct Turns {
    pace: Pace,
    budget: Budget,
    cost: Cost,
    /// Of the last turn; for a period, when it was due.
    last: Option<Instant>,
    meter: Meter,
}

impl Turns {
    /// Turns at `pace`, of at most `budget` each, on a host where work costs `cost`.
    ///
    /// # Errors
    /// [`PaceError`] if the period or the budget is 0, or the limits of an adaptive pace contradict each
    /// other.
    pub const fn new(pace: Pace, budget: Budget, cost: Cost) -> Result<Self, PaceError> {
        match pace {
            Pace::Periodic(period) if period.is_zero() => return Err(PaceError::ZeroPeriod),
            Pace::Adaptive { least, most }
                if most.is_zero() || most.as_nanos() < least.as_nanos() =>
            {
                return Err(PaceError::MostBelowLeast { least, most });
            }
            Pace::WorkConserving | Pace::Periodic(_) | Pace::Adaptive { .. } => {}
        }
        if budget.packets == 0 {
            return Err(PaceError::ZeroBudget);
        }
        Ok(Self { pace, budget, cost, last: None, meter: Meter::new() })
    }

    /// A packet of `len` bytes arrived, of whatever stream.
    pub const fn handle_arrival(&mut self, now: Instant, len: u64) {
        self.meter.count(now, Load::packet(len));
    }

    /// When the next turn is due, at `now` at the earliest; `None` if not before something arrives.
    /// `waiting` is what could be served.
    #[must_use]
    pub fn next_turn(&self, now: Instant, waiting: Load) -> Option<Instant> {
        let idle = waiting.packets == 0;
        let Some(last) = self.last else {
            let always = matches!(self.pace, Pace::Periodic(_));
            return (always || !idle).then_some(now);
        };
        match self.pace {
            Pace::WorkConserving => (!idle).then_some(now),
            Pace::Periodic(period) => Some(now.max(last + period)),
            Pace::Adaptive { .. } if idle => None,
            Pace::Adaptive { least, most } => {
                let apart = if self.fills(waiting) { least } else { self.fitting(now) };
                Some(now.max(last + apart.max(least).min(most)))
            }
        }
    }

    /// Begins a turn at `now`. A periodic one that comes late does not move those after it, and those
    /// that it missed are not made up for.
    pub fn begin(&mut self, now: Instant) -> Turn {
        let since = now.since(self.last.unwrap_or(now)).as_nanos();
        let late = match self.pace {
            Pace::Periodic(period) => since.checked_rem(period.as_nanos()).unwrap_or(0),
            Pace::WorkConserving | Pace::Adaptive { .. } => 0,
        };
        let due = now - Duration::from_nanos(late);
        self.last = Some(self.last.map_or(due, |last| last.max(due)));
        Turn { packets: self.budget.packets, work: self.budget.work, cost: self.cost, first: true }
    }

    /// The longest that a turn can take if no packet is larger than `largest` bytes: so long can one that
    /// has begun be in the way of whatever comes then.
    #[must_use]
    pub const fn longest(&self, largest: u64) -> Duration {
        let packets = self.budget.packets as u64;
        let all = Load { packets, bytes: packets.saturating_mul(largest) };
        let most = self.cost.of(all).min(self.budget.work);
        self.cost.turn.saturating_add(most.max(self.cost.of(Load::packet(largest))))
    }

    /// In which time what arrives makes one budget: 1/μ.
    fn fitting(&self, now: Instant) -> Duration {
        let load = self.meter.load(now);
        let packets = Meter::WINDOW.mul_div(u64::from(self.budget.packets), load.packets);
        let (budget, work) = (self.budget.work.as_nanos(), self.cost.of(load).as_nanos());
        packets.min(Meter::WINDOW.mul_div(budget, work))
    }

    /// Whether a turn would serve as much as it may: then nothing is gained by waiting for more.
    const fn fills(&self, waiting: Load) -> bool {
        waiting.packets >= self.budget.packets as u64
            || self.cost.of(waiting).as_nanos() >= self.budget.work.as_nanos()
    }
}

/// One turn's budget.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    packets: u32,
    work: Duration,
    cost: Cost,
    first: bool,
}

impl Turn {
    /// Whether a packet of `len` bytes may be served in this turn; it is charged if so. The first may.
    pub const fn take(&mut self, len: u64) -> bool {
        let work = self.cost.of(Load::packet(len));
        let fits = self.packets > 0 && work.as_nanos() <= self.work.as_nanos();
        if !fits && !self.first {
            return false;
        }
        self.first = false;
        self.packets = self.packets.saturating_sub(1);
        self.work = self.work.saturating_sub(work);
        true
    }
}

#[cfg(test)]
mod tests;
