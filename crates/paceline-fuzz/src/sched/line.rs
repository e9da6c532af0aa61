//! A stream of the naive model, and its head.

use super::window::Window;
use paceline_sched::contract::{Contract, Late, LossTolerance};
use paceline_sched::discipline::{Policy, RuleSet};

/// The instant that means never.
pub(crate) const NEVER: u64 = u64::MAX;

/// The head of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) arrived: u64,
    /// When it arrived, or when its period begins if it waits for that.
    pub(crate) released: u64,
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
    /// It was announced as one segment.
    pub(crate) whole: bool,
    /// A segment of it was sent while it could be missed and its window was owed services.
    pub(crate) begun: bool,
    /// Under Stop-and-Go: the frame in which it is served has begun.
    pub(crate) frame_begun: bool,
    /// Since when it is too late to begin, so that it is owed nothing while it may be missed.
    pub(crate) late_begin: Option<u64>,
}

/// A stream.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) contract: Option<Contract>,
    pub(crate) background: bool,
    /// [`paceline_sched::discipline::Terms::begins_early`].
    pub(crate) begins_early: bool,
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

    /// Returns the first instant from which the head can no longer end in time. Under VDS, one that has not begun in
    /// time is missed when the next sample may take its place.
    pub(crate) fn missed_at(&self) -> Option<u64> {
        let (head, contract) = (self.head.as_ref()?, self.contract);
        if head.deadline == NEVER {
            return Some(NEVER);
        }
        let missed = (head.deadline + 1).saturating_sub(head.service);
        let jitter = contract.map_or(0, |contract| contract.jitter.as_nanos());
        let follower = self.next_release.saturating_sub(jitter);
        let late = head.late_begin.filter(|_| self.can_miss());
        Some(late.map_or(missed, |since| missed.min(follower.max(since))))
    }

    /// Returns the first instant at which the head, which has several segments and may be missed, is late to begin under
    /// VDS: after an eighth of its time.
    pub(crate) fn late_to_begin_at(&self, policy: Policy) -> Option<u64> {
        let contract = self.contract.filter(|contract| contract.late == Late::Drop)?;
        let head = self
            .head
            .as_ref()
            .filter(|head| !head.whole && !head.begun && head.late_begin.is_none())?;
        if policy != Policy::Vds || !self.begins_early || !self.can_miss() || head.deadline == NEVER
        {
            return None;
        }
        let due = u128::from(contract.deadline.as_nanos()) * 7 / 8;
        let lead = u64::try_from(due).unwrap_or(NEVER).clamp(2, NEVER / 2);
        Some((head.deadline + 1).saturating_sub(lead))
    }

    /// Returns true if the window is owed services, and its next sample may be missed.
    pub(crate) fn can_miss(&self) -> bool {
        let (left, required) = self.remaining();
        0 < required && required < left && self.loss().x() > 0
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
