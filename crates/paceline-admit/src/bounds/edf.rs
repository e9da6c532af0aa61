//! The exact schedulability condition of non-preemptive EDF for a list of streams.
//!
//! Paper: Liebeherr, Wrege & Ferrari, "Exact admission control for networks with a bounded delay
//! service", ToN 1996: for all t from the least deadline on, C t ≥ Σ A_j(t − d_j) + max {s_k: d_k >
//! t}. Links do not use this module; they update the sums incrementally (`crate::link`). It serves
//! single queries and is the reference for tests.

use crate::traffic::{Traffic, nanobits};
use paceline_sched::{Capacity, Duration};

/// A stream with its deadline on the link.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// The arrival curve.
    pub traffic: Traffic,
    /// The deadline d.
    pub deadline: Duration,
}

/// Checks whether all `streams` meet their deadlines, with interfering packets of `other` bytes
/// without deadlines.
///
/// # Errors
/// The first instant after a simultaneous start at which more bytes are due than the link has sent.
/// [`Duration::MAX`] if the sum of the rates exceeds the capacity.
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

/// Returns the instants at which the condition can first fail because of one stream.
fn corners(stream: &Due) -> impl Iterator<Item = u64> + use<> {
    let due = stream.deadline.as_nanos();
    let (bend, apart) = stream.traffic.bend();
    let bends = bend.checked_div(apart).map(crate::traffic::narrow);
    let after = bends.map(|theta| due.saturating_add(theta).saturating_add(1));
    [Some(due), bends.map(|theta| due.saturating_add(theta)), after].into_iter().flatten()
}

/// Returns true if the condition is met at one instant.
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
    // Before the first deadline nothing is due, so a blocking packet is harmless.
    due == 0 || due + nanobits(blocking) <= u128::from(capacity.bits_per_s()) * u128::from(at)
}

/// Returns the least deadline, up to `most`, with which `traffic` could join `streams`. Searches by
/// bisection. Returns `None` if no deadline suffices.
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
