//! The engine thread: it owns `Control` and every resource that `Control` installs.

mod answers;
mod capacity;
mod change;
mod declared;
mod feedback;
mod hops;
mod install;
mod linger;
mod multicast;
mod network;
mod opening;
mod ordered;
mod passages;
mod place;
mod pull;
mod questions;
mod quote;
mod sources;
mod status;
mod time;
mod unmeasured;
mod unread;

use super::clock;
use super::clockwork::follow::Follower;
use super::clockwork::neighbours::NeighbourPort;
use super::command::{COMMANDS_MAX, Command, Commands};
use super::gate::Gate;
use super::handle::{LinkCommand, LinkHandle};
use super::host::Host;
use super::latch::Latch;
use super::port::scaling::ScalePool;
use super::pull::Holder;
use super::realtime::Role;
use super::rx::{LinkRx, NeighbourInput, RxSources};
use super::sink::Sink;
use super::source::PublisherShared;
use super::vitals::{Pulse, Vitals};
use crate::config::LinkConfig;
use crate::event::PublisherEvent;
use crate::event::SubscriberEvent;
use crate::identity::Introduction;
use crate::time::Clock;
use install::Ports;
use linger::{LINGER_MAX, Lingering};
use opening::Opening;
use ordered::OrderedBuffers;
use paceline_node::MessageQueue;
use paceline_node::install::{Installer, WantedOutputs};
use paceline_proto::control::{Control, ControlOutput, PublisherSpec, Ways};
use paceline_proto::form::{ScaledForm, Unscalable};
use paceline_proto::memory::{Charge, MemoryKind};
use paceline_proto::video::GroupBudget;
use paceline_proto::{Excess, Form, NodeId, PublisherId, SubscriptionId};
use paceline_sched::{Duration, Instant};
use questions::Questions;
use quote::Asking;
use status::{PendingStatus, Rates};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use unmeasured::Unmeasured;
use unread::UnreadNotices;

/// The interval of rate computation and of attempts to become the host's node.
const TICK: Duration = Duration::from_millis(250);

/// The longest delay between a change and the decision on it. Changes in between share one
/// decision.
const GATHER_MAX: Duration = Duration::from_millis(100);
/// The delay before a retry for arriving streams that were busy.
const SETTLE_AGAIN: Duration = Duration::from_millis(2);

/// The engine's state of one link.
pub(crate) struct EngineLink {
    pub(crate) config: LinkConfig,
    pub(crate) handle: LinkHandle,
    pub(crate) rx: Arc<LinkRx>,
}

/// The parts of a node that its engine owns.
pub(crate) struct Parts {
    pub(crate) control: Control,
    pub(crate) introduction: Introduction,
    pub(crate) name: String,
    pub(crate) inbox: Receiver<Command>,
    /// A sender to this engine, for the threads that reply to it.
    pub(crate) commands: Commands,
    pub(crate) links: Vec<EngineLink>,
    /// The host's runtime folder, and the index of the host link.
    pub(crate) host: Option<(Host, usize)>,
    pub(crate) sources: Arc<RxSources>,
    pub(crate) vitals: Arc<Vitals>,
    pub(crate) gate: Gate,
    pub(crate) clock: Clock,
    /// Follows the clock of the host's node.
    pub(crate) follower: Option<Follower>,
    /// Passes the neighbours and their answers to the clock, if it follows them.
    pub(crate) neighbours: Option<NeighbourPort>,
}

