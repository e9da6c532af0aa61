//! A tournament: who of many has the least key, when keys change one at a time.
//!
//! Every slot is a leaf of a tree whose nodes each hold the least key of four below them, so the
//! winner is always known and a changed key is played up towards the root only as far as it changes
//! who wins. Slots stay where they are, so nobody needs to be told where a moved element went, which
//! is what a heap with handles pays for. Ties go to the lowest slot.
//!
//! Nothing is allocated but when slots are added.

use alloc::vec::Vec;

/// How many compete in one node.
const WAYS: usize = 4;

/// A key that can be absent: the greatest value says that the slot does not compete.
pub(crate) trait Key: Copy + Ord {
    /// Of a slot that does not compete.
    const ABSENT: Self;
}

impl Key for u64 {
    const ABSENT: Self = Self::MAX;
}

impl Key for u128 {
    const ABSENT: Self = Self::MAX;
}

/// One round: the keys that meet in it, four to a node, and the slots that they belong to.
#[derive(Clone, Debug)]
struct Round<K> {
    keys: Vec<[K; WAYS]>,
    slots: Vec<[u32; WAYS]>,
}

/// The least of many keys.
#[derive(Clone, Debug)]
pub(crate) struct Tournament<K> {
    /// The slots' own keys.
    leaves: Vec<[K; WAYS]>,
    /// From the winners of the leaves to a single node.
    rounds: Vec<Round<K>>,
    best: (K, u32),
}

impl<K: Key> Default for Tournament<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> Tournament<K> {
    pub(crate) const fn new() -> Self {
        Self { leaves: Vec::new(), rounds: Vec::new(), best: (K::ABSENT, 0) }
    }

    /// Makes room for slots 0 to `slots` − 1; new ones are absent.
    pub(crate) fn grow(&mut self, slots: usize) {
        let mut nodes = slots.div_ceil(WAYS);
        if nodes <= self.leaves.len() {
            return;
        }
        // A twelfth in reserve: doubling would leave half of a great many streams' memory unused.
        nodes += nodes / 12;
        extend(&mut self.leaves, nodes, [K::ABSENT; WAYS]);
        let mut round = 0;
        while nodes > 1 {
            nodes = nodes.div_ceil(WAYS);
            if self.rounds.len() == round {
                self.rounds.push(Round { keys: Vec::new(), slots: Vec::new() });
            }
            if let Some(Round { keys, slots }) = self.rounds.get_mut(round) {
                extend(keys, nodes, [K::ABSENT; WAYS]);
                extend(slots, nodes, [0; WAYS]);
            }
            round += 1;
        }
        // A round that is new on top knows nothing of the winner so far.
        let (key, slot) = self.best;
        if key < K::ABSENT {
            self.set(slot, K::ABSENT);
            self.set(slot, key);
        }
    }

    /// The least key and its slot; [`Key::ABSENT`] if nobody competes.
    #[inline]
    pub(crate) const fn best(&self) -> (K, u32) {
        self.best
    }

    /// The key of a slot.
    #[inline]
    #[cfg(test)]
    pub(crate) fn get(&self, slot: u32) -> K {
        let node = self.leaves.get(slot as usize / WAYS);
        node.and_then(|keys| keys.get(slot as usize % WAYS)).copied().unwrap_or(K::ABSENT)
    }

    /// Gives a slot another key. Slots beyond [`Self::grow`] are ignored.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, key: K) {
        let mut at = slot as usize;
        let Some(node) = self.leaves.get_mut(at / WAYS) else { return };
        let Some(leaf) = node.get_mut(at % WAYS) else { return };
        if *leaf == key {
            return;
        }
        *leaf = key;
        let (mut best, way) = least(node);
        at /= WAYS;
        let mut winner = index(at * WAYS + way);
        for Round { keys, slots } in &mut self.rounds {
            let (node, way) = (at / WAYS, at % WAYS);
            let (Some(keys), Some(slots)) = (keys.get_mut(node), slots.get_mut(node)) else {
                return;
            };
            let (Some(key), Some(slot)) = (keys.get_mut(way), slots.get_mut(way)) else { return };
            if *key == best && *slot == winner {
                return;
            }
            (*key, *slot) = (best, winner);
            let way;
            (best, way) = least(keys);
            winner = slots.get(way).copied().unwrap_or_default();
            at = node;
        }
        self.best = (best, winner);
    }
}

fn index(slot: usize) -> u32 {
    u32::try_from(slot).unwrap_or(u32::MAX)
}

fn extend<T: Clone>(nodes: &mut Vec<T>, len: usize, empty: T) {
    nodes.reserve_exact(len.saturating_sub(nodes.len()));
    nodes.resize(len.max(nodes.len()), empty);
}

/// The least of a node's keys and which it is; the first of equals.
#[inline]
fn least<K: Key>(&[a, b, c, d]: &[K; WAYS]) -> (K, usize) {
    let left = if b < a { (b, 1) } else { (a, 0) };
    let right = if d < c { (d, 3) } else { (c, 2) };
    if right.0 < left.0 { right } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_is_the_least_and_of_equals_the_first() {
        let mut random = 1u64;
        for slots in [1, 2, 4, 5, 16, 17, 64, 100, 1_000] {
            let mut tournament = Tournament::<u64>::new();
            tournament.grow(slots);
            let mut naive = std::vec![u64::MAX; slots];
            for _ in 0..4 * slots + 50 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let slot = (random >> 33) as usize % slots;
                let key = if random & 1 == 0 { (random >> 20) % 8 } else { u64::MAX };
                naive[slot] = key;
                tournament.set(index(slot), key);
                assert_eq!(tournament.get(index(slot)), key);
                let (key, at) = tournament.best();
                let best = naive.iter().min().copied().unwrap_or_default();
                assert_eq!(key, best);
                if best < u64::MAX {
                    assert_eq!(naive.iter().position(|&key| key == best), Some(at as usize));
                }
            }
        }
    }

    #[test]
    fn it_grows_around_those_that_compete() {
        let mut tournament = Tournament::<u128>::new();
        for slot in 0..300 {
            tournament.grow(slot as usize + 1);
            tournament.set(slot, u128::from(1_000 - slot));
            assert_eq!(tournament.best(), (u128::from(1_000 - slot), slot));
            assert_eq!(tournament.get(slot + 9_999), u128::MAX);
        }
        tournament.set(299, u128::MAX);
        assert_eq!(tournament.best(), (702, 298));
        tournament.set(9_999, 0);
        assert_eq!(tournament.best(), (702, 298));
    }
}
