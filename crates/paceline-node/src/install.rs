//! The outputs of a node's sources: which streams of which links, subscriptions and scalers take their samples.
//!
//! [`Installer`] turns the outputs that [`Control`] wants into [`PortCommand`]s. It owns the stream indexes of the links, and
//! knows what is installed. The driver executes the commands: over rings and threads, or in the same call.

mod command;
mod installation;
mod installed;
mod scalers;
mod slots;

#[cfg(test)]
mod tests;

pub use command::{LocalPlace, NewPort, PortCommand, PortEnd, StreamPlace};
pub use installation::Installation;
pub use scalers::{SCALER_OUTPUTS_MAX, ScalerId, ScalerTerms};

use crate::arrive::Arrangement;
use installed::{Installed, OpenStream, Removed, name};
use paceline_proto::control::{Control, PublisherSpec, Ways};
use paceline_proto::entry::EntryLimit;
use paceline_proto::link::StreamSpec;
use paceline_proto::plan::{OutputPlan, SourceKey, StreamNames, Target};
use paceline_proto::video::GroupBudget;
use paceline_proto::wire::STREAMS_MAX;
use paceline_proto::{Form, NodeId, PublisherId, Tag};
use paceline_sched::Instant;
use slots::Slots;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

/// With fewer free stream indexes on a link, replaced streams are closed at once.
const ROOM_MIN: usize = STREAMS_MAX as usize / 4;

/// What an [`Installer`] asks about the network.
pub trait Routes {
    /// Returns the link in use to a neighbour.
    fn link(&self, hop: NodeId) -> Option<usize>;
    /// Returns true if a stream of the publisher, in any form, goes to this neighbour.
    fn sends_to(&self, publisher: PublisherId, hop: NodeId) -> bool;
    /// Returns true if a removed stream must send its queue under its contract ([`Control::hands_over`]).
    fn hands_over(&self, source: SourceKey, hop: NodeId, form: Form) -> bool;
    /// Returns the names that select the class of a stream.
    fn names(&self, publisher: NodeId, hop: NodeId, tag: &Tag) -> StreamNames;
}

impl Routes for (&Control, &Ways) {
    fn link(&self, hop: NodeId) -> Option<usize> {
        self.1.link(hop)
    }

    fn sends_to(&self, publisher: PublisherId, hop: NodeId) -> bool {
        self.0.sends_to(publisher, hop)
    }

    fn hands_over(&self, source: SourceKey, hop: NodeId, form: Form) -> bool {
        self.0.hands_over(source, hop, form)
    }

    fn names(&self, publisher: NodeId, hop: NodeId, tag: &Tag) -> StreamNames {
        self.0.stream_names(publisher, hop, tag)
    }
}

/// The outputs that a source must have from now on, as in [`ControlOutput::Install`](paceline_proto::control::ControlOutput::Install).
#[derive(Clone, Debug)]
pub struct WantedOutputs {
    /// The source.
    pub source: SourceKey,
    /// The publisher's declaration.
    pub publisher: Arc<PublisherSpec>,
    /// The neighbours from which the samples may arrive.
    pub from: Vec<NodeId>,
    /// The limits of the samples that arrive.
    pub entry: Vec<EntryLimit>,
    /// All outputs; empty to remove the source.
    pub plans: Vec<OutputPlan>,
}

