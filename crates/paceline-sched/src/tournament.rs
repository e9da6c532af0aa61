//! A tournament tree: finds the smallest of many keys that change one at a time.
//!
//! Every slot is in a leaf of a tree whose nodes store the smallest keys of their children. The winner
//! is always known, and a changed key is propagated towards the root only as far as it changes a winner.
//! Slots do not move, so there are no handles to update as in a heap with handles. Ties are resolved by
//! the lowest slot.
//!
//! Four slots meet in a leaf: a small set needs no second round, and its keys fit into one cache line.
//! Eight winners meet in each later round, which keeps the number of rounds low.
//!
//! With very many slots the time is spent on cache misses, not on comparisons. A tournament therefore
//! reports slots that may win soon ([`Tournament::coming`]): each slot that recently became the winner
//! of one of up to 256 branches. The caller can prefetch their data while others are served.
//!
//! Only adding slots allocates.

use crate::fetch::fetch;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hint::select_unpredictable;

/// The number of slots that compete in a leaf.
const SLOTS: usize = 4;
/// The number of winners that compete in a node of a later round.
const WAYS: usize = 8;

/// A tree of up to this many rounds fits into a cache.
const CACHED: usize = 3;
/// The largest number of branches whose winners are reported as soon to win.
///
/// It is small enough that prefetched data and its page translations (one page each) stay cached until
/// they are needed. It is large enough that most winners are reported before they win.
const BRANCHES: usize = 256;

/// A key that can be absent: the largest value means that the slot does not compete.
pub(crate) trait Key: Copy + Ord {
    /// The key of a slot that does not compete.
    const ABSENT: Self;
    /// The alignment that keeps a leaf of such keys on one cache line if it fits into one.
    type Align: Copy + Debug;
    /// Returns true if the key is [`Self::ABSENT`].
    fn is_absent(self) -> bool;
}

impl Key for u64 {
    const ABSENT: Self = Self::MAX;
    type Align = HalfLine;

    #[inline]
    fn is_absent(self) -> bool {
        self == Self::ABSENT
    }
}

/// Only [`Key::ABSENT`] has all ones in its upper half.
impl Key for u128 {
    const ABSENT: Self = Self::MAX;
    type Align = Line;

    /// Compares one half only. A comparison of both would wait until both halves have been written.
    #[inline]
    fn is_absent(self) -> bool {
        self >> 64 == Self::from(u64::MAX)
    }
}

/// Aligned to half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct HalfLine;

/// Aligned to a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line;

/// The keys of slots that meet first.
#[derive(Clone, Copy, Debug)]
struct Leaf<K: Key> {
    keys: [K; SLOTS],
    _align: [K::Align; 0],
}

impl<K: Key> Leaf<K> {
    const EMPTY: Self = Self { keys: [K::ABSENT; SLOTS], _align: [] };
}

/// The keys of winners of leaves, without slots, so that they fill whole cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Keys<K>([K; WAYS]);

impl<K: Key> Keys<K> {
    const EMPTY: Self = Self([K::ABSENT; WAYS]);
}

/// The keys of winners of later rounds, and their slots.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node<K> {
    keys: [K; WAYS],
    slots: [u32; WAYS],
}

impl<K: Key> Node<K> {
    const EMPTY: Self = Self { keys: [K::ABSENT; WAYS], slots: [0; WAYS] };
}

/// The smallest of many keys.
#[derive(Clone, Debug)]
pub(crate) struct Tournament<K: Key> {
    leaves: Vec<Leaf<K>>,
    /// The first round: the keys of the winners of leaves, eight to a node.
    first: Vec<Keys<K>>,
    /// The slot within its leaf of each of these winners. These bytes stay cached when the keys do not.
    places: Vec<[u8; WAYS]>,
    /// The later rounds, up to a single node.
    rounds: Vec<Vec<Node<K>>>,
    best: (K, u32),
    /// The round before which new winners of branches are recorded; beyond the last if a cache fits
    /// everything.
    watched: usize,
    /// The slot that became the winner of a branch last.
    coming: Option<u32>,
}

impl<K: Key> Default for Tournament<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Key> Tournament<K> {
    pub(crate) const fn new() -> Self {
        Self {
            leaves: Vec::new(),
            first: Vec::new(),
            places: Vec::new(),
            rounds: Vec::new(),
            best: (K::ABSENT, 0),
            watched: 0,
            coming: None,
        }
    }

