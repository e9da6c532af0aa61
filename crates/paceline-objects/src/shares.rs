//! Fair shares of limited places.

use std::collections::BTreeMap;

/// The part of all places that is kept for nodes with less than their equal part.
const RESERVE: usize = 8;

/// Returns whether a node with `its` places, which is one of `nodes` that have some or ask for one, may take another of
/// the free ones.
pub(crate) const fn has_room(its: usize, nodes: usize, free: usize, max: usize) -> bool {
    let equal = max / (nodes + 1);
    ((its < equal || its == 0) && free > 0) || free > max / RESERVE
}

/// Places that nodes share. A node takes what others do not use, except for a reserve of an eighth, which is only for nodes
/// that have less than their equal part: that of all nodes with places and one more.
///
/// ```
/// use paceline_objects::shares::Shares;
///
/// let mut shares = Shares::new(8);
/// let taken = (0..8).filter(|_| shares.take(1, 1)).count();
/// assert_eq!(taken, 7);
/// assert!(shares.take(2, 1));
/// ```
#[derive(Clone, Debug)]
pub struct Shares {
    max: usize,
    used: usize,
    nodes: BTreeMap<u64, usize>,
}

impl Shares {
    /// Returns `max` free places.
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self { max, used: 0, nodes: BTreeMap::new() }
    }

    /// Returns whether a node may take another place.
    #[must_use]
    pub fn has_room(&self, node: u64) -> bool {
        let its = self.of(node);
        let nodes = self.nodes.len() + usize::from(its == 0);
        has_room(its, nodes, self.free(), self.max)
    }

    /// Takes places for a node, and returns whether it had room for the first of them and all are free.
    pub fn take(&mut self, node: u64, places: usize) -> bool {
        let takes = self.has_room(node) && places <= self.free();
        if takes {
            self.used += places;
            *self.nodes.entry(node).or_default() += places;
        }
        takes
    }

    /// Frees places of a node, at most those that it has.
    pub fn free_of(&mut self, node: u64, places: usize) {
        if let Some(used) = self.nodes.get_mut(&node) {
            let places = places.min(*used);
            *used -= places;
            self.used -= places;
            if *used == 0 {
                self.nodes.remove(&node);
            }
        }
    }

    /// Returns the number of places of a node.
    #[must_use]
    pub fn of(&self, node: u64) -> usize {
        self.nodes.get(&node).copied().unwrap_or(0)
    }

    /// Returns the number of places of all nodes.
    #[must_use]
    pub const fn used(&self) -> usize {
        self.used
    }

    const fn free(&self) -> usize {
        self.max.saturating_sub(self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_nodes_with_less_than_their_part_use_the_reserve(
            max in 1..200_usize,
            steps in prop::collection::vec((0..4_u64, 1..20_usize, any::<bool>()), 0..200),
        ) {
            let mut shares = Shares::new(max);
            let mut model = [0_usize; 4];
            for (node, places, takes) in steps {
                let free = max - shares.used();
                let nodes = model.iter().filter(|its| **its > 0).count();
                let slot = &mut model[usize::try_from(node).expect("small")];
                if !takes {
                    shares.free_of(node, places);
                    *slot = slot.saturating_sub(places);
                } else if shares.take(node, places) {
                    prop_assert!(*slot < max / (nodes + 1) || *slot == 0 || free > max / RESERVE);
                    *slot += places;
                } else {
                    prop_assert!(places > free || (*slot > 0 && free <= max / RESERVE));
                }
                prop_assert_eq!(shares.of(node), *slot);
                prop_assert_eq!(shares.used(), model.iter().sum::<usize>());
                prop_assert!(shares.used() <= max);
            }
        }
    }

    #[test]
    fn few_nodes_use_nearly_everything() {
        let mut shares = Shares::new(1_000);
        for node in 1..3 {
            assert_eq!((0..430).filter(|_| shares.take(node, 1)).count(), 430);
        }
        assert_eq!((0..500).filter(|_| shares.take(1, 1)).count(), 15);
        assert_eq!((0..500).filter(|_| shares.take(3, 1)).count(), 125);
    }
}
