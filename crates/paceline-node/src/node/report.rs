//! The status of a node, and the readers of its streams.

use super::Node;
use super::link::NodeLink;
use super::port::{Destination, NodePort};
use crate::status::{
    HealthRequest, LinkStatus, MeasuredCapacity, NeighbourStatus, NodeStatus, PublisherStatus,
    StreamContract, StreamStatus, SubscriptionStatus,
};
use paceline_proto::plan::{SourceKey, Target};
use paceline_proto::{NodeId, PublisherId, SubscriptionId};
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::BTreeMap;

impl Node {
    /// Returns the subscriptions of this node that receive a stream of another one; empty before they are arranged.
    pub fn readers(&mut self, source: SourceKey) -> Vec<SubscriptionId> {
        let Some(ingress) = self.arrivals.ingress_mut(source) else { return Vec::new() };
        let local = ingress.outputs().iter().filter(|output| output.key.target == Target::Local);
        let ports = local.filter_map(|output| match &output.port {
            NodePort::Destination(Destination::Local(port)) => Some(port),
            NodePort::Destination(Destination::Stream(_))
            | NodePort::Scale(_)
            | NodePort::Inline(..) => None,
        });
        ports.flat_map(|port| port.subscriptions.iter().map(|joined| joined.subscription)).collect()
    }

    /// Returns the status of the node, as other nodes may ask for it. The rates of publishers and links are zero or null; the rates of
    /// subscriptions are as of the last [`Self::read_meters`].
    #[must_use]
    pub fn status(&self, now: Instant) -> NodeStatus {
        let me = self.id();
        NodeStatus {
            name: self.control.name(me).unwrap_or_default().to_owned(),
            at: Duration::from_nanos(now.as_nanos()).into(),
            publishers: self.publisher_rows(),
            subscriptions: self.subscription_rows(),
            links: self.links.iter().map(|end| self.link_row(now, end)).collect(),
            dropped: self.unrouted,
            ..NodeStatus::new(me)
        }
    }

    fn publisher_rows(&self) -> Vec<PublisherStatus> {
        let view = self.control.nodes().find(|node| node.id == self.id());
        let own = view.iter().flat_map(|view| view.publishers);
        let shown = own.filter(|(_, spec)| !spec.tag.is_private());
        let row = |(id, spec): (&PublisherId, &std::sync::Arc<_>)| {
            let spec: &paceline_proto::control::PublisherSpec = spec;
            let source = self.sources.get(id);
            let stamper = source.and_then(|source| source.stamper.as_ref());
            PublisherStatus {
                id: *id,
                tag: spec.tag.clone(),
                kind: spec.kind,
                encoding: spec.encoding.as_str().to_owned(),
                period: spec.period.map(Into::into),
                published: stamper.map_or(0, |stamper| stamper.stamped()),
                rate_millihertz: 0,
                off_rate: false,
                matching: source.is_some_and(|source| !source.ingress.outputs().is_empty()),
            }
        };
        shown.map(row).collect()
    }

    fn subscription_rows(&self) -> Vec<SubscriptionStatus> {
        let mut refusals = self.refusals();
        let row = |id: SubscriptionId| {
            let spec = self.control.subscription(id).filter(|spec| !spec.pattern.is_private())?;
            let end = self.subscriptions.get(id)?;
            let mut row = end.delivery.status(id, spec);
            row.publishers.clone_from(&end.publishers);
            row.refusals = refusals.remove(&id).unwrap_or_default();
            end.meter.fill(&mut row);
            Some(row)
        };
        self.subscriptions().filter_map(row).collect()
    }

