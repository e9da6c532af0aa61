//! Policers: they limit a stream to its announced traffic.
//!
//! A [`Constraint`] bounds the traffic in any interval of a given length. A [`Policer`] checks for each
//! packet whether it conforms, and otherwise returns the earliest instant at which it will. Every result
//! is computed from the instant of the call, without timers, rounding or allocation. A rate is therefore
//! exact, and an unused policer costs nothing.
//!
//! | constraint | allows | state of a policer |
//! |---|---|---|
//! | leaky bucket σ, ρ | a burst σ, and ρ in the long run | one virtual time |
//! | jumping window B, T | B in each window of T, aligned to the clock's origin | one window |
//! | moving window Xmin, Xavg, I, Smax | ⌊I/Xavg⌋ packets in *any* I, Xmin apart | ⌊I/Xavg⌋ instants |
//! | dual bucket p, M, r, b | bursts M at p, and b at r (RFC 2212's TSpec) | two virtual times |
//!
//! Bytes alone do not bound the processing cost: 8,000 bytes can be two packets or 8,000. A constraint
//! therefore counts [`PolicedUnit::Bytes`] or [`PolicedUnit::Packets`], and [`Combined`] applies several
//! constraints. A packet passes if it conforms to all of them, and is charged only in that case.
//!
//! Time never runs backward here. An instant before the last charge counts as the instant of that
//! charge, so an unsteady clock never permits extra traffic.
//!
//! Papers: seed 003 §2.2.2 and §4.1.1 (its moving-window formula mixes times and rates; the bound here
//! is the one its text describes); ITU-T I.371 (virtual scheduling); RFC 2212 (TSpec).

mod bucket;
mod combined;
mod constraint;
mod moving;
mod text;

pub use combined::{Action, Combined, Police, PoliceResult};
pub use constraint::{Constraint, ConstraintError, Dual, Moving, PolicedUnit, Rule};
pub use text::TextError;

use crate::time::{Duration, Instant};
use bucket::Bucket;
use moving::Ring;

/// The conformance of a packet to a constraint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conformance {
    /// The packet conforms now.
    Conforms,
    /// The packet does not conform now. Unless more is charged, it conforms from exactly this instant
    /// on.
    At(Instant),
    /// The packet never conforms: it is larger than the constraint permits at once, or its instant lies
    /// beyond the clock's range.
    Never,
}

impl Conformance {
    /// Returns the stricter of two results: the earliest instant at which both conform.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::At(a), Self::At(b)) => Self::At(a.max(b)),
            (Self::Conforms, other) | (other, Self::Conforms) => other,
        }
    }

    /// Returns the result for an instant in nanoseconds; `Never` if the clock cannot reach it.
    fn at_nanos(nanos: u128) -> Self {
        match u64::try_from(nanos).map(Instant::from_nanos) {
            Ok(at) if at < Instant::FAR => Self::At(at),
            Ok(_) | Err(_) => Self::Never,
        }
    }
}

/// Limits one stream to one constraint.
///
/// Takes 96 bytes. A moving window takes 8 bytes more for each packet in its interval, allocated once by
/// [`Policer::new`].
#[derive(Clone, Debug)]
pub struct Policer {
    unit: PolicedUnit,
    state: State,
    /// The instant of the last charge.
    latest: Instant,
}

/// The parameters of a rule and its state.
#[derive(Clone, Debug)]
enum State {
    Leaky { burst: u64, rate: u64, bucket: Bucket },
    Jumping { burst: u64, window: Duration, index: u64, used: u128 },
    Moving { moving: Moving, ring: Ring },
    Dual { dual: Dual, peak: Bucket, sustained: Bucket },
}

