//! The targets of a source's outputs: streams of links, subscriptions of this node, and the scaler.

use crate::destination::{Destination, Joined, LocalPort};
use crate::pool::{Pool, Scaler};
use crate::rings::{RING_MAX, Rings};
use crate::sink::Sink;
use crate::video::VideoScaler;
use core::ops::Bound;
use paceline_node::arrive::Outputs;
use paceline_node::deliver::{Acceptance, Origin};
use paceline_node::install::{ScalerId, StreamPlace};
use paceline_proto::form::Form;
use paceline_proto::ids::{NodeId, PublisherId, SubscriptionId};
use paceline_proto::ingress::{Ingress, Output, OutputKey};
use paceline_proto::link::{Link, LinkSpec};
use paceline_proto::reason::DropReason;
use paceline_proto::receive::Receiver;
use paceline_proto::sample::RawSample;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::collections::BTreeMap;

/// A stream from or to a neighbour, whichever node published it.
pub(super) type StreamKey = (NodeId, PublisherId, Form);

/// A link with its hops and queues.
#[derive(Debug)]
pub(super) struct LinkEnd {
    pub(super) name: String,
    pub(super) spec: LinkSpec,
    pub(super) link: Link,
    pub(super) hops: BTreeMap<NodeId, HopEnd>,
    /// Receivers of neighbours that are down. Their streams continue after a reconnection.
    pub(super) parted: BTreeMap<NodeId, Receiver>,
    pub(super) rings: Rings,
    /// Replaced streams that still send their backlog.
    pub(super) retired: Vec<Retired>,
    /// There was input since the link was last served.
    pub(super) touched: bool,
    /// The latest next service without input, by the node's clock.
    pub(super) wake: Instant,
}

/// A replaced stream, and the latest instant to close it.
#[derive(Debug)]
pub(super) struct Retired {
    pub(super) key: StreamKey,
    pub(super) index: StreamIndex,
    pub(super) until: Instant,
}

/// The receiving end of a hop, and the wire that leads to it.
#[derive(Debug)]
pub(super) struct HopEnd {
    pub(super) wire: usize,
    pub(super) receiver: Receiver,
}

impl LinkEnd {
    pub(super) fn new(name: String, spec: LinkSpec) -> Self {
        let (hops, parted) = (BTreeMap::new(), BTreeMap::new());
        let (rings, retired) = (Rings::default(), Vec::new());
        let link = Link::new(spec.clone());
        Self { name, spec, link, hops, parted, rings, retired, touched: true, wake: Instant::FAR }
    }

    /// Returns the instant of the next service without input.
    pub(super) fn next_turn(&self) -> Instant {
        let receivers = self.hops.values().map(|hop| hop.receiver.poll_timeout());
        let retired = self.retired.iter().map(|retired| retired.until);
        receivers.chain(retired).fold(self.link.poll_timeout(), Instant::min)
    }

    /// Queues a sample for a stream. Returns false if there is no room.
    fn push(&mut self, now: Instant, index: StreamIndex, sample: RawSample) -> bool {
        let Some(ring) = self.rings.get_mut(index) else { return false };
        self.touched = true;
        ring.pushed += 1;
        if ring.waiting.is_empty() && self.link.has_room(now, index) {
            self.link.handle_sample(now, index, sample);
            return true;
        }
        if ring.waiting.len() >= RING_MAX {
            ring.full += 1;
            self.link.handle_dropped(index, DropReason::QueueFull, 1);
            return false;
        }
        ring.waiting.push_back((now, sample));
        self.rings.waiting.insert(index);
        self.drain(now, index);
        true
    }

    /// Moves queued samples into the link as far as it has room. Returns true if any was moved.
    pub(super) fn drain(&mut self, now: Instant, index: StreamIndex) -> bool {
        let Some(ring) = self.rings.get_mut(index) else { return false };
        let before = ring.waiting.len();
        while !ring.waiting.is_empty() && self.link.has_room(now, index) {
            if let Some((since, sample)) = ring.waiting.pop_front() {
                self.link.handle_waiting(now, since, index, sample);
            }
        }
        let left = ring.waiting.len();
        if left == 0 {
            self.rings.waiting.remove(&index);
        }
        left < before
    }

    pub(super) fn drain_all(&mut self, now: Instant) -> bool {
        let mut moved = false;
        let mut at = Bound::Unbounded;
        while let Some(&index) = self.rings.waiting.range((at, Bound::Unbounded)).next() {
            moved |= self.drain(now, index);
            at = Bound::Excluded(index);
        }
        moved
    }
}

/// The target of an output.
#[derive(Debug)]
pub(super) enum Port {
    /// Directly to a stream or to subscriptions.
    Destination(Destination),
    /// To a shared scaler first, which stores the final target.
    Scale(ScalerId),
    /// Video, which is scaled per output.
    Video(Box<VideoScaler>),
}