/// The installed outputs of a node.
///
/// - An output stays as it is while its plan has the same target, form and scaling. Contracts and subscriptions change in place.
/// - The outputs of all sources of a decision are installed before any is closed. Until then samples still use the old ones.
/// - A replaced stream first sends its queue, if at least a quarter of the stream indexes of its link are free; others close at
///   once.
/// - Outputs of one source and form share a scaler, at most [`SCALER_OUTPUTS_MAX`] of them.
///
/// # Examples
/// ```
/// use paceline_node::install::{Installer, PortCommand, Routes, WantedOutputs};
/// use paceline_proto::control::PublisherSpec;
/// use paceline_proto::plan::{OutputPlan, SourceKey, StreamNames, Target};
/// use paceline_proto::{Form, NodeId, PublisherId, Tag};
/// use paceline_sched::Instant;
/// use std::sync::Arc;
///
/// /// A node with one link, which leads to each neighbour.
/// struct OneLink;
///
/// impl Routes for OneLink {
///     fn link(&self, _: NodeId) -> Option<usize> {
///         Some(0)
///     }
///     fn sends_to(&self, _: PublisherId, _: NodeId) -> bool {
///         false
///     }
///     fn hands_over(&self, _: SourceKey, _: NodeId, _: Form) -> bool {
///         false
///     }
///     fn names(&self, _: NodeId, _: NodeId, _: &Tag) -> StreamNames {
///         StreamNames::default()
///     }
/// }
///
/// let source = SourceKey { publisher: PublisherId { node: NodeId(1), index: 0 }, form: Form::FULL };
/// let publisher = Arc::new(PublisherSpec::new(Tag::new("robot/pose").unwrap()));
/// let plans = vec![OutputPlan::new(Target::Hop(NodeId(2)), Form::FULL)];
/// let mut installer = Installer::default();
/// let mut wanted = WantedOutputs { source, publisher, from: Vec::new(), entry: Vec::new(), plans };
/// installer.handle_outputs(Instant::ZERO, &OneLink, wanted.clone());
/// assert!(matches!(installer.take_commands()[..], [PortCommand::Install { .. }, PortCommand::Settle]));
///
/// // The same outputs again change nothing.
/// installer.handle_outputs(Instant::ZERO, &OneLink, wanted.clone());
/// assert_eq!(installer.take_commands(), []);
///
/// wanted.plans.clear();
/// installer.handle_outputs(Instant::ZERO, &OneLink, wanted);
/// let commands = installer.take_commands();
/// assert!(matches!(commands[..], [PortCommand::Install { .. }, PortCommand::Settle, PortCommand::CloseStream(_)]));
/// ```
#[derive(Debug, Default)]
pub struct Installer {
    installed: BTreeMap<SourceKey, Installed>,
    /// By link.
    slots: Vec<Slots>,
    groups: GroupBudget,
    next_scaler: u64,
    /// The commands since the last [`Self::take_commands`]: those before [`PortCommand::Settle`], and those after it.
    commands: Vec<PortCommand>,
    closings: Vec<PortCommand>,
}

impl Installer {
    /// Returns an installer without outputs. `groups` is the memory for groups of pictures, which all sources share.
    #[must_use]
    pub fn new(groups: GroupBudget) -> Self {
        Self { groups, ..Self::default() }
    }

    /// Makes the wanted outputs those of a source. The commands for it are returned by [`Self::take_commands`].
    pub fn handle_outputs(&mut self, now: Instant, routes: &impl Routes, wanted: WantedOutputs) {
        let WantedOutputs { source, publisher, from, entry, plans } = wanted;
        let mut installed = self.installed.remove(&source).unwrap_or_default();
        self.close_locals(source);
        let mut removed = installed.take_unwanted(&plans);
        let mut changed = !removed.streams.is_empty() || !removed.locals.is_empty();
        changed |= installed.set_input(&from, &entry, &plans);
        self.close_for_room(&mut removed, plans.len());
        let unused = installed.scalers.take_unwanted(&plans);
        self.closings.extend(unused.into_iter().map(PortCommand::CloseScaler));
        let targets = Installed::targets(&plans);
        let ports: Vec<_> = plans
            .iter()
            .map(|plan| self.port(&mut installed, routes, (source, &publisher), plan))
            .collect();
        changed |= ports.iter().any(Option::is_some);
        installed.scalers.set_terms(&publisher, &plans, &mut self.commands);
        let is_wanted = !plans.is_empty();
        if changed || !is_wanted {
            let (period, groups) = (publisher.period, self.groups.clone());
            let outputs = plans.into_iter().zip(ports).collect();
            let installation = Installation { period, groups, outputs };
            let is_replaced = installation.is_replaced();
            let arrangement =
                Arrangement { key: source, at: now, period, from, entry, is_replaced };
            self.commands.push(PortCommand::Install { publisher, arrangement, installation });
        }
        for local in removed.locals {
            let last = local.subscriptions.into_iter().collect();
            self.closings.push(PortCommand::CloseLocal(local.place, last));
        }
        for stream in removed.streams {
            let hop = stream.spec.hop;
            let followed =
                targets.contains(&Target::Hop(hop)) || routes.sends_to(source.publisher, hop);
            self.closings.push(self.closing(routes, source, &stream, followed));
        }
        if is_wanted {
            self.installed.insert(source, installed);
        }
    }

    /// Returns the commands since the last call, in the order of their execution.
    pub fn take_commands(&mut self) -> Vec<PortCommand> {
        let mut commands = mem::take(&mut self.commands);
        if commands.iter().any(|command| matches!(command, PortCommand::Install { .. })) {
            commands.push(PortCommand::Settle);
        }
        for closing in mem::take(&mut self.closings) {
            if let PortCommand::CloseStream(place) = closing {
                self.handle_closed(place);
            }
            commands.push(closing);
        }
        commands
    }

    /// Frees the index of a stream that its link has closed after [`PortCommand::DrainStream`] or
    /// [`PortCommand::HandOverStream`].
    pub fn handle_closed(&mut self, place: StreamPlace) {
        if let Some(slots) = self.slots.get_mut(place.link) {
            slots.give_back(place.index);
        }
    }

