//! Executes the commands of the installer: rings for streams, subscribers' ends and scalers.

use super::super::handle::LinkCommand;
use super::super::mailbox::Mailbox;
use super::super::port::scaling::{ScalePort, ScaleTask};
use super::super::port::{LocalPort, Port, SinkChange, ring};
use super::super::rx::RxChange;
use super::super::sink::SinkPort;
use super::Engine;
use crate::shell::clock;
use paceline_node::install::{Installation, ScalerTerms};
use paceline_node::install::{LocalPlace, NewPort, PortCommand, PortEnd, ScalerId, StreamPlace};
use paceline_proto::control::PublisherSpec;
use paceline_proto::plan::{OutputPlan, SourceKey};
use paceline_proto::wire::STREAMS_MAX;
use paceline_proto::{Form, PublisherId, SubscriptionId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parts of ports that the engine changes while other threads use them.
#[derive(Default)]
pub(super) struct Ports {
    scalers: BTreeMap<ScalerId, Arc<ScaleTask>>,
    locals: BTreeMap<LocalPlace, Arc<Mailbox<SinkChange>>>,
}

impl Ports {
    pub(super) fn scaler(&self, id: ScalerId) -> Option<&Arc<ScaleTask>> {
        self.scalers.get(&id)
    }

    fn set_terms(&self, id: ScalerId, terms: ScalerTerms) {
        if let Some(scaler) = self.scalers.get(&id) {
            scaler.set_terms(terms);
        }
    }
}

/// Posts the end of a subscriber to its port, or withdraws its start if that is still queued.
fn leave(changes: &Mailbox<SinkChange>, id: SubscriptionId) {
    let same = |change: &SinkChange| matches!(change, SinkChange::Join(it, ..) if *it == id);
    changes.post_undoing(SinkChange::Leave(id), same);
}

impl Engine {
    /// Installs the outputs that control has requested since the last call.
    pub(super) fn install(&mut self) {
        let mut arriving = Vec::new();
        loop {
            let routes = (&self.control, &self.ways);
            let commands = self.installer.take_commands(clock::now(), &routes);
            if commands.is_empty() {
                return;
            }
            commands.into_iter().for_each(|command| self.execute(command, &mut arriving));
        }
    }

    /// Executes a command. The changes of the `arriving` streams of a publisher are posted together.
    fn execute(&mut self, command: PortCommand, arriving: &mut Vec<RxChange>) {
        match command {
            PortCommand::OpenScaler { scaler, publisher, scale } => {
                self.open_scaler(scaler, &publisher, scale);
            }
            PortCommand::SetTerms(scaler, terms) => self.ports.set_terms(scaler, terms),
            PortCommand::CloseScaler(scaler) => {
                self.ports.scalers.remove(&scaler);
            }
            PortCommand::UpdateStream(StreamPlace { link, index }, spec) => {
                self.send_to(link, LinkCommand::Update(index, spec));
            }
            PortCommand::UpdateLocal { place, leave: gone, join, late } => {
                let Some(changes) = self.ports.locals.get(&place) else { return };
                gone.into_iter().for_each(|id| leave(changes, id));
                late.into_iter().for_each(|late| changes.post(SinkChange::Late(late)));
                self.join(place.source.publisher, changes, &join);
            }
            PortCommand::Install { publisher, arrangement, installation } => {
                let key = arrangement.key;
                let installation = self.with_ports(key, &publisher, installation);
                // The handle of a publisher of this node feeds its full form; arriving samples feed all other sources.
                if let Some(shared) = self.publishers.get(&key.publisher) {
                    shared.installs.post_merged(installation, Installation::after);
                    shared.change.notify(usize::MAX);
                } else {
                    arriving.push(RxChange { arrangement, installation });
                }
            }
            PortCommand::Settle => {
                let changes = std::mem::take(arriving);
                if !changes.is_empty() {
                    self.sources.changes.post_all(changes);
                    self.unsettled = !self.sources.try_settle(clock::now());
                }
            }
            PortCommand::CloseStream(StreamPlace { link, index }) => {
                self.send_to(link, LinkCommand::Close(index));
            }
            PortCommand::DrainStream(StreamPlace { link, index }) => {
                self.send_to(link, LinkCommand::Retire(index));
            }
            PortCommand::HandOverStream(StreamPlace { link, index }) => {
                self.send_to(link, LinkCommand::HandOver(index));
            }
            PortCommand::CloseLocal(place, last) => {
                let Some(changes) = self.ports.locals.remove(&place) else { return };
                last.into_iter().for_each(|id| leave(&changes, id));
            }
            PortCommand::NoStream { link } => {
                let name = self.links.get(link).map_or("", |link| &link.config.name);
                crate::log_limited!(error, "link '{name}': all {STREAMS_MAX} streams are in use");
            }
        }
    }

    fn send_to(&self, link: usize, command: LinkCommand) {
        if let Some(link) = self.links.get(link) {
            link.handle.send(command);
        }
    }

    fn open_scaler(&mut self, id: ScalerId, publisher: &PublisherSpec, scale: Form) {
        let shared = (self.pool.clone(), self.groups.clone());
        let task = ScaleTask::new((id.source.publisher, publisher), scale, shared);
        self.ports.scalers.insert(id, task);
    }

    /// Makes the ports of new outputs.
    fn with_ports(
        &mut self,
        source: SourceKey,
        publisher: &PublisherSpec,
        installation: Installation<NewPort>,
    ) -> Installation<Port> {
        installation.map(|plan, new| self.port(source, publisher, plan, new))
    }

    fn port(
        &mut self,
        source: SourceKey,
        publisher: &PublisherSpec,
        plan: &OutputPlan,
        NewPort { end, scaler, takes_old }: NewPort,
    ) -> Option<Port> {
        let port = match end {
            PortEnd::Stream(StreamPlace { link, index }, spec) => {
                let link = self.links.get(link)?;
                let (port, end) = ring(index, link.handle.announcements.clone());
                link.handle.send(LinkCommand::Open(index, spec, end));
                Port::Ring(if takes_old { port.joining() } else { port })
            }
            PortEnd::Local(place, first) => {
                let changes = Arc::new(Mailbox::default());
                self.join(source.publisher, &changes, &first);
                self.ports.locals.insert(place, changes.clone());
                let tag = publisher.tag.clone();
                Port::Local(LocalPort::new(tag, source.publisher, plan.late, changes))
            }
        };
        let Some((scaler, slot)) = scaler else { return Some(port) };
        let task = self.ports.scaler(scaler).cloned();
        debug_assert!(task.is_some(), "{scaler:?} was opened before");
        let task = task?;
        Some(Port::Scale(ScalePort::new(task, slot, port, takes_old)))
    }

    /// Posts new subscribers to a port.
    fn join(&self, publisher: PublisherId, changes: &Mailbox<SinkChange>, ids: &[SubscriptionId]) {
        for &id in ids {
            if let Some(sink) = self.sinks.get(&id) {
                changes.post(SinkChange::Join(id, SinkPort::open(sink.clone(), publisher)));
            }
        }
    }
}
