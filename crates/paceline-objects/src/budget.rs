//! The memory that other participants fill, shared by their nodes.

use crate::shares::has_room;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes that nodes share as with [`crate::shares::Shares`].
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    all: Arc<All>,
    nodes: BTreeMap<u64, Arc<AtomicUsize>>,
}

#[derive(Debug)]
struct All {
    max: usize,
    used: AtomicUsize,
    /// The number of nodes that have some.
    nodes: AtomicUsize,
}

/// Bytes of a node, which are free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    bytes: usize,
    node: Arc<AtomicUsize>,
    all: Arc<All>,
}

impl Budget {
    /// The part of all bytes that is kept for new objects of nodes with less than their equal part.
    const GROWTH_RESERVE: usize = 16;

    pub(crate) fn new(max: usize) -> Self {
        let all = Arc::new(All { max, used: AtomicUsize::new(0), nodes: AtomicUsize::new(0) });
        Self { all, nodes: BTreeMap::new() }
    }

    /// Returns the greatest number of bytes.
    pub(crate) fn max(&self) -> usize {
        self.all.max
    }

    /// Returns the bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.all.used.load(Ordering::Relaxed)
    }

    /// Returns a charge of no bytes.
    pub(crate) fn open(&mut self, node: u64) -> Charge {
        if !self.nodes.contains_key(&node) {
            // Nodes without a charge are gone.
            self.nodes.retain(|_, used| Arc::strong_count(used) > 1);
        }
        let node = Arc::clone(self.nodes.entry(node).or_default());
        Charge { bytes: 0, node, all: Arc::clone(&self.all) }
    }

    /// Returns a charge of some bytes; `None` without room.
    pub(crate) fn charge(&mut self, node: u64, bytes: usize) -> Option<Charge> {
        let mut charge = self.open(node);
        charge.resize(bytes).then_some(charge)
    }
}

impl Charge {
    /// Changes the number of bytes, and returns whether there was room for more of them.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        self.resize_or(bytes, |_| false)
    }

    fn resize_or(&mut self, bytes: usize, permits: impl FnOnce(usize) -> bool) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            let free = self.all.max.saturating_sub(self.all.used.load(Ordering::Relaxed));
            let its = self.node.load(Ordering::Relaxed);
            let nodes = self.all.nodes.load(Ordering::Relaxed) + usize::from(its == 0);
            let room = has_room(its, nodes, free, self.all.max) || permits(free);
            if !room || more > free {
                return false;
            }
        }
        self.add(more);
        self.release(self.bytes.saturating_sub(bytes));
        true
    }

    /// Changes the number of bytes by those of a part. What exists may grow into half of the reserve, so that objects do
    /// not stop to change as soon as new ones have no room.
    pub(crate) fn replace(&mut self, old: usize, new: usize) -> bool {
        let bytes = (self.bytes + new).saturating_sub(old);
        let least = self.all.max / Budget::GROWTH_RESERVE;
        self.resize_or(bytes, |free| free > least)
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        if bytes > 0 && self.node.fetch_add(bytes, Ordering::Relaxed) == 0 {
            self.all.nodes.fetch_add(1, Ordering::Relaxed);
        }
        self.all.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn release(&mut self, bytes: usize) {
        self.bytes -= bytes;
        if bytes > 0 && self.node.fetch_sub(bytes, Ordering::Relaxed) == bytes {
            self.all.nodes.fetch_sub(1, Ordering::Relaxed);
        }
        self.all.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Clone for Charge {
    /// Charges the same number of bytes once more.
    fn clone(&self) -> Self {
        let (node, all) = (Arc::clone(&self.node), Arc::clone(&self.all));
        let mut charge = Self { bytes: 0, node, all };
        charge.add(self.bytes);
        charge
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_grows_into_half_of_the_reserve() {
        let mut budget = Budget::new(1_600);
        let mut charges: Vec<_> = (0..100).map_while(|_| budget.charge(1, 100)).collect();
        assert_eq!((charges.len(), budget.used()), (14, 1_400));
        assert!(!charges[0].resize(150) && charges[0].replace(0, 110));
        assert!(!charges[0].replace(0, 1), "the rest is for others");
        assert!(budget.charge(2, 90).is_some());
    }

    #[test]
    fn a_node_leaves_the_reserve_and_returns_all() {
        let mut budget = Budget::new(1_000);
        let mut charges: Vec<_> = (0..100).map_while(|_| budget.charge(1, 100)).collect();
        assert_eq!((charges.len(), budget.used()), (9, 900));
        assert!(budget.charge(1, 1).is_none());
        let other = budget.charge(2, 50);
        assert!(other.is_some() && !charges[0].resize(101));
        drop(other);
        charges.truncate(5);
        let copy = charges[0].clone();
        assert_eq!(budget.used(), 600);
        assert!(charges[0].replace(100, 0));
        assert_eq!((charges[0].bytes(), budget.used()), (0, 500));
        drop((charges, copy));
        assert_eq!(budget.used(), 0);
        drop(budget.open(3));
        assert_eq!(budget.nodes.len(), 1);
    }
}