/// The engine of a node.
pub(crate) struct Engine {
    control: Control,
    /// What this node shows at the start of each connection.
    introduction: Introduction,
    name: String,
    inbox: Receiver<Command>,
    /// A sender to this engine, for the threads that reply to it.
    commands: Commands,
    links: Vec<EngineLink>,
    /// The host's runtime folder, and the index of the host link.
    host: Option<(Host, usize)>,
    /// True if this process is the host's node and listens.
    host_open: bool,
    sources: Arc<RxSources>,
    pool: Arc<ScalePool>,
    /// The memory for the groups of pictures of all sources.
    groups: GroupBudget,
    /// The outputs of all sources, and their ports.
    installer: Installer,
    ports: Ports,
    /// The memory of the records of other nodes.
    records: Charge,
    /// The links to each neighbour.
    ways: Ways,
    /// The neighbours that receive the multicast groups of a link, by its index.
    able: BTreeSet<(usize, NodeId)>,
    publishers: BTreeMap<PublisherId, Arc<PublisherShared>>,
    sinks: BTreeMap<SubscriptionId, Arc<Sink>>,
    heard: BTreeMap<SubscriptionId, Vec<PublisherId>>,
    lingering: BTreeMap<PublisherId, Lingering>,
    opening: BTreeMap<PublisherId, Opening>,
    /// The pull buffers of this node, and the thread that answers for them.
    holder: Holder,
    /// The pull buffers that other nodes ordered.
    ordered: OrderedBuffers,
    /// The number of the next pull that starts on this node.
    next_pull: u64,
    latch: Latch,
    asking: BTreeMap<u64, Asking>,
    questions: Questions,
    /// The excess of each stream at its last report.
    excess: BTreeMap<(PublisherId, Form, NodeId), Excess>,
    closing: bool,
    /// True if posted changes for arriving streams have not been applied.
    unsettled: bool,
    pending: Vec<PendingStatus>,
    rates: Rates,
    unread: UnreadNotices,
    next_tick: Instant,
    /// The time of the next decision. There is no delay while decisions are fast.
    decide_at: Instant,
    /// The inputs of neighbours that wait for their turn.
    incoming: MessageQueue<NeighbourInput>,
    unmeasured: Unmeasured,
    /// The nodes that state another capacity of the medium of a link than this one, with that capacity, as logged.
    differing: BTreeMap<String, (NodeId, u64)>,
    /// True if changes wait for that decision.
    undecided: bool,
    vitals: Arc<Vitals>,
    gate: Gate,
    clock: Clock,
    /// Follows the clock of the host's node.
    follower: Option<Follower>,
    neighbours: Option<NeighbourPort>,
    pulse: Arc<Pulse>,
}

impl Engine {
    /// Returns the engine of a node. `pulse` shows its watchdog that the engine's thread is alive.
    pub(crate) fn new(parts: Parts, pulse: Arc<Pulse>) -> Self {
        let Parts { mut control, introduction, name, inbox, commands, .. } = parts;
        let Parts { links, host, sources, vitals, mut gate, clock, follower, neighbours, .. } =
            parts;
        gate.apply(&mut control, links.iter().map(|link| &link.config));
        let measured = links.iter().enumerate().filter(|(_, link)| link.config.measured.is_some());
        let unmeasured = Unmeasured::new(measured.map(|(index, _)| index));
        let groups = GroupBudget::within(&sources.memory);
        let mut installer = Installer::new(groups.clone());
        installer.set_processor(control.best_effort_time());
        // Before a hop comes up: the token precedes the record of this node.
        gate.show_token(clock::now(), &mut control);
        Self {
            control,
            introduction,
            name,
            inbox,
            links,
            host_open: host.as_ref().is_some_and(|(host, _)| host.listens()),
            host,
            installer,
            ports: Ports::default(),
            groups,
            records: sources.memory.own_share().charge(MemoryKind::Kept, 0),
            sources,
            pool: Arc::new(ScalePool::new(vitals.clone())),
            ways: Ways::default(),
            able: BTreeSet::new(),
            publishers: BTreeMap::new(),
            sinks: BTreeMap::new(),
            heard: BTreeMap::new(),
            lingering: BTreeMap::new(),
            opening: BTreeMap::new(),
            holder: Holder::new(commands.clone()),
            ordered: OrderedBuffers::default(),
            latch: Latch::new(commands.clone()),
            commands,
            next_pull: 0,
            asking: BTreeMap::new(),
            questions: Questions::default(),
            excess: BTreeMap::new(),
            closing: false,
            unsettled: false,
            pending: Vec::new(),
            rates: Rates::default(),
            unread: UnreadNotices::default(),
            next_tick: Instant::ZERO,
            decide_at: Instant::ZERO,
            incoming: MessageQueue::default(),
            unmeasured,
            differing: BTreeMap::new(),
            undecided: false,
            vitals,
            gate,
            clock,
            follower,
            neighbours,
            pulse,
        }
    }

