//! One browser: its node, the frames that it has not acknowledged, and its numbers of subscriptions and publishers.

use super::event::{BrowserEvent, StreamReaders};
use super::frame::{self, BrowserSample, OutMessage, StreamChange};
use bytes::Bytes;
use paceline_node::{NewSample, Node, NodeOutput};
use paceline_proto::control::{ControlOutput, PublisherSpec, SubscriptionSpec};
use paceline_proto::plan::SourceKey;
use paceline_proto::reason::Drops;
use paceline_proto::{NodeId, PublisherId, SubscriptionId, Timestamp};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The number of a browser at its hub.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(pub u32);

/// The samples that a subscription of the browser's node keeps until the hub has counted them, in the same call.
const QUEUE: usize = 64;
/// A frame without an acknowledgement is forgotten once so many later ones have left: it is lost.
const IN_FLIGHT_MAX: usize = 4_096;
/// The most events that wait for the browser. It has not read for a long time then, and the connection has to end.
const EVENTS_MAX: usize = 4_096;

/// A stream to a browser.
#[derive(Debug)]
struct OpenStream {
    key: SourceKey,
    /// The time for which a sample waits for lost ones before it.
    hold: Duration,
    /// The subscriptions that the browser knows for it; `None` before the first time.
    readers: Option<Vec<u32>>,
}

/// One browser.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) node: Node,
    /// The index of its link at the gate.
    pub(super) link: usize,
    /// The time at which its hop was begun.
    pub(super) begun_at: Instant,
    /// The latest time to wait for the first measurement; `None` once it is there.
    pub(super) unmeasured_until: Option<Instant>,
    /// The number of the next message.
    next: u32,
    /// The frames that the browser has not acknowledged, by the number of their message.
    in_flight: BTreeMap<u32, Bytes>,
    subscriptions: BTreeMap<u32, SubscriptionId>,
    publishers: BTreeMap<u32, PublisherId>,
    /// The open streams by their numbers.
    streams: BTreeMap<u32, OpenStream>,
    /// The drops that the browser knows.
    dropped: BTreeMap<u32, Drops>,
    pub(super) events: VecDeque<BrowserEvent>,
    /// Readers of streams may have changed.
    is_changed: bool,
}

impl Session {
    pub(super) fn new(now: Instant, (id, gate): (NodeId, NodeId), name: &str, link: usize) -> Self {
        let mut node = Node::new(id, name);
        let own = node.add_link("browser", paceline_proto::link::LinkSpec::default());
        node.handle_neighbour(now, own, gate);
        Self {
            node,
            link,
            begun_at: now,
            unmeasured_until: None,
            next: 0,
            in_flight: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            publishers: BTreeMap::new(),
            streams: BTreeMap::new(),
            dropped: BTreeMap::new(),
            events: VecDeque::new(),
            is_changed: false,
        }
    }

    /// Returns the message for a frame of the gate, and keeps the frame until the browser acknowledges it.
    pub(super) fn send(&mut self, now: Instant, frame: Bytes) -> Option<Bytes> {
        let OutMessage { bytes, streams } = frame::write(now, self.next, &frame).ok()?;
        self.in_flight.insert(self.next, frame);
        self.next = self.next.wrapping_add(1);
        while self.in_flight.len() > IN_FLIGHT_MAX {
            self.in_flight.pop_first();
        }
        for change in streams {
            match change {
                StreamChange::Opened(stream, publisher, form, hold) => {
                    let key = SourceKey { publisher, form };
                    let known = self.streams.get(&stream);
                    let known = known.is_some_and(|it| it.key == key && it.hold == hold);
                    if !known {
                        self.streams
                            .retain(|other, _| frame::place(*other) != frame::place(stream));
                        self.streams.insert(stream, OpenStream { key, hold, readers: None });
                    }
                    self.is_changed = true;
                }
                StreamChange::Closed(stream) => drop(self.streams.remove(&stream)),
            }
        }
        Some(bytes.into())
    }

    /// Hands a frame over that the browser has; ignores unknown numbers.
    pub(super) fn acknowledge(&mut self, now: Instant, gate: NodeId, number: u32) {
        if let Some(frame) = self.in_flight.remove(&number) {
            self.node.handle_frame(now, 0, gate, frame);
            self.is_changed = true;
        }
    }

