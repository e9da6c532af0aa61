//! Sources of samples: the changes of their outputs.

use super::clock;
use super::events::Events;
use super::mailbox::Mailbox;
use super::opening::{Opening, WaitingBytes};
use super::port::Port;
use crate::event::PublisherEvent;
use event_listener::Event;
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_proto::plan::OutputPlan;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The new outputs of a source: a port for each new output, `None` for each that stays.
pub(crate) struct Installation {
    pub(crate) period: Option<Duration>,
    pub(crate) outputs: Vec<(OutputPlan, Option<Port>)>,
}

impl Installation {
    /// Merges this change with an earlier one that was not applied, and takes over its ports.
    pub(crate) fn after(mut earlier: Self, mut this: Self) -> Self {
        for (plan, port) in this.outputs.iter_mut().filter(|(_, port)| port.is_none()) {
            let name = (OutputKey::of(plan), plan.at_port());
            let mut before = earlier.outputs.iter_mut();
            let same = before.find(|(plan, _)| (OutputKey::of(plan), plan.at_port()) == name);
            *port = same.and_then(|(_, port)| port.take());
        }
        this
    }

    /// Applies the change.
    pub(crate) fn apply(self, ingress: &mut Ingress<Port>) {
        // An output with a port is new, even if another one had its key before.
        let stays = self.outputs.iter().filter(|(_, port)| port.is_none());
        let stays: Vec<_> = stays.map(|(plan, _)| plan.clone()).collect();
        ingress.install(&stays, |_| None, |_, port| drop(port));
        let (plans, mut ports): (Vec<_>, Vec<_>) = self.outputs.into_iter().unzip();
        let place = |plan: &OutputPlan| plans.iter().position(|other| std::ptr::eq(other, plan));
        ingress.install(&plans, |plan| ports.get_mut(place(plan)?)?.take(), |_, port| drop(port));
    }
}

/// The state that a publisher shares with its node.
#[derive(Default)]
pub(crate) struct PublisherShared {
    pub(crate) installs: Mailbox<Installation>,
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
}

impl PublisherShared {
    /// Creates the state of a publisher whose first samples are buffered.
    pub(crate) fn opening(period: Option<Duration>, room: Arc<WaitingBytes>) -> Self {
        let opening = Some(Opening::new(period, room));
        Self { opening, declared: clock::now(), ..Self::default() }
    }

    /// Queues an event for the publisher.
    pub(crate) fn tell(&self, event: PublisherEvent) {
        self.events.push(event);
        self.told.fetch_add(1, Ordering::Release);
        self.change.notify(usize::MAX);
    }
}
