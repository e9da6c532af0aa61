//! A table of a record: the entries that this node can read, and those that it only passes on.
//!
//! An entry that a node cannot read does not hide the others. Nodes of one wire version read the same entries, unless
//! they are built from different sources; so a node keeps the bytes of an entry that it cannot read, and neighbours
//! behind it get them unchanged.

use crate::wire::WireError;
use bytes::Bytes;
use core::ops::Deref;
use std::collections::BTreeMap;

/// An entry that this node cannot read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Unread {
    /// The entry as it arrived, in a buffer of its own.
    pub(crate) bytes: Bytes,
    /// The first field that this node refuses.
    pub(crate) error: WireError,
}

/// A value, or an entry that this node cannot read.
pub(crate) type Read<V> = Result<V, Unread>;

/// A table; it dereferences to the entries that this node can read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Table<K, V> {
    read: BTreeMap<K, V>,
    unread: BTreeMap<K, Unread>,
}

impl<K: Ord, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { read: BTreeMap::new(), unread: BTreeMap::new() }
    }
}

impl<K, V> Deref for Table<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.read
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Table<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self { read: entries.into_iter().collect(), unread: BTreeMap::new() }
    }
}

impl<'t, K, V> IntoIterator for &'t Table<K, V> {
    type Item = (&'t K, &'t V);
    type IntoIter = std::collections::btree_map::Iter<'t, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.read.iter()
    }
}

impl<K: Ord + Copy, V> Table<K, V> {
    /// Adds or replaces an entry, unless the table then has more than `max` entries.
    pub(crate) fn set(
        &mut self,
        key: K,
        entry: Read<V>,
        (max, field): (usize, &'static str),
    ) -> Result<(), WireError> {
        if !self.read.contains_key(&key) && !self.unread.contains_key(&key) {
            below(self.entries(), max, field)?;
        }
        self.remove(&key);
        match entry {
            Ok(value) => _ = self.read.insert(key, value),
            Err(unread) => _ = self.unread.insert(key, unread),
        }
        Ok(())
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, key: &K) {
        self.read.remove(key);
        self.unread.remove(key);
    }

    /// Keeps the entries that this node can read and `keeps` accepts.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&K, &V) -> bool) {
        self.unread.clear();
        self.read.retain(|key, value| keeps(key, value));
    }

    /// Returns the number of all entries.
    pub(crate) fn entries(&self) -> usize {
        self.read.len() + self.unread.len()
    }

    /// Returns the entries that this node cannot read.
    pub(crate) const fn unread(&self) -> &BTreeMap<K, Unread> {
        &self.unread
    }

    /// Returns all entries, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (K, Result<&V, &Unread>)> + '_ {
        let mut read = self.read.iter().peekable();
        let mut unread = self.unread.iter().peekable();
        core::iter::from_fn(move || {
            let first = match (read.peek(), unread.peek()) {
                (Some((one, _)), Some((other, _))) => one < other,
                (one, _) => one.is_some(),
            };
            match first {
                true => read.next().map(|(key, value)| (*key, Ok(value))),
                false => unread.next().map(|(key, unread)| (*key, Err(unread))),
            }
        })
    }
}

/// Returns an error for one more item than `max`.
pub(super) fn below(count: usize, max: usize, field: &'static str) -> Result<(), WireError> {
    if count < max {
        return Ok(());
    }
    Err(WireError::TooLarge { field, value: count as u64 + 1, max: max as u64 })
}
