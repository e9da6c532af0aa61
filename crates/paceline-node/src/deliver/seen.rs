//! The newest sample of a subscription, kept only while a view exists.

use crate::Sample;
use paceline_proto::{Kind, Tag};
use std::collections::BTreeMap;

/// The most tags whose newest sample is kept.
const TAGS_MAX: usize = 64;

/// The newest samples, for views.
#[derive(Debug, Default)]
pub struct Seen {
    views: usize,
    newest: Newest,
}

/// The newest samples.
#[derive(Debug, Default)]
struct Newest {
    of_all: Option<Sample>,
    /// Of video pictures at which decoding can start.
    of_starts: Option<Sample>,
    /// By tag, at most [`TAGS_MAX`].
    of_tags: BTreeMap<Tag, Sample>,
}

impl Seen {
    /// Adds a view.
    pub const fn watch(&mut self) {
        self.views += 1;
    }

    /// Removes a view. Returns true if it was the last one.
    pub const fn leave(&mut self) -> bool {
        self.views = self.views.saturating_sub(1);
        self.views == 0
    }

    /// Stores a sample. Its payload is shared, not copied.
    pub(super) fn keep(&mut self, delivery: &Sample) {
        let newest = &mut self.newest;
        if newest.of_tags.len() < TAGS_MAX || newest.of_tags.contains_key(&delivery.tag) {
            newest.of_tags.insert(delivery.tag.clone(), delivery.clone());
        }
        if delivery.kind == Kind::VideoI {
            newest.of_starts = Some(delivery.clone());
        }
        newest.of_all = Some(delivery.clone());
    }

    /// Returns the newest sample.
    #[must_use]
    pub fn newest(&self) -> Option<Sample> {
        self.newest.of_all.clone()
    }

    /// Returns the newest video picture at which decoding can start.
    #[must_use]
    pub fn newest_start(&self) -> Option<Sample> {
        self.newest.of_starts.clone()
    }

    /// Returns the newest sample of each tag, of at most 64 tags.
    #[must_use]
    pub fn newest_of_tags(&self) -> Vec<Sample> {
        self.newest.of_tags.values().cloned().collect()
    }
}
