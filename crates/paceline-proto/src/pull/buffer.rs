//! The pull buffer: the samples of any number of publishers, bounded by number, bytes and age.

use super::holding::{Cursor, Find, Found, Held, Holding, PAGE_HOLDINGS, PAGE_ITEMS, Span};
use super::limits::Limits;
use super::selection::{ITEMS_MAX, Mark, Selection, Series, below};
use crate::form::Rate;
use crate::ids::PublisherId;
use crate::sample::{Kind, Sample};
use crate::temporal::TemporalScaler;
use bytes::Bytes;
use core::ops::Range;
use paceline_sched::Instant;
use std::collections::VecDeque;

/// Payloads below this are copied: a small one is a slice of a frame, and would keep all of it. What
/// is larger keeps at most as much again.
const SLICE_MAX: usize = 32 << 10;

/// What became of a sample that was pushed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pushed {
    /// It is held, and as many older ones went for it.
    Held(usize),
    /// This sequence number of this publisher is held already.
    Duplicate,
    /// Its payload alone is above the buffer's bound.
    TooLarge,
    /// It is older than the buffer holds samples, or than all that it has no room beside.
    TooOld,
}

/// Samples of any number of publishers that share the [`Limits`]; what is oldest goes first.
///
/// The oldest sample of a publisher is the one with the lowest sequence number; over all publishers,
/// of their oldest ones, the one that was born first. Finding a sample takes O(log n), and so does
/// pushing one in order; where one must go, one look at each publisher more.
#[derive(Clone, Debug)]
pub struct PullBuffer {
    limits: Limits,
    /// In the order of publishers; none is empty.
    lines: Vec<Line>,
    /// When the oldest sample of each line was born: what is looked through for the oldest of all.
    fronts: Vec<Instant>,
    len: usize,
    bytes: u64,
}

/// One publisher's samples, in the order of sequence numbers.
#[derive(Clone, Debug)]
struct Line {
    publisher: PublisherId,
    samples: VecDeque<Sample>,
    /// How often a sample was captured before the one in front of it.
    back_steps: usize,
}

impl Series for Line {
    fn count(&self) -> usize {
        self.samples.len()
    }

    fn mark(&self, place: usize) -> Option<Mark> {
        let Sample { seq, captured, kind, .. } = self.samples.get(place)?;
        Some(Mark { seq: *seq, captured_ns: captured.nanos, kind: *kind })
    }

    fn is_in_time_order(&self) -> bool {
        self.back_steps == 0
    }
}

impl PullBuffer {
    /// An empty buffer.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, lines: Vec::new(), fronts: Vec::new(), len: 0, bytes: 0 }
    }

    /// Its bounds.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many samples it holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// How many bytes of payload it holds.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if it holds nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Holds a sample of `publisher`, in whatever order samples come, and lets go what is beyond the
    /// bounds then.
    pub fn push(&mut self, now: Instant, publisher: PublisherId, mut sample: Sample) -> Pushed {
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

    /// Lets go what is too old by now.
    pub fn expire(&mut self, now: Instant) {
        let age = self.limits.age();
        while self.fronts.iter().min().is_some_and(|&born| now.since(born) > age) {
            self.evict();
        }
    }

    /// Forgets everything of one publisher.
    pub fn forget(&mut self, publisher: PublisherId) {
        if let Ok(place) = self.place(publisher) {
            let line = self.lines.remove(place);
            self.fronts.remove(place);
            self.len -= line.samples.len();
            self.bytes -= line.samples.iter().map(|s| s.bytes() as u64).sum::<u64>();
        }
    }

    /// The sample `seq` of `publisher`, if it is held.
    #[must_use]
    pub fn fetch(&self, publisher: PublisherId, seq: u64) -> Option<&Sample> {
        let line = self.lines.get(self.place(publisher).ok()?)?;
        let place = line.samples.binary_search_by_key(&seq, |sample| sample.seq).ok()?;
        line.samples.get(place)
    }

    /// The first sample of `publisher` numbered `seq` or above.
    #[must_use]
    pub fn from(&self, publisher: PublisherId, seq: u64) -> Option<&Sample> {
        let line = self.lines.get(self.place(publisher).ok()?)?;
        line.samples.get(line.samples.partition_point(|sample| sample.seq < seq))
    }

    /// The number of the I picture of `publisher` at or before `seq`, if it is held: where decoding must
    /// begin.
    #[must_use]
    pub fn start_of(&self, publisher: PublisherId, seq: u64) -> Option<u64> {
        let line = self.lines.get(self.place(publisher).ok()?)?;
        let end = line.samples.partition_point(|sample| sample.seq <= seq);
        let mut before = line.samples.range(..end).rev();
        before.find(|sample| sample.kind == Kind::VideoI).map(|sample| sample.seq)
    }

    /// What is selected of what is held here alone, of one publisher or all, thinned to the rate:
    /// [`ITEMS_MAX`] samples at most.
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

    /// One page of this holder's part of what is looked for, to be [merged](super::merge()) with that
    /// of others, of those publishers whose samples have its tag: the buffer knows publishers only.
    ///
    /// Of a place it is everything up to it, and only ranges are thinned to the rate: the rest is for
    /// who knows what others hold.
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

    /// Where the line of a publisher is, or belongs.
    fn place(&self, publisher: PublisherId) -> Result<usize, usize> {
        self.lines.binary_search_by_key(&publisher, |line| line.publisher)
    }

    fn insert(&mut self, publisher: PublisherId, sample: Sample) {
        let place = self.place(publisher).unwrap_or_else(|place| {
            self.lines.insert(place, Line { publisher, samples: VecDeque::new(), back_steps: 0 });
            self.fronts.insert(place, sample.born);
            place
        });
        if let Some(line) = self.lines.get_mut(place) {
            line.insert(sample);
        }
        self.renew_front(place);
    }

    /// The oldest sample of all goes.
    fn evict(&mut self) {
        let oldest = self.fronts.iter().enumerate().min_by_key(|&(_, born)| born);
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
        let born = self.lines.get(place).and_then(|line| line.samples.front()).map(|s| s.born);
        if let (Some(front), Some(born)) = (self.fronts.get_mut(place), born) {
            *front = born;
        }
    }
}

