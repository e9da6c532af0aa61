//! Policers: what keeps a stream within the traffic that it announced.
//!
//! A [`Constraint`] bounds the traffic of any interval of a length; a [`Policer`] says of each packet
//! whether it keeps the constraint, and if not, from when on it would. Everything is computed from the
//! instant of the question: no timer, no rounding, no allocation, so a rate is exactly the one asked
//! for, and a policer that nobody asks costs nothing.
//!
//! | constraint | allows | a policer remembers |
//! |---|---|---|
//! | leaky bucket σ, ρ | a burst σ, and ρ in the long run | one virtual time |
//! | jumping window B, T | B in each window of T; windows follow each other from the clock's origin | one window |
//! | moving window Xmin, Xavg, I, Smax | ⌊I/Xavg⌋ packets in *any* interval of I, Xmin apart | ⌊I/Xavg⌋ instants |
//! | dual bucket p, M, r, b | bursts M at p, and b at r (RFC 2212's TSpec) | two virtual times |
//!
//! Bytes alone do not bound the work that packets make: 8,000 bytes can be two packets or 8,000. So a
//! constraint counts [`Unit::Bytes`] or [`Unit::Packets`], and [`Combined`] asks several at once: a
//! packet passes if all agree, and nothing is charged unless all do.
//!
//! Time never goes backward here. An instant before the last charge is taken as the instant of that
//! charge, so an unsteady clock never buys traffic.
//!
//! Papers: seed 003 §2.2.2 and §4.1.1 (its moving-window formula mixes times and rates; the bound here
//! is the one its text describes); ITU-T I.371 (virtual scheduling); RFC 2212 (TSpec).

mod bucket;
mod combined;
mod constraint;
mod moving;
mod text;

pub use combined::{Action, Combined, Outcome, Police};
pub use constraint::{Constraint, ConstraintError, Dual, Moving, Rule, Unit};
pub use text::TextError;

use crate::time::{Duration, Instant};
use bucket::Bucket;
use moving::Ring;

/// Whether a packet keeps a constraint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It does, now.
    Conforms,
    /// Not now. If nothing else is charged, it does from this instant on and not a nanosecond before.
    At(Instant),
    /// It never will: it is larger than the constraint allows at once, or its instant lies beyond the
    /// clock's range.
    Never,
}

impl Verdict {
    /// The stricter of two: when both conform.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::At(a), Self::At(b)) => Self::At(a.max(b)),
            (Self::Conforms, verdict) | (verdict, Self::Conforms) => verdict,
        }
    }

    /// From that nanosecond on; never, if the clock does not reach it.
    fn at_nanos(nanos: u128) -> Self {
        match u64::try_from(nanos).map(Instant::from_nanos) {
            Ok(at) if at < Instant::FAR => Self::At(at),
            Ok(_) | Err(_) => Self::Never,
        }
    }
}

/// Holds one stream to one constraint.
///
/// 96 bytes, and for a moving window 8 bytes more for each packet that its interval may hold, allocated
/// once by [`Policer::new`].
#[derive(Clone, Debug)]
pub struct Policer {
    unit: Unit,
    state: State,
    /// Of the last charge.
    latest: Instant,
}

/// The parameters of a rule, and what it has to remember.
#[derive(Clone, Debug)]
enum State {
    Leaky { burst: u64, rate: u64, bucket: Bucket },
    Jumping { burst: u64, window: Duration, index: u64, used: u128 },
    Moving { moving: Moving, ring: Ring },
    Dual { dual: Dual, peak: Bucket, sustained: Bucket },
}

impl Policer {
    /// A policer that has seen nothing: the full burst is available.
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

    /// What it holds the stream to.
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

    /// Whether a packet of `len` bytes conforms at `now`. Charges nothing.
    ///
    /// An empty packet costs no bytes, but it is a packet, also for a moving window.
    #[must_use]
    pub fn check(&self, now: Instant, len: u64) -> Verdict {
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
                    return Verdict::Conforms;
                }
                if cost > burst {
                    return Verdict::Never;
                }
                Verdict::at_nanos((u128::from(at) + 1) * u128::from(window.as_nanos()))
            }
            State::Moving { moving, .. } if cost > moving.largest => Verdict::Never,
            State::Moving { moving, ring } => ring.check(moving, now),
            &State::Dual { dual, peak, sustained } => {
                let peak = peak.check(unit.meter(dual.peak_burst, dual.peak_rate), now, cost);
                peak.and(sustained.check(unit.meter(dual.burst, dual.rate), now, cost))
            }
        }
    }

    /// Charges a packet of `len` bytes at `now`, whether it conforms or not.
    ///
    /// To hold the constraint, charge only what [`Policer::check`] just called conforming. What may not
    /// wait (control traffic) can be charged without asking: it then delays what follows.
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

    /// Charges a packet of `len` bytes at `now` if it conforms, and says whether it does.
    pub fn police(&mut self, now: Instant, len: u64) -> Verdict {
        let verdict = self.check(now, len);
        if verdict == Verdict::Conforms {
            self.charge(now, len);
        }
        verdict
    }
}

/// In which window of that length an instant lies. No constraint has a window of 0.
fn index_of(now: Instant, length: Duration) -> u64 {
    now.as_nanos().checked_div(length.as_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
