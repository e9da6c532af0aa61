//! The pull buffer: samples of any number of publishers, bounded by number, bytes and age.

use super::holding::{Cursor, Find, Found, Held, Holding, PAGE_HOLDINGS, PAGE_ITEMS, SampleSpan};
use super::limits::Limits;
use super::selection::{ITEMS_MAX, Mark, Selection, Series, below};
use crate::form::Rate;
use crate::ids::PublisherId;
use crate::sample::{Kind, RawSample};
use crate::temporal::TemporalScaler;
use bytes::Bytes;
use core::ops::Range;
use paceline_sched::Instant;
use std::collections::VecDeque;

/// Smaller payloads are copied: as a slice of a frame, a small payload would keep the whole frame alive. A
/// larger one keeps at most its own size in addition.
const SLICE_MAX: usize = 32 << 10;

/// The result of a push.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pushed {
    /// The sample is stored; contains the number of older samples evicted for it.
    Held(usize),
    /// The buffer already has this sequence number of this publisher.
    Duplicate,
    /// The payload alone exceeds the buffer's byte limit.
    TooLarge,
    /// The sample exceeds the buffer's age limit, or is older than all samples that fit.
    TooOld,
}

/// A buffer of samples of any number of publishers, which share the [`Limits`]. The oldest sample is evicted
/// first.
///
/// The oldest sample of a publisher is the one with the lowest sequence number. The oldest of all is the
/// earliest published of these. Finding a sample takes O(log n) time, and so does pushing one in order. An
/// eviction also takes time linear in the number of publishers.
#[derive(Clone, Debug)]
pub struct PullBuffer {
    limits: Limits,
    /// Ordered by publisher; none is empty.
    lines: Vec<Line>,
    /// The publication instant of each line's oldest sample, searched for the oldest of all.
    fronts: Vec<Instant>,
    len: usize,
    bytes: u64,
}

/// One publisher's samples, ordered by sequence number.
#[derive(Clone, Debug)]
struct Line {
    publisher: PublisherId,
    samples: VecDeque<RawSample>,
    /// The number of samples captured before their predecessor.
    back_steps: usize,
}

impl Series for Line {
    fn count(&self) -> usize {
        self.samples.len()
    }

    fn mark(&self, place: usize) -> Option<Mark> {
        let RawSample { seq, captured, kind, .. } = self.samples.get(place)?;
        Some(Mark { seq: *seq, captured_ns: captured.nanos, kind: *kind })
    }

    fn is_in_time_order(&self) -> bool {
        self.back_steps == 0
    }
}

