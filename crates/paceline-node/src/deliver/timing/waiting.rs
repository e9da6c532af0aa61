//! A sample that waits for its release.

use super::super::queue::Unread;
use paceline_sched::Duration;
use paceline_time::TimeBounds;

/// The limit of publishers with a state of their own; beyond it, all states start again.
pub(super) const PUBLISHERS_MAX: usize = 4_096;

/// A sample that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) unread: Unread,
    /// The capture time, if it determines the release by the clock of this node.
    pub(super) captured: Option<TimeBounds>,
    /// It arrived after its release time.
    pub(super) late: bool,
    /// The time by which it may leave too late, with a largest jitter.
    pub(super) slack: Duration,
}

impl Waiting {
    pub(super) const fn new(unread: Unread) -> Self {
        Self { unread, captured: None, late: false, slack: Duration::ZERO }
    }
}
