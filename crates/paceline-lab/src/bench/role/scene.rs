//! One node of a scenario with its links, publishers and subscribers. It uses its parent's clock.

use super::send;
use crate::bench::clock;
use crate::bench::protocol::{
    Arrived, Life, Message, NetLink, PublisherKey, Report, Scene, Stream,
};
use crate::bench::scenario::link_name;
use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use paceline::status::{Drops, PublisherId};
use paceline::{
    Capacity, Kind, LinkCapacity, LinkConfig, Node, Sample, SubscriberEvent, Subscription,
};
use paceline_sim::scenario::{
    Content, FaultKind, Lifetime, Plan, PublisherPlan, SubscriberPlan, Wiring,
};
use std::io::BufRead as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The reporting interval of a node that will crash.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// The time for which everything stays open after the end, so that the streams can be read, in
/// nanoseconds.
const LINGER_NS: u64 = 1_500_000_000;

/// The notes shared by all threads of this process.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Report>>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the notes since the last call.
    fn take(&self) -> Report {
        std::mem::take(&mut *self.lock())
    }
}

/// The instants of a run.
#[derive(Clone, Copy)]
struct Times {
    /// The end of the warm-up.
    start: u64,
    /// The end of the publishers.
    end: u64,
    /// The end of everything else.
    until: u64,
}

impl Times {
    fn of(self, at: Option<paceline_sched::Duration>, other: u64) -> u64 {
        at.map_or(other, |at| self.start + at.as_nanos())
    }
}

pub(super) fn run(scene: &Scene) -> Result<()> {
    let plan = Plan::read(&scene.text, &scene.file).map_err(|why| anyhow!("{why}"))?;
    let plan = plan.squeezed(paceline_sched::Duration::from_nanos(scene.duration_ns));
    let node = open(scene)?;
    send(&Message::Ready);
    let start = wait_for_start()?;
    let end = start + plan.duration.as_nanos();
    let times = Times { start, end, until: start + plan.end().as_nanos() + LINGER_NS };
    let notes = Notes::default();
    let until = start + plan.end().as_nanos();
    thread::scope(|scope| {
        for (place, one) in plan.publishers.iter().enumerate() {
            if one.node == scene.node {
                let (node, notes) = (&node, notes.clone());
                scope.spawn(move || publish(node, (place, one), times, &notes));
            }
        }
        for (place, one) in plan.subscribers.iter().enumerate() {
            if one.node == scene.node {
                let (node, notes) = (&node, notes.clone());
                scope.spawn(move || subscribe(node, (place, one), times, &notes));
            }
        }
        scope.spawn(|| follow_capacities(&node, (scene.node, &plan), start));
        while scene.crashes && clock::now() < until {
            thread::sleep(REPORT_EVERY);
            send(&Message::Scene(notes.take()));
        }
        clock::sleep_until(until);
        streams(&node, &notes);
    });
    super::wait_for_stop();
    send(&Message::Scene(notes.take()));
    send(&Message::Done);
    node.close();
    Ok(())
}

/// Waits for the parent's message with the end of the warm-up.
fn wait_for_start() -> Result<u64> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("input of the role")?;
    let start = line.trim().strip_prefix("go ").and_then(|start| start.parse().ok());
    start.context("the benchmark ended before it began")
}

/// Returns the configuration of a link.
pub(super) fn config(link: &NetLink) -> Result<LinkConfig> {
    let mut config = LinkConfig::new(&link.name).policy(link.policy.parse()?);
    if let Some([cert, key, ca]) = &link.tls {
        config = config.tls(cert, key, ca);
    }
    if let Some(endpoint) = &link.listen {
        config = config.listen(endpoint);
        config = if link.tls.is_some() { config } else { config.insecure() };
    }
    if let Some(endpoint) = &link.connect {
        config = config.connect(endpoint);
    }
    if let Some(capacity) = &link.capacity {
        config = config.capacity(capacity.parse::<LinkCapacity>()?);
    }
    if let Some(range) = &link.multicast {
        let wrong = |error| anyhow::anyhow!("multicast groups {range}: {error}");
        config = config.multicast(range.parse().map_err(wrong)?);
    }
    Ok(config)
}

