//! The memory of a node for the input of its neighbours: one limit for all of them.
//!
//! It counts three kinds of bytes:
//!
//! - *Kept*: the records of other nodes, and the current pictures of videos. Their owners bound them, to a quarter of the
//!   limit each.
//! - *Pinned*: control messages and the tables of streams, which stay until they are processed. They are refused
//!   before they are stored ([`MemoryShare::fits`]). All neighbours may use an eighth of the limit together, and each of them
//!   always its equal part of a second eighth. So at least a quarter of the limit remains for samples.
//! - *Samples* that have not arrived completely, or wait for their subscription. They may use all free memory. If
//!   the limit is exceeded, the neighbour with the most of them drops some ([`debtor`]). A neighbour whose samples
//!   use at most its equal part of that quarter never has the most. So it always completes them, whatever others send.
//!
//! Counters are atomic: the threads of all links use them without a lock, once per frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory of a node for the input of its neighbours.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    limit: usize,
    used: Counters,
    greatest: AtomicUsize,
    shares: AtomicUsize,
}

/// Counted bytes by kind.
#[derive(Debug, Default)]
struct Counters {
    samples: AtomicUsize,
    pinned: AtomicUsize,
    kept: AtomicUsize,
}

impl Counters {
    fn of(&self, kind: MemoryKind) -> &AtomicUsize {
        match kind {
            MemoryKind::Samples => &self.samples,
            MemoryKind::Pinned => &self.pinned,
            MemoryKind::Kept => &self.kept,
        }
    }

    fn total(&self) -> usize {
        let Self { samples, pinned, kept } = self;
        let all = [samples, pinned, kept].map(|it| it.load(Ordering::Relaxed));
        all.into_iter().fold(0, usize::saturating_add)
    }
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MemoryKind {
    /// Samples that can be dropped if another neighbour needs the memory.
    Samples,
    /// Control messages and the tables of streams.
    Pinned,
    /// Records and pictures, which their owners bound.
    Kept,
}

impl Memory {
    /// The default limit, 128 MiB: two samples of the largest size, and a quarter of a robot with 512 MiB.
    pub const LIMIT_DEFAULT: usize = 128 << 20;

    /// Returns the memory of a node, of which nothing is used.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let (used, greatest, shares) = Default::default();
        Self(Arc::new(Pool { limit, used, greatest, shares }))
    }

    /// Returns the limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Returns the most bytes of the records of other nodes, and of the current pictures of videos, each.
    #[must_use]
    pub fn kept_max(&self) -> usize {
        self.0.limit / 4
    }

    /// Returns the bytes that all neighbours use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.total()
    }

    /// Returns the greatest number of bytes that were used at once.
    #[must_use]
    pub fn greatest(&self) -> usize {
        self.0.greatest.load(Ordering::Relaxed)
    }

    /// Records the present use as the greatest one, if it is. Call this when an excess remains.
    pub fn note_greatest(&self) {
        self.0.greatest.fetch_max(self.used(), Ordering::Relaxed);
    }

    /// Returns the bytes by which the limit is exceeded.
    #[must_use]
    pub fn excess(&self) -> usize {
        self.used().saturating_sub(self.0.limit)
    }

    /// Returns the share of a new neighbour. It counts among the neighbours until it is dropped.
    #[must_use]
    pub fn share(&self) -> MemoryShare {
        self.0.shares.fetch_add(1, Ordering::Relaxed);
        MemoryShare(Arc::new(Part {
            memory: self.clone(),
            used: Counters::default(),
            counts: true,
        }))
    }

    /// Returns the share of the node itself, for what it keeps on behalf of all neighbours.
    #[must_use]
    pub fn own_share(&self) -> MemoryShare {
        MemoryShare(Arc::new(Part {
            memory: self.clone(),
            used: Counters::default(),
            counts: false,
        }))
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Self::LIMIT_DEFAULT)
    }
}

/// The memory that one neighbour uses. Clones count the same neighbour.
#[derive(Clone, Debug)]
pub struct MemoryShare(Arc<Part>);

#[derive(Debug)]
struct Part {
    memory: Memory,
    used: Counters,
    /// It is the share of a neighbour.
    counts: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        self.memory.0.shares.fetch_sub(usize::from(self.counts), Ordering::Relaxed);
    }
}

