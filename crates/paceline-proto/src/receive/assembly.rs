//! Reassembly of a sample or control message from pieces in any order.

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// The estimated memory of a piece in addition to its bytes.
const PIECE_COST: usize = 128;
/// The minimum size of a piece that is not copied. A shorter one would keep its whole frame in memory.
const SHARE_FROM: usize = 1_024;

/// The pieces that have arrived so far.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Pieces by offset, without overlap.
    pieces: BTreeMap<usize, Bytes>,
    have: usize,
    total: Option<usize>,
}

impl Assembly {
    /// Returns the number of bytes that have arrived.
    pub(super) const fn have(&self) -> usize {
        self.have
    }

    /// Returns the estimated memory in bytes. It counts pieces, since a sender may cut a sample into very
    /// many.
    pub(super) fn cost(&self) -> usize {
        self.have + self.pieces.len() * PIECE_COST
    }

    /// Sets the total length. Returns `false` if it contradicts the known length or pieces.
    pub(super) fn set_total(&mut self, total: usize) -> bool {
        let end = self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.len());
        let agrees = self.total.is_none_or(|known| known == total) && end <= total;
        if agrees {
            self.total = Some(total);
        }
        agrees
    }

    /// Adds the new part of a piece. Returns `false` if the piece ends beyond the total length.
    pub(super) fn put(&mut self, mut at: usize, mut piece: Bytes) -> bool {
        if self.total.is_some_and(|total| at + piece.len() > total) {
            return false;
        }
        let before = self.pieces.range(..=at).next_back();
        let known = before.map_or(0, |(start, known)| (start + known.len()).saturating_sub(at));
        let known = known.min(piece.len());
        at += known;
        let _ = piece.split_to(known);
        while !piece.is_empty() {
            let next = self.pieces.range(at..).next().map(|(start, known)| (*start, known.len()));
            let (gap, known) = next.map_or((piece.len(), 0), |(start, len)| (start - at, len));
            let new = piece.split_to(gap.min(piece.len()));
            let skip = known.min(piece.len());
            if !new.is_empty() {
                self.have += new.len();
                let start = at;
                at += new.len();
                let short = new.len() < SHARE_FROM;
                let new = if short { Bytes::copy_from_slice(&new) } else { new };
                self.pieces.insert(start, new);
            }
            at += skip;
            let _ = piece.split_to(skip);
        }
        true
    }

    /// Returns `true` if nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.total == Some(self.have)
    }

    /// Returns all bytes, without a copy if they arrived in one piece.
    pub(super) fn join(self) -> Bytes {
        let mut pieces = self.pieces.into_values();
        let Some(first) = pieces.next() else { return Bytes::new() };
        if first.len() == self.have {
            return first;
        }
        let mut whole = BytesMut::with_capacity(self.have);
        whole.extend_from_slice(&first);
        pieces.for_each(|piece| whole.extend_from_slice(&piece));
        whole.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_in_any_order_assemble_the_sample(
            len in 0usize..300,
            cuts in prop::collection::vec((0usize..300, 0usize..100), 0..60),
        ) {
            let whole: Bytes = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let mut assembly = Assembly::default();
            let mut came = vec![false; len];
            for (at, size) in cuts {
                let (at, end) = (at.min(len), (at + size).min(len));
                prop_assert!(assembly.put(at, whole.slice(at..end.max(at))));
                came[at..end.max(at)].fill(true);
                prop_assert_eq!(assembly.have(), came.iter().filter(|came| **came).count());
            }
            prop_assert!(assembly.set_total(len));
            prop_assert_eq!(assembly.is_whole(), came.iter().all(|came| *came));
            prop_assert!(assembly.put(0, whole.clone()));
            prop_assert!(assembly.is_whole());
            prop_assert_eq!(assembly.join(), whole);
        }
    }

    #[test]
    fn pieces_that_contradict_the_length_are_refused() {
        let mut assembly = Assembly::default();
        assert!(assembly.put(10, Bytes::from_static(b"abc")));
        assert!(!assembly.set_total(12));
        assert!(assembly.set_total(13));
        assert!(!assembly.set_total(14));
        assert!(!assembly.put(12, Bytes::from_static(b"cd")));
    }
}
