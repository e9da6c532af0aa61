//! The pace of a scheduler: the rate of its iterations (turns), and the work limit of each.
//!
//! A scheduler that runs whenever a packet is queued costs one iteration per packet. A periodic
//! scheduler runs empty iterations under low load and falls behind under high load: it serves at most
//! budget ÷ period. With [`Pace::Adaptive`] the rate of iterations μ follows the sum of the streams'
//! arrival rates Σλ, between two limits. Each iteration then finds about one budget of work.
//!
//! A [`Budget`] of packets and time bounds the work of an iteration. The charge for a packet has a fixed
//! part and a part for its bytes. A flood of small packets therefore does not make iterations longer
//! than large packets do.
//!
//! The caller counts arrivals ([`Turns::handle_arrival`]) and asks for the next iteration
//! ([`Turns::next_turn`]) after each change of the backlog. It begins the iteration ([`Turns::begin`])
//! and serves packets while [`Turn::take`] returns true.
//!
//! Paper: seed 001 §4.2.3 and §5; [`host`] is its figure 7 in virtual time.

pub(crate) mod host;
mod meter;

use meter::Meter;
use paceline_sched::time::{Duration, Instant};
use std::fmt;

/// An amount of traffic.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Volume {
    /// The number of packets.
    pub(crate) packets: u64,
    /// The sum of their bytes.
    pub(crate) bytes: u64,
}

impl Volume {
    /// Returns the volume of one packet of `len` bytes.
    #[must_use]
    pub(crate) const fn packet(len: u64) -> Self {
        Self { packets: 1, bytes: len }
    }

    /// Returns the sum of both volumes, saturating.
    #[must_use]
    pub(crate) const fn plus(self, other: Self) -> Self {
        let packets = self.packets.saturating_add(other.packets);
        Self { packets, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// Returns the difference of both volumes, at least zero.
    #[must_use]
    pub(crate) const fn minus(self, other: Self) -> Self {
        let packets = self.packets.saturating_sub(other.packets);
        Self { packets, bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// The cost of a scheduler's work on a host, measured or configured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Cost {
    /// The cost of an iteration, even if it serves nothing.
    pub(crate) turn: Duration,
    /// The cost of each packet, even if it is short.
    pub(crate) packet: Duration,
    /// The cost of each 1,024 bytes of a packet.
    pub(crate) kib: Duration,
}

impl Cost {
    /// Returns the cost of serving `volume`, without the iteration itself; rounded up.
    #[must_use]
    pub(crate) const fn of(self, volume: Volume) -> Duration {
        let packets = self.packet.as_nanos() as u128 * volume.packets as u128;
        let bytes = (self.kib.as_nanos() as u128 * volume.bytes as u128).div_ceil(1_024);
        let nanos = packets.saturating_add(bytes);
        if nanos > u64::MAX as u128 {
            return Duration::MAX;
        }
        #[expect(clippy::cast_possible_truncation, reason = "compared with u64::MAX above")]
        Duration::from_nanos(nanos as u64)
    }
}

/// The work limit of an iteration. One packet may always be served, or a large one would wait forever.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Budget {
    /// The largest number of packets; not 0.
    pub(crate) packets: u32,
    /// The largest amount of work, after the first packet.
    pub(crate) work: Duration,
}

/// The rule for starting iterations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pace {
    /// Whenever a packet is queued.
    WorkConserving,
    /// Periodically from the first iteration on, whether packets are queued or not. Not zero.
    Periodic(Duration),
    /// When packets are queued and one budget of work is there, or should be at the streams' arrival
    /// rates.
    ///
    /// The time since the previous iteration is at least `least` and at most `most`.
    Adaptive {
        /// The shortest time between iterations; it bounds their cost.
        least: Duration,
        /// The longest time between iterations; it bounds the wait of a packet. Not zero, not below
        /// `least`.
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

/// The reasons for rejecting a pace or a budget.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub(crate) enum PaceError {
    /// The period is zero.
    ZeroPeriod,
    /// The longest time between iterations is zero, or below the shortest.
    MostBelowLeast {
        /// The shortest time between iterations.
        least: Duration,
        /// The longest time between iterations.
        most: Duration,
    },
    /// The budget permits no packet.
    ZeroBudget,
}

impl fmt::Display for PaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroPeriod => f.write_str(
                "period of the scheduler is 0: must be 1 ns or more; use a work-conserving \
                 scheduler to run whenever a packet waits",
            ),
            Self::MostBelowLeast { least, most } => write!(
                f,
                "longest time between iterations is {most}: must be above 0 and at least the \
                 shortest of {least}; raise it or lower the shortest"
            ),
            Self::ZeroBudget => f.write_str(
                "budget of an iteration is 0 packets: must be from 1 to 4294967295; 1 serves one \
                 packet per iteration",
            ),
        }
    }
}

