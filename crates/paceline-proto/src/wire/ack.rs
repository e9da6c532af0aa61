//! Acknowledgements of frames.

use super::NUMBER_MAX;
use super::codec::{Reader, WireError, Writer};

/// The number of frames behind the newest one that an acknowledgement describes one by one.
const DESCRIBED: u64 = 64;
/// The number of frames behind the newest one that a receiver distinguishes. Frames before them count as received.
pub(crate) const DISTINGUISHED: u64 = 4_096;
/// These frames in words of bits.
const WORDS: usize = 64;
const WORD_BITS: u64 = 64;

/// A selective acknowledgement of the frames of an epoch: the frames below `next`, and of the last 64 up to the newest one
/// those that have arrived. Nothing is known of the frames between these two ranges.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ack {
    /// Every frame with a lower sequence number has arrived, or is too old to be distinguished.
    next: u64,
    /// One more than the newest frame that has arrived; `next` if nothing is missing.
    end: u64,
    /// Bit i stands for frame `end - 1 - i`. Bits of frames below `next` are 0.
    newest: u64,
}

impl Ack {
    /// The size of the longest acknowledgement, in bytes.
    pub(super) const BYTES_MAX: usize = 10 + 10 + 8;

    /// Returns the acknowledgement of all frames below `next` and no others.
    #[must_use]
    pub const fn of_all_below(next: u64) -> Self {
        Self { next, end: next, newest: 0 }
    }

    /// Returns the acknowledgement of the frames below `next`, and of those of the bits in `newest`: bit i stands for frame
    /// `next + ahead - 1 - i`. `None` if they contradict each other: frame `next` has not arrived, the newest one has, and
    /// frames below `next` have no bits. `ahead` is at most 4,096.
    #[must_use]
    pub const fn new(next: u64, ahead: u64, newest: u64) -> Option<Self> {
        let described = match ahead {
            0 => 0,
            1..=DESCRIBED => (1 << (ahead - 1)) - 1,
            _ => u64::MAX,
        };
        let has_newest = ahead == 0 || newest & 1 == 1;
        let is_valid = has_newest && newest & !described == 0;
        let in_range = next <= NUMBER_MAX && ahead <= DISTINGUISHED;
        if is_valid && in_range { Some(Self { next, end: next + ahead, newest }) } else { None }
    }

    /// Returns the lowest sequence number of a missing frame.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the highest received sequence number plus one; equals [`Self::next`] if nothing is missing.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Returns `true` if the frame `seq` is known to have arrived.
    #[must_use]
    pub const fn covers(&self, seq: u64) -> bool {
        seq < self.next
            || seq < self.end && {
                let behind = self.end - 1 - seq;
                behind < DESCRIBED && self.newest >> behind & 1 == 1
            }
    }

    /// Returns `true` if the frame `seq` had not arrived when a later one had.
    #[must_use]
    pub const fn lacks(&self, seq: u64) -> bool {
        self.next <= seq && seq < self.end && self.end - seq <= DESCRIBED && !self.covers(seq)
    }

    /// Appends the acknowledgement to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.next);
        out.put_varint(self.end - self.next);
        out.put_u64(self.newest);
    }

    /// Reads an acknowledgement.
    pub(super) fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let next = reader.varint_max(NUMBER_MAX, "ack")?;
        let ahead = reader.varint_max(DISTINGUISHED, "ack")?;
        let newest = reader.u64("selective ack")?;
        Self::new(next, ahead, newest).ok_or(WireError::Invalid("selective ack"))
    }
}

/// The frames of an epoch that have arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    next: u64,
    end: u64,
    /// The bit of a frame is at its sequence number modulo [`DISTINGUISHED`]. Bits outside of `next..end` are 0.
    bits: Box<[u64; WORDS]>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { next: 0, end: 0, bits: Box::new([0; WORDS]) }
    }
}

impl Arrivals {
    /// Returns the acknowledgement of these frames.
    pub(crate) fn ack(&self) -> Ack {
        let from = self.next.max(self.end.saturating_sub(DESCRIBED));
        let described = from..self.end;
        let newest = described.fold(0, |newest, seq| newest << 1 | u64::from(self.bit(seq)));
        Ack { next: self.next, end: self.end, newest }
    }

    /// Returns one more than the newest frame.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// Returns `true` if the frame `seq` has arrived, or is too old to be distinguished.
    pub(crate) fn covers(&self, seq: u64) -> bool {
        seq < self.next || seq < self.end && self.bit(seq)
    }

