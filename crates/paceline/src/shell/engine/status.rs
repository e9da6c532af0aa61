//! The status of this node, and status requests to others.

use super::super::clock;
use super::super::handle::{HopSnapshot, LinkSnapshot, StreamSnapshot};
use super::super::waits::ProcessorWaits;
use super::{Engine, EngineLink};
use crate::status::{
    ClassStatus, LinkStatus, MeasuredCapacity, MediumStatus, MemoryStatus, NodeStatus,
    PublisherStatus, QueueStatus, RateCheck, Reservation, StreamContract, StreamStatus,
    SubscriptionStatus,
};
use bytes::Bytes;
use paceline_node::deliver::AgeWindow;
use paceline_node::status::{HealthRequest, HealthWindow, LinkReading, LinkUse};
use paceline_proto::control::{Grant, Topic};
use paceline_proto::{NodeId, PublisherId, SubscriptionId};
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// The shortest interval over which rates are computed.
const RATE_WINDOW: Duration = Duration::from_secs(1);
/// The shortest interval between two readings of the health of subscriptions.
const HEALTH_WINDOW: Duration = Duration::from_millis(400);

/// A status request that waits for the answers of nodes.
pub(crate) struct PendingStatus {
    requests: BTreeMap<u64, NodeId>,
    /// The nodes that were unreachable at the last tick.
    unreachable: BTreeSet<NodeId>,
    /// The answers, which the caller decodes.
    found: Vec<(NodeId, Bytes)>,
    until: Instant,
    reply: Sender<Vec<(NodeId, Bytes)>>,
}

/// The publish and delivery rates of this node.
#[derive(Default)]
pub(crate) struct Rates {
    since: Instant,
    published: BTreeMap<PublisherId, (u64, u64)>,
    /// The comparison of declared rates with published ones.
    checks: BTreeMap<PublisherId, (Duration, RateCheck)>,
    delivered: BTreeMap<SubscriptionId, Delivered>,
    health_since: Instant,
    health: BTreeMap<SubscriptionId, HealthWindow>,
    /// The use of the links, in their order.
    links: Vec<LinkUse>,
    /// Their least capacities.
    least: Vec<Option<u64>>,
    waits: ProcessorWaits,
}

#[derive(Default)]
struct Delivered {
    samples: u64,
    millihertz: u64,
    ages: AgeWindow,
}

