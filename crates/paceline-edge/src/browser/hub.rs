//! The nodes of all browsers of a serving node, and the gate between them and it.

use super::event::{BrowserEvent, BrowserLink, StreamReaders};
use super::frame::BrowserSample;
use super::session::{Session, SessionId, SessionOutput};
use bytes::Bytes;
use paceline_node::{Node, NodeLink, NodeOutput};
use paceline_proto::Carrier;
use paceline_proto::NodeId;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::{ControlOutput, PublisherSpec, SubscriptionSpec, Topic};
use paceline_proto::link::LinkSpec;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The most browsers of a hub.
pub const SESSIONS_MAX: usize = 64;
/// The most subscriptions and publishers of a browser.
const NUMBERS_MAX: usize = 256;
/// The interval of reports of dropped samples, and of looking for hops that were silent for too long.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// A hop that is not up is begun anew at most this often, while its browser shows that it is alive.
const BEGINS_EVERY: Duration = Duration::from_millis(1_500);
/// The longest wait for the first measurement of a browser's path.
const MEASURED_WITHIN: Duration = Duration::from_secs(2);
/// The link of the gate to the serving node.
const UPLINK: usize = 0;

/// An output of the hub.
#[derive(Debug)]
pub enum HubOutput {
    /// A frame to the serving node.
    Frame(Bytes),
    /// A binary message to a browser. It may be lost if its carrier loses messages, and is never repeated.
    Message(SessionId, Bytes),
    /// The subscriptions that receive a stream. It precedes the messages that follow.
    Readers(SessionId, StreamReaders),
    /// An event for a browser.
    Event(SessionId, Box<BrowserEvent>),
    /// The path of a browser is measured, or could not be within 2 s: it may request contracts.
    Ready(SessionId),
    /// A browser has not taken its events for long: the connection has to end.
    Stalled(SessionId),
}

/// The nodes of the browsers. See the [module](super).
///
/// The owner passes inputs, takes outputs until [`Self::poll_output`] returns `None`, and calls it again at
/// [`Self::poll_timeout`]. `now` never decreases.
#[derive(Debug)]
pub struct BrowserHub {
    gate: Node,
    serving: Option<NodeId>,
    sessions: BTreeMap<SessionId, Session>,
    /// The sessions by the links of the gate.
    by_link: BTreeMap<usize, SessionId>,
    /// Links of former sessions, with their settings.
    free_links: Vec<(usize, LinkCapacity, Carrier)>,
    next: u32,
    outputs: VecDeque<HubOutput>,
    report_at: Instant,
}

impl BrowserHub {
    /// Creates a hub whose gate has this id and name.
    #[must_use]
    pub fn new(id: NodeId, name: &str) -> Self {
        let mut gate = Node::new(id, name);
        let spec = LinkSpec { carrier: Carrier::Local, ..LinkSpec::default() };
        gate.add_link("host", spec);
        Self {
            gate,
            serving: None,
            sessions: BTreeMap::new(),
            by_link: BTreeMap::new(),
            free_links: Vec::new(),
            next: 0,
            outputs: VecDeque::new(),
            report_at: Instant::ZERO,
        }
    }

    /// Connects the gate to the serving node.
    pub fn connect(&mut self, now: Instant, serving: NodeId) {
        self.disconnect(now);
        self.serving = Some(serving);
        self.gate.handle_neighbour(now, UPLINK, serving);
    }

    /// Notes that the connection to the serving node has ended.
    pub fn disconnect(&mut self, now: Instant) {
        if let Some(serving) = self.serving.take() {
            self.gate.remove_neighbour(now, UPLINK, serving);
        }
    }

    /// Handles a frame of the serving node.
    pub fn handle_frame(&mut self, now: Instant, frame: Bytes) {
        if let Some(serving) = self.serving {
            self.gate.handle_frame(now, UPLINK, serving, frame);
        }
    }

    /// Adds a browser whose node has this id and name. Returns `None` if there are too many.
    pub fn open(
        &mut self,
        now: Instant,
        (id, name): (NodeId, &str),
        (capacity, carrier): (LinkCapacity, Carrier),
    ) -> Option<SessionId> {
        if self.sessions.len() >= SESSIONS_MAX {
            return None;
        }
        let session = SessionId(self.next);
        self.next = self.next.wrapping_add(1);
        let link = self.link(capacity, carrier);
        self.gate.handle_neighbour(now, link, id);
        self.by_link.insert(link, session);
        let mut new = Session::new(now, (id, self.gate.id()), name, link);
        new.unmeasured_until = capacity.is_measured().then(|| now + MEASURED_WITHIN);
        if new.unmeasured_until.is_none() {
            self.outputs.push_back(HubOutput::Ready(session));
        }
        self.sessions.insert(session, new);
        Some(session)
    }