impl Policer {
    /// Returns a new policer with its full burst available.
    #[must_use]
    pub fn new(constraint: Constraint) -> Self {
        let state = match constraint.rule() {
            Rule::Leaky { burst, rate } => State::Leaky { burst, rate, bucket: Bucket::default() },
            Rule::Jumping { burst, window } => State::Jumping { burst, window, index: 0, used: 0 },
            Rule::Moving(moving) => State::Moving { moving, ring: Ring::new(moving.packets()) },
            Rule::Dual(dual) => {
                State::Dual { dual, peak: Bucket::default(), sustained: Bucket::default() }
            }
        };
        Self { unit: constraint.unit(), state, latest: Instant::ZERO }
    }

    /// Returns the constraint.
    #[must_use]
    pub const fn constraint(&self) -> Constraint {
        let rule = match self.state {
            State::Leaky { burst, rate, .. } => Rule::Leaky { burst, rate },
            State::Jumping { burst, window, .. } => Rule::Jumping { burst, window },
            State::Moving { moving, .. } => Rule::Moving(moving),
            State::Dual { dual, .. } => Rule::Dual(dual),
        };
        Constraint::checked(self.unit, rule)
    }

    /// Checks whether a packet of `len` bytes conforms at `now`. Charges nothing.
    ///
    /// An empty packet costs no bytes, but it counts as a packet, also for a moving window.
    #[must_use]
    pub fn check(&self, now: Instant, len: u64) -> Conformance {
        let now = now.max(self.latest);
        let (unit, cost) = (self.unit, self.unit.cost(len));
        match &self.state {
            &State::Leaky { burst, rate, bucket } => {
                bucket.check(unit.meter(burst, rate), now, cost)
            }
            &State::Jumping { burst, window, index, used } => {
                let at = index_of(now, window);
                let used = if at == index { used } else { 0 };
                if used.saturating_add(u128::from(cost)) <= u128::from(burst) {
                    return Conformance::Conforms;
                }
                if cost > burst {
                    return Conformance::Never;
                }
                Conformance::at_nanos((u128::from(at) + 1) * u128::from(window.as_nanos()))
            }
            State::Moving { moving, .. } if cost > moving.largest => Conformance::Never,
            State::Moving { moving, ring } => ring.check(moving, now),
            &State::Dual { dual, peak, sustained } => {
                let peak = peak.check(unit.meter(dual.peak_burst, dual.peak_rate), now, cost);
                peak.and(sustained.check(unit.meter(dual.burst, dual.rate), now, cost))
            }
        }
    }

    /// Charges a packet of `len` bytes at `now`, whether it conforms or not.
    ///
    /// To enforce the constraint, charge only packets for which [`Policer::check`] just returned
    /// [`Conformance::Conforms`]. Urgent packets (control traffic) can be charged without a check and then
    /// delay the following ones.
    pub fn charge(&mut self, now: Instant, len: u64) {
        self.latest = self.latest.max(now);
        let now = self.latest;
        let (unit, cost) = (self.unit, self.unit.cost(len));
        match &mut self.state {
            State::Leaky { burst, rate, bucket } => {
                bucket.charge(unit.meter(*burst, *rate), now, cost);
            }
            State::Jumping { window, index, used, .. } => {
                let at = index_of(now, *window);
                if at != *index {
                    (*index, *used) = (at, 0);
                }
                *used = used.saturating_add(u128::from(cost));
            }
            State::Moving { ring, .. } => ring.push(now),
            State::Dual { dual, peak, sustained } => {
                peak.charge(unit.meter(dual.peak_burst, dual.peak_rate), now, cost);
                sustained.charge(unit.meter(dual.burst, dual.rate), now, cost);
            }
        }
    }

    /// Charges a packet of `len` bytes at `now` if it conforms. Returns the result of the check.
    pub fn police(&mut self, now: Instant, len: u64) -> Conformance {
        let conformance = self.check(now, len);
        if conformance == Conformance::Conforms {
            self.charge(now, len);
        }
        conformance
    }
}

/// Returns the number of the window of that length that contains an instant. No constraint has a window
/// of 0.
fn index_of(now: Instant, length: Duration) -> u64 {
    now.as_nanos().checked_div(length.as_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
