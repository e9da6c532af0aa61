//! Reports of published samples, which keep reservations with an idle time in use.

use paceline_proto::ids::PublisherId;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeSet;

/// The interval of reports, as in the shell.
const EVERY: Duration = Duration::from_millis(250);

/// The publishers of a node with samples since the last report.
#[derive(Debug)]
pub(super) struct Used {
    /// Reports are made: some subscription has an idle time.
    enabled: bool,
    publishers: BTreeSet<PublisherId>,
    /// The instant of the next report.
    pub(super) report_at: Instant,
}

impl Default for Used {
    fn default() -> Self {
        Self { enabled: false, publishers: BTreeSet::new(), report_at: Instant::FAR }
    }
}

impl Used {
    pub(super) fn enable(&mut self) {
        if !self.enabled {
            (self.enabled, self.report_at) = (true, Instant::ZERO);
        }
    }

    /// Returns the state of the node's next incarnation.
    pub(super) fn anew(&self) -> Self {
        Self { enabled: self.enabled, report_at: self.report_at, ..Self::default() }
    }

    /// Records a sample.
    pub(super) fn note(&mut self, publisher: PublisherId) {
        if self.enabled {
            self.publishers.insert(publisher);
        }
    }

    /// Returns the publishers to report, if a report is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<BTreeSet<PublisherId>> {
        if now < self.report_at {
            return None;
        }
        self.report_at = now + EVERY;
        Some(core::mem::take(&mut self.publishers))
    }
}
