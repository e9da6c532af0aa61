//! Which pictures of a video a pull brings, and whether as they are held or coded anew.
//!
//! What is brought can be decoded, and a rate counts the samples that the publisher published.

use super::holding::Held;
use crate::form::Rate;
use crate::ids::NodeId;
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use crate::video::{Thinned, Thinner};

/// A sample, and a holder that is so many hops away.
pub(super) type Row = (Held, usize, NodeId);

/// What is brought of one publisher's video.
pub(super) struct Chosen {
    pub(super) items: Vec<(Held, NodeId)>,
    /// It has to be decoded and coded again.
    pub(super) coded: bool,
    /// Pictures left out because nobody holds all that they need.
    pub(super) undecodable: usize,
}

/// Chooses of `items`, which begin with an I picture, those of the rate. `rows` are the same and others
/// in the order of numbers, distances and nodes, one for each holder of a sample.
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

/// Those of the rate, if leaving out what no other needs is enough.
fn thin(items: &[(Held, NodeId)], rate: Rate) -> Option<Vec<(Held, NodeId)>> {
    if rate == Rate::All {
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

/// The numbers of the samples that can be decoded with those before them, whoever holds each.
///
/// What one holder has can be decoded in its order. So a picture follows the last one that others need if
/// one holder has both: there is nothing between the two, or it would have that too. Nor is there anything
/// between two numbers that follow each other. Elsewhere one may be missing, and so nothing is decoded
/// until the next that stands alone.
fn joined(rows: &[Row]) -> Vec<u64> {
    let mut joined = Vec::new();
    // Who has the last picture that others need, and the last number that is joined to it.
    let mut last: Option<(Vec<NodeId>, u64)> = None;
    for same in rows.chunk_by(|(a, ..), (b, ..)| a.seq == b.seq) {
        let Some((held, ..)) = same.first() else { continue };
        let holders = || same.iter().map(|(_, _, node)| *node);
        let follows = last.as_ref().is_some_and(|(with, number)| {
            number.checked_add(1) == Some(held.seq) || holders().any(|node| with.contains(&node))
        });
        match held.kind {
            Kind::VideoI => last = Some((holders().collect(), held.seq)),
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

/// Who can decode each sample: the nearest that holds it and everything it needs.
fn coders(rows: &[Row]) -> Vec<(u64, NodeId)> {
    let mut coders = Vec::new();
    // Those that hold the group so far, nearest first.
    let mut whole: Vec<NodeId> = Vec::new();
    for same in rows.chunk_by(|(a, ..), (b, ..)| a.seq == b.seq) {
        let Some((held, ..)) = same.first() else { continue };
        let has = |node: &NodeId| same.iter().any(|(_, _, here)| here == node);
        match held.kind {
            Kind::VideoI => whole = same.iter().map(|(_, _, node)| *node).collect(),
            Kind::VideoP => whole.retain(has),
            Kind::VideoB | Kind::Data | Kind::State | Kind::Picture | Kind::Audio => {}
        }
        coders.extend(whole.iter().find(|node| has(node)).map(|node| (held.seq, *node)));
    }
    coders
}

/// Keeps to one holder where several hold different codings of one video, which cannot be mixed: to the
/// one with the most, of equal ones the nearest. Says who is left out.
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
    // The first of several that have the most is the nearest.
    let most = holders.iter().rev().max_by_key(|(_, node)| count(*node)).map(|(_, node)| *node);
    rows.retain(|(_, _, node)| Some(*node) == most);
    holders.into_iter().map(|(_, node)| node).filter(|node| Some(*node) != most).collect()
}

#[cfg(test)]
mod tests;
