//! Notifications, for programs with their own event loop.

use event_listener::{EventListener, Listener};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// A notification for new samples, events or room. Also a future that works on any runtime.
///
/// It is only a hint: check for the sample, event or room again, because another caller may have
/// taken it.
#[must_use = "waiting starts with wait_until() or .await"]
pub struct Arrival(EventListener);

impl Arrival {
    pub(crate) const fn new(listener: EventListener) -> Self {
        Self(listener)
    }

    /// Blocks until the notification arrives; returns false if `until` passes first.
    #[must_use]
    pub fn wait_until(self, until: Instant) -> bool {
        self.0.wait_deadline(until).is_some()
    }
}

impl Future for Arrival {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context)
    }
}