impl Line {
    fn insert(&mut self, sample: Sample) {
        let newest = self.samples.back().is_none_or(|newest| newest.seq < sample.seq);
        let place = if newest {
            self.samples.len()
        } else {
            self.samples.partition_point(|held| held.seq < sample.seq)
        };
        // What were neighbours are none any more; each has the new sample as one.
        let apart = self.steps_at(place);
        self.samples.insert(place, sample);
        self.back_steps += self.steps_at(place) + self.steps_at(place + 1);
        self.back_steps -= apart;
    }

    fn pop(&mut self) -> Option<Sample> {
        self.back_steps -= self.steps_at(1);
        self.samples.pop_front()
    }

    fn captured(&self, place: usize) -> Option<u64> {
        self.samples.get(place).map(|sample| sample.captured.nanos)
    }

    /// 1 if the sample at `place` was captured before the one in front of it.
    fn steps_at(&self, place: usize) -> usize {
        let before = place.checked_sub(1).and_then(|before| self.captured(before));
        let here = self.captured(place);
        usize::from(before.is_some() && here.is_some() && here < before)
    }

    fn span(&self) -> Option<Span> {
        let (oldest, newest) = (self.samples.front()?, self.samples.back()?);
        Some(Span {
            oldest_seq: oldest.seq,
            newest_seq: newest.seq,
            oldest_ns: oldest.captured.nanos,
            newest_ns: newest.captured.nanos,
        })
    }
}

/// What is looked for in each line, and how much of it.
struct Search {
    selection: Selection,
    rate: Rate,
    after: Option<Cursor>,
    items: usize,
    holdings: usize,
    /// Nobody else holds anything.
    alone: bool,
}

impl Search {
    fn part(find: &Find, items: usize, holdings: usize) -> Self {
        let Find { selection, rate, after, .. } = *find;
        let rate = if selection.is_range() { rate } else { Rate::All };
        let selection = selection.widened();
        Self { selection, rate, after, items, holdings, alone: false }
    }

    fn choose(&self, line: &Line) -> Range<usize> {
        match self.alone {
            true => self.selection.choose(line),
            false => self.selection.choose_for_others(line),
        }
    }

    /// The first `room` selected samples of a line, and whether there are more.
    fn line(&self, line: &Line, room: usize) -> (Vec<Held>, bool) {
        let mut chosen = self.choose(line);
        let after = self.after.filter(|after| after.publisher == line.publisher);
        let told = after.map(|after| below(line, |mark| mark.seq <= after.seq));
        let thins = self.rate != Rate::All;
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

fn samples(line: &Line, range: Range<usize>) -> impl Iterator<Item = (usize, &Sample)> {
    let end = range.end.min(line.samples.len());
    let start = range.start.min(end);
    (start..end).zip(line.samples.range(start..end))
}

impl Cursor {
    /// True if everything of `publisher` was told.
    fn is_behind(&self, publisher: PublisherId) -> bool {
        publisher < self.publisher || publisher == self.publisher && self.seq == u64::MAX
    }
}

#[cfg(test)]
pub(super) mod tests;
