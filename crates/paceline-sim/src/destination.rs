//! The targets of samples that need no further scaling.

use paceline_node::deliver::Needed;
use paceline_proto::Tag;
use paceline_proto::ids::{PublisherId, SubscriptionId};
use paceline_proto::plan::OutputPlan;
use paceline_proto::video::DecodeGate;
use paceline_sched::Late;
use paceline_sched::discipline::StreamIndex;

/// A target that needs no further scaling.
#[derive(Debug)]
pub(super) enum Destination {
    /// A stream of a link.
    Stream(usize, StreamIndex),
    /// Subscriptions of this node.
    Local(LocalPort),
}

impl Destination {
    /// Returns the link and the stream, unless it is local.
    pub(super) const fn stream(&self) -> Option<(usize, StreamIndex)> {
        match self {
            Self::Stream(link, index) => Some((*link, *index)),
            Self::Local(_) => None,
        }
    }
}

/// Subscriptions of this node that receive the samples of one publisher in one form.
#[derive(Debug)]
pub(super) struct LocalPort {
    pub(super) publisher: PublisherId,
    pub(super) late: Late,
    pub(super) tag: Tag,
    pub(super) subscriptions: Vec<Joined>,
}

/// A subscription with its own gate, since it joins at its own time and may lose samples that others receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    pub(super) subscription: SubscriptionId,
    pub(super) gate: DecodeGate,
    /// The delivered video pictures.
    pub(super) needed: Needed,
}

impl LocalPort {
    pub(super) fn new(publisher: PublisherId, tag: Tag, plan: &OutputPlan) -> Self {
        let mut port = Self { publisher, late: plan.late, tag, subscriptions: Vec::new() };
        port.set_subscriptions(&plan.subscriptions);
        port
    }

    /// Makes `wanted` its subscriptions; those already present keep their state.
    pub(super) fn set_subscriptions(&mut self, wanted: &[SubscriptionId]) {
        let old = core::mem::take(&mut self.subscriptions);
        let all = wanted.iter().map(|&subscription| {
            let kept = old.iter().find(|known| known.subscription == subscription).copied();
            let (gate, needed) = (DecodeGate::new(), Needed::default());
            kept.unwrap_or(Joined { subscription, gate, needed })
        });
        self.subscriptions = all.collect();
    }
}