    /// Makes room for the slots 0 to `slots` − 1; new slots are absent.
    pub(crate) fn grow(&mut self, slots: usize) {
        let mut nodes = slots.div_ceil(SLOTS);
        if nodes <= self.leaves.len() {
            return;
        }
        extend(&mut self.leaves, nodes, Leaf::EMPTY);
        if nodes > 1 {
            nodes = nodes.div_ceil(WAYS);
            extend(&mut self.first, nodes, Keys::EMPTY);
            extend(&mut self.places, nodes, [0; WAYS]);
        }
        let mut round = 0;
        while nodes > 1 {
            nodes = nodes.div_ceil(WAYS);
            if self.rounds.len() == round {
                self.rounds.push(Vec::new());
            }
            if let Some(round) = self.rounds.get_mut(round) {
                extend(round, nodes, Node::EMPTY);
            }
            round += 1;
        }
        let few = |len: usize| len <= BRANCHES;
        let many = self.rounds.iter().take_while(|round| !few(round.len())).count();
        self.watched = if few(self.first.len()) { 1 } else { many + 2 };
        // A new round at the top does not contain the winner so far.
        let (key, slot) = self.best;
        if key < K::ABSENT {
            self.set(slot, K::ABSENT);
            self.set(slot, key);
        }
    }

    /// Returns the smallest key and its slot; [`Key::ABSENT`] if no slot competes.
    #[inline]
    pub(crate) const fn best(&self) -> (K, u32) {
        self.best
    }

    /// Returns true if there are so many slots that [`Self::coming`] reports any.
    #[inline]
    pub(crate) const fn tells(&self) -> bool {
        self.rounds() > CACHED
    }

    /// Returns a slot that may win soon, if one was recorded since the last call.
    ///
    /// The caller should [`Self::fetch`] it and other data of its slot. Reports exist only with very
    /// many slots.
    #[inline]
    pub(crate) const fn coming(&mut self) -> Option<u32> {
        self.coming.take()
    }

    /// Prefetches the memory that [`Self::set`] needs for a slot.
    #[inline]
    pub(crate) fn fetch(&self, slot: u32) {
        let leaf = slot as usize / SLOTS;
        fetch(&self.leaves, leaf);
        fetch(&self.first, leaf / WAYS);
        if size_of::<Keys<K>>() > size_of::<Line>()
            && let Some(Keys(keys)) = self.first.get(leaf / WAYS)
        {
            fetch(keys, WAYS / 2);
        }
    }

    /// Returns the smallest value of `key` over all slots; `key` must not return less than the slot's
    /// own key.
    ///
    /// Calls `key` only for slots that may have the smallest value: only the winner, unless `key`
    /// increases it.
    pub(crate) fn least_where(&self, key: impl Fn(u32, K) -> K) -> K {
        let (best, slot) = self.best;
        if key(slot, best) == best {
            return best;
        }
        let mut least = K::ABSENT;
        self.look_for(self.rounds(), 0, &mut least, &key);
        least
    }

    /// Lowers `least` to the smallest value of `key` over the slots below node `at`, which is `rounds`
    /// rounds up.
    fn look_for(&self, rounds: usize, at: usize, least: &mut K, key: &impl Fn(u32, K) -> K) {
        let Some(below) = rounds.checked_sub(1) else {
            let Some(Leaf { keys, .. }) = self.leaves.get(at) else { return };
            for (slot, &own) in (at * SLOTS..).zip(keys) {
                if own < *least
                    && let Ok(slot) = u32::try_from(slot)
                {
                    *least = key(slot, own).min(*least);
                }
            }
            return;
        };
        let first = || self.first.get(at).map(|Keys(keys)| keys);
        let later = |below: usize| Some(&self.rounds.get(below)?.get(at)?.keys);
        let Some(keys) = below.checked_sub(1).map_or_else(first, later) else { return };
        for (child, own) in (at * WAYS..).zip(keys) {
            if own < &*least {
                self.look_for(below, child, least, key);
            }
        }
    }

    /// Returns the number of rounds.
    #[inline]
    const fn rounds(&self) -> usize {
        if self.first.is_empty() { 0 } else { 1 + self.rounds.len() }
    }

    /// Returns the key of a slot.
    #[inline]
    #[cfg(test)]
    pub(crate) fn get(&self, slot: u32) -> K {
        let node = self.leaves.get(slot as usize / SLOTS);
        node.and_then(|leaf| leaf.keys.get(slot as usize % SLOTS)).copied().unwrap_or(K::ABSENT)
    }