    /// Runs until the node is closed or one of its threads has panicked.
    pub(crate) fn run(mut self, thread: &str) {
        let vitals = self.vitals.clone();
        vitals.enter(Role::Engine);
        vitals.guard(thread, || self.serve());
        vitals.guard(thread, || self.close());
    }

    fn serve(&mut self) {
        let pulse = self.pulse.clone();
        while !self.closing || !self.lingering.is_empty() || !self.opening.is_empty() {
            let now = clock::now();
            let own = self.next_tick.min(self.linger_until()).min(self.opening_until());
            let mut until = self.control.poll_timeout().min(own);
            if self.undecided {
                until = self.decide_at;
            }
            if self.unsettled {
                until = until.min(now + SETTLE_AGAIN);
            }
            until = until.min(self.unmeasured.until());
            if self.has_inputs() || !self.sources.inputs.is_empty() {
                until = now;
            }
            pulse.rest(until);
            let command = self.inbox.recv_timeout(until.since(now).into());
            let now = clock::now();
            pulse.begin(now);
            if self.vitals.fault().is_some() {
                break;
            }
            match command {
                Ok(command) => self.handle(now, command),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Queued commands share the decision that follows.
            for _ in 0..COMMANDS_MAX {
                match self.inbox.try_recv() {
                    Ok(command) => self.handle(now, command),
                    Err(_) => break,
                }
            }
            self.handle_inputs(now);
            self.control.handle_timeout(now);
            self.records.set(self.control.records_bytes());
            self.undecided = now < self.decide_at && !self.closing;
            if !self.undecided {
                self.decide(now);
            }
            self.end_openings(now);
            self.stop_lingering(now);
            if self.unsettled {
                self.unsettled = !self.sources.try_settle(now);
            }
            if now >= self.next_tick {
                self.next_tick = now + TICK;
                self.tick(now);
            }
        }
        pulse.rest(Instant::FAR);
    }

    fn handle(&mut self, now: Instant, command: Command) {
        match command {
            Command::Publish(spec, shared, reply) => {
                let _ = reply.send(self.publish(now, spec, shared));
            }
            Command::UpdatePublisher(id, spec) => self.update_publisher(now, id, spec),
            Command::Unpublish(id, None) => self.linger(now, id, now + LINGER_MAX, None),
            Command::Unpublish(id, Some((within, told))) => {
                self.linger(now, id, now + within, Some(told));
            }
            Command::Scaled(id) => self.handle_scaled(now, id),
            Command::Settled(stream) => self.handle_settled(now, stream),
            Command::Retired(stream) => self.installer.handle_closed(stream),
            Command::Subscribe(spec, sink, reply) => {
                let _ = reply.send(self.subscribe(now, spec, sink));
            }
            Command::Unsubscribe(id) => self.unsubscribe(now, id),
            Command::Subscriptions(reply) => self.reply_subscriptions(&reply),
            Command::Wish(id, reply) => {
                let _ = reply.send(self.control.subscription(id).cloned());
            }
            Command::Change(id, spec, reply) => self.ask_change(now, id, &spec, reply),
            Command::Outcome(id, revision, reply) => self.ask_outcome(now, id, revision, reply),
            Command::Inputs => {}
            Command::Status(only, timeout, reply) => self.ask_status(now, only, timeout, reply),
            Command::View(id, reply) => {
                let _ = reply.send(self.sinks.get(&id).cloned());
            }
            Command::AskTime(node, body) => self.ask_time(now, node, body),
            Command::Nodes(reply) => self.reply_nodes(&reply),
            Command::Near(reply) => self.reply_near(&reply),
            Command::IsComplete(reply) => {
                let _ = reply.send(self.is_complete());
            }
            Command::Sources(pattern, reply) => self.reply_sources(&pattern, &reply),
            Command::Network(pattern, reply) => self.reply_network(&pattern, &reply),
            Command::Feedback { publisher, measured, reply } => {
                self.handle_feedback(now, publisher, measured, &reply);
            }
            Command::Passages { publisher, nodes, from, reply } => {
                self.ask_passages(now, (publisher, from), &nodes, &reply);
            }
            Command::Ask(spec, trials, reply) => {
                self.ask_prospects(now, (None, &spec), (&trials, &reply))
            }
            Command::AskChange(id, spec, reply) => {
                self.ask_prospects(now, (Some(id), &spec), (&[], &reply))
            }
            Command::SetCapacity { link, capacity, reply } => {
                let _ = reply.send(self.set_capacity(now, &link, capacity));
            }
            Command::SetClasses { link, classes, reply } => {
                let _ = reply.send(self.set_classes(&link, classes));
            }
            Command::Attach(stream, reply) => {
                let _ = reply.send(self.attach(stream));
            }
            Command::Pull(command) => self.handle_pull(now, command),
            Command::Close => {
                self.closing = true;
                self.linger_all(now);
            }
        }
    }

    /// Executes the decisions of `Control`.
    ///
    /// Each decision evaluates the whole state. The next one waits for as long as this one took, up to
    /// [`GATHER_MAX`]. A burst of requests therefore does not cost one evaluation each.
    fn decide(&mut self, now: Instant) {
        let begun = clock::now();
        self.drain(now);
        let done = clock::now();
        self.decide_at = done + done.since(begun).min(GATHER_MAX);
    }

    /// Executes the pending outputs of `Control`.
    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.control.poll_output() {
            self.install_before(&output);
            match output {
                ControlOutput::Send { hop, message } => {
                    if let Some(link) = self.ways.link(hop) {
                        self.send_to(link, LinkCommand::Control(hop, message));
                    }
                }
                ControlOutput::Install { source, publisher, from, entry, outputs } => {
                    let plans = self.align_groups(outputs);
                    let wanted = WantedOutputs { source, publisher, from, entry, plans };
                    self.installer.handle_outputs(wanted);
                }
                ControlOutput::Matching { publisher, matching: is } => {
                    self.set_matching(publisher, is)
                }
                ControlOutput::Subscribed { subscription, publishers } => {
                    self.serve_latecomer(subscription, &publishers);
                    self.notify(subscription, SubscriberEvent::Publishers(publishers.clone()));
                    self.heard.insert(subscription, publishers);
                }
                ControlOutput::Refused { subscription, publisher, refusal } => {
                    let event = SubscriberEvent::Refused(publisher, refusal.clone());
                    let key = (subscription, publisher);
                    self.notify_ends(key, event, PublisherEvent::Refused(refusal));
                }
                ControlOutput::Granted { grant } => {
                    let event = SubscriberEvent::Granted(grant.clone());
                    let key = (grant.subscription, grant.publisher);
                    self.notify_ends(key, event, PublisherEvent::Granted(grant));
                }
                ControlOutput::Withdrawn { subscription, publisher } => {
                    let event = SubscriberEvent::Withdrawn(publisher);
                    let key = (subscription, publisher);
                    self.notify_ends(key, event, PublisherEvent::Withdrawn(subscription));
                }
                output @ ControlOutput::Warned { .. } => self.warned(output),
                output @ ControlOutput::Allotted { .. } => self.follow_allotment(output),
                ControlOutput::NoSpare { refusal } => {
                    self.notify(refusal.subscription, SubscriberEvent::NoSpare(refusal));
                }
                ControlOutput::BestEffort { subscription, publisher, why } => {
                    self.notify(subscription, SubscriberEvent::BestEffort(publisher, why));
                }
                output @ ControlOutput::Excess { .. } => self.hear_excess(output),
                output @ ControlOutput::Surveyed { .. } => self.reply_quote(output),
                output @ ControlOutput::Changed { .. } => self.changed(output),
                ControlOutput::InForce { subscription, spec } => self.in_force(subscription, &spec),
                ControlOutput::ChangeRefused { subscription, refusals, spec } => {
                    self.change_refused(subscription, refusals, spec);
                }
                output @ (ControlOutput::Denied { .. }
                | ControlOutput::Used { .. }
                | ControlOutput::ChangedFor { .. }) => {
                    self.gate.handle(now, &self.control, output);
                }
                output @ ControlOutput::Unread { .. } => self.note_unread(output),
                ControlOutput::Asked { request, from, body } => {
                    self.handle_question(now, request, from, body);
                }
                ControlOutput::Answered { request: of, node, body } => {
                    self.answered(of, node, body)
                }
            }
        }
        self.install();
        self.end_openings(now);
    }

