//! Combined policers and the treatment of nonconforming packets.

use super::{Conformance, Constraint, ConstraintError, Policer};
use crate::time::Instant;
use alloc::vec::Vec;

/// Limits one stream to several constraints. A packet conforms if it conforms to all of them, and only
/// then is it charged, to all.
///
/// Without any constraint every packet conforms.
#[derive(Clone, Debug, Default)]
pub struct Combined {
    policers: Vec<Policer>,
}

impl Combined {
    /// The largest number of constraints of one stream.
    pub const POLICERS_MAX: usize = 8;

    /// Returns new policers for all of `constraints`.
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

    /// Returns the constraints.
    pub fn constraints(&self) -> impl ExactSizeIterator<Item = Constraint> + '_ {
        self.policers.iter().map(Policer::constraint)
    }

    /// Checks whether a packet of `len` bytes conforms to all constraints at `now`, or from which
    /// instant it will.
    ///
    /// Charges nothing.
    #[must_use]
    pub fn check(&self, now: Instant, len: u64) -> Conformance {
        let each = self.policers.iter().map(|policer| policer.check(now, len));
        each.fold(Conformance::Conforms, Conformance::and)
    }

    /// Charges a packet to all policers, like [`Policer::charge`].
    pub fn charge(&mut self, now: Instant, len: u64) {
        for policer in &mut self.policers {
            policer.charge(now, len);
        }
    }

    /// Charges a packet of `len` bytes at `now` to all policers if it conforms to all. Returns the
    /// result of the check.
    pub fn police(&mut self, now: Instant, len: u64) -> Conformance {
        let conformance = self.check(now, len);
        if conformance == Conformance::Conforms {
            self.charge(now, len);
        }
        conformance
    }
}

/// The treatment of a nonconforming packet.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Action {
    /// The packet waits until it conforms: shaping.
    Delay,
    /// The packet is dropped.
    #[default]
    Drop,
    /// The packet is forwarded as best effort, without a contract, and is not charged.
    Demote,
}

/// The result for one packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PoliceResult {
    /// The packet passes and was charged.
    Pass,
    /// The packet waits and was not charged. Offer it again at this instant, before later packets.
    DelayUntil(Instant),
    /// The packet is dropped, by the action or because it would never conform.
    Drop,
    /// The packet is forwarded as best effort.
    Demote,
}

/// A stream's policers and their action. As text: `leaky:22500B,10mbit + leaky:32p,2500p/s else drop`.
#[derive(Clone, Debug, Default)]
pub struct Police {
    /// The constraints of the stream.
    pub policers: Combined,
    /// The treatment of a nonconforming packet.
    pub action: Action,
}

impl Police {
    /// Decides on a packet of `len` bytes at `now`, and charges it if it passes.
    pub fn police(&mut self, now: Instant, len: u64) -> PoliceResult {
        match (self.policers.police(now, len), self.action) {
            (Conformance::Conforms, _) => PoliceResult::Pass,
            (Conformance::At(at), Action::Delay) => PoliceResult::DelayUntil(at),
            (Conformance::Never, Action::Delay) | (_, Action::Drop) => PoliceResult::Drop,
            (_, Action::Demote) => PoliceResult::Demote,
        }
    }
}
