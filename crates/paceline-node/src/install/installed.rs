//! The installed outputs of one source.

use super::name::{Name, name};
use super::scalers::Scalers;
use super::{LocalPlace, PortCommand, PortEnd, ScalerId, StreamPlace};
use paceline_proto::entry::EntryLimit;
use paceline_proto::link::StreamSpec;
use paceline_proto::plan::OutputPlan;
use paceline_proto::{Form, NodeId, SubscriptionId};
use paceline_sched::Late;

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
    /// Sorted.
    subscriptions: Vec<SubscriptionId>,
    late: Late,
}

/// Returns the subscriptions of an output in order.
fn sorted(plan: &OutputPlan) -> Vec<SubscriptionId> {
    let mut all = plan.subscriptions.clone();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the entries of `these` that are not in `others`. Both are sorted.
fn without(these: &[SubscriptionId], others: &[SubscriptionId]) -> Vec<SubscriptionId> {
    these.iter().copied().filter(|id| others.binary_search(id).is_err()).collect()
}

impl LocalOutput {
    pub(super) fn closing(self) -> PortCommand {
        PortCommand::CloseLocal(self.place, self.subscriptions)
    }

    /// Returns the change to the subscriptions and the treatment of late samples of `plan`, if there is one.
    fn update(&mut self, plan: &OutputPlan) -> Option<PortCommand> {
        let now = sorted(plan);
        let leave = without(&self.subscriptions, &now);
        let join = without(&now, &self.subscriptions);
        let late = (plan.late != self.late).then_some(plan.late);
        (self.subscriptions, self.late) = (now, plan.late);
        let changed = !leave.is_empty() || !join.is_empty() || late.is_some();
        changed.then_some(PortCommand::UpdateLocal { place: self.place, leave, join, late })
    }
}

/// The end of an installed output.
#[derive(Clone, Debug)]
enum InstalledEnd {
    Stream(OpenStream),
    Local(LocalOutput),
}

/// An installed output. Most sources have one or two.
#[derive(Clone, Debug)]
struct InstalledOutput {
    name: Name,
    /// Whether it takes only aligned samples, its successor, and whether it has a contract.
    takes: (bool, Option<Form>, bool),
    scaler: Option<ScalerId>,
    /// `None` without a link, or without a free stream index.
    end: Option<InstalledEnd>,
}

/// Removed outputs of a source.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub(super) streams: Vec<OpenStream>,
    pub(super) locals: Vec<LocalOutput>,
}

/// The installed outputs of a source.
#[derive(Clone, Debug, Default)]
pub(super) struct Installed {
    /// Sorted by name.
    outputs: Vec<InstalledOutput>,
    pub(super) scalers: Scalers,
    /// The neighbours from which its samples may arrive.
    from: Vec<NodeId>,
    /// The limits of its samples.
    entry: Vec<EntryLimit>,
    /// An output was removed since the last [`Self::set_input`].
    has_removed: bool,
}

impl Installed {
    fn get(&self, name: &Name) -> Option<&InstalledOutput> {
        let place = self.outputs.binary_search_by(|output| output.name.cmp(name)).ok()?;
        self.outputs.get(place)
    }

    fn get_mut(&mut self, name: &Name) -> Option<&mut InstalledOutput> {
        let place = self.outputs.binary_search_by(|output| output.name.cmp(name)).ok()?;
        self.outputs.get_mut(place)
    }

