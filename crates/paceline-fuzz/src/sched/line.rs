//! A stream of the naive model, and its head.

use super::window::Window;
use paceline_sched::contract::{Contract, LossTolerance};
use paceline_sched::discipline::{Policy, RuleSet};

/// The instant that means never.
pub(crate) const NEVER: u64 = u64::MAX;

/// The head of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) arrived: u64,
    pub(crate) serial: u64,
    pub(crate) service: u64,
    pub(crate) release: u64,
    pub(crate) deadline: u64,
    /// Already counted as missed.
    pub(crate) late: bool,
    /// The number of the iteration since which it is in round robin.
    pub(crate) turn: Option<u64>,
    /// Its period begins within its deadline, so it precedes best effort.
    pub(crate) ahead: bool,
}

impl Waiting {
    /// Returns the first instant at which it can no longer end in time.
    pub(crate) const fn missed_at(&self) -> u64 {
        match self.deadline {
            NEVER => NEVER,
            deadline => (deadline + 1).saturating_sub(self.service),
        }
    }
}

/// A stream.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) contract: Option<Contract>,
    pub(crate) background: bool,
    /// It has an explicit priority.
    pub(crate) prior: bool,
    pub(crate) level: u32,
    pub(crate) window: Window,
    pub(crate) next_release: u64,
    pub(crate) suspended: bool,
    pub(crate) head: Option<Waiting>,
    pub(crate) misses: Vec<bool>,
}

/// Returns the rules that change the windows of DWCS. The other disciplines only have the history of results.
const fn adjustment(policy: Policy) -> RuleSet {
    if let Policy::Dwcs { adjustment, .. } = policy { adjustment } else { RuleSet::Later }
}

impl Line {
    /// Returns the instant one deadline before the head's period. From then on the head precedes best effort.
    pub(crate) fn soon(&self) -> Option<u64> {
        let release = self.head.as_ref().map(|head| head.release).filter(|&at| at != NEVER)?;
        Some(release.saturating_sub(self.contract?.deadline.as_nanos()))
    }

    pub(crate) fn loss(&self) -> LossTolerance {
        self.contract.map_or(LossTolerance::EDF, |contract| contract.loss)
    }

    pub(crate) fn met(&mut self, policy: Policy) {
        self.window.met(self.loss(), adjustment(policy));
    }

    pub(crate) fn missed(&mut self, policy: Policy) {
        self.window.missed(self.loss(), adjustment(policy));
    }

    /// Appends a result. Returns true if it raises the misses in its aligned window from x to x + 1.
    pub(crate) fn record(&mut self, missed: bool) -> bool {
        self.misses.push(missed);
        let (x, y) = (self.loss().x() as usize, self.loss().y() as usize);
        let window = self.misses.chunks(y.max(1)).next_back().unwrap_or_default();
        let misses = window.iter().filter(|&&missed| missed).count();
        y > 0 && missed && misses == x + 1
    }

    /// Returns k', the samples left in the window, and m', the services that the stream is still owed.
    pub(crate) fn remaining(&self) -> (u32, u32) {
        let loss = self.loss();
        let window = self.misses.chunks_exact(loss.y().max(1) as usize).remainder();
        let met = window.iter().filter(|&&missed| !missed).count();
        let counted = u32::try_from(window.len()).unwrap_or(u32::MAX);
        let met = u32::try_from(met).unwrap_or(u32::MAX);
        (loss.y() - counted, (loss.y() - loss.x()).saturating_sub(met))
    }
}