fn millihertz(samples: u64, over: Duration) -> u64 {
    let scaled = u128::from(samples) * 1_000_000_000_000 / u128::from(over.as_nanos().max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

impl Rates {
    /// Returns the rate in millihertz and the largest age over the last second, for a subscription
    /// of this node.
    pub(super) fn delivered(&self, id: SubscriptionId) -> (u64, Duration) {
        let of = self.delivered.get(&id);
        of.map_or((0, Duration::ZERO), |of| (of.millihertz, Duration::from_nanos(of.ages.longest)))
    }
}

impl Engine {
    pub(super) fn update_rates(&mut self, now: Instant) {
        let over = now.since(self.rates.since);
        if over < RATE_WINDOW {
            return;
        }
        self.rates.since = now;
        self.rates.waits.read(now);
        self.report_excess(now);
        let old = std::mem::take(&mut self.rates.published);
        for (id, shared) in &self.publishers {
            let samples = shared.published.load(Ordering::Relaxed);
            let before = old.get(id).map_or(0, |(samples, _)| *samples);
            let rate = millihertz(samples.saturating_sub(before), over);
            self.rates.published.insert(*id, (samples, rate));
        }
        self.check_rates(now);
        self.rates.links.resize_with(self.links.len(), LinkUse::default);
        for (of, link) in self.rates.links.iter_mut().zip(&self.links) {
            of.handle_reading(link_reading(link));
        }
        let names = self.links.iter().map(|link| link.config.name.as_str());
        self.rates.least = names.map(|name| self.control.least_capacity(name)).collect();
        let mut old = std::mem::take(&mut self.rates.delivered);
        for (id, sink) in &self.sinks {
            let (delivered, ages) = {
                let mut delivery = sink.delivery();
                (delivery.counts().delivered, delivery.take_ages())
            };
            let before = old.remove(id).unwrap_or_default();
            let millihertz = millihertz(delivered.saturating_sub(before.samples), over);
            self.rates.delivered.insert(*id, Delivered { samples: delivered, millihertz, ages });
        }
    }

    /// Reads the counters of all subscriptions for their health: a failure is shown within two readings.
    pub(super) fn update_health(&mut self, now: Instant) {
        if now.since(self.rates.health_since) < HEALTH_WINDOW {
            return;
        }
        self.rates.health_since = now;
        let mut old = std::mem::take(&mut self.rates.health);
        for (id, sink) in &self.sinks {
            let reading = sink.delivery().health_reading(clock_time(now));
            let mut health = old.remove(id).unwrap_or_default();
            health.handle_reading(self.health_request(*id), reading);
            self.rates.health.insert(*id, health);
        }
    }

    /// Returns the request of a subscription, and the declared rates of its publishers.
    fn health_request(&self, id: SubscriptionId) -> HealthRequest {
        let Some(spec) = self.control.subscription(id) else { return HealthRequest::default() };
        let declared = |publisher: &PublisherId| {
            let spec = self.control.publisher(*publisher);
            (*publisher, spec.and_then(|spec| spec.period).map(Into::into))
        };
        HealthRequest {
            rate: spec.form.rate,
            within: spec.within.map(Into::into),
            loss: spec.loss,
            publishers: self.heard.get(&id).into_iter().flatten().map(declared).collect(),
        }
    }

    /// Logs publishers that do not keep their declared rate, and those that keep it again.
    fn check_rates(&mut self, now: Instant) {
        let me = self.control.me();
        let own = self.control.nodes().find(|node| node.id == me);
        let mut old = std::mem::take(&mut self.rates.checks);
        for (id, spec) in own.iter().flat_map(|view| view.publishers) {
            let Some(period) = spec.period.filter(|_| !spec.tag.is_private()) else { continue };
            let Some((published, _)) = self.rates.published.get(id) else { continue };
            let known = old.remove(id).filter(|(declared, _)| *declared == period);
            let (_, mut check) = known.unwrap_or_else(|| (period, RateCheck::new(period.into())));
            if let Some(news) = check.note(*published, now.as_nanos()) {
                tracing::warn!(tag = %spec.tag, "{news}");
            }
            self.rates.checks.insert(*id, (period, check));
        }
    }

    pub(super) fn own_status(&self) -> NodeStatus {
        let me = self.control.me();
        let view = self.control.nodes().find(|node| node.id == me);
        let private = self.private_publishers();
        let shown = view.iter().flat_map(|view| view.publishers);
        let shown = shown.filter(|(id, _)| !private.contains(id));
        let publishers = shown.map(|(id, spec)| {
            let shared = self.publishers.get(id);
            let rate = self.rates.published.get(id).map_or(0, |(_, rate)| *rate);
            let period = spec.period.map(Into::into);
            PublisherStatus {
                id: *id,
                tag: spec.tag.clone(),
                kind: spec.kind,
                encoding: spec.encoding.as_str().to_owned(),
                period,
                published: shared.map_or(0, |s| s.published.load(Ordering::Relaxed)),
                rate_millihertz: rate,
                off_rate: PublisherStatus::is_off_rate(period, rate),
                matching: shared.is_some_and(|s| s.matching.load(Ordering::Relaxed)),
            }
        });
        NodeStatus {
            id: me,
            name: self.name.clone(),
            at: clock_time(clock::now()),
            publishers: publishers.collect(),
            subscriptions: self.subscription_rows(),
            buffers: self.buffer_rows(),
            links: self.link_rows(&private),
            reservations: self.control.grants().map(|grant| self.reservation(&grant)).collect(),
            processor: self.control.processor_use().map(Into::into),
            buffer: Some(QueueStatus::new(
                self.control.host_buffer_use(),
                self.sources.depth.greatest(),
            )),
            memory: Some(self.memory_use()),
            dropped: self.sources.drops.load(),
            stalled: self.vitals.stalled(clock::now()),
            clock: Some(self.clock.report()),
            unread: self.unread_rows(),
            processor_wait: self.rates.waits.longest,
            ..NodeStatus::new(me)
        }
    }

    fn reservation(&self, grant: &Grant) -> Reservation {
        Reservation::new(grant, self.control.tag_of(grant.publisher).map(ToString::to_string))
    }

    fn memory_use(&self) -> MemoryStatus {
        let memory = &self.sources.memory;
        let [used_bytes, bytes, greatest_bytes] =
            [memory.used(), memory.limit(), memory.greatest()].map(|bytes| bytes as u64);
        MemoryStatus { used_bytes, bytes, greatest_bytes }
    }

    fn link_rows(&self, private: &BTreeSet<PublisherId>) -> Vec<LinkStatus> {
        let row = |(index, link): (usize, &EngineLink)| {
            let mut status = self.link_row(link, private);
            let memory: BTreeMap<_, _> = self.sources.memory_of(index).into_iter().collect();
            for neighbour in &mut status.neighbours {
                neighbour.memory_bytes = memory.get(&neighbour.id).map_or(0, |bytes| *bytes as u64);
            }
            self.rates.links.get(index).iter().for_each(|of| of.fill(&mut status));
            status.least_capacity_bits_per_s = self.rates.least.get(index).copied().flatten();
            status
        };
        self.links.iter().enumerate().map(row).collect()
    }

    fn link_row(&self, link: &EngineLink, private: &BTreeSet<PublisherId>) -> LinkStatus {
        // A copy: the link's thread must not wait for the rest.
        let snapshot = link.handle.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let shown = snapshot.streams.iter().filter(|row| !private.contains(&row.spec.publisher));
        let streams: Vec<_> = shown.map(|row| self.stream_row(row, &snapshot)).collect();
        let reserved = streams.iter().filter_map(|stream| stream.contract);
        let guarantees = self.control.class_uses(&link.config.name);
        let (round_trip, jitter) = snapshot.present.unwrap_or_default();
        let buffer = self.control.buffer_use(&link.config.name);
        let contracts = link.config.capacity;
        let measured = snapshot.estimate.map(|found| MeasuredCapacity::new(&found, contracts));
        let known = snapshot.estimate.map(|found| found.estimate).filter(|bits| *bits > 0);
        let known = known.and_then(|bits| Capacity::from_bits_per_s(bits).ok());
        let capacity = known.or(contracts);
        LinkStatus {
            name: link.config.name.clone(),
            at: clock_time(snapshot.at),
            capacity_bits_per_s: capacity.map(Capacity::bits_per_s),
            measured,
            medium: self
                .control
                .medium(&link.config.name)
                .map(|(view, bits)| MediumStatus::new(view, bits)),
            use_bits_per_s: None,
            reserved_bits_per_s: reserved
                .fold(0, |sum, contract| sum.saturating_add(contract.bits_per_s)),
            least_capacity_bits_per_s: None,
            least_round_trip: snapshot.least_round_trip.unwrap_or_default().into(),
            round_trip: round_trip.into(),
            jitter: jitter.into(),
            hops: snapshot.hops.iter().map(|hop| hop.node).collect(),
            neighbours: snapshot.hops.iter().map(HopSnapshot::status).collect(),
            wire_bytes: snapshot.wire_bytes,
            frames: snapshot.frames,
            frames_lost: snapshot.frames_lost,
            frames_dropped: snapshot.lost,
            loss: None,
            streams,
            closed: snapshot.closed.into(),
            classes: snapshot
                .classes
                .iter()
                .map(|class| ClassStatus::new(class, &guarantees))
                .collect(),
            muted: link.rx.muted(),
            repairs: snapshot.repairs.into(),
            buffer: buffer.map(|space| QueueStatus::new(space, snapshot.greatest_depth)),
        }
    }

    fn stream_row(&self, row: &StreamSnapshot, snapshot: &LinkSnapshot) -> StreamStatus {
        let StreamSnapshot { spec, counters, ages, broken } = row;
        StreamStatus {
            publisher: spec.publisher,
            tag: self.control.tag_of(spec.publisher).map(ToString::to_string),
            form: spec.form,
            hop: spec.hop,
            contracted: spec.contract.is_some(),
            contract: StreamContract::of(spec),
            ages: (*ages).into(),
            counters: (*counters).into(),
            broken_ago: broken.map(|broken| snapshot.at.since(broken).into()),
            group: snapshot.group_of(spec),
        }
    }

    /// Returns the names of the nodes that scale for a subscription, one per publisher that it receives.
    fn scaled_at(&self, id: SubscriptionId) -> Vec<String> {
        let place = |publisher: &PublisherId| {
            let path = self.control.stream_path(*publisher, id);
            let name = path.and_then(|path| self.control.name(path.proxy).map(str::to_owned));
            name.unwrap_or_default()
        };
        self.heard.get(&id).into_iter().flatten().map(place).collect()
    }

    fn subscription_rows(&self) -> Vec<SubscriptionStatus> {
        let mut rows: Vec<_> = self
            .sinks
            .iter()
            .filter_map(|(id, sink)| Some((id, self.control.subscription(*id)?, sink)))
            .filter(|(_, spec, _)| !spec.pattern.is_private())
            .map(|(id, spec, sink)| {
                let now = clock::now();
                let utc = sink.utc(now);
                let (mut row, timed) = {
                    let delivery = sink.delivery();
                    (delivery.status(*id, spec), delivery.timed_status(utc))
                };
                let none = Delivered::default();
                let rate = self.rates.delivered.get(id).unwrap_or(&none);
                row.scaled_at = self.scaled_at(*id);
                row.publishers = self.heard.get(id).cloned().unwrap_or_default();
                row.rate_millihertz = rate.millihertz;
                row.age_max = Duration::from_nanos(rate.ages.longest).into();
                row.age_mean = rate.ages.mean().map(std::time::Duration::from_nanos);
                (row.timed, row.players) = (timed, sink.players());
                row
            })
            .collect();
        for node in self.control.nodes() {
            for ((subscription, _), refusal) in node.refusals {
                let of = self.control.subscription(*subscription).map(|spec| spec.revision);
                // Ignore refusals of older requests.
                let current = of == Some(refusal.revision);
                if let Some(row) = rows.iter_mut().find(|row| current && row.id == *subscription) {
                    row.refusals.push(refusal.to_string());
                }
            }
        }
        for row in &mut rows {
            let none = HealthWindow::default();
            let window = self.rates.health.get(&row.id).unwrap_or(&none);
            row.health = window.with_refusals(&row.refusals);
        }
        rows
    }

    pub(super) fn ask_status(
        &mut self,
        now: Instant,
        only: Option<Vec<NodeId>>,
        timeout: std::time::Duration,
        reply: Sender<Vec<(NodeId, Bytes)>>,
    ) {
        let nodes = self.control.nodes().map(|node| node.id);
        let nodes: Vec<NodeId> =
            nodes.filter(|id| only.as_ref().is_none_or(|only| only.contains(id))).collect();
        let question = Bytes::from(vec![Topic::Status.code()]);
        let ask = |node| (self.control.ask(now, node, question.clone()), node);
        let requests = nodes.into_iter().map(ask);
        let pending = PendingStatus {
            requests: requests.collect(),
            unreachable: BTreeSet::new(),
            found: Vec::new(),
            until: now + timeout.into(),
            reply,
        };
        self.next_tick = self.next_tick.min(pending.until);
        self.pending.push(pending);
    }

    pub(super) fn take_status(&mut self, request: u64, node: NodeId, rows: Bytes) {
        for pending in &mut self.pending {
            if pending.requests.remove(&request).is_some() {
                pending.found.push((node, rows.clone()));
            }
        }
        self.finish_statuses(Instant::ZERO);
    }

    /// Stops waiting for nodes that are unreachable for two ticks, such as a process that has ended. A node that
    /// connects again, or over another path, still answers.
    pub(super) fn forget_unreachable(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let reachable: BTreeSet<_> = self.control.nodes().map(|node| node.id).collect();
        for pending in &mut self.pending {
            let before = std::mem::take(&mut pending.unreachable);
            pending.requests.retain(|_, node| {
                if reachable.contains(node) {
                    return true;
                }
                pending.unreachable.insert(*node);
                !before.contains(node)
            });
        }
    }

    /// Replies to requests that are complete or have timed out.
    pub(super) fn finish_statuses(&mut self, now: Instant) {
        self.pending.retain_mut(|pending| {
            let waits = !pending.requests.is_empty() && now < pending.until;
            if !waits {
                let _ = pending.reply.send(std::mem::take(&mut pending.found));
            }
            waits
        });
    }
}

/// Converts an instant; the clock's origin is arbitrary, so only differences are meaningful.
fn clock_time(at: Instant) -> std::time::Duration {
    at.since(Instant::ZERO).into()
}

fn link_reading(link: &EngineLink) -> LinkReading {
    let snapshot = link.handle.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
    LinkReading {
        at: clock_time(snapshot.at),
        wire_bytes: snapshot.wire_bytes,
        frames: snapshot.frames,
        frames_dropped: snapshot.lost,
        neighbours: snapshot.hops.iter().map(|hop| (hop.node, hop.wire_bytes)).collect(),
    }
}