    /// Adds or changes a subscription.
    pub(super) fn subscribe(&mut self, now: Instant, number: u32, spec: SubscriptionSpec) {
        match self.subscriptions.get(&number) {
            Some(id) => self.node.control_mut().update_subscription(now, *id, spec),
            None => {
                let id = self.node.subscribe(now, spec, QUEUE);
                self.subscriptions.insert(number, id);
            }
        }
        self.is_changed = true;
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&mut self, now: Instant, number: u32) {
        self.dropped.remove(&number);
        if let Some(id) = self.subscriptions.remove(&number) {
            self.node.remove(now, id);
        }
        self.is_changed = true;
    }

    /// Adds a publisher. Returns false if the number is in use.
    pub(super) fn publish(&mut self, now: Instant, number: u32, spec: PublisherSpec) -> bool {
        if self.publishers.contains_key(&number) {
            return false;
        }
        let id = self.node.publish(now, spec);
        self.publishers.insert(number, id);
        true
    }

    /// Ends a publisher.
    pub(super) fn unpublish(&mut self, now: Instant, number: u32) {
        if let Some(id) = self.publishers.remove(&number) {
            self.node.unpublish(now, id);
        }
    }

    /// Publishes a sample. Returns false if there is no such publisher.
    pub(super) fn put(&mut self, now: Instant, sample: BrowserSample) -> bool {
        let BrowserSample { publisher, age, bound, captured, kind, payload } = sample;
        let Some(id) = self.publishers.get(&publisher) else { return false };
        let captured = Timestamp { nanos: captured.as_nanos(), error: Timestamp::UNKNOWN_ERROR };
        let sample = NewSample { captured, kind, payload, age, doubt: bound };
        self.node.handle_put(now, *id, sample).is_some()
    }

    /// Returns the number of subscriptions and publishers.
    pub(super) fn len(&self) -> usize {
        self.subscriptions.len() + self.publishers.len()
    }

    /// Returns true if the browser has not taken its events for long.
    pub(super) fn is_stalled(&self) -> bool {
        self.events.len() >= EVENTS_MAX
    }

    /// Takes an output of the node; returns a frame for the gate, or a question that was asked.
    pub(super) fn take(&mut self, output: NodeOutput) -> Option<SessionOutput> {
        match output {
            NodeOutput::Frame { frame, .. } => Some(SessionOutput::Frame(frame)),
            NodeOutput::Control(ControlOutput::Asked { request, from, body }) => {
                Some(SessionOutput::Asked { request, from, body })
            }
            NodeOutput::Control(output) => {
                self.is_changed = true;
                let event = self.event(output);
                self.events.extend(event);
                None
            }
            NodeOutput::Silence(..)
            | NodeOutput::StreamClosed(_)
            | NodeOutput::Muted { .. }
            | NodeOutput::NoStream { .. } => None,
        }
    }

    fn number_of(&self, id: SubscriptionId) -> Option<u32> {
        self.subscriptions.iter().find(|(_, known)| **known == id).map(|(number, _)| *number)
    }

    fn publisher_of(&self, id: PublisherId) -> Option<u32> {
        self.publishers.iter().find(|(_, known)| **known == id).map(|(number, _)| *number)
    }

