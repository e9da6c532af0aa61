//! The streams of a link, by index.

use super::super::stream::{Clauses, Stream};
use super::super::{StreamIndex, Terms};
use crate::fetch::fetch;
use alloc::vec::Vec;

/// The streams, and separately the rare clauses of their contracts.
#[derive(Clone, Debug)]
pub(super) struct Streams<O> {
    slots: Vec<Option<Stream<O>>>,
    clauses: Vec<Clauses>,
    /// The number of streams with clauses.
    with_clauses: usize,
}

impl<O> Streams<O> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), clauses: Vec::new(), with_clauses: 0 }
    }

    /// Returns the number of stream slots.
    pub(super) const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Reserves memory for the streams 0 to `streams` − 1.
    pub(super) fn reserve(&mut self, streams: usize) {
        let more = streams.saturating_sub(self.len());
        self.slots.reserve_exact(more);
        self.slots.resize_with(self.len() + more, || None);
        self.clauses.reserve_exact(more);
        self.clauses.resize(self.slots.len(), Clauses::NONE);
    }

    /// Stores a stream of `terms` at `index`, which must have a free slot.
    pub(super) fn put(&mut self, index: StreamIndex, terms: &Terms, own: O) {
        let at = index.0 as usize;
        let (Some(slot), Some(its)) = (self.slots.get_mut(at), self.clauses.get_mut(at)) else {
            return;
        };
        *slot = Some(Stream::new(terms, own));
        if let Some(clauses) = Clauses::new(terms) {
            *its = clauses;
            self.with_clauses += 1;
        }
    }

    /// Removes and returns the stream `index`.
    pub(super) fn take(&mut self, index: StreamIndex) -> Option<Stream<O>> {
        let stream = self.slots.get_mut(index.0 as usize)?.take()?;
        self.with_clauses -= usize::from(stream.has_clauses());
        Some(stream)
    }

    pub(super) fn get(&self, index: StreamIndex) -> Option<(&Stream<O>, &Clauses)> {
        let stream = self.slots.get(index.0 as usize)?.as_ref()?;
        let clauses = clauses_of(stream, &self.clauses, index)?;
        Some((stream, clauses))
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: StreamIndex) -> Option<(&mut Stream<O>, &Clauses)> {
        let stream = self.slots.get_mut(index.0 as usize)?.as_mut()?;
        let clauses = clauses_of(stream, &self.clauses, index)?;
        Some((stream, clauses))
    }

    /// Returns all stream slots, without clauses.
    pub(super) fn slots(&mut self) -> &mut [Option<Stream<O>>] {
        &mut self.slots
    }

    /// Prefetches a stream, as [`crate::tournament::Tournament::fetch`] does.
    #[inline]
    pub(super) fn fetch(&self, index: StreamIndex) {
        fetch(&self.slots, index.0 as usize);
        if self.with_clauses > 0 {
            fetch(&self.clauses, index.0 as usize);
        }
    }
}

/// Returns the clauses of a stream.
///
/// A stream without clauses gets the constant [`Clauses::NONE`]. Reading its own unused entry could
/// cause a cache miss.
#[inline(always)]
fn clauses_of<'a, O>(
    stream: &Stream<O>,
    all: &'a [Clauses],
    index: StreamIndex,
) -> Option<&'a Clauses> {
    if stream.has_clauses() { all.get(index.0 as usize) } else { Some(&Clauses::NONE) }
}
