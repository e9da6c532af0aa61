//! The installed outputs of one source.

use super::name::{Name, name};
use super::scalers::Scalers;
use super::{LocalPlace, PortCommand, PortEnd, ScalerId, StreamPlace};
use paceline_proto::entry::EntryLimit;
use paceline_proto::link::StreamSpec;
use paceline_proto::plan::OutputPlan;
use paceline_proto::{Form, NodeId, SubscriptionId};
use paceline_sched::Late;
use std::collections::{BTreeMap, BTreeSet};

/// A stream that carries an output.
#[derive(Clone, Debug)]
pub(super) struct OpenStream {
    pub(super) place: StreamPlace,
    pub(super) spec: StreamSpec,
}

/// An output to subscriptions of this node.
#[derive(Clone, Debug)]
pub(super) struct LocalOutput {
    pub(super) place: LocalPlace,
    pub(super) subscriptions: BTreeSet<SubscriptionId>,
    late: Late,
}

impl LocalOutput {
    pub(super) fn closing(self) -> PortCommand {
        PortCommand::CloseLocal(self.place, self.subscriptions.into_iter().collect())
    }

    /// Returns the change to the subscriptions and the treatment of late samples of `plan`, if there is one.
    fn update(&mut self, plan: &OutputPlan) -> Option<PortCommand> {
        let now: BTreeSet<SubscriptionId> = plan.subscriptions.iter().copied().collect();
        let leave: Vec<_> = self.subscriptions.difference(&now).copied().collect();
        let join: Vec<_> = now.difference(&self.subscriptions).copied().collect();
        let late = (plan.late != self.late).then_some(plan.late);
        (self.subscriptions, self.late) = (now, plan.late);
        let changed = !leave.is_empty() || !join.is_empty() || late.is_some();
        changed.then_some(PortCommand::UpdateLocal { place: self.place, leave, join, late })
    }
}

/// Removed outputs of a source.
#[derive(Debug)]
pub(super) struct Removed {
    pub(super) streams: Vec<OpenStream>,
    pub(super) locals: Vec<LocalOutput>,
}

/// Removes and returns the entries that are not wanted.
fn take_others<T>(map: &mut BTreeMap<Name, T>, wanted: &BTreeSet<Name>) -> Vec<T> {
    let others: Vec<Name> = map.keys().filter(|name| !wanted.contains(name)).copied().collect();
    others.iter().filter_map(|name| map.remove(name)).collect()
}

/// The installed outputs of a source.
#[derive(Clone, Debug, Default)]
pub(super) struct Installed {
    pub(super) streams: BTreeMap<Name, OpenStream>,
    locals: BTreeMap<Name, LocalOutput>,
    pub(super) scalers: Scalers,
    /// The scalers of outputs.
    pub(super) scaled: BTreeMap<Name, ScalerId>,
    /// The neighbours from which its samples may arrive.
    from: Vec<NodeId>,
    /// The limits of its samples.
    entry: Vec<EntryLimit>,
    /// Per output: whether it takes only aligned samples, and its successor.
    takes: BTreeMap<Name, (bool, Option<Form>)>,
}

impl Installed {
    /// Removes the outputs that no plan contains.
    pub(super) fn take_unwanted(&mut self, plans: &[OutputPlan]) -> Removed {
        let wanted: BTreeSet<Name> = plans.iter().map(name).collect();
        take_others(&mut self.scaled, &wanted).into_iter().for_each(|id| self.scalers.leave(id));
        Removed {
            streams: take_others(&mut self.streams, &wanted),
            locals: take_others(&mut self.locals, &wanted),
        }
    }

    /// Sets the neighbours and limits of the source, and the samples that its outputs take. Returns true if they have changed.
    pub(super) fn set_input(
        &mut self,
        from: &[NodeId],
        entry: &[EntryLimit],
        plans: &[OutputPlan],
    ) -> bool {
        let takes = |plan: &OutputPlan| (plan.aligned, plan.until);
        let same = self.from == from
            && self.entry == entry
            && self.takes.len() == plans.len()
            && plans.iter().all(|plan| self.takes.get(&name(plan)) == Some(&takes(plan)));
        if !same {
            let all = plans.iter().map(|plan| (name(plan), takes(plan)));
            (self.from, self.entry) = (from.to_vec(), entry.to_vec());
            self.takes = all.collect();
        }
        !same
    }

    /// Updates an output to subscriptions of this node, or adds it. Returns the end of the new one.
    pub(super) fn local(
        &mut self,
        place: LocalPlace,
        plan: &OutputPlan,
        commands: &mut Vec<PortCommand>,
    ) -> Option<PortEnd> {
        if let Some(local) = self.locals.get_mut(&name(plan)) {
            commands.extend(local.update(plan));
            return None;
        }
        let subscriptions: BTreeSet<_> = plan.subscriptions.iter().copied().collect();
        let first = subscriptions.iter().copied().collect();
        self.locals.insert(name(plan), LocalOutput { place, subscriptions, late: plan.late });
        Some(PortEnd::Local(place, first))
    }

    /// Updates the stream of an output; returns false if there is none.
    pub(super) fn update_stream(
        &mut self,
        plan: &OutputPlan,
        spec: &StreamSpec,
        commands: &mut Vec<PortCommand>,
    ) -> bool {
        let Some(stream) = self.streams.get_mut(&name(plan)) else { return false };
        if stream.spec != *spec {
            stream.spec = spec.clone();
            commands.push(PortCommand::UpdateStream(stream.place, spec.clone()));
        }
        true
    }
}