    /// Removes a browser: its subscriptions and publishers end.
    pub fn close(&mut self, now: Instant, session: SessionId) {
        let Some(ended) = self.sessions.remove(&session) else { return };
        self.gate.remove_neighbour(now, ended.link, ended.node.id());
        self.by_link.remove(&ended.link);
        let Some(end) = self.gate.links().get(ended.link) else { return };
        if let Some(capacity) = end.setting() {
            self.free_links.push((ended.link, capacity, end.spec().carrier));
        }
    }

    /// Returns a link for a browser: one of a browser that has left, or a new one.
    fn link(&mut self, capacity: LinkCapacity, carrier: Carrier) -> usize {
        let fits =
            |(_, its, on): &(usize, LinkCapacity, Carrier)| *its == capacity && *on == carrier;
        if let Some(at) = self.free_links.iter().position(fits) {
            let (link, ..) = self.free_links.swap_remove(at);
            self.gate.renew_link(link);
            return link;
        }
        let name = format!("browser-{}", self.gate.links().len());
        let first = Some(capacity.first());
        let spec = LinkSpec { carrier, capacity: first, ..LinkSpec::default() };
        let link = self.gate.add_link(&name, spec);
        self.gate.measure(link, capacity);
        link
    }

    /// Returns the number of browsers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns true if there is no browser.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Handles acknowledged messages.
    pub fn handle_acks(&mut self, now: Instant, session: SessionId, numbers: &[u32]) {
        let gate = self.gate.id();
        if let Some(session) = self.sessions.get_mut(&session) {
            for number in numbers {
                session.acknowledge(now, gate, *number);
            }
        }
    }

    /// Handles a sign of life of a browser. If its hop is down, because the page slept or its path was cut, it begins anew
    /// at once; the greetings of the link alone would be up to 10 s apart.
    pub fn handle_alive(&mut self, now: Instant, session: SessionId) {
        let gate = self.gate.id();
        let Some(session) = self.sessions.get_mut(&session) else { return };
        let (link, node) = (session.link, session.node.id());
        let hops = self.gate.links().get(link).into_iter().flat_map(|end| end.link().hops());
        let is_up = hops.into_iter().any(|(hop, state)| hop == node && state.is_up());
        if is_up || now.since(session.begun_at) < BEGINS_EVERY {
            return;
        }
        session.begun_at = now;
        self.gate.remove_neighbour(now, link, node);
        session.node.remove_neighbour(now, 0, gate);
        session.node.renew_link(0);
        self.gate.handle_neighbour(now, link, node);
        session.node.handle_neighbour(now, 0, gate);
    }

    /// Publishes a sample of a browser. Returns false if it has no such publisher.
    pub fn handle_sample(
        &mut self,
        now: Instant,
        session: SessionId,
        sample: BrowserSample,
    ) -> bool {
        self.sessions.get_mut(&session).is_some_and(|session| session.put(now, sample))
    }

