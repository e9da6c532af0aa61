//! A pull buffer of this node: stores the samples of a subscription within limits.

use super::clock;
use crate::history::History;
use paceline_proto::pull::{Find, Found, Limits, LimitsError, PullBuffer, Pushed, Selection};
use paceline_proto::{PublisherId, Rate, RawSample, Tag};
use paceline_sched::Instant;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct Contents {
    buffer: PullBuffer,
    /// The tag of each publisher with stored samples.
    tags: BTreeMap<PublisherId, Tag>,
}

/// The counters of a buffer, readable without its lock.
#[derive(Default)]
struct Shown {
    samples: AtomicU64,
    bytes: AtomicU64,
    oldest_ns: AtomicU64,
    newest_ns: AtomicU64,
    /// Samples that did not fit.
    refused: AtomicU64,
}

/// A pull buffer. Delivering threads fill it, and the pull thread reads it. The engine reads only
/// the counters.
pub(crate) struct HeldBuffer {
    limits: Limits,
    contents: Mutex<Contents>,
    shown: Shown,
}

impl HeldBuffer {
    /// Creates a buffer with the limits of `history`.
    pub(crate) fn open(history: History) -> Result<Arc<Self>, LimitsError> {
        history.limits().map(Self::new).map(Arc::new)
    }

    pub(crate) fn new(limits: Limits) -> Self {
        let contents = Contents { buffer: PullBuffer::new(limits), tags: BTreeMap::new() };
        Self { limits, contents: Mutex::new(contents), shown: Shown::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of stored samples and payload bytes.
    pub(crate) fn len(&self) -> (u64, u64) {
        let Shown { samples, bytes, .. } = &self.shown;
        (samples.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    /// Returns the capture times of the first and last stored sample, as of the last
    /// [`Self::expire`].
    pub(crate) fn captured(&self) -> Option<(u64, u64)> {
        let Shown { samples, oldest_ns, newest_ns, .. } = &self.shown;
        let (oldest, newest) =
            (oldest_ns.load(Ordering::Relaxed), newest_ns.load(Ordering::Relaxed));
        (samples.load(Ordering::Relaxed) > 0 && newest > 0).then_some((oldest, newest))
    }

    /// Stores a sample. The payload is shared with the subscriber.
    pub(crate) fn push(&self, now: Instant, tag: &Tag, publisher: PublisherId, sample: &RawSample) {
        let mut contents = self.lock();
        match contents.buffer.push(now, publisher, sample.clone()) {
            Pushed::Held(_) => {
                contents.tags.entry(publisher).or_insert_with(|| tag.clone());
            }
            Pushed::Duplicate => return,
            Pushed::TooLarge | Pushed::TooOld => {
                if self.shown.refused.fetch_add(1, Ordering::Relaxed).is_power_of_two() {
                    crate::warn_limited!(
                        "a sample of {} bytes on {tag} does not fit into a pull buffer of {} bytes \
                         and {}",
                        sample.payload.len(),
                        self.limits.bytes(),
                        self.limits.age(),
                    );
                }
            }
        }
        self.show(&contents);
    }

    fn show(&self, contents: &Contents) {
        self.shown.samples.store(contents.buffer.len() as u64, Ordering::Relaxed);
        self.shown.bytes.store(contents.buffer.bytes(), Ordering::Relaxed);
    }

    /// Drops expired samples and updates the counters.
    pub(crate) fn expire(&self) {
        let mut contents = self.lock();
        let Contents { buffer, tags } = &mut *contents;
        let newest = buffer.find(clock::now(), None, &Selection::Newest(1), Rate::ALL);
        let spans = || newest.holdings.iter().map(|holding| holding.span);
        let oldest_ns = spans().map(|span| span.oldest_ns).min().unwrap_or_default();
        let newest_ns = spans().map(|span| span.newest_ns).max().unwrap_or_default();
        self.shown.oldest_ns.store(oldest_ns, Ordering::Relaxed);
        self.shown.newest_ns.store(newest_ns, Ordering::Relaxed);
        // Forget the tags of publishers without stored samples.
        tags.retain(|publisher, _| {
            newest.holdings.binary_search_by_key(publisher, |holding| holding.publisher).is_ok()
        });
        self.show(&contents);
    }

    /// Returns one page of the samples that match a request.
    pub(crate) fn find(&self, find: &Find) -> Found {
        let mut contents = self.lock();
        let Contents { buffer, tags } = &mut *contents;
        buffer.find_page(clock::now(), find, |publisher| tags.get(&publisher) == Some(&find.tag))
    }

    /// Returns the contents if they include samples of `publisher` on `tag`.
    fn of(&self, tag: &Tag, publisher: PublisherId) -> Option<MutexGuard<'_, Contents>> {
        Some(self.lock()).filter(|contents| contents.tags.get(&publisher) == Some(tag))
    }

    /// Returns a stored sample.
    pub(crate) fn fetch(&self, tag: &Tag, publisher: PublisherId, seq: u64) -> Option<RawSample> {
        self.of(tag, publisher)?.buffer.fetch(publisher, seq).cloned()
    }

    /// Returns the first stored sample numbered `seq` or higher.
    pub(crate) fn from(&self, tag: &Tag, publisher: PublisherId, seq: u64) -> Option<RawSample> {
        self.of(tag, publisher)?.buffer.from(publisher, seq).cloned()
    }

    /// Returns the first sample that decoding `seq` needs, if it is stored.
    pub(crate) fn start_of(&self, tag: &Tag, publisher: PublisherId, seq: u64) -> Option<u64> {
        self.of(tag, publisher)?.buffer.start_of(publisher, seq)
    }
}
