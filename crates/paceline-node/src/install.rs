//! The outputs of a node's sources: which streams of which links, subscriptions and scalers take their samples.
//!
//! [`Installer`] turns the outputs that [`Control`] wants into [`PortCommand`]s. It owns the stream indexes of the links, and
//! records the installed outputs. The driver executes the commands, over rings and threads or in the same call.

mod command;
mod installation;
mod installed;
mod name;
mod scaler;
mod scalers;
mod slots;

#[cfg(test)]
mod tests;

pub use command::{LocalPlace, NewPort, PortCommand, PortEnd, StreamPlace};
pub use installation::Installation;
pub use scaler::{SCALER_OUTPUTS_MAX, ScalerId, ScalerTerms};

use crate::arrive::Arrangement;
use installed::{Installed, LocalOutput, OpenStream};
use paceline_proto::control::{BestEffortRegulator, Control, PublisherSpec, Ways};
use paceline_proto::entry::EntryLimit;
use paceline_proto::link::StreamSpec;
use paceline_proto::plan::{OutputPlan, SourceKey, StreamNames, Target};
use paceline_proto::video::GroupBudget;
use paceline_proto::wire::STREAMS_MAX;
use paceline_proto::{Form, NodeId, PublisherId, Tag};
use paceline_sched::Instant;
use slots::Slots;
use std::collections::{BTreeMap, BTreeSet};
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
/// - The new outputs of a publisher are installed before its old ones are closed: until then samples use those. Only if a link
///   runs out of stream indexes, old streams on it close before.
/// - A replaced stream first sends its queue, if at least a quarter of the stream indexes of its link are free; others close at
///   once.
/// - Outputs of one source and form share a scaler, at most [`SCALER_OUTPUTS_MAX`] of them.
/// - An output without a stream, because all of its link are in use, gets one when another one closes.
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
/// installer.handle_outputs(wanted.clone());
/// let commands = installer.take_commands(Instant::ZERO, &OneLink);
/// assert!(matches!(commands[..], [PortCommand::Install { .. }, PortCommand::Settle]));
///
/// // The same outputs again change nothing.
/// installer.handle_outputs(wanted.clone());
/// assert_eq!(installer.take_commands(Instant::ZERO, &OneLink), []);
///
/// wanted.plans.clear();
/// installer.handle_outputs(wanted);
/// let commands = installer.take_commands(Instant::ZERO, &OneLink);
/// assert!(matches!(commands[..], [PortCommand::Install { .. }, PortCommand::Settle, PortCommand::CloseStream(_)]));
/// ```
#[derive(Debug, Default)]
pub struct Installer {
    installed: BTreeMap<SourceKey, Installed>,
    /// By link.
    slots: Vec<Slots>,
    groups: GroupBudget,
    processor: Option<Arc<BestEffortRegulator>>,
    next_scaler: u64,
    /// The outputs that are wanted since the last [`Self::take_commands`].
    wanted: BTreeMap<SourceKey, WantedOutputs>,
    /// Sources with an output that lacks its stream.
    starved: BTreeMap<SourceKey, WantedOutputs>,
    /// The links without a stream index for them.
    full: BTreeSet<usize>,
    /// An index of one of these links became free.
    is_freed: bool,
}

/// The commands of one decision.
#[derive(Default)]
struct Decision {
    /// In the order of execution, for each source.
    commands: Vec<(SourceKey, Vec<PortCommand>)>,
    closings: Vec<PortCommand>,
    /// The streams that close at once, by link, behind all commands.
    closes: BTreeMap<usize, Vec<StreamPlace>>,
}

impl Installer {
    /// Returns an installer without outputs. `groups` is the memory for groups of pictures, which all sources share.
    #[must_use]
    pub fn new(groups: GroupBudget) -> Self {
        Self { groups, ..Self::default() }
    }

    /// Limits the processor time of samples without a contract, in the sources that are installed from now on. By default it is
    /// not limited.
    pub fn set_processor(&mut self, regulator: Option<&Arc<BestEffortRegulator>>) {
        self.processor = regulator.cloned();
    }

    /// Replaces the outputs of a source with the next [`Self::take_commands`].
    pub fn handle_outputs(&mut self, wanted: WantedOutputs) {
        self.starved.remove(&wanted.source);
        self.wanted.insert(wanted.source, wanted);
    }

    /// Installs the outputs that were wanted since the last call. Returns the commands in the order of their execution. Call
    /// it again until it returns none: closed streams make room for outputs without one.
    pub fn take_commands(&mut self, now: Instant, routes: &impl Routes) -> Vec<PortCommand> {
        if mem::take(&mut self.is_freed) {
            self.full.clear();
            let again = mem::take(&mut self.starved);
            again
                .into_iter()
                .for_each(|(key, wanted)| _ = self.wanted.entry(key).or_insert(wanted));
        }
        if self.wanted.is_empty() {
            return Vec::new();
        }
        let mut decision = Decision::default();
        // Removed sources first: others may need their streams.
        let all = mem::take(&mut self.wanted).into_values();
        let (removed, others): (Vec<_>, Vec<_>) = all.partition(|it| it.plans.is_empty());
        for wanted in removed.into_iter().chain(others) {
            self.install(now, routes, wanted, &mut decision);
        }
        self.in_order(decision)
    }

