//! The simulated network of a recorded run.

use super::change::{Changes, of_hertz};
use anyhow::anyhow;
use paceline::{Capacity, Late, LinkCapacity, Pattern, Tag};
use paceline_record::{Asked, RecordedRun, RecordedStream};
use paceline_sched::Duration;
use paceline_sim::impair::Impairment;
use paceline_sim::scenario::{
    CapacityCourse, Content, Fault, FaultKind, Lifetime, NodePlan, Plan, Protocol, PublisherPlan,
    SubscriberPlan, Wiring,
};
use paceline_tool::{exit, show};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// The time before the first sample, in which the nodes meet and the contracts are granted.
const WARM_UP: Duration = Duration::from_secs(3);
/// The time after the last sample.
const TAIL: Duration = Duration::from_millis(100);
/// The name of a recorder that the file does not name.
const RECORDER: &str = "recorder";
/// The link between processes of one host.
const HOST: &str = "host";
/// The link of a stream without a recorded path.
const PATH: &str = "path";

/// Returns the plan of a recorded run with its changes, and the names of its links.
pub(super) fn plan(run: &RecordedRun, changes: &Changes) -> anyhow::Result<(Plan, Vec<String>)> {
    let recorder = run.recorder.clone().unwrap_or_else(|| RECORDER.to_owned());
    let far = |stream: &&RecordedStream| stream.node != recorder && !stream.samples.is_empty();
    let (mut streams, mut left_out) = (Vec::new(), Vec::new());
    for stream in run.streams.iter().filter(far) {
        match tag_of(&stream.tag) {
            Some(tag) => streams.push((tag, stream)),
            None => left_out.push(stream.tag.as_str()),
        }
    }
    if !left_out.is_empty() {
        show::note(&format!("left out, because they are no tags: {}", left_out.join(", ")));
    }
    let times = || streams.iter().flat_map(|(_, stream)| &stream.samples).map(|(at, _)| *at);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let duration = Duration::from_nanos(last - first).saturating_add(TAIL);
    let mut network = Network::new(duration);
    for (tag, stream) in &streams {
        network.add((tag, stream), (&recorder, first), changes);
    }
    let place = network.node(&recorder);
    let tags: BTreeSet<&Tag> = streams.iter().map(|(tag, _)| tag).collect();
    for tag in &tags {
        let pattern = Pattern::new(tag.as_str());
        let pattern = pattern.map_err(|error| anyhow!("tag '{}': {error}", tag.as_str()))?;
        let mut subscriber = SubscriberPlan::new(place, pattern);
        if let Some(asked) = &run.asked {
            request(&mut subscriber, asked);
        }
        let changed = changes.requests.iter().filter(|change| change.tags.matches(tag));
        changed.for_each(|change| change.apply(&mut subscriber));
        network.plan.subscribers.push(subscriber);
    }
    network.check(&tags, changes).map_err(exit::usage)?;
    Ok((network.plan, network.links))
}

/// Returns the tag of a topic. Topics of ROS begin with a slash.
fn tag_of(topic: &str) -> Option<Tag> {
    topic.trim_start_matches('/').parse().ok()
}

/// Sets the recorded request.
fn request(subscriber: &mut SubscriberPlan, asked: &Asked) {
    let spec = &mut subscriber.spec;
    if let Some(every) = asked.every.and_then(NonZeroU32::new) {
        spec.form.rate.every = every;
    }
    spec.form.rate.max_millihertz = asked.max_hz.and_then(of_hertz);
    spec.within = asked.within_us.map(Duration::from_micros);
    spec.loss = asked.loss.as_ref().and_then(|loss| loss.parse().ok());
}

struct Network {
    plan: Plan,
    links: Vec<String>,
}

