//! The policers of one class.

use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use paceline_sched::police::{Police, PoliceResult};
use std::collections::VecDeque;

/// The policers of one class, or of one peer's subclass.
#[derive(Debug)]
pub(in crate::link) struct Gate {
    pub(in crate::link) police: Police,
    /// Streams whose heads wait for the policers, in order. Streams without a head are skipped.
    pub(in crate::link) waiting: VecDeque<StreamIndex>,
    /// The time at which the first of them conforms.
    pub(super) opens: Instant,
}

impl Gate {
    pub(super) const fn new(police: Police) -> Self {
        Self { police, waiting: VecDeque::new(), opens: Instant::ZERO }
    }

    /// Returns `true` if a head waits that conforms at `now`.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        !self.waiting.is_empty() && self.opens <= now
    }

    /// Charges a sample if it conforms now; otherwise records the time at which it will.
    pub(in crate::link) fn admits(&mut self, now: Instant, bytes: u64) -> bool {
        match self.police.police(now, bytes) {
            PoliceResult::Pass => true,
            PoliceResult::DelayUntil(at) => {
                self.opens = at;
                false
            }
            // The sample was admitted because it conforms at some time, but the clock does not reach it.
            PoliceResult::Drop | PoliceResult::Demote => {
                self.opens = Instant::FAR;
                false
            }
        }
    }
}
