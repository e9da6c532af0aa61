//! Several policers at once, and what becomes of a packet that does not conform.

use super::{Constraint, ConstraintError, Policer, Verdict};
use crate::time::Instant;
use alloc::vec::Vec;

/// Holds one stream to several constraints: a packet conforms if it conforms to all, and only then is
/// it charged, to all.
///
/// Without any constraint everything conforms.
#[derive(Clone, Debug, Default)]
pub struct Combined {
    policers: Vec<Policer>,
}

impl Combined {
    /// The most constraints of one stream.
    pub const POLICERS_MAX: usize = 8;

    /// Policers for all of `constraints`, which have seen nothing.
    ///
    /// # Errors
    /// [`ConstraintError::TooMany`] above [`Self::POLICERS_MAX`].
    pub fn new(constraints: &[Constraint]) -> Result<Self, ConstraintError> {
        let (policers, most) = (constraints.len(), Self::POLICERS_MAX);
        if policers > most {
            return Err(ConstraintError::TooMany { policers, most });
        }
        Ok(Self { policers: constraints.iter().copied().map(Policer::new).collect() })
    }

    /// What it holds the stream to.
    pub fn constraints(&self) -> impl ExactSizeIterator<Item = Constraint> + '_ {
        self.policers.iter().map(Policer::constraint)
    }

    /// Whether a packet of `len` bytes conforms to all at `now`; if not, from when on. Charges nothing.
    #[must_use]
    pub fn check(&self, now: Instant, len: u64) -> Verdict {
        let verdicts = self.policers.iter().map(|policer| policer.check(now, len));
        verdicts.fold(Verdict::Conforms, Verdict::and)
    }

    /// Charges a packet to all, as [`Policer::charge`].
    pub fn charge(&mut self, now: Instant, len: u64) {
        for policer in &mut self.policers {
            policer.charge(now, len);
        }
    }

    /// Charges a packet of `len` bytes at `now` to all if it conforms to all, and says whether it does.
    pub fn police(&mut self, now: Instant, len: u64) -> Verdict {
        let verdict = self.check(now, len);
        if verdict == Verdict::Conforms {
            self.charge(now, len);
        }
        verdict
    }
}

/// What becomes of a packet that does not conform.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Action {
    /// It waits until it conforms: shaping.
    Delay,
    /// It is dropped.
    #[default]
    Drop,
    /// It goes on without a contract, as best effort, and is not charged.
    Demote,
}

/// What becomes of one packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It passes, and was charged.
    Pass,
    /// It waits. Offer it again at this instant, before what came after it; nothing was charged.
    DelayUntil(Instant),
    /// It is dropped: that is the action, or no waiting would help it.
    Drop,
    /// It goes on as best effort.
    Demote,
}

/// A stream's policers and what they do. As text: `leaky:22500B,10mbit + leaky:32p,2500p/s else drop`.
#[derive(Clone, Debug, Default)]
pub struct Police {
    /// What the stream is held to.
    pub policers: Combined,
    /// What becomes of a packet that does not conform.
    pub action: Action,
}

impl Police {
    /// Decides about a packet of `len` bytes at `now`, and charges it if it passes.
    pub fn police(&mut self, now: Instant, len: u64) -> Outcome {
        match (self.policers.police(now, len), self.action) {
            (Verdict::Conforms, _) => Outcome::Pass,
            (Verdict::At(at), Action::Delay) => Outcome::DelayUntil(at),
            (Verdict::Never, Action::Delay) | (_, Action::Drop) => Outcome::Drop,
            (_, Action::Demote) => Outcome::Demote,
        }
    }
}