/// All possible targets of an output.
pub(super) struct Outlets<'a> {
    /// The node's clock.
    pub(super) now: Instant,
    /// The world's clock.
    pub(super) at: Instant,
    pub(super) links: &'a mut [LinkEnd],
    pub(super) sinks: &'a mut BTreeMap<SubscriptionId, Sink>,
    pub(super) scalers: &'a mut BTreeMap<ScalerId, Scaler>,
    pub(super) pool: &'a mut Pool,
    /// Samples that found no output here, by publisher.
    pub(super) unrouted: &'a mut BTreeMap<PublisherId, u64>,
}

impl Outputs<Port> for Outlets<'_> {
    fn offer(&mut self, _: Instant, ingress: &mut Ingress<Port>, sample: RawSample) {
        ingress.offer(sample, |output, offered| match offered {
            Ok(sample) => self.push(output.key, &mut output.port, sample),
            Err(reason) => {
                self.count_at(output.key, &output.port, reason, 1);
                false
            }
        });
    }

    fn count(&mut self, output: &mut Output<Port>, reason: DropReason, samples: u64) {
        self.count_at(output.key, &output.port, reason, samples);
    }

    fn count_unrouted(&mut self, publisher: PublisherId, _: DropReason, samples: u64) {
        *self.unrouted.entry(publisher).or_default() += samples;
    }
}

impl Outlets<'_> {
    /// Passes a sample to a port. Returns false if the sample was dropped.
    pub(super) fn push(&mut self, key: OutputKey, port: &mut Port, sample: RawSample) -> bool {
        match port {
            Port::Destination(destination) => self.leave(destination, sample),
            Port::Scale(place) => {
                self.submit(*place, key, sample);
                true
            }
            Port::Video(scaler) => match scaler.scale(&sample) {
                Ok(None) => true,
                Ok(Some(scaled)) => {
                    let kind = scaled.kind;
                    if !self.leave(scaler.destination_mut(), scaled) {
                        scaler.broke(kind);
                    }
                    true
                }
                Err(reason) => {
                    self.count_on(scaler.destination(), reason, 1);
                    true
                }
            },
        }
    }

    /// Counts samples that were lost upstream of `port`.
    fn count_at(&mut self, key: OutputKey, port: &Port, reason: DropReason, samples: u64) {
        match port {
            Port::Destination(destination) => self.count_on(destination, reason, samples),
            Port::Video(scaler) => self.count_on(scaler.destination(), reason, samples),
            Port::Scale(place) => {
                let Some(mut scaler) = self.scalers.remove(place) else { return };
                if let Some(destination) = scaler.destinations.get_mut(&key) {
                    self.count_on(destination, reason, samples);
                }
                self.scalers.insert(*place, scaler);
            }
        }
    }

    pub(super) fn count_on(&mut self, destination: &Destination, reason: DropReason, samples: u64) {
        match destination {
            Destination::Stream(StreamPlace { link, index }) => {
                let Some(end) = self.links.get_mut(*link) else { return };
                end.link.handle_dropped(*index, reason, samples);
                if let Some(ring) = end.rings.get_mut(*index) {
                    ring.lost += samples;
                }
            }
            Destination::Local(local) => {
                for it in &local.subscriptions {
                    if let Some(sink) = self.sinks.get_mut(&it.subscription) {
                        sink.count(local.publisher, reason, samples);
                    }
                }
            }
        }
    }

    /// Sends a sample to its final target. Returns false if the sample was dropped; each local subscription
    /// counts its own drops.
    pub(super) fn leave(&mut self, destination: &mut Destination, sample: RawSample) -> bool {
        match destination {
            Destination::Stream(StreamPlace { link, index }) => {
                let end = self.links.get_mut(*link);
                end.is_some_and(|end| end.push(self.now, *index, sample))
            }
            Destination::Local(local) => {
                self.deliver(local, &sample);
                true
            }
        }
    }

    fn deliver(&mut self, local: &mut LocalPort, sample: &RawSample) {
        let from = Origin { tag: &local.tag, publisher: local.publisher, late: local.late };
        for Joined { subscription, gate, needed } in &mut local.subscriptions {
            let Some(sink) = self.sinks.get_mut(subscription) else { continue };
            sink.note_published(local.publisher, sample.seq);
            if !gate.admit(sample.kind) {
                sink.count(local.publisher, DropReason::Undecodable, 1);
                continue;
            }
            match sink.deliver((self.now, self.at), &from, *needed, sample) {
                Acceptance::Accepted => needed.add(sample.kind),
                Acceptance::Dropped => gate.broke(sample.kind),
                Acceptance::Repeated => {}
            }
        }
    }
}
