//! What a holder has: the answer to "what do you have for this selection".

use super::selection::{Mark, Seconds, Selection};
use crate::form::Rate;
use crate::ids::PublisherId;
use crate::sample::Kind;
use crate::tag::Tag;
use core::fmt;
use std::collections::BTreeMap;

/// The most samples of one answer; [`Found::more`] says that there are others.
pub const PAGE_ITEMS: usize = 1_024;
/// The most publishers of one answer.
pub const PAGE_HOLDINGS: usize = 256;

/// What is looked for at a holder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Find {
    /// The tag.
    pub tag: Tag,
    /// One publisher of it; `None` for all.
    pub publisher: Option<PublisherId>,
    /// Which samples, of each publisher.
    pub selection: Selection,
    /// Which of those: temporal scaling as of pushed samples, one publisher's selected ones in order.
    /// Video is not thinned here, as it could not be decoded then: its rate is up to the scaler.
    pub rate: Rate,
    /// Only what comes behind this; `None` from the start.
    pub after: Option<Cursor>,
}

/// How far the pages of an answer have come, in the order of publishers and sequence numbers.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Cursor {
    /// The publisher.
    pub publisher: PublisherId,
    /// The last of its sequence numbers that was told.
    pub seq: u64,
}

/// One sample that is held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Held {
    /// Its publisher's sequence number.
    pub seq: u64,
    /// When it was captured, UTC nanoseconds since 1970.
    pub captured_ns: u64,
    /// The bytes of its payload.
    pub bytes: u32,
    /// What it is.
    pub kind: Kind,
}

impl Held {
    pub(super) const fn mark(&self) -> Mark {
        Mark { seq: self.seq, captured_ns: self.captured_ns, kind: self.kind }
    }
}

/// From where to where samples of one publisher are held; some between may be missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// The lowest sequence number.
    pub oldest_seq: u64,
    /// The highest.
    pub newest_seq: u64,
    /// When the sample with the lowest was captured, UTC nanoseconds since 1970.
    pub oldest_ns: u64,
    /// When the one with the highest was.
    pub newest_ns: u64,
}

impl Span {
    /// The span of both.
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

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oldest_seq, newest_seq, oldest_ns, newest_ns } = *self;
        let (oldest, newest) = (Seconds(oldest_ns), Seconds(newest_ns));
        write!(f, "{oldest_seq} to {newest_seq}, captured from {oldest} to {newest}")
    }
}

/// What is held of one publisher.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holding {
    /// The publisher.
    pub publisher: PublisherId,
    /// All that is held of it, selected or not.
    pub span: Span,
    /// What is selected, in the order of sequence numbers. Of video it begins at an I picture, or, if
    /// none is held before the selection, with the oldest sample.
    pub items: Vec<Held>,
}

/// What was found at one holder.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Found {
    /// By publisher, in the order of their ids.
    pub holdings: Vec<Holding>,
    /// There is more behind [`Self::next`].
    pub more: bool,
}

impl Found {
    /// How many samples were found.
    #[must_use]
    pub fn len(&self) -> usize {
        self.holdings.iter().map(|holding| holding.items.len()).sum()
    }

    /// True if no sample was found; publishers may have been.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.holdings.iter().all(|holding| holding.items.is_empty())
    }

    /// Where to go on ([`Find::after`]), if there is more.
    #[must_use]
    pub fn next(&self) -> Option<Cursor> {
        let last = self.holdings.last().filter(|_| self.more)?;
        let seq = last.items.last().map_or(u64::MAX, |item| item.seq);
        Some(Cursor { publisher: last.publisher, seq })
    }

    /// The page that follows this one, from the same holder; together they are one answer. Whoever
    /// asks for pages stops at [`super::ITEMS_MAX`] samples: no pull brings more.
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

    /// One answer for several buffers of one node, which all answered the same question.
    #[must_use]
    pub fn union(parts: Vec<Self>) -> Self {
        // What one of them has behind its page is not to be skipped because another went further.
        let end = parts.iter().filter_map(Self::next).min();
        let mut union: BTreeMap<PublisherId, (Span, BTreeMap<u64, Held>)> = BTreeMap::new();
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

    /// True if it is no more than one page.
    pub(super) fn is_page(&self) -> bool {
        self.holdings.len() <= PAGE_HOLDINGS && self.len() <= PAGE_ITEMS
    }

    /// Leaves out what is more than one page.
    pub(super) fn cut(&mut self) {
        let mut room = PAGE_ITEMS;
        for (place, holding) in self.holdings.iter_mut().enumerate() {
            if place < PAGE_HOLDINGS && holding.items.len() <= room {
                room -= holding.items.len();
                continue;
            }
            // An empty rest would say that nothing is left of this publisher.
            let keeps = place < PAGE_HOLDINGS && room > 0;
            holding.items.truncate(room);
            self.holdings.truncate(place + usize::from(keeps));
            self.more = true;
            return;
        }
    }
}