    /// Returns the places of its streams, in the order of the names of their outputs.
    pub(super) fn streams(&self) -> impl Iterator<Item = StreamPlace> + '_ {
        self.outputs.iter().filter_map(|output| match &output.end {
            Some(InstalledEnd::Stream(stream)) => Some(stream.place),
            Some(InstalledEnd::Local(_)) | None => None,
        })
    }

    /// Returns true if an output has a stream.
    pub(super) fn has_stream(&self, plan: &OutputPlan) -> bool {
        let output = self.get(&name(plan));
        output.is_some_and(|output| matches!(output.end, Some(InstalledEnd::Stream(_))))
    }

    /// Removes the outputs that no plan contains.
    pub(super) fn take_unwanted(&mut self, plans: &[OutputPlan]) -> Removed {
        let mut removed = Removed::default();
        if self.outputs.is_empty() {
            return removed;
        }
        let mut wanted: Vec<Name> = plans.iter().map(name).collect();
        wanted.sort_unstable();
        let is_unwanted =
            |output: &mut InstalledOutput| wanted.binary_search(&output.name).is_err();
        for output in self.outputs.extract_if(.., is_unwanted) {
            self.has_removed = true;
            output.scaler.into_iter().for_each(|id| self.scalers.leave(id));
            match output.end {
                Some(InstalledEnd::Stream(stream)) => removed.streams.push(stream),
                Some(InstalledEnd::Local(local)) => removed.locals.push(local),
                None => {}
            }
        }
        removed
    }

    /// Sets the neighbours and limits of the source, and the samples that its outputs take. Returns true if they have changed.
    pub(super) fn set_input(
        &mut self,
        from: &[NodeId],
        entry: &[EntryLimit],
        plans: &[OutputPlan],
    ) -> bool {
        let takes = |plan: &OutputPlan| (plan.aligned, plan.until, plan.is_granted);
        let is_same =
            |plan: &OutputPlan| self.get(&name(plan)).is_some_and(|it| it.takes == takes(plan));
        let same = !self.has_removed
            && self.from == from
            && self.entry == entry
            && self.outputs.len() == plans.len()
            && plans.iter().all(is_same);
        if same {
            return false;
        }
        self.has_removed = false;
        (self.from, self.entry) = (from.to_vec(), entry.to_vec());
        let known = self.outputs.len();
        self.outputs.reserve_exact(plans.len().saturating_sub(known));
        for plan in plans {
            let (name, takes) = (name(plan), takes(plan));
            let (sorted, _) = self.outputs.split_at_mut(known);
            let place = sorted.binary_search_by(|output| output.name.cmp(&name)).ok();
            match place.and_then(|place| sorted.get_mut(place)) {
                Some(output) => output.takes = takes,
                None => {
                    self.outputs.push(InstalledOutput { name, takes, scaler: None, end: None });
                }
            }
        }
        if self.outputs.len() > known {
            self.outputs.sort_unstable_by_key(|output| output.name);
        }
        true
    }

    /// Updates an output to subscriptions of this node, or adds it. Returns the end of the new one.
    pub(super) fn local(
        &mut self,
        place: LocalPlace,
        plan: &OutputPlan,
        commands: &mut Vec<PortCommand>,
    ) -> Option<PortEnd> {
        let output = self.get_mut(&name(plan))?;
        if let Some(InstalledEnd::Local(local)) = &mut output.end {
            commands.extend(local.update(plan));
            return None;
        }
        let subscriptions = sorted(plan);
        let first = subscriptions.clone();
        let local = LocalOutput { place, subscriptions, late: plan.late };
        output.end = Some(InstalledEnd::Local(local));
        Some(PortEnd::Local(place, first))
    }

    /// Updates the stream of an output; returns false if there is none.
    pub(super) fn update_stream(
        &mut self,
        plan: &OutputPlan,
        spec: &StreamSpec,
        commands: &mut Vec<PortCommand>,
    ) -> bool {
        let output = self.get_mut(&name(plan));
        let Some(InstalledEnd::Stream(stream)) = output.and_then(|output| output.end.as_mut())
        else {
            return false;
        };
        if stream.spec != *spec {
            stream.spec = spec.clone();
            commands.push(PortCommand::UpdateStream(stream.place, spec.clone()));
        }
        true
    }

    /// Adds the stream of an output.
    pub(super) fn open_stream(&mut self, plan: &OutputPlan, stream: OpenStream) {
        if let Some(output) = self.get_mut(&name(plan)) {
            output.end = Some(InstalledEnd::Stream(stream));
        }
    }

    /// Sets the scaler of an output.
    pub(super) fn set_scaler(&mut self, plan: &OutputPlan, scaler: ScalerId) {
        if let Some(output) = self.get_mut(&name(plan)) {
            output.scaler = Some(scaler);
        }
    }
}
