//! New outputs of a source.

use super::name::name;
use paceline_proto::control::BestEffortRegulator;
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_proto::plan::OutputPlan;
use paceline_proto::video::GroupBudget;
use paceline_sched::Duration;
use std::sync::Arc;

/// The new outputs of a source: a port for each new output, `None` for each that stays.
///
/// `P` is a [`NewPort`](super::NewPort), or the port that a driver has made of it.
#[derive(Clone, Debug)]
pub struct Installation<P> {
    /// The declared period of the publisher.
    pub period: Option<Duration>,
    /// The memory for groups of pictures, which all sources of the node share.
    pub groups: GroupBudget,
    /// The processor time for samples without a contract, which all sources of the node share; `None` does not limit it.
    pub processor: Option<Arc<BestEffortRegulator>>,
    /// The outputs.
    pub outputs: Vec<(OutputPlan, Option<P>)>,
}

/// Without the memory and the processor time, which are the same for all sources of a node.
impl<P: PartialEq> PartialEq for Installation<P> {
    fn eq(&self, other: &Self) -> bool {
        (self.period, &self.outputs) == (other.period, &other.outputs)
    }
}

impl<P> Installation<P> {
    /// Returns true if an output ends with the first sample of another form.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.outputs.iter().any(|(plan, _)| plan.until.is_some())
    }

    /// Returns the installation with the ports that `make` returns for the new ones.
    pub fn map<Q>(self, mut make: impl FnMut(&OutputPlan, P) -> Option<Q>) -> Installation<Q> {
        let Self { period, groups, processor, outputs } = self;
        let made = outputs.into_iter().map(|(plan, port)| {
            let port = port.and_then(|port| make(&plan, port));
            (plan, port)
        });
        Installation { period, groups, processor, outputs: made.collect() }
    }

    /// Merges this change with an earlier one that was not applied, and takes over its ports.
    #[must_use]
    pub fn after(mut earlier: Self, mut this: Self) -> Self {
        for (plan, port) in this.outputs.iter_mut().filter(|(_, port)| port.is_none()) {
            let mut before = earlier.outputs.iter_mut();
            let same = before.find(|(other, _)| name(other) == name(plan));
            *port = same.and_then(|(_, port)| port.take());
        }
        this
    }

    /// Makes these the outputs of a source. `close` receives the ports of removed outputs.
    pub fn apply(self, ingress: &mut Ingress<P>, mut close: impl FnMut(OutputKey, P)) {
        ingress.set_group_budget(&self.groups);
        ingress.set_processor(self.processor.as_ref());
        // An output with a port is new, even if another one had its name before.
        let is_there = |plan: &OutputPlan| ingress.outputs().iter().any(|it| it.is_for(plan));
        if self.outputs.iter().any(|(plan, port)| port.is_some() && is_there(plan)) {
            let stays = self.outputs.iter().filter(|(_, port)| port.is_none());
            let stays: Vec<_> = stays.map(|(plan, _)| plan.clone()).collect();
            ingress.install(&stays, |_| None, &mut close);
        }
        let (plans, mut ports): (Vec<_>, Vec<_>) = self.outputs.into_iter().unzip();
        let place = |plan: &OutputPlan| plans.iter().position(|other| std::ptr::eq(other, plan));
        ingress.install(&plans, |plan| ports.get_mut(place(plan)?)?.take(), close);
    }
}