    /// Returns the commands of a decision in order: all of a publisher together, since samples may replace outputs of its
    /// other forms. Then threads that deliver other samples wait for the changes of one publisher only.
    fn in_order(&mut self, decision: Decision) -> Vec<PortCommand> {
        let Decision { mut commands, closings, closes } = decision;
        commands.sort_by_key(|(source, _)| *source);
        let (mut all, mut publisher, mut installs) = (Vec::new(), None, false);
        for (source, commands) in commands {
            if publisher.replace(source.publisher) != Some(source.publisher) && installs {
                all.push(PortCommand::Settle);
                installs = false;
            }
            installs |= commands.iter().any(|it| matches!(it, PortCommand::Install { .. }));
            all.extend(commands);
        }
        all.extend(installs.then_some(PortCommand::Settle));
        all.extend(closings);
        for place in closes.into_values().flatten() {
            all.push(PortCommand::CloseStream(place));
            self.handle_closed(place);
        }
        all
    }

    fn install(
        &mut self,
        now: Instant,
        routes: &impl Routes,
        wanted: WantedOutputs,
        decision: &mut Decision,
    ) {
        let source = wanted.source;
        let mut installed = self.installed.get_mut(&source).map(mem::take).unwrap_or_default();
        let removed = installed.take_unwanted(&wanted.plans);
        let mut changed = !removed.streams.is_empty() || !removed.locals.is_empty();
        changed |= installed.set_input(&wanted.from, &wanted.entry, &wanted.plans);
        let mut commands = Vec::with_capacity(1);
        let later = if removed.streams.is_empty() {
            Vec::new()
        } else {
            let needed = Self::needed(&installed, routes, &wanted.plans);
            self.close_for_room(removed.streams, &needed, decision, &mut commands)
        };
        let (mut ports, mut is_starved) = (Vec::with_capacity(wanted.plans.len()), false);
        for plan in &wanted.plans {
            let at = (&mut installed, &mut *decision, &mut commands);
            let port = self.port(at, routes, (source, &wanted.publisher), plan);
            is_starved |= matches!(port, Err(NoStream));
            ports.push(port.unwrap_or_default());
        }
        if is_starved {
            self.starved.insert(source, wanted.clone());
        }
        changed |= ports.iter().any(Option::is_some);
        let unused = installed.scalers.take_unused();
        installed.scalers.set_terms(&wanted.publisher, &wanted.plans, &mut commands);
        self.let_go(routes, &wanted, later, decision);
        let locals = removed.locals.into_iter();
        decision.closings.extend(locals.map(LocalOutput::closing));
        decision.closings.extend(unused.into_iter().map(PortCommand::CloseScaler));
        let is_wanted = !wanted.plans.is_empty();
        if changed || !is_wanted {
            commands.push(self.installation(now, wanted, ports));
        }
        decision.commands.push((source, commands));
        if is_wanted {
            self.installed.insert(source, installed);
        } else {
            self.installed.remove(&source);
        }
    }

    /// Returns the command that installs the outputs of a source with their new ports.
    fn installation(
        &self,
        now: Instant,
        wanted: WantedOutputs,
        ports: Vec<Option<NewPort>>,
    ) -> PortCommand {
        let WantedOutputs { source, publisher, from, entry, plans } = wanted;
        let (period, groups) = (publisher.period, self.groups.clone());
        let processor = self.processor.clone();
        let outputs = plans.into_iter().zip(ports).collect();
        let installation = Installation { period, groups, processor, outputs };
        let is_replaced = installation.is_replaced();
        let arrangement = Arrangement { key: source, at: now, period, from, entry, is_replaced };
        PortCommand::Install { publisher, arrangement, installation }
    }

    /// Frees the index of a stream that its link has closed after [`PortCommand::DrainStream`] or
    /// [`PortCommand::HandOverStream`].
    pub fn handle_closed(&mut self, place: StreamPlace) {
        if let Some(slots) = self.slots.get_mut(place.link) {
            slots.give_back(place.index);
            self.is_freed |= self.full.contains(&place.link);
        }
    }

