//! A source of samples: what it is told of its outputs.

use super::clock;
use super::events::Events;
use super::mailbox::Mailbox;
use super::opening::{Opening, WaitingBytes};
use super::port::Port;
use crate::feedback::PublisherEvent;
use event_listener::Event;
use paceline_proto::control::OutputPlan;
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_sched::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The new outputs of a source: a port for each that is new, `None` for each that stays.
pub(crate) struct Installation {
    pub(crate) period: Option<Duration>,
    pub(crate) outputs: Vec<(OutputPlan, Option<Port>)>,
}

impl Installation {
    /// This change after one that was not made yet: the ports of what stays are that one's.
    pub(crate) fn after(mut earlier: Self, mut this: Self) -> Self {
        for (plan, port) in this.outputs.iter_mut().filter(|(_, port)| port.is_none()) {
            let name = (OutputKey::of(plan), plan.at_port());
            let mut before = earlier.outputs.iter_mut();
            let same = before.find(|(plan, _)| (OutputKey::of(plan), plan.at_port()) == name);
            *port = same.and_then(|(_, port)| port.take());
        }
        this
    }

    /// Makes the change.
    pub(crate) fn apply(self, ingress: &mut Ingress<Port>) {
        // An output that comes with a port is new, also where there was one of its name before.
        let stays = self.outputs.iter().filter(|(_, port)| port.is_none());
        let stays: Vec<_> = stays.map(|(plan, _)| plan.clone()).collect();
        ingress.install(&stays, |_| None, |_, port| drop(port));
        let (plans, mut ports): (Vec<_>, Vec<_>) = self.outputs.into_iter().unzip();
        let place = |plan: &OutputPlan| plans.iter().position(|other| std::ptr::eq(other, plan));
        ingress.install(&plans, |plan| ports.get_mut(place(plan)?)?.take(), |_, port| drop(port));
    }
}

/// What a publisher shares with its node.
#[derive(Default)]
pub(crate) struct PublisherShared {
    pub(crate) installs: Mailbox<Installation>,
    /// Holds the first samples until the outputs are known; none for a publisher that waits by itself until it is wanted.
    pub(crate) opening: Option<Opening>,
    /// When it was declared; zero for one that is not kept for others to hear of.
    pub(crate) declared: Instant,
    pub(crate) matching: AtomicBool,
    pub(crate) events: Events<PublisherEvent>,
    /// How many events there were.
    pub(crate) told: AtomicU64,
    /// Told when `matching` or the outputs change, of each event, and at the end.
    pub(crate) change: Event,
    pub(crate) closed: AtomicBool,
    pub(crate) published: AtomicU64,
}

impl PublisherShared {
    /// Of a publisher whose first samples wait for outputs.
    pub(crate) fn opening(period: Option<Duration>, room: Arc<WaitingBytes>) -> Self {
        let opening = Some(Opening::new(period, room));
        Self { opening, declared: clock::now(), ..Self::default() }
    }

    /// Tells whoever has the publisher.
    pub(crate) fn tell(&self, event: PublisherEvent) {
        self.events.push(event);
        self.told.fetch_add(1, Ordering::Release);
        self.change.notify(usize::MAX);
    }
}
