//! A table of objects by their index.

use crate::ids::ObjectIndex;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table with one entry per object, found in constant time. Its order is that of creation, with gaps filled.
#[derive(Clone, Debug)]
pub(crate) struct ObjectTable<T> {
    places: HashMap<ObjectIndex, usize, BuildHasherDefault<IndexHasher>>,
    entries: Vec<(ObjectIndex, T)>,
}

impl<T> Default for ObjectTable<T> {
    fn default() -> Self {
        Self { places: HashMap::default(), entries: Vec::new() }
    }
}

impl<T> ObjectTable<T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, object: ObjectIndex) -> Option<&T> {
        self.entries.get(*self.places.get(&object)?).map(|(_, entry)| entry)
    }

    pub(crate) fn get_mut(&mut self, object: ObjectIndex) -> Option<&mut T> {
        self.entries.get_mut(*self.places.get(&object)?).map(|(_, entry)| entry)
    }

    /// Adds an entry. One of the same index is replaced.
    pub(crate) fn insert(&mut self, object: ObjectIndex, entry: T) {
        if let Some(known) = self.get_mut(object) {
            *known = entry;
        } else {
            self.places.insert(object, self.entries.len());
            self.entries.push((object, entry));
        }
    }

    pub(crate) fn remove(&mut self, object: ObjectIndex) -> Option<T> {
        let place = self.places.remove(&object)?;
        let (_, entry) = self.entries.swap_remove(place);
        if let Some((moved, _)) = self.entries.get(place) {
            self.places.insert(*moved, place);
        }
        Some(entry)
    }

    /// Returns up to `count` entries from a place in the order.
    pub(crate) fn part(&self, from: usize, count: usize) -> &[(ObjectIndex, T)] {
        let from = from.min(self.entries.len());
        let to = from.saturating_add(count).min(self.entries.len());
        self.entries.get(from..to).unwrap_or_default()
    }
}

/// Spreads the indices of objects; their owner chooses them, so no other can cause collisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndexHasher(u64);

impl Hasher for IndexHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}
