//! New outputs of a source.

use super::port::Port;
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_proto::plan::OutputPlan;
use paceline_proto::video::GroupBudget;
use paceline_sched::Duration;

/// The new outputs of a source: a port for each new output, `None` for each that stays.
pub(crate) struct Installation {
    pub(crate) period: Option<Duration>,
    /// The memory for groups of pictures, which all sources of the node share.
    pub(crate) groups: GroupBudget,
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
        ingress.set_group_budget(&self.groups);
        // An output with a port is new, even if another one had its key before.
        let stays = self.outputs.iter().filter(|(_, port)| port.is_none());
        let stays: Vec<_> = stays.map(|(plan, _)| plan.clone()).collect();
        ingress.install(&stays, |_| None, |_, port| drop(port));
        let (plans, mut ports): (Vec<_>, Vec<_>) = self.outputs.into_iter().unzip();
        let place = |plan: &OutputPlan| plans.iter().position(|other| std::ptr::eq(other, plan));
        ingress.install(&plans, |plan| ports.get_mut(place(plan)?)?.take(), |_, port| drop(port));
    }
}
