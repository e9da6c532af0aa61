//! The newest sample of a subscription, kept only while a view exists.

use crate::sample::Sample;
use paceline_proto::Tag;
use paceline_proto::sample::Kind;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most tags whose newest sample is kept.
const TAGS_MAX: usize = 64;

/// The state shared by the views of a subscription.
#[derive(Default)]
pub(crate) struct Seen {
    views: AtomicUsize,
    newest: Mutex<Newest>,
}

/// The newest samples.
#[derive(Default)]
struct Newest {
    /// Boxed, because most subscriptions have no view.
    of_all: Option<Box<Sample>>,
    /// Of video pictures at which decoding can start.
    of_starts: Option<Box<Sample>>,
    /// By tag, at most [`TAGS_MAX`].
    of_tags: BTreeMap<Tag, Sample>,
}

impl Seen {
    /// Registers a view.
    pub(crate) fn watch(&self) {
        self.views.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a view. The last one also removes the stored sample.
    pub(crate) fn leave(&self) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if self.views.fetch_sub(1, Ordering::Relaxed) == 1 {
            *newest = Newest::default();
        }
    }

    /// Stores a sample if there is a view. Its payload is shared, not copied.
    pub(super) fn keep(&self, delivery: &Sample) {
        if self.views.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if self.views.load(Ordering::Relaxed) > 0 {
            if newest.of_tags.len() < TAGS_MAX || newest.of_tags.contains_key(&delivery.tag) {
                newest.of_tags.insert(delivery.tag.clone(), delivery.clone());
            }
            if delivery.kind == Kind::VideoI {
                newest.of_starts = Some(Box::new(delivery.clone()));
            }
            newest.of_all = Some(Box::new(delivery.clone()));
        }
    }

    pub(crate) fn newest(&self) -> Option<Sample> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.of_all.as_deref().cloned()
    }

    pub(crate) fn newest_start(&self) -> Option<Sample> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.of_starts.as_deref().cloned()
    }

    pub(crate) fn newest_of_tags(&self) -> Vec<Sample> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.of_tags.values().cloned().collect()
    }
}