    /// Adds a subscription with a number of the browser, or changes the one that has it.
    ///
    /// # Errors
    /// Returns the reason if there are too many.
    pub fn subscribe(
        &mut self,
        now: Instant,
        session: SessionId,
        (number, spec): (u32, SubscriptionSpec),
    ) -> Result<(), String> {
        let Some(session) = self.sessions.get_mut(&session) else { return Ok(()) };
        check_room(session)?;
        session.subscribe(now, number, spec);
        Ok(())
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, now: Instant, session: SessionId, number: u32) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.unsubscribe(now, number);
        }
    }

    /// Adds a publisher with a number of the browser.
    ///
    /// # Errors
    /// Returns the reason if the number is in use, or there are too many.
    pub fn publish(
        &mut self,
        now: Instant,
        session: SessionId,
        (number, spec): (u32, PublisherSpec),
    ) -> Result<(), String> {
        let Some(session) = self.sessions.get_mut(&session) else { return Ok(()) };
        check_room(session)?;
        let new = session.publish(now, number, spec);
        new.then_some(()).ok_or_else(|| format!("a publisher has the number {number} already"))
    }

    /// Ends a publisher.
    pub fn unpublish(&mut self, now: Instant, session: SessionId, number: u32) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.unpublish(now, number);
        }
    }

    /// Returns the next output.
    pub fn poll_output(&mut self, now: Instant) -> Option<HubOutput> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            if !self.step(now) {
                return None;
            }
        }
    }

    /// Returns the instant at which [`Self::poll_output`] has work without further input.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let nodes = self.sessions.values().map(|session| session.node.poll_timeout().at);
        let report = if self.sessions.is_empty() { Instant::FAR } else { self.report_at };
        let waits = self.sessions.values().filter_map(|session| session.unmeasured_until);
        nodes.chain(waits).fold(self.gate.poll_timeout().at.min(report), Instant::min)
    }

    /// Serves the gate and the nodes of the browsers once. Returns true if anything has moved.
    fn step(&mut self, now: Instant) -> bool {
        let mut moved = false;
        while let Some(output) = self.gate.poll_output(now) {
            moved = true;
            self.take_gate(now, output);
        }
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in sessions {
            moved |= self.serve(now, id);
        }
        moved |= self.report_ready(now);
        if self.report_at <= now {
            self.report_at = now + REPORT_EVERY;
            self.report(now);
            self.find(now);
            moved |= self.sessions.values().any(|session| !session.events.is_empty());
        }
        moved
    }

    /// Reports drops, and the links of browsers whose path is measured.
    fn report(&mut self, now: Instant) {
        let status = self.gate.status(now);
        for session in self.sessions.values_mut() {
            session.node.read_meters(now);
            session.report_drops();
            let Some(row) = status.links.get(session.link) else { continue };
            let Some(found) = row.measured.filter(|_| session.unmeasured_until.is_none()) else {
                continue;
            };
            session.events.push_back(BrowserEvent::Link(BrowserLink {
                state: found.state,
                estimate: found.estimate_bits_per_s,
                contracts: found.contracts_bits_per_s,
                reserved: row.reserved_bits_per_s,
            }));
        }
    }

    /// Greets neighbours again that were forgotten, because they were silent for long: a page slept, or its path was cut.
    fn find(&mut self, now: Instant) {
        if let Some(serving) = self.serving {
            self.gate.handle_neighbour(now, UPLINK, serving);
        }
        let gate = self.gate.id();
        for session in self.sessions.values_mut() {
            self.gate.handle_neighbour(now, session.link, session.node.id());
            session.node.handle_neighbour(now, 0, gate);
        }
    }

    /// Reports browsers whose path is measured. Before that, a contract would be refused for a capacity that nobody knows.
    fn report_ready(&mut self, now: Instant) -> bool {
        let mut moved = false;
        for (id, session) in &mut self.sessions {
            let Some(until) = session.unmeasured_until else { continue };
            let measured =
                self.gate.links().get(session.link).is_some_and(NodeLink::has_measurement);
            if measured || until <= now {
                session.unmeasured_until = None;
                self.outputs.push_back(HubOutput::Ready(*id));
                moved = true;
            }
        }
        moved
    }

    fn take_gate(&mut self, now: Instant, output: NodeOutput) {
        match output {
            NodeOutput::Frame { link: UPLINK, frame, .. } => {
                self.outputs.push_back(HubOutput::Frame(frame));
            }
            NodeOutput::Frame { link, frame, .. } => {
                let Some(id) = self.by_link.get(&link).copied() else { return };
                let Some(session) = self.sessions.get_mut(&id) else { return };
                let message = session.send(now, frame);
                let readers = session.take_readers().into_iter();
                self.outputs.extend(readers.map(|readers| HubOutput::Readers(id, readers)));
                self.outputs.extend(message.map(|bytes| HubOutput::Message(id, bytes)));
            }
            NodeOutput::Control(ControlOutput::Asked { request, from, body }) => {
                answer(&mut self.gate, now, (request, from), &body);
            }
            NodeOutput::Control(_)
            | NodeOutput::Silence(..)
            | NodeOutput::StreamClosed(_)
            | NodeOutput::Muted { .. }
            | NodeOutput::NoStream { .. } => {}
        }
    }

    /// Serves the node of a browser. Returns true if anything has moved.
    fn serve(&mut self, now: Instant, id: SessionId) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        let mut moved = false;
        while let Some(output) = session.node.poll_output(now) {
            moved = true;
            match session.take(output) {
                Some(SessionOutput::Frame(frame)) => {
                    let from = session.node.id();
                    self.gate.handle_frame(now, session.link, from, frame);
                }
                Some(SessionOutput::Asked { request, from, body }) => {
                    answer(&mut session.node, now, (request, from), &body);
                }
                None => {}
            }
        }
        session.drain(now);
        let readers = session.take_readers().into_iter();
        self.outputs.extend(readers.map(|readers| HubOutput::Readers(id, readers)));
        if session.is_stalled() {
            session.events.clear();
            self.outputs.push_back(HubOutput::Stalled(id));
        }
        let events = session.events.drain(..);
        self.outputs.extend(events.map(|event| HubOutput::Event(id, Box::new(event))));
        moved
    }
}

/// Answers a question of another node: its status, as `ls` asks for it.
fn answer(node: &mut Node, now: Instant, (request, from): (u64, NodeId), body: &Bytes) {
    if let Some((Topic::Status, rest)) = Topic::split(body.clone())
        && rest.is_empty()
    {
        let status = node.status(now).to_wire();
        node.control_mut().answer(now, request, from, status.into());
    }
}

fn check_room(session: &Session) -> Result<(), String> {
    if session.len() < NUMBERS_MAX {
        return Ok(());
    }
    Err(format!("a browser has at most {NUMBERS_MAX} subscriptions and publishers: end some"))
}