    fn set_matching(&mut self, publisher: PublisherId, matching: bool) {
        // Callers that wait for this event expect the outputs to be installed.
        self.try_open(publisher);
        if matching {
            // The first sample already needs the proof of its age, for a subscription that uses no other ones.
            self.sources.proves.store(self.control.wants_proofs(), Ordering::Relaxed);
        }
        if let Some(shared) = self.publishers.get(&publisher) {
            shared.matching.store(matching, Ordering::Release);
            shared.change.notify(usize::MAX);
        }
    }

    fn tick(&mut self, now: Instant) {
        self.report_use(now);
        self.update_rates(now);
        self.update_health(now);
        self.follow_able(now);
        self.follow_probes();
        self.warn_media();
        self.sources.expire(now);
        self.sources.proves.store(self.control.wants_proofs(), Ordering::Relaxed);
        self.forget_unreachable();
        self.finish_statuses(now);
        self.announce_scaling(now);
        self.keep_place();
        self.end_unused_buffers(now);
        self.follower.iter_mut().for_each(Follower::tick);
        self.note_neighbours();
        self.log_unread(now);
        self.gate.renew(now, &mut self.control, self.links.iter().map(|link| &link.config));
    }

    /// Reports the publishers with new samples, which keep their reservations in use.
    fn report_use(&mut self, now: Instant) {
        let used = self.publishers.iter().filter(|(_, shared)| {
            let samples = shared.published.load(Ordering::Relaxed);
            shared.reported.swap(samples, Ordering::Relaxed) != samples
        });
        let used = used.map(|(id, _)| *id).collect();
        self.control.handle_published(now, &used);
    }