fn open(scene: &Scene) -> Result<Node> {
    let mut builder = Node::builder().name(&scene.name);
    if let Some(policy) = &scene.access {
        builder = builder.policy(policy);
    }
    for link in &scene.links {
        builder = builder.link(config(link)?);
    }
    builder.open().with_context(|| format!("node {}", scene.name))
}

const fn publisher_key(id: PublisherId) -> PublisherKey {
    (id.node.0, id.index)
}

/// Publishes at the plan's rate. Errors are printed to standard error and show up in the sums.
fn publish(node: &Node, (place, plan): (usize, &PublisherPlan), times: Times, notes: &Notes) {
    if let Err(error) = try_publish(node, (place, plan), times, notes) {
        eprintln!("publisher {}: {error:#}", plan.tag.as_str());
    }
}

fn try_publish(
    node: &Node,
    (place, plan): (usize, &PublisherPlan),
    times: Times,
    notes: &Notes,
) -> Result<()> {
    let Lifetime { from, to } = plan.lifetime;
    clock::sleep_until(times.of(from, 0));
    let kind = match plan.content {
        Content::Data => Kind::Data,
        Content::Pictures => Kind::Picture,
        Content::Video(_) => bail!("video is simulated only"),
    };
    let period = plan.period.as_nanos();
    let builder = node.publisher(plan.tag.as_str()).period(Duration::from_nanos(period));
    let builder = builder.kind(kind).late(plan.late).bytes_max(plan.bytes);
    let mut publisher = builder.declare()?;
    let id = publisher_key(publisher.id());
    let payload = Bytes::from(vec![0x5A; usize::try_from(plan.bytes)?]);
    let (since, end) = (clock::now(), times.of(to, times.end));
    let mut tick = 0;
    let mut chance = paceline_sim::Random::new(u64::from(id.1) ^ id.0);
    while since + tick * period < end {
        clock::sleep_until(since + tick * period + chance.below(plan.jitter.as_nanos()));
        let now = clock::now();
        if now >= end {
            break;
        }
        note_put(&mut notes.lock(), place, id, now);
        publisher.put(payload.clone())?;
        tick += 1;
        // Like a camera, a source skips the periods that it missed.
        while since + (tick + 1) * period <= clock::now() {
            tick += 1;
        }
    }
    if to.is_none() {
        // The publisher stays declared until the end, as in the simulator.
        clock::sleep_until(times.until);
    }
    Ok(())
}

fn note_put(report: &mut Report, publisher: usize, id: PublisherKey, at: u64) {
    match report.lives.iter_mut().find(|life| life.id == id) {
        Some(life) => life.at.push(at),
        None => report.lives.push(Life { publisher, id, at: vec![at] }),
    }
}

fn subscribe(node: &Node, (place, plan): (usize, &SubscriberPlan), times: Times, notes: &Notes) {
    clock::sleep_until(times.of(plan.lifetime.from, 0));
    let subscription = match declare(node, place, plan, notes) {
        Ok(subscription) => subscription,
        Err(error) => return eprintln!("subscriber {}: {error:#}", plan.spec.pattern.as_str()),
    };
    clock::sleep_until(times.of(plan.lifetime.to, times.until));
    let mut report = notes.lock();
    for event in std::iter::from_fn(|| subscription.try_event()) {
        if let SubscriberEvent::Refused(id, why) = event {
            report.refusals.push((place, publisher_key(id), why.to_string()));
        } else if let SubscriberEvent::Adapted { adaptation, .. } = event {
            report.steps.entry(place).or_default().add(&adaptation.cause);
        } else if let SubscriberEvent::Warned(..) = event {
            report.steps.entry(place).or_default().warned += 1;
        }
    }
    for (reason, samples) in subscription.drops().iter() {
        report.drops.push((place, reason.index(), samples));
    }
}

