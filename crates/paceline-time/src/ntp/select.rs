//! Selection of the servers that agree, and their combination (RFC 5905, section 11.2).
//!
//! [`intersect`] is the RFC's intersection: the smallest number of falsetickers for which all others agree, with
//! at most as many midpoints outside. It decides which servers steer the clock. [`majority`] decides the bound: it does
//! not assume that the falsetickers are as few as possible, but only that fewer than half of the servers are false. A
//! false server that overlaps all others therefore cannot move the bound away from the true time.

/// The smallest number of servers at which clustering stops (NMIN).
pub const CLUSTER_MIN: usize = 3;

/// The offset of one server, as an interval that contains the true offset if the server is honest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// The number of the server.
    pub source: usize,
    /// The offset in nanoseconds.
    pub offset: i64,
    /// Its largest error in nanoseconds (the root distance).
    pub distance: u64,
    /// The jitter of the server in nanoseconds.
    pub jitter: u64,
    /// The stratum of the server.
    pub stratum: u8,
}

impl Candidate {
    const fn low(&self) -> i64 {
        self.offset.saturating_sub_unsigned(self.distance)
    }

    const fn high(&self) -> i64 {
        self.offset.saturating_add_unsigned(self.distance)
    }
}

/// Returns the interval between the outermost points that lie in at least `count` of the intervals.
fn hull(candidates: &[Candidate], count: usize) -> Option<(i64, i64)> {
    let covers = |point: i64| {
        candidates.iter().filter(|one| (one.low()..=one.high()).contains(&point)).count() >= count
    };
    let low = candidates.iter().map(Candidate::low).filter(|&low| covers(low)).min()?;
    let high = candidates.iter().map(Candidate::high).filter(|&high| covers(high)).max()?;
    Some((low, high))
}

/// Returns the lowest and highest possible offset by `candidates`, of `voters` servers in total; `None` if no majority of
/// the voters shares a point.
///
/// If fewer than half of the voters are false, the true offset lies between them: all candidates but those contain it.
///
/// ```
/// use paceline_time::ntp::select::{Candidate, majority};
///
/// let at = |offset| Candidate { source: 0, offset, distance: 10, jitter: 0, stratum: 1 };
/// // Two agree; the third is false.
/// assert_eq!(majority(&[at(100), at(105), at(900)], 3), Some((95, 110)));
/// // One of three has not answered, and either of the others may be false.
/// assert_eq!(majority(&[at(100), at(105)], 3), Some((90, 115)));
/// assert_eq!(majority(&[at(100), at(900)], 2), None);
/// ```
#[must_use]
pub fn majority(candidates: &[Candidate], voters: usize) -> Option<(i64, i64)> {
    hull(candidates, voters / 2 + 1)?;
    let false_most = voters.saturating_sub(1) / 2;
    hull(candidates, candidates.len().saturating_sub(false_most).max(1))
}

/// Returns the servers that agree (truechimers): those whose offset lies in the intersection. Empty if no majority
/// agrees.
///
/// The intersection is accepted if at most as many offsets lie outside as there are falsetickers and it is not empty
/// (`d <= f && l < u` of the RFC's text; an intersection of one point is accepted, too).
#[must_use]
pub fn intersect(candidates: &[Candidate]) -> Vec<Candidate> {
    let total = candidates.len();
    for falsetickers in 0..total.div_ceil(2) {
        let Some((low, high)) = hull(candidates, total - falsetickers) else { continue };
        let inside = |one: &&Candidate| (low..=high).contains(&one.offset);
        let agreeing: Vec<Candidate> = candidates.iter().filter(inside).copied().collect();
        if total - agreeing.len() <= falsetickers {
            return agreeing;
        }
    }
    Vec::new()
}

/// Removes the servers that add more jitter to the selection than they take away (RFC 5905, section 11.2.2), and sorts
/// the others by stratum and distance. Of three servers or fewer none is removed.
#[must_use]
pub fn cluster(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by_key(|one| {
        u128::from(one.stratum) * u128::from(super::DISTANCE_MAX) + u128::from(one.distance)
    });
    while candidates.len() > CLUSTER_MIN {
        let spread = |one: &Candidate| selection_jitter(one, &candidates);
        let worst = candidates.iter().enumerate().max_by_key(|(_, one)| spread(one));
        let Some((at, most)) = worst.map(|(at, one)| (at, spread(one))) else { break };
        let least = candidates.iter().map(|one| one.jitter).min().unwrap_or_default();
        if most <= least {
            break;
        }
        candidates.remove(at);
    }
    candidates
}

/// The root mean square of the differences of the other offsets from that of `one`, in nanoseconds.
fn selection_jitter(one: &Candidate, all: &[Candidate]) -> u64 {
    let squares =
        all.iter().map(|other| u128::from(other.offset.abs_diff(one.offset).min(1 << 60)).pow(2));
    let others = u128::try_from(all.len().saturating_sub(1)).unwrap_or(1).max(1);
    u64::try_from((squares.sum::<u128>() / others).isqrt()).unwrap_or(u64::MAX)
}

/// The combined offset of the servers that remain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CombinedOffset {
    /// The mean of the offsets, weighted by 1 / distance, in nanoseconds.
    pub offset: i64,
    /// The jitter of the servers and of their selection, in nanoseconds.
    pub jitter: u64,
}

/// Combines the offsets of the servers that remain (RFC 5905, section 11.2.3). `None` without servers.
#[must_use]
pub fn combine(survivors: &[Candidate]) -> Option<CombinedOffset> {
    let first = survivors.first()?;
    let (mut weights, mut sum, mut squares) = (0_i128, 0_i128, 0_u128);
    for one in survivors {
        let weight = (1_i128 << 40) / i128::from(one.distance.clamp(1, 1 << 40));
        let off = i128::from(one.offset) - i128::from(first.offset);
        weights += weight;
        sum = sum.saturating_add(weight.saturating_mul(off));
        let capped = off.unsigned_abs().min(1 << 40);
        squares = squares.saturating_add(weight.unsigned_abs() * capped * capped);
    }
    let mean = i64::try_from(sum / weights.max(1)).unwrap_or_default();
    let own = u128::from(first.jitter.min(1 << 60)).pow(2);
    let spread = squares / weights.unsigned_abs().max(1);
    let jitter = u64::try_from(own.saturating_add(spread).isqrt()).unwrap_or(u64::MAX);
    Some(CombinedOffset { offset: first.offset.saturating_add(mean), jitter })
}
