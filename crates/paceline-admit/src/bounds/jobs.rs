//! Exact worst-case response times of sporadic samples, where two-piece arrival curves round up.
//!
//! A non-preemptive link is a processor with jobs that run to completion. The bounds are the least
//! fixed points of the busy window (George, Rivierre & Spuri 1996; Bozhko & Brandenburg, ECRTS
//! 2020). A packet of lower priority blocks for one nanosecond less than its transmission time,
//! since it must have started before.

/// A source of jobs. All values are in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Jobs {
    /// The transmission time of one job.
    pub cost: u64,
    /// The minimum time between two jobs.
    pub period: u64,
    /// The maximum time by which a job may arrive early.
    pub jitter: u64,
    /// The relative deadline. The static-priority analysis does not use it.
    pub deadline: u64,
}

impl Jobs {
    /// Returns the maximum number of arrivals in a half-open interval of this length.
    fn arrivals(&self, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        length.saturating_add(self.jitter).div_ceil(self.period.max(1))
    }

    fn requested(&self, length: u64) -> u64 {
        self.arrivals(length).saturating_mul(self.cost)
    }

    /// Returns the earliest arrival times of the jobs, relative to the start of a busy window, up
    /// to `end`.
    fn steps(&self, end: u64) -> impl Iterator<Item = u64> + use<> {
        let Self { period, jitter, .. } = *self;
        let period = period.max(1);
        let later = (jitter / period + 1..).map(move |n| n.saturating_mul(period) - jitter);
        core::iter::once(0).chain(later).take_while(move |at| *at < end)
    }
}

/// Returns the least `x` from `start` on with `f(x) ≤ x`, for a non-decreasing `f`, or `None` if it
/// exceeds `limit`.
fn fixed_point(start: u64, limit: u64, f: impl Fn(u64) -> u64) -> Option<u64> {
    let mut x = start;
    while x <= limit {
        let next = f(x);
        if next <= x {
            return Some(x);
        }
        x = next;
    }
    None
}

/// Returns the worst-case response time of a job of `own` under static priority. Jobs of `before`
/// (higher and equal levels) and one started packet of `lower` nanoseconds precede it. Returns
/// `None` if the bound exceeds `limit`.
#[must_use]
pub fn static_priority(own: &Jobs, before: &[Jobs], lower: u64, limit: u64) -> Option<u64> {
    let blocking = lower.saturating_sub(1);
    let requested = |length| sum(before, |jobs| jobs.requested(length));
    let busy = fixed_point(1, limit, |length| {
        blocking.saturating_add(requested(length)).saturating_add(own.requested(length))
    })?;
    let rest = own.cost.saturating_sub(1);
    let mut longest = 0;
    for at in own.steps(busy) {
        let mine = own.requested(at + 1).saturating_sub(rest);
        let begun = fixed_point(at.max(1), limit, |length| {
            blocking.saturating_add(mine).saturating_add(requested(length))
        })?;
        longest = longest.max((begun - at).saturating_add(rest));
    }
    Some(longest)
}

/// Returns the worst-case response time under EDF among `others`, with one packet of `other`
/// nanoseconds that has no deadline. Returns `None` if the bound exceeds `limit`.
#[must_use]
pub fn edf(own: &Jobs, others: &[Jobs], other: u64, limit: u64) -> Option<u64> {
    let block = |at: u64| {
        let due = at.saturating_add(own.deadline);
        let later = others.iter().filter(|jobs| jobs.deadline > due).map(|jobs| jobs.cost);
        later.max().unwrap_or(0).max(other).saturating_sub(1)
    };
    let busy = fixed_point(1, limit, |length| {
        let requested = sum(others, |jobs| jobs.requested(length));
        block(0).saturating_add(requested).saturating_add(own.requested(length))
    })?;
    let rest = own.cost.saturating_sub(1);
    let mut longest = 0;
    for at in offsets(own, others, busy) {
        let mine = own.requested(at + 1).saturating_sub(rest);
        let due = (at + 1).saturating_add(own.deadline);
        let begun = fixed_point(at.max(1), limit, |length| {
            let before =
                |jobs: &Jobs| jobs.requested(length.min(due.saturating_sub(jobs.deadline)));
            block(at).saturating_add(mine).saturating_add(sum(others, before))
        })?;
        longest = longest.max((begun - at).saturating_add(rest));
    }
    Some(longest)
}

/// Returns the candidate arrival times of the worst-case job in a busy window: the arrivals of its
/// own source, and the times at which it would share another job's deadline.
fn offsets(own: &Jobs, others: &[Jobs], busy: u64) -> Vec<u64> {
    let mut offsets: Vec<u64> = own.steps(busy).collect();
    for jobs in others {
        let shifted = |at: u64| at.saturating_add(jobs.deadline).checked_sub(own.deadline);
        let end = busy.saturating_add(own.deadline);
        offsets.extend(jobs.steps(end).filter_map(shifted).filter(|at| *at < busy));
    }
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

fn sum(jobs: &[Jobs], of: impl Fn(&Jobs) -> u64) -> u64 {
    jobs.iter().map(of).fold(0, u64::saturating_add)
}
