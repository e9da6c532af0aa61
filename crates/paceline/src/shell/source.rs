//! A source of samples: what it is told of its outputs.

use super::mailbox::Mailbox;
use super::port::Port;
use event_listener::Event;
use paceline_proto::control::OutputPlan;
use paceline_proto::ingress::Ingress;
use paceline_sched::Duration;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The new outputs of a source: a port for each that is new, `None` for each that stays.
pub(crate) struct Installation {
    pub(crate) period: Option<Duration>,
    pub(crate) outputs: Vec<(OutputPlan, Option<Port>)>,
}

impl Installation {
    /// Makes the change.
    pub(crate) fn apply(self, ingress: &mut Ingress<Port>) {
        let (plans, mut ports): (Vec<_>, Vec<_>) = self.outputs.into_iter().unzip();
        let place = |plan: &OutputPlan| plans.iter().position(|other| std::ptr::eq(other, plan));
        ingress.install(&plans, |plan| ports.get_mut(place(plan)?)?.take(), |_, port| drop(port));
    }
}

/// What a publisher shares with its node.
#[derive(Default)]
pub(crate) struct PublisherShared {
    pub(crate) installs: Mailbox<Installation>,
    pub(crate) matching: AtomicBool,
    /// Told when `matching` or the outputs change, and at the end.
    pub(crate) change: Event,
    pub(crate) closed: AtomicBool,
    pub(crate) published: AtomicU64,
}