fn declare(
    node: &Node,
    place: usize,
    plan: &SubscriberPlan,
    notes: &Notes,
) -> Result<Subscription> {
    let spec = &plan.spec;
    let mut builder = node.subscriber(spec.pattern.as_str()).proxy(spec.proxy.clone());
    builder = builder.rate(spec.form.rate);
    if let Some(within) = spec.within {
        builder = builder.within(Duration::from_nanos(within.as_nanos()));
    }
    if let Some(loss) = spec.loss {
        builder = builder.loss(loss.x(), loss.y());
    }
    builder = builder.importance(spec.importance);
    if let Some(bits) = spec.form.bitrate {
        builder = builder.bitrate(bits.get());
    }
    let elastic = spec.elastic.as_deref();
    if let Some(least) = elastic.and_then(|elastic| elastic.min_millihertz) {
        builder = builder.min_hz(f64::from(least.get()) / 1e3);
    }
    if let Some(least) = elastic.and_then(|elastic| elastic.min_bitrate) {
        builder = builder.min_bitrate(least.get());
    }
    let notes = notes.clone();
    let deliver = move |sample: Sample| {
        let (at, bytes) = (clock::now(), sample.payload.len() as u64);
        let from = publisher_key(sample.publisher);
        notes.lock().arrived.push(Arrived { subscriber: place, from, seq: sample.seq, at, bytes });
    };
    Ok(builder.callback(deliver)?)
}

/// Notifies the node of the capacities of its links at the times of the plan, as a modem would. Links with a measured capacity
/// have to find them.
fn follow_capacities(node: &Node, (place, plan): (usize, &Plan), start: u64) {
    let mut changes: Vec<(u64, String, Capacity)> = Vec::new();
    for fault in &plan.faults {
        let FaultKind::Capacity(between, course) = &fault.what else { continue };
        let same = |link: &&Wiring| {
            between.contains(&place) && between.iter().all(|end| link.between.contains(end))
        };
        let Some(link) = plan.links.iter().find(same) else { continue };
        let Some(LinkCapacity::Fixed(own)) = link.capacity else { continue };
        let [a, b] = *between;
        let name = link_name(plan, place, if a == place { b } else { a });
        let until = fault.until.map_or(u64::MAX, |until| until.as_nanos());
        let at = |after: &paceline_sched::Duration| fault.at.saturating_add(*after).as_nanos();
        let all = course.changes().iter().map(|(after, to)| (at(after), *to));
        let restored = fault.until.map(|until| (until.as_nanos(), own));
        let during = all.filter(|(at, _)| *at < until).chain(restored);
        changes.extend(during.map(|(at, to)| (start + at, name.clone(), to)));
    }
    changes.sort_by_key(|(at, ..)| *at);
    for (at, link, capacity) in changes {
        clock::sleep_until(at);
        if let Err(error) = node.set_capacity(&link, capacity) {
            eprintln!("{error}");
        }
    }
}

/// Records the counters of this node's links for each publisher.
fn streams(node: &Node, notes: &Notes) {
    let status = node.status(Duration::from_secs(1));
    let mut report = notes.lock();
    report.node = node.id().0;
    let own = status.iter().filter(|status| status.id == node.id());
    let links = own.flat_map(|status| &status.links);
    let by_place = |drops: &Drops| drops.iter().map(|(reason, n)| (reason.index(), n)).collect();
    let closed = links.clone().map(|link| (link.name.clone(), by_place(&link.closed.dropped)));
    report.closed.extend(closed);
    for stream in links.flat_map(|link| &link.streams) {
        let counters = &stream.counters;
        report.streams.push(Stream {
            hop: stream.hop.0,
            publisher: publisher_key(stream.publisher),
            offered: counters.offered,
            sent: counters.sent,
            bytes: counters.bytes,
            late: counters.late,
            violations: counters.violations,
            drops: by_place(&counters.dropped),
        });
    }
}
