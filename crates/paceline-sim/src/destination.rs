//! The targets of samples that need no further scaling.

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
    /// Each subscription has its own gate, since it joins at its own time and may lose samples that others
    /// receive.
    pub(super) subscriptions: Vec<(SubscriptionId, DecodeGate)>,
}

impl LocalPort {
    pub(super) fn new(publisher: PublisherId, plan: &OutputPlan) -> Self {
        let mut port = Self { publisher, late: plan.late, subscriptions: Vec::new() };
        port.set_subscriptions(&plan.subscriptions);
        port
    }

    /// Makes `wanted` its subscriptions; those already present keep their state.
    pub(super) fn set_subscriptions(&mut self, wanted: &[SubscriptionId]) {
        let old = core::mem::take(&mut self.subscriptions);
        let kept = |id: &SubscriptionId| old.iter().find(|(known, _)| known == id).copied();
        let all = wanted.iter().map(|id| kept(id).unwrap_or((*id, DecodeGate::new())));
        self.subscriptions = all.collect();
    }
}
