//! Ordered trees over class indices in one arena, in which each node stores the lowest value below it.
//!
//! The order is by key, then by index. In O(log n) a tree finds the first node with a value up to a
//! limit. In the same time it finds the node with the lowest value among those up to a key. The trees
//! are treaps whose shape depends only on the indices and keys, so equal inputs give equal trees.

use alloc::vec::Vec;

/// No node: the child link of a leaf, and the root of an empty tree.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node<K> {
    key: K,
    value: u64,
    /// The lowest value of this node and its descendants.
    least: u64,
    left: u32,
    right: u32,
}

/// Any number of trees with nodes 0, 1, 2 …; each node is in at most one tree. The caller stores the
/// roots.
#[derive(Clone, Debug)]
pub(super) struct Forest<K> {
    nodes: Vec<Node<K>>,
}

impl<K: Copy + Default + Ord> Forest<K> {
    pub(super) const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Reserves the nodes up to `at`, so that later calls do not allocate.
    pub(super) fn reserve(&mut self, at: u32) {
        let node = Node { key: K::default(), value: 0, least: 0, left: NONE, right: NONE };
        while self.nodes.len() <= at as usize {
            grow(&mut self.nodes);
            self.nodes.push(node.clone());
        }
    }

    /// Returns the memory of the nodes in bytes.
    pub(super) const fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<K>>()
    }

    /// Adds the node `at`, which must not be in a tree.
    pub(super) fn insert(&mut self, root: &mut u32, at: u32, key: K, value: u64) {
        if self.node(at).is_none() {
            return;
        }
        let (mut above, mut before, mut below) = (NONE, false, *root);
        while let Some(node) = self.node_mut(below).filter(|_| rank(below) > rank(at)) {
            node.least = node.least.min(value);
            (above, before) = (below, (key, at) < (node.key, below));
            below = if before { node.left } else { node.right };
        }
        let (left, right) = self.split(below, (key, at));
        if let Some(node) = self.node_mut(at) {
            *node = Node { key, value, least: value, left, right };
        }
        self.refresh(at);
        match self.node_mut(above) {
            None => *root = at,
            Some(node) if before => node.left = at,
            Some(node) => node.right = at,
        }
    }

    /// Removes the node `at`. Does nothing if it is not in the tree.
    pub(super) fn remove(&mut self, root: &mut u32, at: u32) {
        if let Some(key) = self.key(at) {
            *root = self.removed(*root, at, key);
        }
    }

    /// Changes the key and the value of the node `at`, which must be in the tree.
    pub(super) fn update(&mut self, root: &mut u32, at: u32, key: K, value: u64) {
        if self.key(at) == Some(key) {
            self.revalue(*root, at, (key, value));
        } else {
            self.remove(root, at);
            self.insert(root, at, key, value);
        }
    }

    /// Returns the key of a node; for a node that is in no tree, its last one.
    pub(super) fn key(&self, at: u32) -> Option<K> {
        Some(self.node(at)?.key)
    }

    /// Returns the value of a node; for a node that is in no tree, its last one.
    pub(super) fn value(&self, at: u32) -> Option<u64> {
        Some(self.node(at)?.value)
    }

    /// Returns the lowest value in the tree.
    pub(super) fn least(&self, root: u32) -> Option<u64> {
        Some(self.node(root)?.least)
    }

    /// Returns the highest key in the tree.
    pub(super) fn last_key(&self, root: u32) -> Option<K> {
        let mut node = self.node(root)?;
        while let Some(next) = self.node(node.right) {
            node = next;
        }
        Some(node.key)
    }

    /// Returns the lowest key above `key`.
    pub(super) fn key_after(&self, root: u32, key: K) -> Option<K> {
        let (mut found, mut at) = (None, root);
        while let Some(node) = self.node(at) {
            if node.key > key {
                found = Some(node.key);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        found
    }

    /// Returns the first node in order with a value of at most `limit`.
    pub(super) fn first_within(&self, root: u32, limit: u64) -> Option<u32> {
        let mut at = root;
        loop {
            let node = self.node(at)?;
            if self.least(node.left).is_some_and(|least| least <= limit) {
                at = node.left;
            } else if node.value <= limit {
                return Some(at);
            } else {
                at = node.right;
            }
        }
    }

    /// Returns the node with the lowest value among those with a key of at most `key`; the first in
    /// order of equals.
    pub(super) fn least_until(&self, root: u32, key: K) -> Option<u32> {
        // On the path to `key`, every left subtree and its root precede `key`. The best candidate is one
        // of these nodes, or a subtree, which is searched at the end.
        let mut best: Option<(u64, u32, bool)> = None;
        let mut at = root;
        while let Some(node) = self.node(at) {
            if node.key > key {
                at = node.left;
                continue;
            }
            let below = self.least(node.left).map(|least| (least, node.left, true));
            for candidate in below.into_iter().chain([(node.value, at, false)]) {
                if best.is_none_or(|(least, _, _)| candidate.0 < least) {
                    best = Some(candidate);
                }
            }
            at = node.right;
        }
        match best? {
            (least, at, true) => self.first_within(at, least),
            (_, at, false) => Some(at),
        }
    }

    fn node(&self, at: u32) -> Option<&Node<K>> {
        self.nodes.get(at as usize)
    }

    fn node_mut(&mut self, at: u32) -> Option<&mut Node<K>> {
        self.nodes.get_mut(at as usize)
    }

    /// Recomputes the lowest value of a node from its children.
    fn refresh(&mut self, at: u32) {
        let Some(node) = self.node(at) else { return };
        let left = self.least(node.left).unwrap_or(u64::MAX);
        let right = self.least(node.right).unwrap_or(u64::MAX);
        let least = node.value.min(left).min(right);
        if let Some(node) = self.node_mut(at) {
            node.least = least;
        }
    }

    fn removed(&mut self, root: u32, at: u32, key: K) -> u32 {
        let Some(node) = self.node(root) else { return NONE };
        let (left, right) = (node.left, node.right);
        if root == at {
            return self.merge(left, right);
        }
        if (key, at) < (node.key, root) {
            let left = self.removed(left, at, key);
            self.set_left(root, left);
        } else {
            let right = self.removed(right, at, key);
            self.set_right(root, right);
        }
        root
    }

    fn revalue(&mut self, root: u32, at: u32, (key, value): (K, u64)) {
        let Some(node) = self.node(root) else { return };
        if root == at {
            if let Some(node) = self.node_mut(at) {
                node.value = value;
            }
        } else {
            let before = (key, at) < (node.key, root);
            let next = if before { node.left } else { node.right };
            self.revalue(next, at, (key, value));
        }
        self.refresh(root);
    }

    /// Splits a tree into the nodes before `bound` and the rest.
    fn split(&mut self, root: u32, bound: (K, u32)) -> (u32, u32) {
        let Some(node) = self.node(root) else { return (NONE, NONE) };
        let (left, right) = (node.left, node.right);
        if (node.key, root) < bound {
            let (before, after) = self.split(right, bound);
            self.set_right(root, before);
            (root, after)
        } else {
            let (before, after) = self.split(left, bound);
            self.set_left(root, after);
            (before, root)
        }
    }

    /// Merges two trees; all of the first must precede all of the second.
    fn merge(&mut self, first: u32, second: u32) -> u32 {
        let Some(left) = self.node(first) else { return second };
        let Some(right) = self.node(second) else { return first };
        if rank(first) > rank(second) {
            let middle = left.right;
            let right = self.merge(middle, second);
            self.set_right(first, right);
            first
        } else {
            let middle = right.left;
            let left = self.merge(first, middle);
            self.set_left(second, left);
            second
        }
    }

    fn set_left(&mut self, at: u32, left: u32) {
        if let Some(node) = self.node_mut(at) {
            node.left = left;
        }
        self.refresh(at);
    }

    fn set_right(&mut self, at: u32, right: u32) {
        if let Some(node) = self.node_mut(at) {
            node.right = right;
        }
        self.refresh(at);
    }
}

/// Reserves one twenty-fourth more if the vector is full. This keeps memory near the used size, and
/// additions cheap.
pub(super) fn grow<T>(items: &mut Vec<T>) {
    if items.len() == items.capacity() {
        items.reserve_exact(items.len() / 24 + 4);
    }
}

/// Returns the treap priority of a node: a fixed shuffle of the indices (the mixer of SplitMix64).
const fn rank(at: u32) -> u64 {
    let z = (at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
