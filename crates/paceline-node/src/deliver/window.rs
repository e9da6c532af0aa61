//! The last sequence numbers that have arrived.

/// The number of sequence numbers that are kept, in words of 64.
const WORDS: usize = 8;
const KEPT: u64 = WORDS as u64 * 64;

/// The place of a sample among the samples of its publisher.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// It is the newest. So many samples between it and the last one have not arrived.
    Next { gap: u64 },
    /// A newer one was delivered.
    Superseded,
    /// The same sample has arrived before.
    Repeated,
}

/// Whether each of the last 512 sequence numbers has arrived, as the replay window of RFC 4303, section 3.4.3.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The highest sequence number plus one.
    next: Option<u64>,
    /// A bit per sequence number, at its place modulo 512.
    bits: [u64; WORDS],
}

impl Window {
    /// Notes the arrival of `seq`. An older one that is no longer kept counts as superseded.
    pub(super) fn take(&mut self, seq: u64) -> Turn {
        let next = self.next.unwrap_or(seq);
        let Some(gap) = seq.checked_sub(next) else {
            if next - seq > KEPT {
                return Turn::Superseded;
            }
            return if self.set(seq) { Turn::Repeated } else { Turn::Superseded };
        };
        if gap >= KEPT {
            self.bits = [0; WORDS];
        } else {
            (next..seq).for_each(|missing| self.clear(missing));
        }
        self.set(seq);
        self.next = Some(seq.saturating_add(1));
        Turn::Next { gap }
    }

    const fn place(seq: u64) -> (usize, u64) {
        let place = seq % KEPT;
        ((place / 64) as usize, 1 << (place % 64))
    }

    /// Sets the bit of `seq`. Returns true if it was set.
    fn set(&mut self, seq: u64) -> bool {
        let (word, bit) = Self::place(seq);
        let Some(word) = self.bits.get_mut(word) else { return false };
        let was = *word & bit != 0;
        *word |= bit;
        was
    }

    fn clear(&mut self, seq: u64) {
        let (word, bit) = Self::place(seq);
        self.bits.get_mut(word).into_iter().for_each(|word| *word &= !bit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_agrees_with_a_set(steps in vec((any::<bool>(), 0..700_u64), 1..400), start in 0..u64::MAX / 2) {
            let (mut window, mut seen, mut newest) = (Window::default(), BTreeSet::new(), None);
            for (ahead, by) in steps {
                let newest_now = newest.unwrap_or(start);
                let seq = if ahead { newest_now + by % 3 + by / 600 * by } else { newest_now.saturating_sub(by) };
                let expected = match newest {
                    Some(newest) if seq <= newest => {
                        let kept = newest + 1 - seq <= KEPT;
                        if kept && !seen.insert(seq) { Turn::Repeated } else { Turn::Superseded }
                    }
                    _ => Turn::Next { gap: newest.map_or(0, |newest| seq - newest - 1) },
                };
                seen.insert(seq);
                newest = newest.max(Some(seq));
                prop_assert_eq!(window.take(seq), expected, "{}", seq);
            }
        }
    }
}
