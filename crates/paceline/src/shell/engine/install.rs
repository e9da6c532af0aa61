//! Installs the outputs that `Control` decides: rings for streams, sinks for subscribers, and
//! scalers.

use super::super::clock;
use super::super::handle::LinkCommand;
use super::super::installation::Installation;
use super::super::mailbox::Mailbox;
use super::super::port::scaling::{SLOTS_MAX, ScalePort, ScaleTask, Terms};
use super::super::port::{LocalPort, Port, SinkChange, ring};
use super::super::rx::RxChange;
use super::super::sink::SinkPort;
use super::Engine;
use paceline_node::arrive::Arrangement;
use paceline_proto::control::PublisherSpec;
use paceline_proto::entry::EntryLimit;
use paceline_proto::ingress::OutputKey;
use paceline_proto::link::StreamSpec;
use paceline_proto::plan::{OutputPlan, SourceKey, Target};
use paceline_proto::wire::STREAMS_MAX;
use paceline_proto::{Form, NodeId, PublisherId, SubscriptionId};
use paceline_sched::discipline::StreamIndex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// With fewer free stream indexes on a link, replaced streams are closed at once.
const ROOM_MIN: usize = STREAMS_MAX as usize / 4;

/// The stream indexes of a link.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    free: Vec<StreamIndex>,
    next: u32,
}

impl Slots {
    fn take(&mut self) -> Option<StreamIndex> {
        self.free.pop().or_else(|| {
            let index = StreamIndex(self.next);
            self.next += 1;
            (index.0 < STREAMS_MAX).then_some(index)
        })
    }

    fn give_back(&mut self, index: StreamIndex) {
        self.free.push(index);
    }

    /// Returns the number of free indexes.
    const fn room(&self) -> usize {
        self.free.len() + STREAMS_MAX.saturating_sub(self.next) as usize
    }
}

struct OpenStream {
    link: usize,
    index: StreamIndex,
    spec: StreamSpec,
}

struct FormTask {
    task: Arc<ScaleTask>,
    slots: u32,
}

/// An output and the scaling that this node still applies to it.
type Key = (OutputKey, Form);

const fn name(plan: &OutputPlan) -> Key {
    (OutputKey::of(plan), plan.at_port())
}

/// Returns the terms of a scaler's outputs. Best effort and outputs of this node are limited only by a bit rate that was
/// requested.
fn terms<'a>(
    publisher: &PublisherSpec,
    mut plans: impl Iterator<Item = &'a OutputPlan> + Clone,
) -> Terms {
    let promised = plans.clone().any(OutputPlan::is_promised);
    let contracted = plans.clone().any(|plan| plan.contract.is_some());
    let limited = plans.next().filter(|plan| contracted || plan.form.bitrate.is_some());
    Terms { budget: limited.and_then(|plan| publisher.budget(plan.form)), promised }
}

/// Returns the form by which outputs share a scaler. With a bit rate, the bytes of a picture depend on the rate.
const fn task_form(plan: &OutputPlan) -> Form {
    let at_port = plan.at_port();
    match at_port.bitrate {
        Some(_) => Form { rate: plan.form.rate, ..at_port },
        None => at_port,
    }
}

/// An output to subscribers of this node.
#[derive(Default)]
struct Local {
    subscriptions: BTreeSet<SubscriptionId>,
    changes: Arc<Mailbox<SinkChange>>,
}

impl Local {
    /// Posts the end of a subscriber to the port, or withdraws its start if that is still queued.
    fn leave(&self, id: SubscriptionId) {
        let same = |change: &SinkChange| matches!(change, SinkChange::Join(it, ..) if *it == id);
        self.changes.post_undoing(SinkChange::Leave(id), same);
    }
}

/// The installed outputs of one source.
#[derive(Default)]
pub(crate) struct Outgoing {
    streams: BTreeMap<Key, OpenStream>,
    local: BTreeMap<Key, Local>,
    scalers: BTreeMap<Form, FormTask>,
    /// The neighbours from which its samples may arrive.
    from: Vec<NodeId>,
    /// The limits of its samples.
    entry: Vec<EntryLimit>,
    /// Per output: whether it takes only aligned samples, and its successor.
    takes: BTreeMap<Key, (bool, Option<Form>)>,
}

/// Keeps the wanted entries in the map and returns the others.
fn split_off<T>(map: &mut BTreeMap<Key, T>, wanted: impl Fn(&Key) -> bool) -> Vec<T> {
    let all = std::mem::take(map).into_iter();
    let (stay, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = all.partition(|(key, _)| wanted(key));
    *map = stay;
    gone.into_values().collect()
}

/// Removed outputs of a source.
struct Gone {
    streams: Vec<OpenStream>,
    locals: Vec<Local>,
}

impl Gone {
    const fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.locals.is_empty()
    }
}

