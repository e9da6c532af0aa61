//! Selects the pictures of a video for a pull, and decides whether they are re-encoded.
//!
//! The selected pictures are decodable, and a rate counts the publisher's original samples.

use super::holding::Held;
use crate::form::Rate;
use crate::ids::NodeId;
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use crate::video::{Thinned, Thinner};

/// A sample with one of its holders and that holder's distance in hops.
pub(super) type Row = (Held, usize, NodeId);

/// The selected samples of one publisher's video.
pub(super) struct Chosen {
    pub(super) items: Vec<(Held, NodeId)>,
    /// True if the video must be decoded and re-encoded.
    pub(super) coded: bool,
    /// The number of pictures left out because no holder has all that they depend on.
    pub(super) undecodable: usize,
}

/// Selects samples of `items` at the rate; `items` must start with an I picture. `rows` has one entry per
/// holder of a sample, for these and other samples, ordered by sequence number, distance and node.
pub(super) fn choose(items: &[(Held, NodeId)], rows: &[Row], rate: Rate, resized: bool) -> Chosen {
    let joined = joined(rows);
    let follows = |(held, _): &&(Held, NodeId)| joined.binary_search(&held.seq).is_ok();
    let whole: Vec<_> = items.iter().filter(follows).copied().collect();
    let thinned = if resized { None } else { thin(&whole, rate) };
    if let Some(thinned) = thinned {
        let undecodable = items.len() - whole.len();
        return Chosen { items: thinned, coded: false, undecodable };
    }
    let mut scaler = TemporalScaler::new(rate, None);
    let due = items.iter().filter(|(held, _)| scaler.take(held.seq, held.captured_ns));
    let coders = coders(rows);
    let coder = |(held, _): &(Held, NodeId)| {
        let at = coders.binary_search_by_key(&held.seq, |(seq, _)| *seq).ok()?;
        coders.get(at).map(|&(_, node)| (*held, node))
    };
    let due: Vec<_> = due.map(coder).collect();
    let undecodable = due.iter().filter(|item| item.is_none()).count();
    Chosen { items: due.into_iter().flatten().collect(), coded: true, undecodable }
}

/// Returns the samples at the rate, if dropping unreferenced pictures suffices.
fn thin(items: &[(Held, NodeId)], rate: Rate) -> Option<Vec<(Held, NodeId)>> {
    if rate == Rate::ALL {
        return Some(items.to_vec());
    }
    let mut thinner = Thinner::new(rate, None);
    let mut passed = Vec::new();
    for item in items {
        let (held, _) = item;
        match thinner.offer(held.kind, held.seq, held.captured_ns) {
            Thinned::Pass => passed.push(*item),
            Thinned::Drop => {}
            Thinned::TooDense | Thinned::Undecodable => return None,
        }
    }
    Some(passed)
}

/// Returns the sequence numbers of the samples that are decodable with those before them, over all holders.
///
/// The samples of one holder are decodable in order. A picture therefore follows the last reference if one
/// holder has both: that holder would also have any reference between them. Two consecutive sequence numbers
/// also follow each other. Anywhere else a picture may be missing, so decoding stops until the next I
/// picture.
fn joined(rows: &[Row]) -> Vec<u64> {
    let mut joined = Vec::new();
    // The holders of the last reference, and the last sequence number that follows it.
    let mut last: Option<(Vec<NodeId>, u64)> = None;
    // Leading pictures follow: everything before the last I picture does, and every leading one since.
    let mut leading = false;
    for same in rows.chunk_by(|(a, ..), (b, ..)| a.seq == b.seq) {
        let Some((held, ..)) = same.first() else { continue };
        let holders = || same.iter().map(|(_, _, node)| *node);
        let follows = last.as_ref().is_some_and(|(with, number)| {
            number.checked_add(1) == Some(held.seq) || holders().any(|node| with.contains(&node))
        });
        match held.kind {
            Kind::VideoI => {
                leading = follows;
                last = Some((holders().collect(), held.seq));
            }
            Kind::VideoLeading if follows && leading => {
                last = last.map(|(with, _)| (with, held.seq));
            }
            Kind::VideoLeading => {
                leading = false;
                continue;
            }
            Kind::VideoP if follows => last = Some((holders().collect(), held.seq)),
            Kind::VideoP => {
                last = None;
                continue;
            }
            Kind::VideoB if follows => last = last.map(|(with, _)| (with, held.seq)),
            Kind::VideoB => continue,
            Kind::Data | Kind::State | Kind::Picture | Kind::Audio => {}
        }
        joined.push(held.seq);
    }
    joined
}

/// Returns the nearest holder that can decode each sample, with everything that it depends on.
fn coders(rows: &[Row]) -> Vec<(u64, NodeId)> {
    let mut coders = Vec::new();
    // The holders of the whole group so far, nearest first.
    let mut whole: Vec<NodeId> = Vec::new();
    for same in rows.chunk_by(|(a, ..), (b, ..)| a.seq == b.seq) {
        let Some((held, ..)) = same.first() else { continue };
        let has = |node: &NodeId| same.iter().any(|(_, _, here)| here == node);
        match held.kind {
            Kind::VideoI => whole = same.iter().map(|(_, _, node)| *node).collect(),
            Kind::VideoP => whole.retain(has),
            // A holder of the group and of this picture may lack the group before it.
            Kind::VideoLeading => continue,
            Kind::VideoB | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => {}
        }
        coders.extend(whole.iter().find(|node| has(node)).map(|node| (held.seq, *node)));
    }
    coders
}

/// Keeps the rows of one holder if several have different codings of one video, which cannot be mixed.
///
/// Chooses the holder with the most samples, of equal ones the nearest. Returns the nodes left out.
pub(super) fn keep_one_coding(rows: &mut Vec<Row>) -> Vec<NodeId> {
    let differ = |pair: &[Row]| match pair {
        [(a, ..), (b, ..)] => a.seq == b.seq && a != b && a.kind.is_video(),
        _ => false,
    };
    if !rows.windows(2).any(differ) {
        return Vec::new();
    }
    let mut holders: Vec<(usize, NodeId)> =
        rows.iter().map(|&(_, hops, node)| (hops, node)).collect();
    holders.sort_unstable();
    holders.dedup();
    let count = |of: NodeId| rows.iter().filter(|(_, _, node)| *node == of).count();
    // The first of several with the most samples is the nearest.
    let most = holders.iter().rev().max_by_key(|(_, node)| count(*node)).map(|(_, node)| *node);
    rows.retain(|(_, _, node)| Some(*node) == most);
    holders.into_iter().map(|(_, node)| node).filter(|node| Some(*node) != most).collect()
}

#[cfg(test)]
mod tests;
