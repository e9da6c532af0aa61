//! A tournament: who of many has the least key, when keys change one at a time.
//!
//! Every slot is a leaf of a tree whose nodes each hold the least keys of those below them, so the
//! winner is always known and a changed key is played up towards the root only as far as it changes
//! who wins. Slots stay where they are, so nobody needs to be told where a moved element went, which
//! is what a heap with handles pays for. Ties go to the lowest slot.
//!
//! Four slots meet first, so that few need no second round and the keys of many a discipline fit one
//! cache line; eight winners meet in each round after it, so that there are few rounds.
//!
//! Among a great many slots the time is not in the work but in the waiting for memory. So a tournament
//! tells who may win soon ([`Tournament::coming`]): whoever became the winner of one of the last some
//! dozen branches. What it needs is then fetched while others are served.
//!
//! Nothing is allocated but when slots are added.

use crate::fetch::fetch;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hint::select_unpredictable;

/// How many slots compete in a leaf.
const SLOTS: usize = 4;
/// How many winners compete in a node of a later round.
const WAYS: usize = 8;

/// So many rounds are so small that a cache holds them.
const CACHED: usize = 3;
/// At most so many branches have winners that may win soon: so few that neither what they need nor where it is (a
/// page each) is forgotten until then, so many that most of them win when it has come.
const BRANCHES: usize = 256;

/// A key that can be absent: the greatest value says that the slot does not compete.
pub(crate) trait Key: Copy + Ord {
    /// Of a slot that does not compete.
    const ABSENT: Self;
    /// Aligned so that a leaf of such keys is never on two cache lines if one can hold it.
    type Align: Copy + Debug;
    /// It is [`Self::ABSENT`].
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

/// No key has its upper half all ones but [`Key::ABSENT`].
impl Key for u128 {
    const ABSENT: Self = Self::MAX;
    type Align = Line;

    /// Looks at one half: both at once would have to wait until both have been written.
    #[inline]
    fn is_absent(self) -> bool {
        self >> 64 == Self::from(u64::MAX)
    }
}

/// As long as half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct HalfLine;

/// As long as a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Line;

/// Slots that meet first: their own keys.
#[derive(Clone, Copy, Debug)]
struct Leaf<K: Key> {
    keys: [K; SLOTS],
    _align: [K::Align; 0],
}

impl<K: Key> Leaf<K> {
    const EMPTY: Self = Self { keys: [K::ABSENT; SLOTS], _align: [] };
}

/// Winners of leaves that meet: their keys alone, so that they fill whole cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Keys<K>([K; WAYS]);

impl<K: Key> Keys<K> {
    const EMPTY: Self = Self([K::ABSENT; WAYS]);
}

/// Winners of later rounds that meet: their keys, and the slots that these belong to.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node<K> {
    keys: [K; WAYS],
    slots: [u32; WAYS],
}

impl<K: Key> Node<K> {
    const EMPTY: Self = Self { keys: [K::ABSENT; WAYS], slots: [0; WAYS] };
}

/// The least of many keys.
#[derive(Clone, Debug)]
pub(crate) struct Tournament<K: Key> {
    leaves: Vec<Leaf<K>>,
    /// The first round: the keys of the winners of leaves, eight to a node, …
    first: Vec<Keys<K>>,
    /// … and which slot of its leaf each of them is. They are so short that a cache holds them when it does not hold the keys.
    places: Vec<[u8; WAYS]>,
    /// The later rounds, up to a single node.
    rounds: Vec<Vec<Node<K>>>,
    best: (K, u32),
    /// The round before which the winners of the last branches are known; none if a cache holds all.
    watched: usize,
    /// Who became the winner of a branch last.
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

    /// Makes room for slots 0 to `slots` − 1; new ones are absent.
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

    /// There are so many slots that [`Self::coming`] tells of any.
    #[inline]
    pub(crate) const fn tells(&self) -> bool {
        self.rounds() > CACHED
    }

    /// A slot that may win soon, now and then, if there are very many: [`Self::fetch`] it, and whatever else it needs.
    #[inline]
    pub(crate) const fn coming(&mut self) -> Option<u32> {
        self.coming.take()
    }

    /// Has a cache fetch what [`Self::set`] will need of a slot.
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

    /// The least of what `key` makes of the keys of slots; it makes none of them less. Asks about those only
    /// that may be the least, which is one of them unless `key` makes it greater.
    pub(crate) fn least_where(&self, key: impl Fn(u32, K) -> K) -> K {
        let (best, slot) = self.best;
        if key(slot, best) == best {
            return best;
        }
        let mut least = K::ABSENT;
        self.look_for(self.rounds(), 0, &mut least, &key);
        least
    }

    /// Lowers `least` to the least that `key` makes of the slots below node `at`, which played `rounds`.
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

    /// How many rounds there are.
    #[inline]
    const fn rounds(&self) -> usize {
        if self.first.is_empty() { 0 } else { 1 + self.rounds.len() }
    }

    /// The key of a slot.
    #[inline]
    #[cfg(test)]
    pub(crate) fn get(&self, slot: u32) -> K {
        let node = self.leaves.get(slot as usize / SLOTS);
        node.and_then(|leaf| leaf.keys.get(slot as usize % SLOTS)).copied().unwrap_or(K::ABSENT)
    }

    /// Gives a slot another key. Slots beyond [`Self::grow`] are ignored.
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

    /// The winner of a leaf, the slot `place` of it, meets others, up to the round where nothing changes. `MANY` are so
    /// many that those who may win soon are noted.
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

/// The least of a leaf's keys and which it is; the first of equals.
#[inline]
fn least_of_slots<K: Key>(&[a, b, c, d]: &[K; SLOTS]) -> (K, u32) {
    less(less((a, 0), (b, 1)), less((c, 2), (d, 3)))
}

/// The least of a node's keys and which it is; the first of equals.
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
    fn it_tells_who_may_win_soon_if_there_are_very_many() {
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
    fn the_least_of_what_is_made_of_keys_is_found() {
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