impl PullBuffer {
    /// Creates an empty buffer.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, lines: Vec::new(), fronts: Vec::new(), len: 0, bytes: 0 }
    }

    /// Returns the limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of samples.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of payload bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if the buffer is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores a sample of `publisher` and evicts samples beyond the limits. Samples may arrive in any order.
    pub fn push(&mut self, now: Instant, publisher: PublisherId, mut sample: RawSample) -> Pushed {
        let bytes = sample.bytes() as u64;
        if bytes > self.limits.bytes() {
            return Pushed::TooLarge;
        }
        if sample.age(now) > self.limits.age() {
            return Pushed::TooOld;
        }
        let seq = sample.seq;
        if self.fetch(publisher, seq).is_some() {
            return Pushed::Duplicate;
        }
        if sample.payload.len() < SLICE_MAX {
            sample.payload = Bytes::copy_from_slice(&sample.payload);
        }
        self.insert(publisher, sample);
        self.len += 1;
        self.bytes += bytes;
        let before = self.len;
        while self.len > self.limits.samples() || self.bytes > self.limits.bytes() {
            self.evict();
        }
        self.expire(now);
        match self.fetch(publisher, seq) {
            Some(_) => Pushed::Held(before - self.len),
            None => Pushed::TooOld,
        }
    }

    /// Evicts the samples that exceed the age limit at `now`.
    pub fn expire(&mut self, now: Instant) {
        let age = self.limits.age();
        while self.fronts.iter().min().is_some_and(|&published_at| now.since(published_at) > age) {
            self.evict();
        }
    }

    /// Removes all samples of one publisher.
    pub fn forget(&mut self, publisher: PublisherId) {
        if let Ok(place) = self.place(publisher) {
            let line = self.lines.remove(place);
            self.fronts.remove(place);
            self.len -= line.samples.len();
            self.bytes -= line.samples.iter().map(|s| s.bytes() as u64).sum::<u64>();
        }
    }

    /// Returns the sample `seq` of `publisher`, if stored.
    #[must_use]
    pub fn fetch(&self, publisher: PublisherId, seq: u64) -> Option<&RawSample> {
        let line = self.lines.get(self.place(publisher).ok()?)?;
        let place = line.samples.binary_search_by_key(&seq, |sample| sample.seq).ok()?;
        line.samples.get(place)
    }

    /// Returns the first sample of `publisher` with a sequence number of at least `seq`.
    #[must_use]
    pub fn from(&self, publisher: PublisherId, seq: u64) -> Option<&RawSample> {
        let line = self.lines.get(self.place(publisher).ok()?)?;
        line.samples.get(line.samples.partition_point(|sample| sample.seq < seq))
    }

    /// Returns the sequence number of the last I picture of `publisher` at or before `seq`, where decoding
    /// must start; `None` if it is not stored.
    #[must_use]
    pub fn start_of(&self, publisher: PublisherId, seq: u64) -> Option<u64> {
        let line = self.lines.get(self.place(publisher).ok()?)?;
        let end = line.samples.partition_point(|sample| sample.seq <= seq);
        let mut before = line.samples.range(..end).rev();
        before.find(|sample| sample.kind == Kind::VideoI).map(|sample| sample.seq)
    }

    /// Returns the selected samples of one publisher or all, thinned to the rate, as if no other holder
    /// existed. Returns at most [`ITEMS_MAX`] samples.
    pub fn find(
        &mut self,
        now: Instant,
        publisher: Option<PublisherId>,
        selection: &Selection,
        rate: Rate,
    ) -> Found {
        self.expire(now);
        let wanted = |id| publisher.is_none_or(|publisher| publisher == id);
        let (selection, items, holdings) = (*selection, ITEMS_MAX, usize::MAX);
        let search = Search { selection, rate, after: None, items, holdings, alone: true };
        self.search(&search, wanted)
    }

    /// Returns one page of this holder's part of the answer, to be [merged](super::merge()) with those of
    /// others. `has_tag` selects the publishers of the tag, because the buffer knows only publishers.
    ///
    /// For a position such as the n-th newest, the page contains everything up to it. Only ranges are thinned
    /// to the rate. The puller, which knows the other holders' answers, does the rest.
    pub fn find_page(
        &mut self,
        now: Instant,
        find: &Find,
        has_tag: impl Fn(PublisherId) -> bool,
    ) -> Found {
        self.expire(now);
        let wanted = |id| find.publisher.is_none_or(|publisher| publisher == id) && has_tag(id);
        let (items, holdings) = (PAGE_ITEMS, PAGE_HOLDINGS);
        self.search(&Search::part(find, items, holdings), wanted)
    }

    fn search(&self, search: &Search, wanted: impl Fn(PublisherId) -> bool) -> Found {
        let mut found = Found::default();
        let mut room = search.items;
        for line in self.lines.iter().filter(|line| wanted(line.publisher)) {
            if search.after.is_some_and(|after| after.is_behind(line.publisher)) {
                continue;
            }
            if room == 0 || found.holdings.len() >= search.holdings {
                found.more = true;
                break;
            }
            let Some(span) = line.span() else { continue };
            let (items, more) = search.line(line, room);
            room -= items.len();
            found.holdings.push(Holding { publisher: line.publisher, span, items });
            if more {
                found.more = true;
                break;
            }
        }
        found
    }

    /// Returns the index of a publisher's line, or the index at which to insert it.
    fn place(&self, publisher: PublisherId) -> Result<usize, usize> {
        self.lines.binary_search_by_key(&publisher, |line| line.publisher)
    }

    fn insert(&mut self, publisher: PublisherId, sample: RawSample) {
        let place = self.place(publisher).unwrap_or_else(|place| {
            self.lines.insert(place, Line { publisher, samples: VecDeque::new(), back_steps: 0 });
            self.fronts.insert(place, sample.published_at);
            place
        });
        if let Some(line) = self.lines.get_mut(place) {
            line.insert(sample);
        }
        self.renew_front(place);
    }

    /// Evicts the oldest sample of all.
    fn evict(&mut self) {
        let oldest = self.fronts.iter().enumerate().min_by_key(|&(_, published_at)| published_at);
        let Some((place, _)) = oldest else { return };
        let Some(line) = self.lines.get_mut(place) else { return };
        if let Some(gone) = line.pop() {
            self.len -= 1;
            self.bytes -= gone.bytes() as u64;
        }
        if line.samples.is_empty() {
            self.lines.remove(place);
            self.fronts.remove(place);
        } else {
            self.renew_front(place);
        }
    }

    fn renew_front(&mut self, place: usize) {
        let published_at =
            self.lines.get(place).and_then(|line| line.samples.front()).map(|s| s.published_at);
        if let (Some(front), Some(published_at)) = (self.fronts.get_mut(place), published_at) {
            *front = published_at;
        }
    }
}

