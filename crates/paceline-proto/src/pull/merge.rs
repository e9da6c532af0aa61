//! Merges the answers of all holders into a plan of the pull.

use super::holding::{Find, Found, Held, SampleSpan};
use super::selection::{ITEMS_MAX, Mark, Selection, Series};
use super::video::{self, Row};
use crate::ids::{NodeId, PublisherId};
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};

/// The answer of one node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answered {
    /// The node.
    pub node: NodeId,
    /// The node's distance in hops.
    pub hops: usize,
    /// All pages of its answer.
    pub found: Found,
}

/// A sample to fetch, and its holder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlanItem {
    /// The sample's publisher.
    pub publisher: PublisherId,
    /// The holder's description of the sample.
    pub held: Held,
    /// The nearest holder; of equally near ones, the one with the lowest id.
    pub holder: NodeId,
}

/// One fetch: samples of one publisher from one holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// The holder.
    pub holder: NodeId,
    /// The publisher.
    pub publisher: PublisherId,
    /// The sequence numbers, in increasing order.
    pub seqs: Vec<u64>,
    /// The total payload bytes, before any scaling.
    pub bytes: u64,
}

/// The plan of a pull.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PullPlan {
    /// The samples, ordered by publisher and sequence number: at most [`ITEMS_MAX`].
    pub items: Vec<PlanItem>,
    /// The span of all stored samples of each publisher.
    pub spans: BTreeMap<PublisherId, SampleSpan>,
    /// True if selected samples were left out because there were more than [`ITEMS_MAX`].
    pub more: bool,
    /// The number of selected pictures left out because a picture that they depend on is missing. If the
    /// video must be re-encoded, a single holder must have all of them.
    pub undecodable: usize,
    /// The publishers whose video the holder decodes and re-encodes.
    pub coded: BTreeSet<PublisherId>,
    /// The nodes with another coding of a publisher's video, which cannot replace the holder of the items.
    pub apart: BTreeSet<(NodeId, PublisherId)>,
    /// The reason why there are no items.
    pub absence: Option<Absence>,
}

/// The reason for an empty pull.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Absence {
    /// No node answered: there is no holder of the tag, or none is reachable.
    NoHolder,
    /// The holders have no samples of the tag, or no longer.
    NothingHeld,
    /// The holders have no samples of this publisher: it does not exist, or all its samples have expired.
    NoSuchPublisher(PublisherId),
    /// The requested samples are older than all stored ones.
    Expired,
    /// The requested samples are newer than all stored ones.
    NotYet,
    /// The requested samples lie between stored ones, but no holder received them.
    Missing,
    /// Fewer samples are stored than the requested position.
    TooFew,
    /// The pictures are stored, but not the I picture that they depend on.
    Undecodable,
}

/// The union of the samples of one publisher at several holders.
struct Union {
    items: Vec<(Held, NodeId)>,
    /// The samples of each holder.
    rows: Vec<Row>,
    in_time_order: bool,
}

impl Series for Union {
    fn count(&self) -> usize {
        self.items.len()
    }

    fn mark(&self, place: usize) -> Option<Mark> {
        self.items.get(place).map(|(held, _)| held.mark())
    }

    fn is_in_time_order(&self) -> bool {
        self.in_time_order
    }
}

impl Union {
    /// Returns the union, and the nodes that are not part of it.
    fn new(mut rows: Vec<Row>) -> (Self, Vec<NodeId>) {
        rows.sort_unstable_by_key(|&(held, hops, node)| (held.seq, hops, node));
        let apart = video::keep_one_coding(&mut rows);
        let mut nearest = rows.clone();
        nearest.dedup_by_key(|(held, _, _)| held.seq);
        let in_time_order = nearest.is_sorted_by_key(|(held, _, _)| held.captured_ns);
        let items = nearest.into_iter().map(|(held, _, node)| (held, node)).collect();
        (Self { items, rows, in_time_order }, apart)
    }

    /// Returns the selected samples of the union, thinned, and the number of pictures left out.
    fn select(&self, find: &Find, resized: bool) -> video::Chosen {
        let Find { selection, rate, .. } = find;
        let chosen = self.items.get(selection.choose(self)).unwrap_or_default();
        // Pictures before the first I picture cannot be decoded.
        let needs = |(held, _): &&(Held, NodeId)| held.kind.is_video() && held.kind != Kind::VideoI;
        let undecodable = chosen.iter().take_while(needs).count();
        let chosen = chosen.get(undecodable..).unwrap_or_default();
        if chosen.iter().any(|(held, _)| held.kind.is_video()) {
            let mut video = video::choose(chosen, &self.rows, *rate, resized);
            video.undecodable += undecodable;
            return video;
        }
        // Thin again, even if holders already did: a node may have several buffers, each thinned separately.
        let mut scaler = TemporalScaler::new(*rate, None);
        let takes = |(held, _): &&(Held, NodeId)| {
            selection.wants(&held.mark()) && scaler.take(held.seq, held.captured_ns)
        };
        let items = chosen.iter().filter(takes).copied().collect();
        video::Chosen { items, coded: false, undecodable }
    }
}