    /// Reads the counters of the subscriptions, for the rates, ages and health in [`Self::status`]. Call it about once per second.
    pub fn read_meters(&mut self, now: Instant) {
        let ids: Vec<SubscriptionId> = self.subscriptions().collect();
        for id in ids {
            let (Some(spec), Some(end)) =
                (self.control.subscription(id), self.subscriptions.get_mut(id))
            else {
                continue;
            };
            let declared = |publisher: &PublisherId| {
                let spec = self.control.publisher(*publisher);
                (*publisher, spec.and_then(|spec| spec.period).map(Into::into))
            };
            let request = HealthRequest {
                rate: spec.form.rate,
                within: spec.within.map(Into::into),
                loss: spec.loss,
                publishers: end.publishers.iter().map(declared).collect(),
            };
            end.meter.read(now, &mut end.delivery, request);
        }
    }

    /// Returns the refusals of the present requests of this node's subscriptions, in words.
    fn refusals(&self) -> BTreeMap<SubscriptionId, Vec<String>> {
        let mut found: BTreeMap<SubscriptionId, Vec<String>> = BTreeMap::new();
        for node in self.control.nodes() {
            for ((subscription, _), refusal) in node.refusals {
                let present = self.control.subscription(*subscription).map(|spec| spec.revision);
                if subscription.node == self.id() && present == Some(refusal.revision) {
                    found.entry(*subscription).or_default().push(refusal.to_string());
                }
            }
        }
        found
    }

    fn link_row(&self, now: Instant, end: &NodeLink) -> LinkStatus {
        let link = end.link();
        let up = || link.hops().filter(|(_, hop)| hop.is_up());
        let estimate = link.estimate();
        let known = estimate.map(|found| found.estimate).filter(|bits| *bits > 0);
        let contracts = end.spec().capacity;
        let streams: Vec<StreamStatus> = self.stream_rows(end);
        let reserved = streams.iter().filter_map(|stream| stream.contract);
        let (frames, wire_bytes) = link.sent();
        let neighbour = |node: NodeId| NeighbourStatus {
            id: node,
            wire_bytes: 0,
            use_bits_per_s: None,
            down_after: end.probes_to(node).silence_max().into(),
            memory_bytes: 0,
        };
        let trip = up().filter_map(|(_, hop)| hop.least_round_trip()).min().unwrap_or_default();
        LinkStatus {
            name: end.name().to_owned(),
            at: Duration::from_nanos(now.as_nanos()).into(),
            capacity_bits_per_s: known.or(contracts.map(Capacity::bits_per_s)),
            measured: estimate.map(|found| MeasuredCapacity::new(&found, contracts)),
            medium: None,
            use_bits_per_s: None,
            reserved_bits_per_s: reserved
                .fold(0, |sum, contract| sum.saturating_add(contract.bits_per_s)),
            least_capacity_bits_per_s: None,
            least_round_trip: trip.into(),
            round_trip: trip.into(),
            jitter: std::time::Duration::ZERO,
            hops: up().map(|(node, _)| node).collect(),
            neighbours: up().map(|(node, _)| neighbour(node)).collect(),
            wire_bytes,
            frames,
            frames_lost: link.frames_lost(),
            frames_dropped: 0,
            loss: None,
            streams,
            closed: link.closed().into(),
            classes: Vec::new(),
            muted: Vec::new(),
            repairs: link.repair_counters().into(),
            buffer: None,
        }
    }

    fn stream_rows(&self, end: &NodeLink) -> Vec<StreamStatus> {
        let shown = end.link().streams().filter(|(_, spec, ..)| {
            self.control.tag_of(spec.publisher).is_none_or(|tag| !tag.is_private())
        });
        let row = shown.map(|(index, spec, counters, _)| StreamStatus {
            publisher: spec.publisher,
            tag: self.control.tag_of(spec.publisher).map(ToString::to_string),
            form: spec.form,
            hop: spec.hop,
            contracted: spec.contract.is_some(),
            contract: StreamContract::of(spec),
            ages: end.link().ages(index).unwrap_or_default().into(),
            counters: counters.into(),
            broken_ago: None,
            group: None,
        });
        row.collect()
    }
}