    /// Returns the sources with outputs.
    pub fn sources(&self) -> impl Iterator<Item = SourceKey> + '_ {
        self.installed.keys().copied()
    }

    /// Returns the streams that carry a source.
    pub fn streams(&self, source: SourceKey) -> impl Iterator<Item = StreamPlace> + '_ {
        let installed = self.installed.get(&source).into_iter();
        installed.flat_map(|it| it.streams.values().map(|stream| stream.place))
    }

    /// Returns the scalers of a source.
    pub fn scalers(&self, source: SourceKey) -> impl Iterator<Item = ScalerId> + '_ {
        self.installed.get(&source).into_iter().flat_map(|it| it.scalers.ids())
    }

    /// Returns the port of a new output; `None` if the output exists already or has no stream.
    fn port(
        &mut self,
        installed: &mut Installed,
        routes: &impl Routes,
        (source, publisher): (SourceKey, &Arc<PublisherSpec>),
        plan: &OutputPlan,
    ) -> Option<NewPort> {
        let end = match plan.target {
            Target::Local => {
                let place = LocalPlace::new(source, plan);
                installed.local(place, plan, &mut self.commands)?
            }
            Target::Hop(hop) => {
                let names = routes.names(source.publisher.node, hop, &publisher.tag);
                let spec = StreamSpec::of(source.publisher, hop, plan);
                let spec = spec.with_names(Some(Arc::new(names)));
                if installed.update_stream(plan, &spec, &mut self.commands) {
                    return None;
                }
                let place = self.take_index(routes.link(hop)?)?;
                let stream = OpenStream { place, spec: spec.clone() };
                installed.streams.insert(name(plan), stream);
                PortEnd::Stream(place, spec)
            }
        };
        let next = (&mut self.next_scaler, &mut self.commands);
        let scaler = installed.scalers.join((source, publisher), plan, next);
        let takes_old = plan.contract.is_none() && plan.within.is_none() && !plan.background;
        Some(NewPort { end, scaler, takes_old })
    }

    /// Takes a stream index of a link. If all are in use, a stream of this decision that closes anyway closes before.
    fn take_index(&mut self, link: usize) -> Option<StreamPlace> {
        if self.slots.len() <= link {
            self.slots.resize_with(link + 1, Slots::default);
        }
        if self.room(link) == 0 {
            let frees = |closing: &PortCommand| matches!(closing, PortCommand::CloseStream(place) if place.link == link);
            let early: Vec<_> = self.closings.extract_if(.., |closing| frees(closing)).collect();
            for closing in early {
                if let PortCommand::CloseStream(place) = closing {
                    self.close_now(place);
                }
            }
        }
        let index = self.slots.get_mut(link).and_then(Slots::take);
        if index.is_none() {
            self.commands.push(PortCommand::NoStream { link });
        }
        index.map(|index| StreamPlace { link, index })
    }

    /// Returns the number of free stream indexes of a link.
    fn room(&self, link: usize) -> usize {
        self.slots.get(link).map_or(STREAMS_MAX as usize, Slots::room)
    }

    fn close_now(&mut self, place: StreamPlace) {
        self.commands.push(PortCommand::CloseStream(place));
        self.handle_closed(place);
    }

    /// Closes the outputs to subscriptions that an earlier change of the same decision has removed: new ones may have their
    /// names.
    fn close_locals(&mut self, source: SourceKey) {
        let is_its = |closing: &mut PortCommand| matches!(closing, PortCommand::CloseLocal(place, _) if place.source == source);
        self.commands.extend(self.closings.extract_if(.., is_its));
    }

    /// Closes removed streams at once on links without room for `new` more streams.
    fn close_for_room(&mut self, removed: &mut Removed, new: usize) {
        let crowded = |stream: &mut OpenStream| self.room(stream.place.link) < new;
        let close: Vec<_> = removed.streams.extract_if(.., crowded).collect();
        close.iter().for_each(|stream| self.close_now(stream.place));
    }

    /// Returns the command that closes a removed stream. `followed`: another one takes the next samples to the same neighbour.
    fn closing(
        &self,
        routes: &impl Routes,
        source: SourceKey,
        OpenStream { place, spec }: &OpenStream,
        followed: bool,
    ) -> PortCommand {
        if !followed || self.room(place.link) < ROOM_MIN {
            PortCommand::CloseStream(*place)
        } else if routes.hands_over(source, spec.hop, spec.form) {
            PortCommand::HandOverStream(*place)
        } else {
            PortCommand::DrainStream(*place)
        }
    }
}
