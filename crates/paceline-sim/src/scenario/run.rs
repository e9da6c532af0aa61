//! Runs a plan in virtual time.

use super::plan::{Content, Fault, FaultKind, Plan, Wiring};
use super::record::{Carried, Published, ReceivedSample, Record, Streamed, SubscriberRecord};
use crate::ask::{payload, video_kind, video_payload};
use crate::clock::ClockSpec;
use crate::handle::{NodeIx, Pub, Sub};
use crate::impair::Impairment;
use crate::random::Random;
use crate::wire::{WireCounters, WireSpec};
use crate::world::{LinkIx, World};
use bytes::Bytes;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::reason::{Drops, StreamCounters};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// A scheduled event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A clock step: the node and the size in nanoseconds.
    Clock(usize, i64),
    /// The end of a fault.
    Recover(usize),
    /// The start of a fault.
    Break(usize),
    /// A change of the capacity by a fault.
    Capacity(usize, usize),
    Subscribe(usize),
    Unsubscribe(usize),
    Declare(usize),
    Put(usize),
    Withdraw(usize),
    /// The start of the measurement.
    Begin,
    /// The end of the measurement.
    End,
}

/// A publisher of a run.
struct Source {
    publisher: Option<Pub>,
    withdrawn: bool,
    /// The index of its incarnation in [`Record::published`].
    life: usize,
    /// The number of periods that have passed.
    ticks: u64,
    since: Instant,
    payload: Bytes,
}

/// A run in progress.
struct Run<'p> {
    plan: &'p Plan,
    world: World,
    chance: Random,
    start: Instant,
    nodes: Vec<NodeIx>,
    /// The two ends of each link.
    links: Vec<[LinkIx; 2]>,
    /// The end of the current stall or crash of each node.
    away: Vec<Option<Instant>>,
    sources: Vec<Source>,
    subscribed: Vec<Option<Sub>>,
    /// Keyed by instant and a serial number.
    events: BTreeMap<(Instant, u64), Event>,
    planned: u64,
    before: Vec<[WireCounters; 2]>,
    record: Record,
}

/// Runs a plan. The same seed gives the same record.
///
/// # Panics
/// Panics if an invariant of the [`World`] does not hold: the sums do not agree, or a bound is exceeded.
#[must_use]
pub fn run(plan: &Plan, seed: u64) -> Record {
    let mut run = Run::new(plan, seed);
    run.schedule();
    while let Some(((at, _), event)) = run.events.pop_first() {
        run.pass_until(at);
        run.handle(event);
    }
    run.pass_until(run.start + plan.end());
    run.finish()
}

