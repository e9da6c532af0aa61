//! What to wait for beside a subscriber or a publisher, for whoever waits in a way of their own.

use event_listener::{EventListener, Listener};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

/// Something that may come. Whoever was told looks again: another may have been faster.
///
/// It is a future too, on any runtime.
#[must_use = "nothing waits before wait_until() or .await"]
pub struct Arrival(EventListener);

impl Arrival {
    pub(crate) const fn new(listener: EventListener) -> Self {
        Self(listener)
    }

    /// Waits for it until `until` at the latest; false if that was first.
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
