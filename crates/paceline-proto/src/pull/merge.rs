//! From what each holder has to what is fetched where.

use super::holding::{Find, Found, Held, Span};
use super::selection::{ITEMS_MAX, Mark, Selection, Series};
use super::video::{self, Row};
use crate::ids::{NodeId, PublisherId};
use crate::sample::Kind;
use crate::temporal::TemporalScaler;
use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};

/// What one node answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answered {
    /// The node.
    pub node: NodeId,
    /// How many hops away it is.
    pub hops: usize,
    /// All pages of its answer.
    pub found: Found,
}

/// A sample that is to be fetched, and where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlanItem {
    /// Its publisher.
    pub publisher: PublisherId,
    /// What the holder said of it.
    pub held: Held,
    /// The nearest holder; of equally near ones that with the lowest id.
    pub holder: NodeId,
}

/// What is fetched at once: samples of one publisher from one holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// The holder.
    pub holder: NodeId,
    /// The publisher.
    pub publisher: PublisherId,
    /// The sequence numbers, going up.
    pub seqs: Vec<u64>,
    /// The bytes of all payloads, as they are held.
    pub bytes: u64,
}

/// What a pull will bring.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// The samples, by publisher and sequence number: [`ITEMS_MAX`] at most.
    pub items: Vec<PlanItem>,
    /// What is held of each publisher at all.
    pub spans: BTreeMap<PublisherId, Span>,
    /// Selected samples were left out because there were more than [`ITEMS_MAX`].
    pub more: bool,
    /// Selected pictures that are left out because what they need is held nowhere, or not by one holder
    /// where they are coded anew.
    pub undecodable: usize,
    /// Publishers whose video is decoded and coded again by who holds it.
    pub coded: BTreeSet<PublisherId>,
    /// Nodes that hold a publisher's video in another coding than that of the items, and cannot take
    /// their holder's place.
    pub apart: BTreeSet<(NodeId, PublisherId)>,
    /// Why there are no items.
    pub absence: Option<Absence>,
}

/// Why a pull brings nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Absence {
    /// No node answered: nobody holds the tag, or no holder can be reached.
    NoHolder,
    /// The holders have nothing of the tag (any more).
    NothingHeld,
    /// The holders have nothing of this publisher: there is none, or all of its samples have gone.
    NoSuchPublisher(PublisherId),
    /// All that was asked for is older than what is held.
    Expired,
    /// All that was asked for is newer than what is held.
    NotYet,
    /// It lies between samples that are held, and was never heard by a holder.
    Missing,
    /// Fewer samples are held than the place that was asked for.
    TooFew,
    /// Pictures are held, but not the I picture that they need.
    Undecodable,
}

/// The union of what several holders have of one publisher, as far as it matters here.
struct Union {
    items: Vec<(Held, NodeId)>,
    /// What each holder has of it.
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
    /// The union, and who is not part of it.
    fn new(mut rows: Vec<Row>) -> (Self, Vec<NodeId>) {
        rows.sort_unstable_by_key(|&(held, hops, node)| (held.seq, hops, node));
        let apart = video::keep_one_coding(&mut rows);
        let mut nearest = rows.clone();
        nearest.dedup_by_key(|(held, _, _)| held.seq);
        let in_time_order = nearest.is_sorted_by_key(|(held, _, _)| held.captured_ns);
        let items = nearest.into_iter().map(|(held, _, node)| (held, node)).collect();
        (Self { items, rows, in_time_order }, apart)
    }

    /// What is selected of the union, thinned, and how many pictures were left out.
    fn select(&self, find: &Find, resized: bool) -> video::Chosen {
        let Find { selection, rate, .. } = find;
        let chosen = self.items.get(selection.choose(self)).unwrap_or_default();
        // Pictures before the first I picture are of no use to anybody.
        let needs = |(held, _): &&(Held, NodeId)| matches!(held.kind, Kind::VideoP | Kind::VideoB);
        let undecodable = chosen.iter().take_while(needs).count();
        let chosen = chosen.get(undecodable..).unwrap_or_default();
        if chosen.iter().any(|(held, _)| held.kind.is_video()) {
            let mut video = video::choose(chosen, &self.rows, *rate, resized);
            video.undecodable += undecodable;
            return video;
        }
        // Also what holders have thinned: one may have several buffers, each thinned by itself.
        let mut scaler = TemporalScaler::new(*rate, None);
        let takes = |(held, _): &&(Held, NodeId)| {
            selection.wants(&held.mark()) && scaler.take(held.seq, held.captured_ns)
        };
        let items = chosen.iter().filter(takes).copied().collect();
        video::Chosen { items, coded: false, undecodable }
    }
}

/// Applies what was looked for to all that was found: the newest three of all, not of each holder,
/// and each from the nearest one. Video is thinned so that it can be decoded; where leaving out what no
/// other needs is not enough, and where it is `resized`, it is coded anew ([`Plan::coded`]).
#[must_use]
pub fn merge(find: &Find, resized: bool, answers: &[Answered]) -> Plan {
    let mut plan = Plan::default();
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

impl Plan {
    /// The pages in the order of items, each of at most `samples` samples, and of at most `bytes` bytes
    /// unless a single sample is larger.
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
        let all = |is: &dyn Fn(&Span) -> bool| self.spans.values().all(is);
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

    /// Why there are no items, in words, with what could be pulled instead; `None` if there are some.
    #[must_use]
    pub fn explain(&self, find: &Find) -> Option<String> {
        let Find { tag, selection, .. } = find;
        let mut text = match self.absence? {
            Absence::NoHolder => {
                return Some(format!(
                    "nobody holds '{tag}': hold it at its publisher's node, at a subscriber's or at \
                     any other"
                ));
            }
            Absence::NothingHeld => return Some(format!("the buffers of '{tag}' are empty")),
            Absence::NoSuchPublisher(publisher) => {
                return Some(format!(
                    "nothing of publisher {publisher} is held for '{tag}': it never published while \
                     it was held, or all of its samples have expired"
                ));
            }
            Absence::Expired => format!("{selection} of '{tag}' expired"),
            Absence::NotYet => format!("{selection} of '{tag}' did not come yet"),
            Absence::Missing => format!("{selection} of '{tag}' never reached a buffer"),
            Absence::TooFew => format!("{selection} of '{tag}' is not there: fewer are held"),
            Absence::Undecodable => {
                format!("{selection} of '{tag}' cannot be decoded: the I picture before it expired")
            }
        };
        text.push_str("; held are");
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