    /// Returns the sources with outputs.
    pub fn sources(&self) -> impl Iterator<Item = SourceKey> + '_ {
        self.installed.keys().copied()
    }

    /// Returns the streams that carry a source.
    pub fn streams(&self, source: SourceKey) -> impl Iterator<Item = StreamPlace> + '_ {
        let installed = self.installed.get(&source).into_iter();
        installed.flat_map(Installed::streams)
    }

    /// Returns the scalers of a source.
    pub fn scalers(&self, source: SourceKey) -> impl Iterator<Item = ScalerId> + '_ {
        self.installed.get(&source).into_iter().flat_map(|it| it.scalers.ids())
    }

    /// Returns the port of a new output; `None` if the output exists already or its neighbour has no link.
    fn port(
        &mut self,
        (installed, decision, commands): (&mut Installed, &mut Decision, &mut Vec<PortCommand>),
        routes: &impl Routes,
        (source, publisher): (SourceKey, &Arc<PublisherSpec>),
        plan: &OutputPlan,
    ) -> Result<Option<NewPort>, NoStream> {
        let end = match plan.target {
            Target::Local => {
                let place = LocalPlace::new(source, plan);
                let Some(end) = installed.local(place, plan, commands) else { return Ok(None) };
                end
            }
            Target::Hop(hop) => {
                let names = routes.names(source.publisher.node, hop, &publisher.tag);
                let spec = StreamSpec::of(source.publisher, hop, plan);
                let spec = spec.with_names(Some(Arc::new(names)));
                if installed.update_stream(plan, &spec, commands) {
                    return Ok(None);
                }
                let Some(link) = routes.link(hop) else { return Ok(None) };
                let place = self.take_index(link, decision, commands)?;
                let stream = OpenStream { place, spec: spec.clone() };
                installed.open_stream(plan, stream);
                PortEnd::Stream(place, spec)
            }
        };
        let scaler =
            installed.scalers.join((source, publisher), plan, (&mut self.next_scaler, commands));
        if let Some((id, _)) = scaler {
            installed.set_scaler(plan, id);
        }
        let takes_old = plan.contract.is_none() && plan.within.is_none() && !plan.background;
        Ok(Some(NewPort { end, scaler, takes_old }))
    }

    /// Takes a stream index of a link. If all are in use, a stream that this decision closes anyway closes before.
    fn take_index(
        &mut self,
        link: usize,
        decision: &mut Decision,
        commands: &mut Vec<PortCommand>,
    ) -> Result<StreamPlace, NoStream> {
        if self.slots.len() <= link {
            self.slots.resize_with(link + 1, Slots::default);
        }
        let free = self.slots.get_mut(link).and_then(Slots::take);
        let place = free.map(|index| StreamPlace { link, index });
        if let Some(place) = place {
            return Ok(place);
        }
        let closing = decision.closes.get_mut(&link).and_then(Vec::pop);
        match closing {
            Some(place) => commands.push(PortCommand::CloseStream(place)),
            None if self.full.insert(link) => commands.push(PortCommand::NoStream { link }),
            None => {}
        }
        closing.ok_or(NoStream)
    }

    /// Returns the number of free stream indexes of a link, including the indexes of streams that close.
    fn room(&self, link: usize, decision: &Decision) -> usize {
        let free = self.slots.get(link).map_or(STREAMS_MAX as usize, Slots::room);
        free + decision.closes.get(&link).map_or(0, Vec::len)
    }

    /// Returns the number of new streams on each link.
    fn needed(
        installed: &Installed,
        routes: &impl Routes,
        plans: &[OutputPlan],
    ) -> BTreeMap<usize, usize> {
        let mut needed = BTreeMap::new();
        for plan in plans.iter().filter(|plan| !installed.has_stream(plan)) {
            if let Target::Hop(hop) = plan.target
                && let Some(link) = routes.link(hop)
            {
                *needed.entry(link).or_default() += 1;
            }
        }
        needed
    }

    /// Closes removed streams at once, as far as their links lack room for the streams that are `needed`. Returns the streams
    /// that close later.
    fn close_for_room(
        &mut self,
        removed: Vec<OpenStream>,
        needed: &BTreeMap<usize, usize>,
        decision: &Decision,
        commands: &mut Vec<PortCommand>,
    ) -> Vec<OpenStream> {
        let mut later = Vec::new();
        for stream in removed {
            let link = stream.place.link;
            if self.room(link, decision) < needed.get(&link).copied().unwrap_or(0) {
                commands.push(PortCommand::CloseStream(stream.place));
                self.handle_closed(stream.place);
            } else {
                later.push(stream);
            }
        }
        later
    }

    /// Ends removed streams of a source. Those that another stream follows first send what waits in them.
    fn let_go(
        &self,
        routes: &impl Routes,
        wanted: &WantedOutputs,
        removed: Vec<OpenStream>,
        decision: &mut Decision,
    ) {
        if removed.is_empty() {
            return;
        }
        let source = wanted.source;
        let targets: BTreeSet<Target> = wanted.plans.iter().map(|plan| plan.target).collect();
        for OpenStream { place, spec } in removed {
            let follows = targets.contains(&Target::Hop(spec.hop))
                || routes.sends_to(source.publisher, spec.hop);
            if !follows || self.room(place.link, decision) < ROOM_MIN {
                decision.closes.entry(place.link).or_default().push(place);
            } else if routes.hands_over(source, spec.hop, spec.form) {
                decision.closings.push(PortCommand::HandOverStream(place));
            } else {
                decision.closings.push(PortCommand::DrainStream(place));
            }
        }
    }
}

/// All streams of a link are in use.
struct NoStream;