impl Outgoing {
    /// Returns the streams that carry this source, with their links.
    pub(super) fn open_streams(&self) -> impl Iterator<Item = (usize, StreamIndex)> + '_ {
        self.streams.values().map(|stream| (stream.link, stream.index))
    }

    /// Removes the outputs that no plan contains.
    fn take_unwanted(&mut self, plans: &[OutputPlan]) -> Gone {
        let wanted = |key: &Key| plans.iter().any(|plan| *key == name(plan));
        self.scalers.retain(|form, _| plans.iter().any(|plan| task_form(plan) == *form));
        Gone {
            streams: split_off(&mut self.streams, wanted),
            locals: split_off(&mut self.local, wanted),
        }
    }

    /// Sets the terms of the scalers for the outputs `plans`.
    fn set_terms(&self, publisher: &PublisherSpec, plans: &[OutputPlan]) {
        for (form, scaler) in &self.scalers {
            let served = plans.iter().filter(|plan| task_form(plan) == *form);
            scaler.task.set_terms(terms(publisher, served));
        }
    }

    /// Returns the scalers of this source.
    pub(super) fn scalers(&self) -> impl Iterator<Item = &Arc<ScaleTask>> {
        self.scalers.values().map(|scaler| &scaler.task)
    }
}

impl Engine {
    /// Replaces the outputs of a source, whose samples arrive from the given neighbours, by `plans`.
    /// Leaves unchanged outputs untouched.
    pub(super) fn install(
        &mut self,
        (source, from, entry): (SourceKey, Vec<NodeId>, Vec<EntryLimit>),
        publisher: &PublisherSpec,
        mut plans: Vec<OutputPlan>,
    ) {
        self.align_groups(&mut plans);
        let mut outgoing = self.outgoing.remove(&source).unwrap_or_default();
        let mut gone = outgoing.take_unwanted(&plans);
        let mut changed = !gone.is_empty() || outgoing.from != from;
        outgoing.from.clone_from(&from);
        changed |= outgoing.entry != entry;
        outgoing.entry.clone_from(&entry);
        let takes = plans.iter().map(|plan| (name(plan), (plan.aligned, plan.until))).collect();
        changed |= outgoing.takes != takes;
        outgoing.takes = takes;
        self.close_for_room(&mut gone, plans.len());
        let wanted = !plans.is_empty();
        let targets: BTreeSet<Target> = plans.iter().map(|plan| plan.target).collect();
        outgoing.set_terms(publisher, &plans);
        let mut outputs = Vec::with_capacity(plans.len());
        for plan in plans {
            let port = self.port(&mut outgoing, source, publisher, &plan);
            changed |= port.is_some();
            outputs.push((plan, port));
        }
        if !changed && wanted {
            // The outputs are the same. Contracts and subscribers have received their updates.
            self.outgoing.insert(source, outgoing);
            return;
        }
        let installation =
            Installation { period: publisher.period, groups: self.groups.clone(), outputs };
        // The handle of a local publisher feeds its full form; arriving samples feed all other
        // sources.
        if let Some(shared) = self.publishers.get(&source.publisher) {
            shared.installs.post_merged(installation, Installation::after);
            shared.change.notify(usize::MAX);
        } else {
            let is_replaced = installation.outputs.iter().any(|(plan, _)| plan.until.is_some());
            let (at, period) = (clock::now(), installation.period);
            let arrangement = Arrangement { key: source, at, period, from, entry, is_replaced };
            let installation = wanted.then_some(installation);
            self.sources.changes.post(RxChange { arrangement, installation });
            self.unsettled = !self.sources.try_settle(at);
        }
        // Close the old outputs only now: until the change is applied, samples still use them.
        self.let_go(source, gone, &targets);
        if wanted {
            self.outgoing.insert(source, outgoing);
        }
    }

    /// Closes removed outputs; `targets` are those of the new outputs.
    fn let_go(&mut self, source: SourceKey, gone: Gone, targets: &BTreeSet<Target>) {
        for local in gone.locals {
            local.subscriptions.iter().for_each(|&id| local.leave(id));
        }
        for stream in gone.streams {
            let hop = stream.spec.hop;
            let followed =
                targets.contains(&Target::Hop(hop)) || self.control.sends_to(source.publisher, hop);
            if followed && self.room(&stream) >= ROOM_MIN {
                self.retire_stream(source, &stream);
            } else {
                self.close_stream(&stream);
            }
        }
    }

    /// Returns the number of free stream indexes on the stream's link.
    fn room(&self, stream: &OpenStream) -> usize {
        self.links.get(stream.link).map_or(0, |link| link.slots.room())
    }

    /// Closes removed streams at once on links without room for `new` more streams.
    fn close_for_room(&mut self, gone: &mut Gone, new: usize) {
        let streams = std::mem::take(&mut gone.streams).into_iter();
        let (close, later): (Vec<_>, _) = streams.partition(|stream| self.room(stream) < new);
        gone.streams = later;
        close.iter().for_each(|stream| self.close_stream(stream));
    }

    fn close_stream(&mut self, stream: &OpenStream) {
        if let Some(link) = self.links.get_mut(stream.link) {
            link.handle.send(LinkCommand::Close(stream.index));
            link.slots.give_back(stream.index);
        }
    }