    /// Changes the key of a slot. Slots beyond [`Self::grow`] are ignored.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, key: K) {
        let at = slot as usize;
        let Some(Leaf { keys, .. }) = self.leaves.get_mut(at / SLOTS) else { return };
        let Some(leaf) = keys.get_mut(at % SLOTS) else { return };
        *leaf = key;
        let (best, place) = least_of_slots(keys);
        match self.rounds() {
            0 => self.best = (best, place),
            1..=CACHED => self.play::<false>(at / SLOTS, best, place),
            _ => self.play::<true>(at / SLOTS, best, place),
        }
    }

    /// Propagates the winner of a leaf, its slot `place`, up to the round where nothing changes.
    ///
    /// With `MANY`, records slots that may win soon.
    #[inline(never)]
    fn play<const MANY: bool>(&mut self, leaf: usize, best: K, place: u32) {
        let mut at = leaf / WAYS;
        let (Some(Keys(keys)), Some(places)) = (self.first.get_mut(at), self.places.get_mut(at))
        else {
            return;
        };
        let way = leaf % WAYS;
        let (Some(key), Some(its)) = (keys.get_mut(way), places.get_mut(way)) else { return };
        #[expect(clippy::cast_possible_truncation, reason = "below 4")]
        let place = place as u8;
        if *key == best && *its == place {
            return;
        }
        (*key, *its) = (best, place);
        let (mut best, way) = least(keys);
        let place = places.get(way as usize).copied().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "slots are u32")]
        let mut winner = ((at * WAYS + way as usize) * SLOTS + place as usize) as u32;
        for (level, round) in (1..).zip(self.rounds.iter_mut()) {
            let Some(Node { keys, slots }) = round.get_mut(at / WAYS) else { return };
            let way = at % WAYS;
            let (Some(key), Some(slot)) = (keys.get_mut(way), slots.get_mut(way)) else { return };
            if *key == best && *slot == winner {
                return;
            }
            if MANY && level == self.watched && *slot != winner {
                self.coming = Some(winner);
            }
            (*key, *slot) = (best, winner);
            let way;
            (best, way) = least(keys);
            winner = slots.get(way as usize).copied().unwrap_or_default();
            at /= WAYS;
        }
        self.best = (best, winner);
    }
}

fn extend<T: Clone>(nodes: &mut Vec<T>, len: usize, empty: T) {
    nodes.reserve_exact(len.saturating_sub(nodes.len()));
    nodes.resize(len.max(nodes.len()), empty);
}

/// Returns the smallest of a leaf's keys and its position; the first of equals.
#[inline]
fn least_of_slots<K: Key>(&[a, b, c, d]: &[K; SLOTS]) -> (K, u32) {
    less(less((a, 0), (b, 1)), less((c, 2), (d, 3)))
}

/// Returns the smallest of a node's keys and its position; the first of equals.
#[inline]
fn least<K: Key>(&[a, b, c, d, e, f, g, h]: &[K; WAYS]) -> (K, u32) {
    let left = less(less((a, 0), (b, 1)), less((c, 2), (d, 3)));
    let right = less(less((e, 4), (f, 5)), less((g, 6), (h, 7)));
    less(left, right)
}

#[inline]
fn less<K: Key>(first: (K, u32), second: (K, u32)) -> (K, u32) {
    let lower = second.0 < first.0;
    (select_unpredictable(lower, second.0, first.0), select_unpredictable(lower, second.1, first.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

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
                tournament.set(u32::try_from(slot).unwrap(), key);
                assert_eq!(tournament.get(u32::try_from(slot).unwrap()), key);
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
    fn large_trees_predict_the_slots_that_may_win_soon() {
        for (slots, many) in [(2_048, false), (2_049, true), (100_000, true)] {
            let mut tournament = Tournament::<u128>::new();
            tournament.grow(slots);
            let mut known = vec![false; slots];
            let mut foreseen = 0;
            for turn in 0..slots + 2_000 {
                let (slot, key) = match turn.checked_sub(slots) {
                    None => {
                        let slot = u32::try_from(turn).unwrap();
                        (slot, u128::from(slot.wrapping_mul(0x9e37_79b1)) << 64)
                    }
                    Some(_) => {
                        let (key, slot) = tournament.best();
                        foreseen += u32::from(known[slot as usize]);
                        (slot, key + (1 << 97))
                    }
                };
                tournament.set(slot, key);
                if let Some(slot) = tournament.coming() {
                    known[slot as usize] = true;
                    tournament.fetch(slot);
                }
                tournament.fetch(u32::MAX);
            }
            match many {
                true => assert!(foreseen > 1_800, "{foreseen} of 2,000 among {slots}"),
                false => assert_eq!(foreseen, 0),
            }
        }
    }

    #[test]
    fn the_least_derived_key_is_found() {
        let mut random = 1u64;
        for slots in [1, 4, 5, 32, 33, 300, 3_000] {
            let mut tournament = Tournament::<u64>::new();
            tournament.grow(slots);
            for _ in 0..20 {
                let mut naive = vec![u64::MAX; slots];
                for (slot, naive) in (0..).zip(&mut naive) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    *naive = if random >> 63 == 0 { (random >> 20) % 999 } else { u64::MAX };
                    tournament.set(slot, *naive);
                }
                let odd = (random >> 40) % 5;
                let made = |slot: u32, key: u64| match u64::from(slot) % 5 {
                    rest if rest == odd => u64::MAX,
                    4 => key.saturating_add(500),
                    _ => key,
                };
                let expected = (0..).zip(&naive).map(|(slot, key)| made(slot, *key)).min();
                assert_eq!(Some(tournament.least_where(made)), expected);
            }
        }
    }

    #[test]
    fn the_tree_grows_around_its_competitors() {
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