    /// Announces a publisher, with what scaling its samples costs.
    fn update_publisher(&mut self, now: Instant, id: PublisherId, spec: PublisherSpec) {
        let (scaled, unscalable) = self.scaling(id, spec.unscalable);
        self.control.update_publisher(now, id, PublisherSpec { scaled, unscalable, ..spec });
    }

    /// Returns the costs of a publisher's forms, and the reason why they cannot be scaled: the announced one, or that all
    /// attempts have failed.
    fn scaling(
        &self,
        id: PublisherId,
        announced: Option<Unscalable>,
    ) -> (Vec<ScaledForm>, Option<Unscalable>) {
        let mut costs = self.pool.costs();
        let failed = costs.has_failed(id).then_some(Unscalable::Failed);
        (costs.of(id, ScalePool::workers()), announced.or(failed))
    }

    /// Announces what scaling costs, where it has changed.
    fn announce_scaling(&mut self, now: Instant) {
        for &id in self.publishers.keys() {
            let Some(spec) = self.control.publisher(id) else { continue };
            let (scaled, unscalable) = self.scaling(id, spec.unscalable);
            if (&spec.scaled, spec.unscalable) != (&scaled, unscalable) {
                let spec = PublisherSpec { scaled, unscalable, ..spec.clone() };
                self.control.update_publisher(now, id, spec);
            }
        }
        let others = self.installer.sources().map(|source| source.publisher);
        let others = others.filter(|id| !self.publishers.contains_key(id));
        for id in others.collect::<BTreeSet<_>>() {
            let scaled = self.pool.costs().of(id, ScalePool::workers());
            self.control.set_scaling(now, id, scaled);
        }
    }

    fn close(&mut self) {
        for link in &self.links {
            link.handle.send(LinkCommand::Stop);
        }
        for sink in self.sinks.values() {
            sink.close();
        }
        for publisher in self.publishers.values() {
            publisher.closed.store(true, Ordering::Release);
            publisher.change.notify(usize::MAX);
        }
        self.pool.close();
    }
}
