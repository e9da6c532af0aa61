//! The newest sample of a subscription, kept only while somebody looks.

use crate::subscriber::Delivery;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What views see.
#[derive(Default)]
pub(crate) struct Seen {
    views: AtomicUsize,
    /// Boxed: most subscriptions are never looked at.
    newest: Mutex<Option<Box<Delivery>>>,
}

impl Seen {
    /// Somebody looks from now on.
    pub(crate) fn watch(&self) {
        self.views.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody looks no more; the last one takes what was kept along.
    pub(crate) fn leave(&self) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if self.views.fetch_sub(1, Ordering::Relaxed) == 1 {
            *newest = None;
        }
    }

    /// Keeps a sample if somebody looks. Its payload is shared, not copied.
    pub(super) fn keep(&self, delivery: &Delivery) {
        if self.views.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if self.views.load(Ordering::Relaxed) > 0 {
            *newest = Some(Box::new(delivery.clone()));
        }
    }

    pub(crate) fn newest(&self) -> Option<Delivery> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_deref().cloned()
    }
}
