//! What became of a stream, summed up.

use super::{Decision, Delays, Outcome};
use crate::contract::LossTolerance;
use crate::time::Duration;

/// The sums of one stream. Windows are counted here from the decisions alone, whatever the discipline
/// says of them: aligned windows of y samples, in the order of their fates.
#[derive(Clone, Debug)]
pub struct Tally {
    loss: LossTolerance,
    /// Sent by their deadline, or without one.
    pub on_time: u64,
    /// Sent after it.
    pub late: u64,
    /// Given up.
    pub dropped: u64,
    /// More than its policers allow: no sample of the contract, and in no window.
    pub policed: u64,
    /// Bytes sent, those of samples that were given up on the way included.
    pub bytes: u64,
    /// How long they kept the link.
    pub busy: Duration,
    /// Complete windows.
    pub windows: u64,
    /// Windows with more than x misses, the one that is not complete included.
    pub violations: u64,
    /// The most misses in one window.
    pub misses_max: u32,
    /// The most misses in a row.
    pub run_max: u64,
    /// The delays of what was sent.
    pub delays: Delays,
    judged: u32,
    missed: u32,
    run: u64,
}

impl Tally {
    /// Nothing yet, of a stream with this loss tolerance; [`LossTolerance::EDF`] for one without
    /// windows.
    #[must_use]
    pub fn new(loss: LossTolerance) -> Self {
        Self {
            loss,
            on_time: 0,
            late: 0,
            dropped: 0,
            policed: 0,
            bytes: 0,
            busy: Duration::ZERO,
            windows: 0,
            violations: 0,
            misses_max: 0,
            run_max: 0,
            delays: Delays::default(),
            judged: 0,
            missed: 0,
            run: 0,
        }
    }

    /// Counts a decision about a sample of the stream; true if with it the misses of its window first
    /// exceed x.
    pub fn record(&mut self, decision: &Decision) -> bool {
        self.bytes = self.bytes.saturating_add(decision.bytes.into());
        self.busy = self.busy.saturating_add(decision.busy);
        if let Some(delay) = decision.delay {
            self.delays.record(delay);
        }
        match decision.outcome {
            Outcome::OnTime => self.on_time += 1,
            Outcome::Late => self.late += 1,
            Outcome::Dropped => self.dropped += 1,
            Outcome::Policed => {
                self.policed += 1;
                return false;
            }
        }
        self.judge(decision.outcome != Outcome::OnTime)
    }

    fn judge(&mut self, missed: bool) -> bool {
        self.run = if missed { self.run + 1 } else { 0 };
        self.run_max = self.run_max.max(self.run);
        if self.loss.y() == 0 {
            return false;
        }
        self.judged += 1;
        self.missed += u32::from(missed);
        self.misses_max = self.misses_max.max(self.missed);
        let violated = missed && self.missed.checked_sub(self.loss.x()) == Some(1);
        self.violations += u64::from(violated);
        if self.judged >= self.loss.y() {
            self.windows += 1;
            (self.judged, self.missed) = (0, 0);
        }
        violated
    }

    /// Samples with a fate.
    #[must_use]
    pub const fn decided(&self) -> u64 {
        self.on_time + self.late + self.dropped + self.policed
    }
}
