//! The totals of a stream.

use super::{DelayDistribution, Outcome, SampleDecision};
use crate::contract::LossTolerance;
use crate::time::Duration;

/// The totals of one stream.
///
/// Windows are counted from the decisions alone, independent of the discipline's own account: aligned
/// windows of y samples, in the order of decisions.
#[derive(Clone, Debug)]
pub struct Tally {
    loss: LossTolerance,
    /// Samples sent by their deadline, or without one.
    pub on_time: u64,
    /// Samples sent after their deadline.
    pub late: u64,
    /// Samples dropped.
    pub dropped: u64,
    /// Samples that the policers rejected. They are not samples of the contract, and belong to no
    /// window.
    pub policed: u64,
    /// Bytes sent, including the bytes of samples that were dropped after some segments.
    pub bytes: u64,
    /// The transmission time of these bytes.
    pub busy: Duration,
    /// The number of complete windows.
    pub windows: u64,
    /// The number of windows with more than x misses, including the incomplete one.
    pub violations: u64,
    /// The largest number of misses in one window.
    pub misses_max: u32,
    /// The largest number of consecutive misses.
    pub run_max: u64,
    /// The delays of the samples sent.
    pub delays: DelayDistribution,
    judged: u32,
    missed: u32,
    run: u64,
}

impl Tally {
    /// Returns empty totals for a stream with this loss tolerance; [`LossTolerance::EDF`] for one
    /// without windows.
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
            delays: DelayDistribution::default(),
            judged: 0,
            missed: 0,
            run: 0,
        }
    }

    /// Counts a decision about a sample of the stream. Returns true if the misses of its window first
    /// exceed x with it.
    pub fn record(&mut self, decision: &SampleDecision) -> bool {
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

    /// Returns the number of decided samples.
    #[must_use]
    pub const fn decided(&self) -> u64 {
        self.on_time + self.late + self.dropped + self.policed
    }
}