    /// Lets the stream send its queue and close; its replacement takes samples published from now
    /// on.
    fn retire_stream(&self, source: SourceKey, stream: &OpenStream) {
        let keeps = self.control.hands_over(source, stream.spec.hop, stream.spec.form);
        if let Some(link) = self.links.get(stream.link) {
            let retire = if keeps { LinkCommand::HandOver } else { LinkCommand::Retire };
            link.handle.send(retire(stream.index));
        }
    }

    /// Frees the index of a stream that its link has closed.
    pub(super) fn handle_retired(&mut self, link: usize, stream: StreamIndex) {
        if let Some(link) = self.links.get_mut(link) {
            link.slots.give_back(stream);
        }
    }

    /// Returns the port of a new output; `None` if the output exists already.
    fn port(
        &mut self,
        outgoing: &mut Outgoing,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
    ) -> Option<Port> {
        let key = name(plan);
        let left = key.1;
        // Old pictures are of no use to a stream with a delay bound, and would use up its contract.
        let takes_old = plan.contract.is_none() && plan.within.is_none() && !plan.background;
        let port = match plan.target {
            Target::Local => {
                let is_new = !outgoing.local.contains_key(&key);
                let local = outgoing.local.entry(key).or_default();
                self.update_local(local, source.publisher, plan);
                if !is_new {
                    return None;
                }
                let (tag, changes) = (publisher.tag.clone(), local.changes.clone());
                Port::Local(LocalPort::new(tag, source.publisher, plan.late, changes))
            }
            Target::Hop(hop) => {
                if let Some(stream) = outgoing.streams.get_mut(&key) {
                    let spec = self.stream_spec(source, publisher, hop, plan);
                    self.update_stream(stream, spec);
                    return None;
                }
                let spec = self.stream_spec(source, publisher, hop, plan);
                let (port, stream) = self.open_stream(hop, spec, takes_old)?;
                outgoing.streams.insert(key, stream);
                port
            }
        };
        if left == Form::FULL {
            return Some(port);
        }
        Some(Port::Scale(self.scale_port(outgoing, (source, publisher), (plan, takes_old), port)))
    }

    fn stream_spec(
        &self,
        source: SourceKey,
        publisher: &PublisherSpec,
        hop: NodeId,
        plan: &OutputPlan,
    ) -> StreamSpec {
        let names = self.control.stream_names(source.publisher.node, hop, &publisher.tag);
        StreamSpec::of(source.publisher, hop, plan).with_names(Some(Arc::new(names)))
    }

    fn open_stream(
        &mut self,
        hop: NodeId,
        spec: StreamSpec,
        takes_old: bool,
    ) -> Option<(Port, OpenStream)> {
        let at = self.ways.link(hop)?;
        let link = self.links.get_mut(at)?;
        let Some(index) = link.slots.take() else {
            crate::log_limited!(
                error,
                "link '{}': all {STREAMS_MAX} streams are in use",
                link.config.name
            );
            return None;
        };
        let (port, end) = ring(index, link.handle.announcements.clone());
        let port = if takes_old { port.joining() } else { port };
        link.handle.send(LinkCommand::Open(index, spec.clone(), end));
        Some((Port::Ring(port), OpenStream { link: at, index, spec }))
    }

    /// Posts the added and removed subscribers of a local output to its port.
    fn update_local(&self, local: &mut Local, publisher: PublisherId, plan: &OutputPlan) {
        let now: BTreeSet<SubscriptionId> = plan.subscriptions.iter().copied().collect();
        local.subscriptions.difference(&now).for_each(|&id| local.leave(id));
        for &id in now.difference(&local.subscriptions) {
            if let Some(sink) = self.sinks.get(&id) {
                let port = SinkPort::open(sink.clone(), publisher);
                local.changes.post(SinkChange::Join(id, port));
            }
        }
        local.subscriptions = now;
    }

    fn update_stream(&self, stream: &mut OpenStream, spec: StreamSpec) {
        if spec != stream.spec
            && let Some(link) = self.links.get(stream.link)
        {
            link.handle.send(LinkCommand::Update(stream.index, spec.clone()));
        }
        stream.spec = spec;
    }

    fn scale_port(
        &self,
        outgoing: &mut Outgoing,
        (source, publisher): (SourceKey, &PublisherSpec),
        (plan, takes_old): (&OutputPlan, bool),
        port: Port,
    ) -> ScalePort {
        let new = || {
            let shared = (self.pool.clone(), self.groups.clone());
            let task = ScaleTask::new((source.publisher, publisher), plan.at_port(), shared);
            task.set_terms(terms(publisher, std::iter::once(plan)));
            FormTask { task, slots: 0 }
        };
        let entry = outgoing.scalers.entry(task_form(plan)).or_insert_with(new);
        if entry.slots >= SLOTS_MAX {
            *entry = new();
        }
        entry.slots += 1;
        ScalePort::new(entry.task.clone(), entry.slots - 1, port, takes_old)
    }
}