impl MemoryShare {
    /// Returns the bytes that the neighbour uses.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.total()
    }

    /// Returns the limit of the node's memory in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.memory.limit()
    }

    /// Returns the bytes of its samples, which can be dropped.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.0.used.samples.load(Ordering::Relaxed)
    }

    /// Returns true if `bytes` may be pinned for the neighbour. An eighth of the memory is for everybody, and
    /// an eighth is divided into equal parts.
    #[must_use]
    pub fn fits(&self, bytes: usize) -> bool {
        let Part { memory, used, .. } = &*self.0;
        let (eighth, shares) = (memory.0.limit / 8, memory.0.shares.load(Ordering::Relaxed));
        let with =
            |counters: &Counters| counters.pinned.load(Ordering::Relaxed).saturating_add(bytes);
        with(&memory.0.used) <= eighth || with(used) <= eighth / shares.max(1)
    }

    /// Counts `bytes` as used until the returned value is dropped.
    #[must_use]
    pub fn charge(&self, kind: MemoryKind, bytes: usize) -> Charge {
        let mut charge = Charge { share: Some(self.clone()), kind, bytes: 0 };
        charge.set(bytes);
        charge
    }

    pub(crate) fn replace(&self, kind: MemoryKind, before: usize, now: usize) {
        let Part { memory, used, .. } = &*self.0;
        for counter in [used.of(kind), memory.0.used.of(kind)] {
            match now.checked_sub(before) {
                Some(more) => counter.fetch_add(more, Ordering::Relaxed),
                None => counter.fetch_sub(before - now, Ordering::Relaxed),
            };
        }
        // A sample that has just begun is declared, not stored: an excess counts once it could not be settled.
        if now > before && memory.excess() == 0 {
            memory.note_greatest();
        }
    }
}

/// Bytes that count as used by a neighbour as long as this exists.
#[derive(Debug)]
pub struct Charge {
    share: Option<MemoryShare>,
    kind: MemoryKind,
    bytes: usize,
}

impl Charge {
    /// Returns a charge that no share counts.
    #[must_use]
    pub const fn uncounted(kind: MemoryKind) -> Self {
        Self { share: None, kind, bytes: 0 }
    }

    /// Changes the number of bytes. Without a change no counter is touched.
    pub fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        if let Some(share) = &self.share {
            share.replace(self.kind, self.bytes, bytes);
        }
        self.bytes = bytes;
    }

    /// Returns true if `bytes` more may be pinned.
    #[must_use]
    pub fn fits(&self, bytes: usize) -> bool {
        self.share.as_ref().is_none_or(|share| share.fits(bytes))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The holder that must drop samples because the limit is exceeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Debtor<T> {
    /// Another holder than the one that needs memory drops its oldest samples.
    Other(T),
    /// The one that needs memory uses the most itself: it gives up its newest samples.
    Own,
}

/// Returns the holder that must drop samples: the one with the most bytes, if `own` is less. `others` are
/// the other holders, each with the bytes of its samples.
pub fn debtor<T>(own: usize, others: impl Iterator<Item = (T, usize)>) -> Debtor<T> {
    let most = others.max_by_key(|(_, bytes)| *bytes);
    most.filter(|(_, bytes)| *bytes > own).map_or(Debtor::Own, |(other, _)| Debtor::Other(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_count_until_they_end() {
        let memory = Memory::new(100);
        let share = memory.share();
        let mut samples = share.charge(MemoryKind::Samples, 70);
        let pinned = share.charge(MemoryKind::Pinned, 40);
        assert_eq!((memory.used(), memory.excess(), share.used()), (110, 10, 110));
        samples.set(20);
        assert_eq!((memory.used(), memory.excess(), share.samples()), (60, 0, 20));
        drop((samples, pinned));
        assert_eq!((memory.used(), share.used(), memory.greatest()), (0, 0, 70));
        let most = share.charge(MemoryKind::Samples, 120);
        memory.note_greatest();
        drop(most);
        assert_eq!(memory.greatest(), 120, "an excess that remains");
        let mut uncounted = Charge::uncounted(MemoryKind::Samples);
        uncounted.set(1_000);
        assert!(uncounted.fits(1_000) && memory.used() == 0);
    }

    #[test]
    fn pinned_bytes_never_exceed_the_limit_and_each_neighbour_has_its_part() {
        let memory = Memory::new(1_000);
        let shares: Vec<MemoryShare> = (0..10).map(|_| memory.share()).collect();
        let (mut kept, mut rounds) = (Vec::new(), [0; 10]);
        for (place, share) in shares.iter().enumerate() {
            while share.fits(10) {
                kept.push(share.charge(MemoryKind::Pinned, 10));
                rounds[place] += 1;
            }
        }
        assert_eq!(rounds, [12, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert!(memory.used() <= memory.limit() / 4);
    }

    #[test]
    fn the_largest_holder_is_the_debtor_unless_it_needs_the_memory_itself() {
        let others = || [("small", 3), ("large", 9), ("medium", 5)].into_iter();
        assert_eq!(debtor(8, others()), Debtor::Other("large"));
        assert_eq!(debtor(9, others()), Debtor::Own);
        assert_eq!(debtor(0, std::iter::empty::<((), usize)>()), Debtor::Own);
    }
}
