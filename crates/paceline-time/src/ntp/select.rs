//! Selection of the servers that agree, and their combination (RFC 5905, section 11.2).
//!
//! [`majority`] decides the bound: fewer than half of the servers are false, so the true time lies where all others
//! overlap. A false server that overlaps all others cannot move the bound away from the true time. [`agreeing`] decides
//! which servers may steer the clock.
//!
//! The RFC's intersection also demands that midpoints lie inside of it. An honest server on a long path has a midpoint
//! anywhere in its wide interval, so that rule rejects honest servers of unlike quality. Here, as in chrony, only end
//! points count; midpoints select among servers that agree ([`steering`]).

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

    const fn contains(&self, (low, high): (i64, i64)) -> bool {
        self.low() <= low && high <= self.high()
    }

    /// Returns true if no point of the bound lies in the interval: then the server is false, if the bound is right.
    #[must_use]
    pub const fn contradicts(&self, (low, high): (i64, i64)) -> bool {
        self.high() < low || high < self.low()
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

/// Returns the servers that agree (truechimers): those that contain all points at which the most intervals overlap. Empty
/// if no majority of `candidates` shares a point, and never empty otherwise.
///
/// ```
/// use paceline_time::ntp::select::{Candidate, agreeing};
///
/// let at = |source, offset, distance| Candidate { source, offset, distance, jitter: 0, stratum: 1 };
/// // A server of another quality agrees, although its offset lies outside of the better one's interval.
/// assert_eq!(agreeing(&[at(0, 0, 10), at(1, 110, 4_300)]).len(), 2);
/// // The second and the third contradict each other; the first agrees with both.
/// assert_eq!(agreeing(&[at(0, 0, 100), at(1, -50, 10), at(2, 50, 10)]), [at(0, 0, 100)]);
/// ```
#[must_use]
pub fn agreeing(candidates: &[Candidate]) -> Vec<Candidate> {
    let majority = candidates.len() / 2 + 1..=candidates.len();
    let most = majority.rev().find_map(|count| hull(candidates, count));
    // Two majorities share a server, so at least one contains the outermost points of all.
    let contains = |one: &&Candidate| most.is_some_and(|most| one.contains(most));
    candidates.iter().filter(contains).copied().collect()
}

/// Returns the servers of `agreeing` that steer the clock: those whose offset lies inside of the bound, or all if there is
/// none. An offset outside of it is known to be wrong by at least its distance from the bound.
#[must_use]
pub fn steering(agreeing: &[Candidate], (low, high): (i64, i64)) -> Vec<Candidate> {
    let inside = |one: &&Candidate| (low..=high).contains(&one.offset);
    let best: Vec<_> = agreeing.iter().filter(inside).copied().collect();
    if best.is_empty() { agreeing.to_vec() } else { best }
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
