//! A link of a node: the frames of its neighbours, and the queues of its streams.

use super::queue::{STREAM_QUEUE_MAX, StreamQueue, StreamQueues};
use crate::capacity::CapacityFollower;
use core::ops::Bound;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::link::{Link, LinkSpec};
use paceline_proto::plan::SourceKey;
use paceline_proto::reason::DropReason;
use paceline_proto::sample::RawSample;
use paceline_proto::{NodeId, ProbeInterval};
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;

/// A link of a [`Node`](super::Node) with its queues.
#[derive(Debug)]
pub struct NodeLink {
    pub(super) name: String,
    pub(super) spec: LinkSpec,
    pub(super) link: Link,
    /// The capacity as configured: a number, or the range of a measured one.
    pub(super) setting: Option<LinkCapacity>,
    pub(super) follower: CapacityFollower,
    pub(super) queues: StreamQueues,
    /// Replaced streams that still send their backlog.
    pub(super) retired: Vec<Retired>,
    /// There was input since the link was last served.
    pub(super) touched: bool,
    /// The time of the next service without input.
    pub(super) wake: Instant,
    /// A measurement was admitted at least once.
    pub(super) has_measurement: bool,
}

/// A replaced stream, and the latest instant to close it.
#[derive(Debug)]
pub(super) struct Retired {
    pub(super) hop: NodeId,
    pub(super) source: SourceKey,
    pub(super) index: StreamIndex,
    pub(super) until: Instant,
}

impl NodeLink {
    pub(super) fn new(name: String, spec: LinkSpec) -> Self {
        Self {
            name,
            link: Link::new(spec.clone()),
            setting: spec.capacity.map(LinkCapacity::Fixed),
            spec,
            follower: CapacityFollower::default(),
            queues: StreamQueues::default(),
            retired: Vec::new(),
            touched: true,
            wake: Instant::FAR,
            has_measurement: false,
        }
    }

    /// Begins the link anew, and its measurement.
    pub(super) fn renew(&mut self) {
        if let Some(setting) = self.setting {
            self.spec.capacity = Some(setting.first());
        }
        self.link = Link::new(self.spec.clone());
        if let Some(setting) = self.setting.filter(LinkCapacity::is_measured) {
            self.link.measure(setting);
            self.follower = CapacityFollower::new(Some(setting));
        }
        self.has_measurement = false;
        self.touched = true;
    }

    /// Returns true once contracts may use a measurement of the capacity.
    #[must_use]
    pub const fn has_measurement(&self) -> bool {
        self.has_measurement
    }

    /// Returns the name of the link.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the capacity as configured; `None` for a link without one.
    #[must_use]
    pub const fn setting(&self) -> Option<LinkCapacity> {
        self.setting
    }

    pub(super) fn is_measured(&self) -> bool {
        self.setting.is_some_and(|setting| setting.is_measured())
    }

    /// Returns the properties with which the link was added, with its present capacity.
    #[must_use]
    pub const fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Returns the link: its hops, its streams and their counters.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// Returns the queue before an open stream.
    #[must_use]
    pub fn queue(&self, index: StreamIndex) -> Option<&StreamQueue> {
        self.queues.get(index)
    }

    /// Returns the number of these queues.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Returns the instant of the next service without input.
    pub(super) fn next_service(&self) -> Instant {
        let retired = self.retired.iter().map(|retired| retired.until);
        retired.fold(self.link.poll_timeout(), Instant::min)
    }

    /// Returns the interval of the probes to a neighbour.
    pub(super) fn probes_to(&self, node: NodeId) -> ProbeInterval {
        let hop = self.link.hops().find(|(hop, _)| *hop == node);
        hop.map(|(_, hop)| hop.probe_interval()).unwrap_or_default()
    }

    /// Queues a sample for a stream. Returns false if there is no room.
    pub(super) fn push(&mut self, now: Instant, index: StreamIndex, sample: RawSample) -> bool {
        let Some(queue) = self.queues.get_mut(index) else { return false };
        self.touched = true;
        queue.pushed += 1;
        if queue.waiting.is_empty() && self.link.has_room(now, index) {
            self.link.handle_sample(now, index, sample);
            return true;
        }
        if queue.waiting.len() >= STREAM_QUEUE_MAX {
            self.link.handle_dropped(index, DropReason::QueueFull, 1);
            return false;
        }
        queue.waiting.push_back((now, sample));
        self.queues.waiting.insert(index);
        self.drain(now, index);
        true
    }

    /// Counts samples of a stream that were lost before it.
    pub(super) fn count(&mut self, index: StreamIndex, reason: DropReason, samples: u64) {
        self.link.handle_dropped(index, reason, samples);
        if let Some(queue) = self.queues.get_mut(index) {
            queue.lost += samples;
        }
    }

    /// Moves queued samples into the link as far as it has room. Returns true if any was moved.
    pub(super) fn drain(&mut self, now: Instant, index: StreamIndex) -> bool {
        let Some(queue) = self.queues.get_mut(index) else { return false };
        let before = queue.waiting.len();
        while !queue.waiting.is_empty() && self.link.has_room(now, index) {
            if let Some((since, sample)) = queue.waiting.pop_front() {
                self.link.handle_waiting(now, since, index, sample);
            }
        }
        let left = queue.waiting.len();
        if left == 0 {
            self.queues.waiting.remove(&index);
        }
        left < before
    }

    pub(super) fn drain_all(&mut self, now: Instant) -> bool {
        let mut moved = false;
        let mut at = Bound::Unbounded;
        while let Some(&index) = self.queues.waiting.range((at, Bound::Unbounded)).next() {
            moved |= self.drain(now, index);
            at = Bound::Excluded(index);
        }
        moved
    }
}