impl<'p> Run<'p> {
    fn new(plan: &'p Plan, seed: u64) -> Self {
        let mut world = World::new(seed);
        let nodes: Vec<_> = plan.nodes.iter().map(|node| world.add_node(&node.name)).collect();
        for (&at, node) in nodes.iter().zip(&plan.nodes) {
            if node.drift_ppm != 0 {
                world.set_clock(at, ClockSpec { drift_ppm: node.drift_ppm });
            }
        }
        let ends = plan.links.iter().filter_map(|link| lay(&mut world, plan, &nodes, link));
        let links: Vec<[LinkIx; 2]> = ends.collect();
        let start = world.now() + plan.warm_up;
        let source = |content: &Content, bytes: u64| Source {
            publisher: None,
            withdrawn: false,
            life: 0,
            ticks: 0,
            since: start,
            payload: body(content, bytes),
        };
        let sources = plan.publishers.iter().map(|one| source(&one.content, one.bytes)).collect();
        let mut record = Record { start, ..Record::default() };
        record.received.resize_with(plan.subscribers.len(), SubscriberRecord::default);
        Self {
            plan,
            world,
            chance: Random::new(!seed),
            start,
            away: vec![None; nodes.len()],
            nodes,
            links,
            sources,
            subscribed: vec![None; plan.subscribers.len()],
            events: BTreeMap::new(),
            planned: 0,
            before: Vec::new(),
            record,
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        if at > self.start + self.plan.end() {
            return;
        }
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }

    /// Schedules everything except the samples.
    fn schedule(&mut self) {
        let (plan, start) = (self.plan, self.start);
        let origin = self.world.now();
        let since = |from: Option<Duration>| from.map_or(origin, |from| start + from);
        self.at(start, Event::Begin);
        for (place, node) in plan.nodes.iter().enumerate() {
            for (at, by) in &node.steps {
                self.at(start + *at, Event::Clock(place, *by));
            }
        }
        for (place, subscriber) in plan.subscribers.iter().enumerate() {
            self.at(since(subscriber.lifetime.from), Event::Subscribe(place));
            if let Some(to) = subscriber.lifetime.to {
                self.at(start + to, Event::Unsubscribe(place));
            }
        }
        for (place, publisher) in plan.publishers.iter().enumerate() {
            self.at(since(publisher.lifetime.from), Event::Declare(place));
            if let Some(to) = publisher.lifetime.to {
                self.at(start + to, Event::Withdraw(place));
            }
        }
        for (place, fault) in plan.faults.iter().enumerate() {
            self.at(start + fault.at, Event::Break(place));
            if let FaultKind::Capacity(_, course) = &fault.what {
                for (change, (after, _)) in course.changes().iter().enumerate() {
                    let at = fault.at.saturating_add(*after);
                    if fault.until.is_none_or(|until| at < until) {
                        self.at(start + at, Event::Capacity(place, change));
                    }
                }
            }
            if let Some(until) = fault.until {
                self.at(start + until, Event::Recover(place));
            }
        }
        self.at(start + plan.duration, Event::End);
    }

    fn pass_until(&mut self, at: Instant) {
        let time = at.since(self.world.now());
        if !time.is_zero() {
            self.world.run_for(time);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Begin => self.before = self.counters(),
            Event::End => self.end(),
            Event::Clock(node, by) => {
                let node = self.nodes.get(node).copied();
                node.into_iter().for_each(|node| self.world.step_clock(node, by));
            }
            Event::Break(fault) => self.fault(fault, true),
            Event::Capacity(fault, change) => self.change_capacity(fault, Some(change)),
            Event::Recover(fault) => self.fault(fault, false),
            Event::Subscribe(place) => self.subscribe(place),
            Event::Unsubscribe(place) => {
                let subscribed = self.subscribed.get(place).copied().flatten();
                subscribed.into_iter().for_each(|sub| self.world.unsubscribe(sub));
            }
            Event::Declare(place) => self.declare(place),
            Event::Put(place) => self.put(place),
            Event::Withdraw(place) => self.withdraw(place),
        }
    }

    /// Returns the end of a node's current stall or crash.
    fn away(&self, node: usize) -> Option<Instant> {
        self.away.get(node).copied().flatten()
    }

    fn subscribe(&mut self, place: usize) {
        let Some(subscriber) = self.plan.subscribers.get(place) else { return };
        if let Some(back) = self.away(subscriber.node) {
            self.at(back, Event::Subscribe(place));
            return;
        }
        let Some(&node) = self.nodes.get(subscriber.node) else { return };
        let subscribed = self.world.subscribe(node, subscriber.spec.clone());
        self.subscribed.get_mut(place).into_iter().for_each(|slot| *slot = Some(subscribed));
    }

    fn declare(&mut self, place: usize) {
        let Some(publisher) = self.plan.publishers.get(place) else { return };
        if let Some(back) = self.away(publisher.node) {
            self.at(back, Event::Declare(place));
            return;
        }
        let Some(&node) = self.nodes.get(publisher.node) else { return };
        let declared = self.world.publish(node, publisher.spec());
        let now = self.world.now();
        if let Some(source) = self.sources.get_mut(place) {
            (source.publisher, source.since, source.ticks) = (Some(declared), now, 0);
        }
        self.begin_life(place, declared);
        let first = publisher.trace.first().map_or(now, |(at, _)| self.start + *at);
        self.at(first.max(now), Event::Put(place));
    }

    /// Starts a new incarnation of a publisher.
    fn begin_life(&mut self, publisher: usize, declared: Pub) {
        let life = self.record.published.len();
        let id = self.world.id(declared);
        self.record.published.push(Published { publisher, id, at: Vec::new() });
        self.sources.get_mut(publisher).into_iter().for_each(|source| source.life = life);
    }

    /// Publishes one sample and schedules the next one. Periods during which the node is away are skipped, as
    /// a camera would.
    fn put(&mut self, place: usize) {
        let Some(publisher) = self.plan.publishers.get(place) else { return };
        let (now, away) = (self.world.now(), self.away(publisher.node));
        let Some(source) = self.sources.get_mut(place) else { return };
        let Some(declared) = source.publisher.filter(|_| !source.withdrawn) else { return };
        if away.is_none()
            && let Some(life) = self.record.published.get_mut(source.life)
        {
            let number = life.at.len() as u64;
            let recorded =
                usize::try_from(source.ticks).ok().and_then(|at| publisher.trace.get(at));
            let bytes = recorded.and_then(|(_, bytes)| usize::try_from(*bytes).ok());
            let whole = source.payload.len();
            let payload = match &publisher.content {
                Content::Data | Content::Pictures => {
                    source.payload.slice(..bytes.unwrap_or(whole).min(whole))
                }
                Content::Video(group) => {
                    video_payload(number, video_kind(group, number), source.payload.len())
                }
            };
            life.at.push(now);
            self.world.put(declared, payload);
        }
        source.ticks += 1;
        let next = if publisher.trace.is_empty() {
            let due = source.since + publisher.period.mul_div(source.ticks, 1);
            due + Duration::from_nanos(self.chance.below(publisher.jitter.as_nanos()))
        } else {
            let next = usize::try_from(source.ticks).ok().and_then(|at| publisher.trace.get(at));
            let Some((at, _)) = next else { return };
            self.start + *at
        };
        // Jitter must not reorder samples.
        let next = next.max(now);
        if next < self.start + self.plan.duration {
            self.at(next, Event::Put(place));
        }
    }

    fn withdraw(&mut self, place: usize) {
        let Some(source) = self.sources.get_mut(place) else { return };
        source.withdrawn = true;
        source.publisher.into_iter().for_each(|declared| self.world.unpublish(declared));
    }

    fn fault(&mut self, place: usize, begins: bool) {
        let Some(fault) = self.plan.faults.get(place) else { return };
        let at = |node: &usize| self.nodes.get(*node).copied().unwrap_or(NodeIx(usize::MAX));
        match (&fault.what, begins) {
            (FaultKind::Cut([a, b]), true) => self.world.cut(at(a), at(b)),
            (FaultKind::Cut([a, b]), false) => self.world.restore(at(a), at(b)),
            (FaultKind::Stall(node), true) => self.world.stall(at(node)),
            (FaultKind::Stall(node), false) => self.world.resume(at(node)),
            (FaultKind::Crash(node), true) => self.world.crash(at(node)),
            (FaultKind::Crash(node), false) => self.world.restart(at(node)),
            (FaultKind::Capacity(..), true) => {}
            (FaultKind::Capacity(..), false) => self.change_capacity(place, None),
            (FaultKind::Impair([a, b], wire), true) => {
                self.world.impair(at(a), at(b), between_hosts(*wire));
            }
            (FaultKind::Impair([a, b], _), false) => {
                let link = self.plan.links.iter().find(|link| joins(link, *a, *b));
                let wire = between_hosts(link.map_or(Impairment::NONE, |link| link.wire));
                self.world.impair(at(a), at(b), wire);
            }
        }
        self.absent(fault, begins);
        if let (FaultKind::Crash(node), false) = (&fault.what, begins) {
            self.live_again(*node);
        }
    }

    /// Changes the rate of a wire to one of a fault, or back to that of the plan. Nodes with a fixed capacity are notified.
    fn change_capacity(&mut self, fault: usize, change: Option<usize>) {
        let Some(FaultKind::Capacity([a, b], course)) =
            self.plan.faults.get(fault).map(|fault| &fault.what)
        else {
            return;
        };
        let links = self.plan.links.iter().zip(&self.links);
        let Some((link, ends)) = links.into_iter().find(|(link, _)| joins(link, *a, *b)) else {
            return;
        };
        let changed = change.and_then(|change| course.changes().get(change));
        let rate = changed.map(|(_, rate)| *rate).or(link.wire.rate);
        let [here, there] = *ends;
        // A wire without a rate never limits a link.
        if link.wire.rate.is_some() {
            let wire = between_hosts(Impairment { rate, ..link.wire });
            self.world.impair(here.node, there.node, wire);
        }
        if let Some(LinkCapacity::Fixed(own)) = link.capacity {
            let capacity = changed.map_or(own, |(_, rate)| *rate);
            ends.iter().for_each(|end| self.world.set_capacity(*end, capacity));
        }
    }

    /// Starts new incarnations of a node's publishers after a restart.
    fn live_again(&mut self, node: usize) {
        let publishers = self.plan.publishers.iter().zip(&self.sources).enumerate();
        let declared: Vec<_> = publishers
            .filter(|(_, (publisher, source))| publisher.node == node && !source.withdrawn)
            .filter_map(|(place, (_, source))| Some((place, source.publisher?)))
            .collect();
        for (place, publisher) in declared {
            self.begin_life(place, publisher);
        }
    }

    /// Records whether a node is away, and until when.
    fn absent(&mut self, fault: &Fault, begins: bool) {
        let (FaultKind::Crash(node) | FaultKind::Stall(node)) = fault.what else { return };
        let until = fault.until.map_or(Instant::FAR, |until| self.start + until);
        self.away.get_mut(node).into_iter().for_each(|slot| *slot = begins.then_some(until));
    }

    /// Returns the counters of every wire so far, in both directions.
    fn counters(&self) -> Vec<[WireCounters; 2]> {
        let pairs = self.plan.links.iter().map(|link| self.pair(link));
        pairs.map(|[a, b]| [self.world.wire(a, b), self.world.wire(b, a)]).collect()
    }

    fn pair(&self, link: &Wiring) -> [NodeIx; 2] {
        link.between.map(|node| self.nodes.get(node).copied().unwrap_or(NodeIx(usize::MAX)))
    }

    fn end(&mut self) {
        let carried = |(now, before): (&WireCounters, &WireCounters)| Carried {
            bytes: now.bytes - before.bytes,
            lost: Some(now.lost - before.lost),
        };
        let now = self.counters();
        let all = now.iter().zip(&self.before);
        self.record.links = all
            .map(|([there, back], [there_before, back_before])| {
                [carried((there, there_before)), carried((back, back_before))]
            })
            .collect();
    }

    fn finish(mut self) -> Record {
        for (received, subscribed) in self.record.received.iter_mut().zip(&self.subscribed) {
            let Some(subscribed) = *subscribed else { continue };
            received.drops = self.world.drops(subscribed);
            let refusals = self.world.refusals(subscribed).iter();
            received.refusals = refusals.map(|(id, why)| (*id, why.to_string())).collect();
            received.steps.warned = self.world.warnings(subscribed).len() as u64;
            let steps = self.world.steps(subscribed).iter();
            steps.for_each(|(.., step)| received.steps.add(&step.cause));
            let delivered = self.world.delivered(subscribed).iter();
            received.arrivals = delivered
                .map(|got| ReceivedSample {
                    from: got.publisher,
                    seq: got.seq,
                    at: got.at,
                    bytes: got.bytes as u64,
                })
                .collect();
        }
        self.record.streams = self.streams();
        self.record.dropped = vec![<[Drops; 2]>::default(); self.plan.links.len()];
        for stream in &self.record.streams {
            let directions = self.record.dropped.get_mut(stream.link);
            if let Some(dropped) =
                directions.and_then(|directions| directions.get_mut(stream.direction))
            {
                dropped.merge(&stream.counters.drops);
            }
        }
        self.record
    }

    fn streams(&self) -> Vec<Streamed> {
        let mut streams = Vec::new();
        for (link, wiring) in self.plan.links.iter().enumerate() {
            let [a, b] = self.pair(wiring);
            for (direction, (from, to)) in [(a, b), (b, a)].into_iter().enumerate() {
                for (publisher, source) in self.sources.iter().enumerate() {
                    let Some(declared) = source.publisher else { continue };
                    let counters = self.world.stream(from, to, declared);
                    if counters != StreamCounters::default() {
                        streams.push(Streamed { link, direction, publisher, counters });
                    }
                }
            }
        }
        streams
    }
}

fn joins(link: &Wiring, a: usize, b: usize) -> bool {
    link.between == [a, b] || link.between == [b, a]
}

/// Returns a payload for a publisher with this content.
fn body(content: &Content, bytes: u64) -> Bytes {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    match content {
        Content::Data | Content::Pictures => payload(0, bytes),
        Content::Video(group) => video_payload(0, video_kind(group, 0), bytes),
    }
}

/// Joins two nodes by one link per direction over a wire.
fn lay(world: &mut World, plan: &Plan, nodes: &[NodeIx], link: &Wiring) -> Option<[LinkIx; 2]> {
    let [a, b] = link.between;
    let (here, there) = (*nodes.get(a)?, *nodes.get(b)?);
    let spec = link.spec();
    let one = world.add_link(here, &format!("{}-{}", plan.node(a), plan.node(b)), spec.clone());
    let other = world.add_link(there, &format!("{}-{}", plan.node(b), plan.node(a)), spec);
    let (kind, seal_bytes) = (link.protocol.wire(), link.protocol.seal_bytes());
    let wire = WireSpec { kind, impairment: between_hosts(link.wire), seal_bytes };
    world.join(one, other, wire, wire);
    let setting = link.capacity.filter(LinkCapacity::is_measured);
    setting
        .into_iter()
        .for_each(|range| [one, other].iter().for_each(|end| world.measure(*end, range)));
    Some([one, other])
}

/// The delay between two hosts on one switch, in addition to the specified delay of a wire.
const HOSTS: Duration = Duration::from_micros(50);

fn between_hosts(wire: Impairment) -> Impairment {
    Impairment { delay: wire.delay.saturating_add(HOSTS), ..wire }
}