    /// Returns the first missing frame among the newest `frames`.
    pub(crate) fn missing_among(&self, frames: u64) -> Option<u64> {
        let from = self.next.max(self.end.saturating_sub(frames));
        (from..self.end).find(|seq| !self.bit(*seq))
    }

    /// Records the arrival of a frame. Missing ones that are too far behind it are given up.
    pub(crate) fn note(&mut self, seq: u64) {
        if seq < self.next {
            return;
        }
        let least = seq.saturating_sub(DISTINGUISHED - 1);
        if least >= self.end {
            self.bits.fill(0);
            self.next = self.next.max(least);
        } else {
            (self.next..least).for_each(|seq| self.set(seq, false));
            self.next = self.next.max(least);
        }
        self.end = self.end.max(seq + 1);
        self.set(seq, true);
        while self.next < self.end && self.bit(self.next) {
            self.set(self.next, false);
            self.next += 1;
        }
    }

    fn bit(&self, seq: u64) -> bool {
        let (word, bit) = place(seq);
        self.bits.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    fn set(&mut self, seq: u64, arrived: bool) {
        let (word, bit) = place(seq);
        if let Some(word) = self.bits.get_mut(word) {
            *word = *word & !(1 << bit) | u64::from(arrived) << bit;
        }
    }
}

/// Returns the word and the bit of a frame.
fn place(seq: u64) -> (usize, u64) {
    let at = seq % DISTINGUISHED;
    (usize::try_from(at / WORD_BITS).unwrap_or_default(), at % WORD_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn round_trip(ack: Ack) -> Result<Ack, WireError> {
        let mut out = Vec::new();
        ack.write(&mut out);
        assert!(out.len() <= Ack::BYTES_MAX);
        Ack::read(&mut Reader::new(out.into()))
    }

    /// Steps of single frames, of some frames back and forth, and of whole ranges.
    fn frames() -> impl Strategy<Value = Vec<u64>> {
        let steps = prop_oneof![8 => 0u64..4, 4 => 0u64..150, 1 => 0u64..9_000];
        prop::collection::vec((steps, 0u64..140), 0..200).prop_map(|steps| {
            let mut newest = 0;
            let next = |(ahead, back): (u64, u64)| {
                newest += ahead;
                if back < 70 { newest } else { newest.saturating_sub(back - 70) }
            };
            steps.into_iter().map(next).collect()
        })
    }

    proptest! {
        #[test]
        fn an_ack_describes_the_received_frames(frames in frames()) {
            let (mut arrivals, mut arrived) = (Arrivals::default(), BTreeSet::new());
            for seq in frames {
                let was_known = arrivals.covers(seq);
                prop_assert!(was_known || !arrived.contains(&seq));
                arrivals.note(seq);
                arrived.insert(seq);
                let ack = arrivals.ack();
                prop_assert_eq!(round_trip(ack), Ok(ack));
                let newest = *arrived.last().unwrap();
                prop_assert_eq!((ack.end(), arrivals.end()), (newest + 1, newest + 1));
                let near = (newest.saturating_sub(200)..newest + 3).chain(arrived.iter().copied());
                for seq in near {
                    let came = arrived.contains(&seq);
                    let is_old = seq + DISTINGUISHED <= newest;
                    prop_assert_eq!(arrivals.covers(seq), came || is_old);
                    prop_assert!(!ack.covers(seq) || came || is_old);
                    prop_assert!(!ack.lacks(seq) || !came);
                    if seq + DESCRIBED > newest {
                        prop_assert_eq!(ack.covers(seq), came);
                        prop_assert_eq!(ack.lacks(seq), !came && seq < newest);
                    }
                }
                let missing = (newest.saturating_sub(2)..newest).find(|seq| !arrived.contains(seq));
                prop_assert_eq!(arrivals.missing_among(3), missing);
            }
        }

        #[test]
        fn acks_have_one_form(next in 0..=NUMBER_MAX, ahead in 0u64..5_000, newest: u64) {
            let mut out = Vec::new();
            out.put_varint(next);
            out.put_varint(ahead);
            out.put_u64(newest);
            if let Ok(ack) = Ack::read(&mut Reader::new(out.clone().into())) {
                let mut again = Vec::new();
                ack.write(&mut again);
                prop_assert_eq!(out, again);
                prop_assert!(!ack.covers(next) && !ack.covers(ack.end()));
                prop_assert!(ahead == 0 || ack.covers(ack.end() - 1));
            }
        }
    }
}