impl core::error::Error for PaceError {}

/// The iteration schedule of one scheduler. Uses bounded memory and does not allocate.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    pace: Pace,
    budget: Budget,
    cost: Cost,
    /// The instant of the last iteration; with a period, its due time.
    last: Option<Instant>,
    meter: Meter,
}

impl Turns {
    /// Returns a schedule at `pace` with at most `budget` per iteration, on a host where work costs
    /// `cost`.
    ///
    /// # Errors
    /// [`PaceError`] if the period or the budget is 0, or if the limits of an adaptive pace contradict
    /// each other.
    pub(crate) const fn new(pace: Pace, budget: Budget, cost: Cost) -> Result<Self, PaceError> {
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

    /// Counts the arrival of a packet of `len` bytes of any stream.
    pub(crate) const fn handle_arrival(&mut self, now: Instant, len: u64) {
        self.meter.count(now, Volume::packet(len));
    }

    /// Returns the due time of the next iteration, at least `now`; `None` if it waits for an arrival.
    ///
    /// `waiting` is the present backlog.
    #[must_use]
    pub(crate) fn next_turn(&self, now: Instant, waiting: Volume) -> Option<Instant> {
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

    /// Begins an iteration at `now`.
    ///
    /// A late periodic iteration does not delay the following ones, and missed iterations are skipped.
    pub(crate) fn begin(&mut self, now: Instant) -> Turn {
        let since = now.since(self.last.unwrap_or(now)).as_nanos();
        let late = match self.pace {
            Pace::Periodic(period) => since.checked_rem(period.as_nanos()).unwrap_or(0),
            Pace::WorkConserving | Pace::Adaptive { .. } => 0,
        };
        let due = now - Duration::from_nanos(late);
        self.last = Some(self.last.map_or(due, |last| last.max(due)));
        Turn { packets: self.budget.packets, work: self.budget.work, cost: self.cost, first: true }
    }

    /// Returns the longest duration of an iteration if no packet is larger than `largest` bytes: the longest time for which one that
    /// has begun can delay a new arrival.
    #[cfg(test)]
    pub(crate) const fn longest(&self, largest: u64) -> Duration {
        let packets = self.budget.packets as u64;
        let all = Volume { packets, bytes: packets.saturating_mul(largest) };
        let most = self.cost.of(all).min(self.budget.work);
        self.cost.turn.saturating_add(most.max(self.cost.of(Volume::packet(largest))))
    }

    /// Returns 1/μ: the time in which one budget of traffic arrives.
    fn fitting(&self, now: Instant) -> Duration {
        let load = self.meter.load(now);
        let packets = Meter::WINDOW.mul_div(u64::from(self.budget.packets), load.packets);
        let (budget, work) = (self.budget.work.as_nanos(), self.cost.of(load).as_nanos());
        packets.min(Meter::WINDOW.mul_div(budget, work))
    }

    /// Returns true if `waiting` fills the budget; waiting for more would then gain nothing.
    const fn fills(&self, waiting: Volume) -> bool {
        waiting.packets >= self.budget.packets as u64
            || self.cost.of(waiting).as_nanos() >= self.budget.work.as_nanos()
    }
}

/// The remaining budget of one iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    packets: u32,
    work: Duration,
    cost: Cost,
    first: bool,
}

impl Turn {
    /// Charges a packet of `len` bytes if it may be served in this iteration, and returns whether it
    /// may.
    ///
    /// The first packet always may.
    pub(crate) const fn take(&mut self, len: u64) -> bool {
        let work = self.cost.of(Volume::packet(len));
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