impl Line {
    fn insert(&mut self, sample: RawSample) {
        let newest = self.samples.back().is_none_or(|newest| newest.seq < sample.seq);
        let place = if newest {
            self.samples.len()
        } else {
            self.samples.partition_point(|held| held.seq < sample.seq)
        };
        // The insertion separates two neighbours and makes the new sample a neighbour of both.
        let apart = self.steps_at(place);
        self.samples.insert(place, sample);
        self.back_steps += self.steps_at(place) + self.steps_at(place + 1);
        self.back_steps -= apart;
    }

    fn pop(&mut self) -> Option<RawSample> {
        self.back_steps -= self.steps_at(1);
        self.samples.pop_front()
    }

    fn captured(&self, place: usize) -> Option<u64> {
        self.samples.get(place).map(|sample| sample.captured.nanos)
    }

    /// Returns 1 if the sample at `place` was captured before its predecessor.
    fn steps_at(&self, place: usize) -> usize {
        let before = place.checked_sub(1).and_then(|before| self.captured(before));
        let here = self.captured(place);
        usize::from(before.is_some() && here.is_some() && here < before)
    }

    fn span(&self) -> Option<SampleSpan> {
        let (oldest, newest) = (self.samples.front()?, self.samples.back()?);
        Some(SampleSpan {
            oldest_seq: oldest.seq,
            newest_seq: newest.seq,
            oldest_ns: oldest.captured.nanos,
            newest_ns: newest.captured.nanos,
        })
    }
}

/// The parameters of a search through the lines.
struct Search {
    selection: Selection,
    rate: Rate,
    after: Option<Cursor>,
    items: usize,
    holdings: usize,
    /// True if there are no other holders.
    alone: bool,
}

impl Search {
    fn part(find: &Find, items: usize, holdings: usize) -> Self {
        let Find { selection, rate, after, .. } = *find;
        let rate = if selection.is_range() { rate } else { Rate::ALL };
        let selection = selection.widened();
        Self { selection, rate, after, items, holdings, alone: false }
    }

    fn choose(&self, line: &Line) -> Range<usize> {
        match self.alone {
            true => self.selection.choose(line),
            false => self.selection.choose_for_others(line),
        }
    }

    /// Returns the first `room` selected samples of a line, and whether there are more.
    fn line(&self, line: &Line, room: usize) -> (Vec<Held>, bool) {
        let mut chosen = self.choose(line);
        let after = self.after.filter(|after| after.publisher == line.publisher);
        let told = after.map(|after| below(line, |mark| mark.seq <= after.seq));
        let thins = self.rate != Rate::ALL;
        if let (Some(told), false) = (told, thins) {
            chosen.start = chosen.start.max(told);
        }
        let mut scaler = thins.then(|| TemporalScaler::new(self.rate, None));
        let mut items = Vec::with_capacity(chosen.len().min(room));
        for (place, sample) in samples(line, chosen) {
            let Some(mark) = line.mark(place).filter(|mark| self.selection.wants(mark)) else {
                continue;
            };
            let takes = |scaler: &mut TemporalScaler| scaler.take(mark.seq, mark.captured_ns);
            if !mark.kind.is_video() && !scaler.as_mut().is_none_or(takes)
                || told.is_some_and(|told| place < told)
            {
                continue;
            }
            if items.len() >= room {
                return (items, true);
            }
            items.push(Held {
                seq: mark.seq,
                captured_ns: mark.captured_ns,
                // A sample is at most 64 MiB.
                bytes: u32::try_from(sample.payload.len()).unwrap_or(u32::MAX),
                kind: mark.kind,
            });
        }
        (items, false)
    }
}

fn samples(line: &Line, range: Range<usize>) -> impl Iterator<Item = (usize, &RawSample)> {
    let end = range.end.min(line.samples.len());
    let start = range.start.min(end);
    (start..end).zip(line.samples.range(start..end))
}

impl Cursor {
    /// Returns true if the answer already covered everything of `publisher`.
    fn is_behind(&self, publisher: PublisherId) -> bool {
        publisher < self.publisher || publisher == self.publisher && self.seq == u64::MAX
    }
}

#[cfg(test)]
pub(super) mod tests;
