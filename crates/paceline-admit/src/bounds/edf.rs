//! The exact condition of earliest deadline first that nothing preempts, over a list of streams.
//!
//! Paper: Liebeherr, Wrege & Ferrari, "Exact admission control for networks with a bounded delay service",
//! ToN 1996: for all t from the least deadline on, C t ≥ Σ A_j(t − d_j) + max {s_k: d_k > t}. Links do not
//! come here, they keep the sums (`crate::link`); this is for whoever asks once, and what they are
//! compared with.

use crate::traffic::{Traffic, nanobits};
use paceline_sched::{Capacity, Duration};

/// A stream with the longest that it may stay on the link.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// What it sends.
    pub traffic: Traffic,
    /// d.
    pub deadline: Duration,
}

/// When all of `streams` meet their deadlines, beside packets of `other` bytes that have none. If not,
/// the first instant after a common beginning at which more is due than the link has carried.
///
/// # Errors
/// That instant; [`Duration::MAX`] if in the long run more is sent than carried.
pub fn feasible(capacity: Capacity, streams: &[Due], other: u64) -> Result<(), Duration> {
    let rates: u128 = streams.iter().map(|stream| u128::from(stream.traffic.rate())).sum();
    let mut times: Vec<u64> = streams.iter().flat_map(corners).collect();
    times.sort_unstable();
    times.dedup();
    for at in times {
        if !met(capacity, streams, other, at) {
            return Err(Duration::from_nanos(at));
        }
    }
    if rates > u128::from(capacity.bits_per_s()) { Err(Duration::MAX) } else { Ok(()) }
}

/// The instants at which the condition can first fail because of one stream.
fn corners(stream: &Due) -> impl Iterator<Item = u64> + use<> {
    let due = stream.deadline.as_nanos();
    let (bend, apart) = stream.traffic.bend();
    let bends = bend.checked_div(apart).map(crate::traffic::narrow);
    let after = bends.map(|theta| due.saturating_add(theta).saturating_add(1));
    [Some(due), bends.map(|theta| due.saturating_add(theta)), after].into_iter().flatten()
}

/// The condition at one instant.
#[must_use]
pub fn met(capacity: Capacity, streams: &[Due], other: u64, at: u64) -> bool {
    let mut blocking = other;
    let mut due: u128 = 0;
    for stream in streams {
        match at.checked_sub(stream.deadline.as_nanos()) {
            Some(since) => due += stream.traffic.nanobits_in(u128::from(since)),
            None => blocking = blocking.max(stream.traffic.packet()),
        }
    }
    // Before the first deadline nothing is due, whatever is being sent.
    due == 0 || due + nanobits(blocking) <= u128::from(capacity.bits_per_s()) * u128::from(at)
}

/// The least deadline with which `traffic` could join `streams`, by halving; `None` if none up to `most`.
#[must_use]
pub fn least_deadline(
    capacity: Capacity,
    streams: &[Due],
    traffic: Traffic,
    other: u64,
    most: Duration,
) -> Option<Duration> {
    let mut all = streams.to_vec();
    all.push(Due { traffic, deadline: most });
    let mut keeps = |nanos: u64| {
        if let Some(last) = all.last_mut() {
            last.deadline = Duration::from_nanos(nanos);
        }
        feasible(capacity, &all, other).is_ok()
    };
    if !keeps(most.as_nanos()) {
        return None;
    }
    let (mut low, mut high) = (0, most.as_nanos());
    while low < high {
        let middle = low + (high - low) / 2;
        if keeps(middle) { high = middle } else { low = middle + 1 }
    }
    Some(Duration::from_nanos(high))
}