    fn event(&self, output: ControlOutput) -> Option<BrowserEvent> {
        match output {
            ControlOutput::Subscribed { subscription, publishers } => {
                let known = publishers.into_iter().map(|id| {
                    let spec = self.node.control().publisher(id);
                    let (tag, encoding) = spec
                        .map(|spec| (spec.tag.to_string(), spec.encoding.as_str().to_owned()))
                        .unwrap_or_default();
                    (id, tag, encoding)
                });
                Some(BrowserEvent::Publishers(self.number_of(subscription)?, known.collect()))
            }
            ControlOutput::Granted { grant } => match self.publisher_of(grant.publisher) {
                Some(number) if grant.subscription.node != self.node.id() => {
                    Some(BrowserEvent::PublisherGranted(number, grant))
                }
                Some(_) | None => {
                    Some(BrowserEvent::Granted(self.number_of(grant.subscription)?, grant))
                }
            },
            ControlOutput::Refused { subscription, refusal, .. } => {
                Some(BrowserEvent::Refused(self.number_of(subscription)?, refusal))
            }
            ControlOutput::ChangeRefused { subscription, refusals, spec } => {
                let number = self.number_of(subscription)?;
                let refusal = refusals.into_iter().next();
                Some(match refusal {
                    Some(refusal) => BrowserEvent::Refused(number, refusal),
                    None => BrowserEvent::Changed(number, spec.form),
                })
            }
            ControlOutput::Withdrawn { subscription, publisher } => {
                Some(BrowserEvent::Withdrawn(self.number_of(subscription)?, publisher))
            }
            ControlOutput::BestEffort { subscription, publisher, why } => {
                Some(BrowserEvent::BestEffort(self.number_of(subscription)?, publisher, why))
            }
            ControlOutput::Warned { subscription, publisher, warning } => {
                Some(BrowserEvent::Warned(self.number_of(subscription)?, publisher, warning))
            }
            ControlOutput::Changed { subscription, spec, .. } => {
                Some(BrowserEvent::Changed(self.number_of(subscription)?, spec.form))
            }
            ControlOutput::Matching { publisher, matching } => {
                Some(BrowserEvent::Matching(self.publisher_of(publisher)?, matching))
            }
            ControlOutput::Send { .. }
            | ControlOutput::Install { .. }
            | ControlOutput::Denied { .. }
            | ControlOutput::Used { .. }
            | ControlOutput::Allotted { .. }
            | ControlOutput::Unread { .. }
            | ControlOutput::ChangedFor { .. }
            | ControlOutput::NoSpare { .. }
            | ControlOutput::Excess { .. }
            | ControlOutput::Surveyed { .. }
            | ControlOutput::InForce { .. }
            | ControlOutput::Asked { .. }
            | ControlOutput::Answered { .. } => None,
        }
    }

    /// Takes the samples that the node has delivered: the browser has them already.
    pub(super) fn drain(&mut self, now: Instant) {
        while let Some(subscription) = self.node.poll_readable() {
            while self.node.read(now, subscription).is_some() {}
        }
    }

    /// Returns the streams whose subscriptions have changed since the last call.
    pub(super) fn take_readers(&mut self) -> Vec<StreamReaders> {
        if !std::mem::take(&mut self.is_changed) {
            return Vec::new();
        }
        let numbers: BTreeMap<SubscriptionId, u32> =
            self.subscriptions.iter().map(|(number, id)| (*id, *number)).collect();
        let mut changed = Vec::new();
        for (stream, open) in &mut self.streams {
            let readers = self.node.readers(open.key).into_iter();
            let mut readers: Vec<u32> =
                readers.filter_map(|id| numbers.get(&id).copied()).collect();
            readers.sort_unstable();
            // Before the node has arranged the stream, the browser keeps its samples.
            if open.readers.as_ref() == Some(&readers)
                || (open.readers.is_none() && readers.is_empty())
            {
                continue;
            }
            open.readers = Some(readers.clone());
            let OpenStream { key: SourceKey { publisher, .. }, hold, .. } = *open;
            changed.push(StreamReaders {
                stream: *stream,
                publisher,
                hold,
                subscriptions: readers,
            });
        }
        changed
    }

    /// Adds events for samples that were dropped at this node since the last call.
    pub(super) fn report_drops(&mut self) {
        for (number, id) in &self.subscriptions {
            let Some(delivery) = self.node.delivery(*id) else { continue };
            let drops = delivery.counts().drops();
            if self.dropped.get(number).copied().unwrap_or_default() != drops {
                self.dropped.insert(*number, drops);
                self.events.push_back(BrowserEvent::Dropped(*number, drops));
            }
        }
    }
}

/// An output of a browser's node.
#[derive(Debug)]
pub(super) enum SessionOutput {
    /// A frame to the gate.
    Frame(Bytes),
    /// A question of another node.
    Asked { request: u64, from: NodeId, body: Bytes },
}