impl Network {
    fn new(duration: Duration) -> Self {
        let plan = Plan {
            name: "whatif".to_owned(),
            seed: 1,
            duration,
            warm_up: WARM_UP,
            nodes: Vec::new(),
            links: Vec::new(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            faults: Vec::new(),
            warnings: Vec::new(),
        };
        Self { plan, links: Vec::new() }
    }

    /// Returns the index of a node, which is added if it is new.
    fn node(&mut self, name: &str) -> usize {
        let known = self.plan.nodes.iter().position(|node| node.name == name);
        known.unwrap_or_else(|| {
            self.plan.nodes.push(NodePlan { name: name.to_owned(), ..NodePlan::default() });
            self.plan.nodes.len() - 1
        })
    }

    /// Adds a stream, with the nodes and links of its path.
    fn add(
        &mut self,
        (tag, stream): (&Tag, &RecordedStream),
        (recorder, first): (&str, u64),
        changes: &Changes,
    ) {
        let source = if stream.node.is_empty() { "publisher" } else { &stream.node };
        // A path within one host is one link, of which --capacity can be another one.
        let hops = Some(&stream.hops).filter(|hops| hops.iter().any(|hop| hop.link != HOST));
        let mut path: Vec<(&str, Option<&str>, Option<u64>)> = hops
            .into_iter()
            .flatten()
            .map(|hop| (hop.name.as_str(), Some(hop.link.as_str()), hop.capacity_bits_per_s))
            .collect();
        if path.is_empty() {
            path.push((source, None, None));
        }
        let next = path.iter().skip(1).map(|(name, _, _)| *name).chain([recorder]);
        for ((from, link, capacity), to) in path.iter().zip(next.collect::<Vec<_>>()) {
            let later = link.map(|link| course(stream, (from, link), first)).unwrap_or_default();
            self.connect((from, to), (*link, *capacity, later), changes);
        }
        let node = self.node(path.first().map_or(source, |(name, _, _)| *name));
        let bytes = stream.samples.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        self.plan.publishers.push(PublisherPlan {
            node,
            tag: tag.clone(),
            content: if stream.kind == "picture" { Content::Pictures } else { Content::Data },
            period: period(stream),
            bytes,
            jitter: Duration::ZERO,
            lifetime: Lifetime::default(),
            late: Late::Drop,
            trace: stream
                .samples
                .iter()
                .map(|(at, bytes)| (Duration::from_nanos(at - first), *bytes))
                .collect(),
        });
    }

    /// Adds the link between two nodes, once.
    fn connect(
        &mut self,
        (from, to): (&str, &str),
        (link, recorded, later): (Option<&str>, Option<u64>, Vec<(Duration, Capacity)>),
        changes: &Changes,
    ) {
        let between = [self.node(from), self.node(to)];
        let joined =
            |link: &Wiring| link.between == between || link.between == [between[1], between[0]];
        if self.plan.links.iter().any(joined) {
            return;
        }
        let name = link.unwrap_or(PATH).to_owned();
        let changed = changes
            .capacities
            .iter()
            .rev()
            .find(|change| change.link.as_ref().map_or(name != HOST, |link| *link == name));
        let recorded = recorded.and_then(|bits| Capacity::from_bits_per_s(bits).ok());
        let policy = changes.discipline.unwrap_or_default();
        let capacity = changed.map(|change| change.capacity).or(recorded);
        if changed.is_none() && later.len() > 1 {
            let (at, course) = (Duration::ZERO, CapacityCourse::recorded(later));
            let what = FaultKind::Capacity(between, course);
            self.plan.faults.push(Fault { at, until: None, what });
        }
        let capacity = capacity.map(LinkCapacity::Fixed);
        let (protocol, wire) = (Protocol::default(), Impairment::NONE);
        self.plan.links.push(Wiring { between, capacity, policy, protocol, wire });
        self.links.push(format!("{name} from {from} to {to}"));
    }

    /// Checks that each change applies to something.
    fn check(&self, tags: &BTreeSet<&Tag>, changes: &Changes) -> Result<(), String> {
        let named = changes.capacities.iter().filter_map(|change| change.link.as_deref());
        for link in named {
            let start = format!("{link} from ");
            if !self.links.iter().any(|name| name.starts_with(&start)) {
                let known: Vec<&str> = self.links.iter().map(String::as_str).collect();
                return Err(format!(
                    "--capacity {link}: no link of that name; the recording has: {}",
                    known.join(", ")
                ));
            }
        }
        for change in &changes.requests {
            if !tags.iter().any(|tag| change.tags.matches(tag)) {
                let known: Vec<&str> = tags.iter().map(|tag| tag.as_str()).take(10).collect();
                return Err(format!(
                    "--set {}: no stream of that tag; the recording has: {}",
                    change.tags.as_str(),
                    known.join(", ")
                ));
            }
        }
        Ok(())
    }
}

/// Returns the capacities of a link over time since the first sample, as they were measured.
fn course(
    stream: &RecordedStream,
    (from, link): (&str, &str),
    first: u64,
) -> Vec<(Duration, Capacity)> {
    let mut course: Vec<(Duration, Capacity)> = Vec::new();
    for (at, hops) in &stream.later_hops {
        let hop = hops.iter().find(|hop| hop.name == from && hop.link == link);
        let bits = hop.and_then(|hop| hop.capacity_bits_per_s);
        let Some(Ok(capacity)) = bits.map(Capacity::from_bits_per_s) else { continue };
        let at = Duration::from_nanos(at.saturating_sub(first));
        if course.last().is_none_or(|(_, last)| *last != capacity) {
            // Of several before the first sample, the last one counts.
            course.retain(|(before, _)| *before < at);
            course.push((at, capacity));
        }
    }
    course
}

/// Returns the declared period, or else the mean time between samples.
fn period(stream: &RecordedStream) -> Duration {
    if let Some(us) = stream.period_us {
        return Duration::from_micros(us);
    }
    let (first, last) = (stream.samples.first(), stream.samples.last());
    let lasts = first.zip(last).map_or(0, |((first, _), (last, _))| last - first);
    let count = (stream.samples.len() as u64).saturating_sub(1).max(1);
    Duration::from_nanos((lasts / count).max(1_000_000))
}
