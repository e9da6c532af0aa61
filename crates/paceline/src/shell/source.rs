//! Sources of samples: the changes of their outputs.

use super::clock;
use super::events::Events;
use super::opening::{Opening, WaitingBytes};
use super::port::Installs;
use crate::event::PublisherEvent;
use event_listener::Event;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The state that a publisher shares with its node.
#[derive(Default)]
pub(crate) struct PublisherShared {
    pub(crate) installs: Installs,
    /// Buffers the first samples; `None` for a publisher that waits for subscribers itself.
    pub(crate) opening: Option<Opening>,
    /// The time of declaration; zero if the end of the publisher need not be delayed.
    pub(crate) declared: Instant,
    pub(crate) matching: AtomicBool,
    pub(crate) events: Events<PublisherEvent>,
    /// The number of events so far.
    pub(crate) told: AtomicU64,
    /// Notified of changes of `matching` or the outputs, of each event, and of the end.
    pub(crate) change: Event,
    pub(crate) closed: AtomicBool,
    pub(crate) published: AtomicU64,
    /// The value of `published` at the last report of use.
    pub(crate) reported: AtomicU64,
}

impl PublisherShared {
    /// Creates the state of a publisher whose first samples are buffered.
    pub(crate) fn opening(period: Option<Duration>, room: Arc<WaitingBytes>) -> Self {
        let opening = Some(Opening::new(period, room));
        Self { opening, declared: clock::now(), ..Self::default() }
    }

    /// Queues an event for the publisher.
    pub(crate) fn notify(&self, event: PublisherEvent) {
        self.events.push(event);
        self.told.fetch_add(1, Ordering::Release);
        self.change.notify(usize::MAX);
    }
}
