//! The contents of a holder, as it answers a search.

use super::selection::{Mark, Seconds, Selection};
use crate::form::Rate;
use crate::ids::PublisherId;
use crate::sample::Kind;
use crate::tag::Tag;
use core::fmt;
use std::collections::BTreeMap;

/// The most samples per answer; [`Found::more`] marks an incomplete one.
pub const PAGE_ITEMS: usize = 1_024;
/// The most publishers per answer.
pub const PAGE_HOLDINGS: usize = 256;

/// A search in a holder's buffers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Find {
    /// The tag.
    pub tag: Tag,
    /// One publisher of the tag; `None` for all.
    pub publisher: Option<PublisherId>,
    /// The selection, applied to each publisher.
    pub selection: Selection,
    /// The temporal scaling of the selected samples, per publisher and in order, as for pushed samples. Video
    /// is not thinned here, because it could then not be decoded: the scaler applies its rate.
    pub rate: Rate,
    /// Only samples after this position; `None` to start at the beginning.
    pub after: Option<Cursor>,
}

/// A position in the pages of an answer, ordered by publisher and sequence number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Cursor {
    /// The publisher.
    pub publisher: PublisherId,
    /// The last sequence number in the pages so far.
    pub seq: u64,
}

/// The description of a stored sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Held {
    /// The publisher's sequence number.
    pub seq: u64,
    /// The capture time in UTC nanoseconds since 1970.
    pub captured_ns: u64,
    /// The payload size in bytes.
    pub bytes: u32,
    /// The kind of the sample.
    pub kind: Kind,
}

impl Held {
    pub(super) const fn mark(&self) -> Mark {
        Mark { seq: self.seq, captured_ns: self.captured_ns, kind: self.kind }
    }
}

/// The range of one publisher's samples at a holder; it may have gaps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SampleSpan {
    /// The lowest sequence number.
    pub oldest_seq: u64,
    /// The highest sequence number.
    pub newest_seq: u64,
    /// The capture time of the sample with the lowest sequence number, in UTC nanoseconds since 1970.
    pub oldest_ns: u64,
    /// The capture time of the sample with the highest sequence number, in UTC nanoseconds since 1970.
    pub newest_ns: u64,
}

impl SampleSpan {
    /// Returns the span that covers both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let oldest = if other.oldest_seq < self.oldest_seq { other } else { self };
        let newest = if other.newest_seq > self.newest_seq { other } else { self };
        Self {
            oldest_seq: oldest.oldest_seq,
            newest_seq: newest.newest_seq,
            oldest_ns: oldest.oldest_ns,
            newest_ns: newest.newest_ns,
        }
    }
}

impl fmt::Display for SampleSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oldest_seq, newest_seq, oldest_ns, newest_ns } = *self;
        let (oldest, newest) = (Seconds(oldest_ns), Seconds(newest_ns));
        write!(f, "{oldest_seq} to {newest_seq}, captured from {oldest} to {newest}")
    }
}

/// The stored samples of one publisher.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holding {
    /// The publisher.
    pub publisher: PublisherId,
    /// The span of all its stored samples, selected or not.
    pub span: SampleSpan,
    /// The selected samples, ordered by sequence number. Video starts at an I picture, or at the oldest
    /// sample if there is no I picture before the selection.
    pub items: Vec<Held>,
}

/// The result of a search at one holder.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Found {
    /// The results by publisher, ordered by id.
    pub holdings: Vec<Holding>,
    /// True if there are more results after [`Self::next`].
    pub more: bool,
}

impl Found {
    /// Returns the number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.holdings.iter().map(|holding| holding.items.len()).sum()
    }

    /// Returns true if there are no samples; there may still be publishers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holdings.iter().all(|holding| holding.items.is_empty())
    }

    /// Returns the position at which to continue ([`Find::after`]), if there is more.
    #[must_use]
    pub fn next(&self) -> Option<Cursor> {
        let last = self.holdings.last().filter(|_| self.more)?;
        let seq = last.items.last().map_or(u64::MAX, |item| item.seq);
        Some(Cursor { publisher: last.publisher, seq })
    }

    /// Appends the next page of the same holder. A puller must stop at [`super::ITEMS_MAX`] samples, the
    /// limit of a pull.
    pub fn append(&mut self, page: Self) {
        for holding in page.holdings {
            match self.holdings.last_mut() {
                Some(last) if last.publisher == holding.publisher => {
                    last.span = last.span.join(holding.span);
                    last.items.extend(holding.items);
                }
                Some(_) | None => self.holdings.push(holding),
            }
        }
        self.more = page.more;
    }

    /// Combines the answers of several buffers of one node to the same question.
    #[must_use]
    pub fn union(parts: Vec<Self>) -> Self {
        // Stop at the shortest page, so that the next page skips nothing of its buffer.
        let end = parts.iter().filter_map(Self::next).min();
        let mut union: BTreeMap<PublisherId, (SampleSpan, BTreeMap<u64, Held>)> = BTreeMap::new();
        for holding in parts.into_iter().flat_map(|part| part.holdings) {
            let fresh = || (holding.span, BTreeMap::new());
            let (span, items) = union.entry(holding.publisher).or_insert_with(fresh);
            *span = span.join(holding.span);
            items.extend(holding.items.into_iter().map(|item| (item.seq, item)));
        }
        let holdings = union.into_iter().map(|(publisher, (span, items))| {
            let items = items.into_values().collect();
            Holding { publisher, span, items }
        });
        let mut found = Self { holdings: holdings.collect(), more: false };
        if let Some(end) = end {
            found.cut_behind(end);
        }
        found.cut();
        found
    }

    fn cut_behind(&mut self, end: Cursor) {
        self.holdings.retain(|holding| holding.publisher <= end.publisher);
        if let Some(last) = self.holdings.last_mut().filter(|last| last.publisher == end.publisher)
        {
            last.items.retain(|item| item.seq <= end.seq);
        }
        self.more = true;
    }

    /// Returns true if the result fits into one page.
    pub(super) fn is_page(&self) -> bool {
        self.holdings.len() <= PAGE_HOLDINGS && self.len() <= PAGE_ITEMS
    }

    /// Truncates the result to one page.
    pub(super) fn cut(&mut self) {
        let mut room = PAGE_ITEMS;
        for (place, holding) in self.holdings.iter_mut().enumerate() {
            if place < PAGE_HOLDINGS && holding.items.len() <= room {
                room -= holding.items.len();
                continue;
            }
            // An empty entry would mean that nothing is left of this publisher.
            let keeps = place < PAGE_HOLDINGS && room > 0;
            holding.items.truncate(room);
            self.holdings.truncate(place + usize::from(keeps));
            self.more = true;
            return;
        }
    }
}
