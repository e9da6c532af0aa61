//! The newest sample of a subscription, kept only while a view exists.

use crate::sample::Sample;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The state shared by the views of a subscription.
#[derive(Default)]
pub(crate) struct Seen {
    views: AtomicUsize,
    /// Boxed, because most subscriptions have no view.
    newest: Mutex<Option<Box<Sample>>>,
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
            *newest = None;
        }
    }

    /// Stores a sample if there is a view. Its payload is shared, not copied.
    pub(super) fn keep(&self, delivery: &Sample) {
        if self.views.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if self.views.load(Ordering::Relaxed) > 0 {
            *newest = Some(Box::new(delivery.clone()));
        }
    }

    pub(crate) fn newest(&self) -> Option<Sample> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_deref().cloned()
    }
}
