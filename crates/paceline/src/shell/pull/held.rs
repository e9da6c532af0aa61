//! A pull buffer of this node: what a subscription brings is held, bounded, for any node to pull.

use super::super::clock;
use paceline_proto::pull::{Find, Found, Limits, PullBuffer, Pushed, Selection};
use paceline_proto::{PublisherId, Rate, Sample, Tag};
use paceline_sched::Instant;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Contents {
    buffer: PullBuffer,
    /// The tag of each publisher that samples are held of.
    tags: BTreeMap<PublisherId, Tag>,
}

/// What a buffer shows of itself without a lock.
#[derive(Default)]
struct Shown {
    samples: AtomicU64,
    bytes: AtomicU64,
    oldest_ns: AtomicU64,
    newest_ns: AtomicU64,
    /// Samples that never got in.
    refused: AtomicU64,
}

/// A pull buffer. The threads that deliver fill it, the pull thread looks into it; the engine only
/// looks at what it shows.
pub(crate) struct HeldBuffer {
    limits: Limits,
    contents: Mutex<Contents>,
    shown: Shown,
}

impl HeldBuffer {
    pub(crate) fn new(limits: Limits) -> Self {
        let contents = Contents { buffer: PullBuffer::new(limits), tags: BTreeMap::new() };
        Self { limits, contents: Mutex::new(contents), shown: Shown::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it may hold.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Samples and payload bytes that it holds.
    pub(crate) fn len(&self) -> (u64, u64) {
        let Shown { samples, bytes, .. } = &self.shown;
        (samples.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    /// Capture times of the first and the last that it holds, as of the last [`Self::expire`].
    pub(crate) fn captured(&self) -> Option<(u64, u64)> {
        let Shown { samples, oldest_ns, newest_ns, .. } = &self.shown;
        let (oldest, newest) =
            (oldest_ns.load(Ordering::Relaxed), newest_ns.load(Ordering::Relaxed));
        (samples.load(Ordering::Relaxed) > 0 && newest > 0).then_some((oldest, newest))
    }

    /// Holds a sample, which another holder of its payload may keep too.
    pub(crate) fn push(&self, now: Instant, tag: &Tag, publisher: PublisherId, sample: &Sample) {
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

    /// Lets go what is too old by now, and shows what is left.
    pub(crate) fn expire(&self) {
        let mut contents = self.lock();
        let Contents { buffer, tags } = &mut *contents;
        let newest = buffer.find(clock::now(), None, &Selection::Newest(1), Rate::All);
        let spans = || newest.holdings.iter().map(|holding| holding.span);
        let oldest_ns = spans().map(|span| span.oldest_ns).min().unwrap_or_default();
        let newest_ns = spans().map(|span| span.newest_ns).max().unwrap_or_default();
        self.shown.oldest_ns.store(oldest_ns, Ordering::Relaxed);
        self.shown.newest_ns.store(newest_ns, Ordering::Relaxed);
        // Publishers come and go; their tags are not kept for longer than their samples.
        tags.retain(|publisher, _| {
            newest.holdings.binary_search_by_key(publisher, |holding| holding.publisher).is_ok()
        });
        self.show(&contents);
    }

    /// One page of what it has for a question.
    pub(crate) fn find(&self, find: &Find) -> Found {
        let mut contents = self.lock();
        let Contents { buffer, tags } = &mut *contents;
        buffer.find_page(clock::now(), find, |publisher| tags.get(&publisher) == Some(&find.tag))
    }

    /// The contents, if they have samples of `publisher` on `tag`.
    fn of(&self, tag: &Tag, publisher: PublisherId) -> Option<MutexGuard<'_, Contents>> {
        Some(self.lock()).filter(|contents| contents.tags.get(&publisher) == Some(tag))
    }

    /// A sample that it holds.
    pub(crate) fn fetch(&self, tag: &Tag, publisher: PublisherId, seq: u64) -> Option<Sample> {
        self.of(tag, publisher)?.buffer.fetch(publisher, seq).cloned()
    }

    /// The first sample numbered `seq` or above that it holds.
    pub(crate) fn from(&self, tag: &Tag, publisher: PublisherId, seq: u64) -> Option<Sample> {
        self.of(tag, publisher)?.buffer.from(publisher, seq).cloned()
    }

    /// Where the decoding of the sample `seq` must begin, if that is held.
    pub(crate) fn start_of(&self, tag: &Tag, publisher: PublisherId, seq: u64) -> Option<u64> {
        self.of(tag, publisher)?.buffer.start_of(publisher, seq)
    }
}