/// Merges the answers of all holders into a plan.
///
/// Positions count over all holders together, for example the newest three of all. Each sample is fetched
/// from its nearest holder. Video is thinned so that it stays decodable. It is re-encoded ([`PullPlan::coded`])
/// if it is `resized`, or if dropping unreferenced pictures does not suffice.
#[must_use]
pub fn merge(find: &Find, resized: bool, answers: &[Answered]) -> PullPlan {
    let mut plan = PullPlan::default();
    let mut publishers: BTreeMap<PublisherId, Vec<Row>> = BTreeMap::new();
    for Answered { node, hops, found } in answers {
        for holding in &found.holdings {
            let span = plan.spans.get(&holding.publisher).copied().unwrap_or(holding.span);
            plan.spans.insert(holding.publisher, span.join(holding.span));
            let held = publishers.entry(holding.publisher).or_default();
            held.extend(holding.items.iter().map(|&item| (item, *hops, *node)));
        }
        plan.more |= found.more;
    }
    for (publisher, rows) in publishers {
        let (union, apart) = Union::new(rows);
        plan.apart.extend(apart.into_iter().map(|node| (node, publisher)));
        let video::Chosen { items, coded, undecodable } = union.select(find, resized);
        plan.undecodable += undecodable;
        if coded {
            plan.coded.insert(publisher);
        }
        let room = ITEMS_MAX - plan.items.len();
        plan.more |= items.len() > room;
        let items = items.into_iter().take(room);
        plan.items.extend(items.map(|(held, holder)| PlanItem { publisher, held, holder }));
    }
    if plan.items.is_empty() {
        plan.absence = Some(plan.absence_of(find, answers));
    }
    plan
}

impl PullPlan {
    /// Returns the pages in the order of items. Each has at most `samples` samples and `bytes` bytes, unless
    /// a single sample is larger.
    #[must_use]
    pub fn pages(&self, samples: usize, bytes: u64) -> Vec<Page> {
        let mut pages: Vec<Page> = Vec::new();
        for &PlanItem { publisher, held, holder } in &self.items {
            let size = u64::from(held.bytes);
            match pages.last_mut() {
                Some(page)
                    if (page.holder, page.publisher) == (holder, publisher)
                        && page.seqs.len() < samples
                        && page.bytes.saturating_add(size) <= bytes =>
                {
                    page.seqs.push(held.seq);
                    page.bytes += size;
                }
                Some(_) | None => {
                    pages.push(Page { holder, publisher, seqs: vec![held.seq], bytes: size });
                }
            }
        }
        pages
    }

    fn absence_of(&self, find: &Find, answers: &[Answered]) -> Absence {
        if answers.is_empty() {
            return Absence::NoHolder;
        }
        if self.spans.is_empty() {
            return find.publisher.map_or(Absence::NothingHeld, Absence::NoSuchPublisher);
        }
        if self.undecodable > 0 {
            return Absence::Undecodable;
        }
        let all = |is: &dyn Fn(&SampleSpan) -> bool| self.spans.values().all(is);
        let (before, after) = match find.selection {
            Selection::Newest(_) | Selection::Nth(_) => return Absence::TooFew,
            Selection::Seq { first, last } => {
                (all(&|span| last < span.oldest_seq), all(&|span| first > span.newest_seq))
            }
            Selection::Time { from_ns, to_ns } => {
                (all(&|span| to_ns < span.oldest_ns), all(&|span| from_ns > span.newest_ns))
            }
        };
        match (before, after) {
            (true, _) => Absence::Expired,
            (false, true) => Absence::NotYet,
            (false, false) => Absence::Missing,
        }
    }

    /// Describes why there are no items, and the samples that could be pulled instead; returns `None` if
    /// there are items.
    #[must_use]
    pub fn explain(&self, find: &Find) -> Option<String> {
        let Find { tag, selection, .. } = find;
        let mut text = match self.absence? {
            Absence::NoHolder => {
                return Some(format!(
                    "no node buffers '{tag}'; buffer it at its publisher, at a subscriber or at \
                     any other node"
                ));
            }
            Absence::NothingHeld => return Some(format!("the buffers of '{tag}' are empty")),
            Absence::NoSuchPublisher(publisher) => {
                return Some(format!(
                    "nothing of publisher {publisher} is buffered for '{tag}': it did not publish \
                     while the tag was buffered, or all of its samples have expired"
                ));
            }
            Absence::Expired => format!("{selection} of '{tag}' expired"),
            Absence::NotYet => format!("{selection} of '{tag}' did not arrive yet"),
            Absence::Missing => format!("{selection} of '{tag}' never reached a buffer"),
            Absence::TooFew => {
                format!("{selection} of '{tag}' is not available: fewer are buffered")
            }
            Absence::Undecodable => {
                format!("{selection} of '{tag}' cannot be decoded: the I picture before it expired")
            }
        };
        text.push_str("; buffered are");
        const NAMED: usize = 3;
        for (place, (publisher, span)) in self.spans.iter().take(NAMED).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            let _ = write!(text, "{comma} {span} of publisher {publisher}");
        }
        match self.spans.len() {
            0..=NAMED => {}
            count => drop(write!(text, ", and samples of {} others", count - NAMED)),
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests;
