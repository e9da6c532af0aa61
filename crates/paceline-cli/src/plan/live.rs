//! The problem of the running network: its hosts and links with their free capacities, and the streams
//! with their present places.

use super::read::{Choices, CostName, DelayName};
use crate::config::NodeArgs;
use crate::status::{describe_tags, settle_hops};
use paceline::contract::{Form, Proxy};
use paceline::network::{NetworkStream, NetworkView};
use paceline::status::{
    HopView, LinkStatus, NodeId, NodeStatus, PublisherId, ReservedHop, SubscriptionId,
};
use paceline::{Node, Pattern};
use paceline_plan::{PlanLink, PlanNode, PlanProblem, PlanSubscriber, PlanTag, Planned, SampleCpu};
use paceline_sched::{Capacity, Duration};
use paceline_tool::exit;
use paceline_tool::stop::Stop;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration as Wait;

/// Limits of the wait for nodes, and for their status.
const SETTLE: Wait = Wait::from_millis(2_500);
const ANSWER: Wait = Wait::from_millis(1_500);
/// The smallest free capacity, in bits per second: a full link is not an absent one.
const FREE_LEAST: u64 = 8;
/// The models by which the network sends streams: each form crosses a link once, and any node may scale.
const MODELS: Choices = Choices {
    objective: None,
    weight: None,
    cost: Some(CostName::Multicast),
    delay_model: Some(DelayName::Links),
    proxies: Some(32),
};

/// The problem of the running network.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) problem: PlanProblem,
    /// The present place of each tag's subscribers.
    pub(super) places: Vec<Vec<usize>>,
    /// The known limits of this problem.
    pub(super) notes: Vec<String>,
    /// The indices of the links that share the capacity of one link of a node.
    shared: BTreeMap<(usize, String), Vec<usize>>,
}

/// Reads the running network, with the tags that match `pattern`. Returns `None` if a signal interrupts it.
pub(super) fn read(
    args: &NodeArgs,
    pattern: &Pattern,
    choices: &Choices,
) -> anyhow::Result<Option<Live>> {
    let stop = Stop::on_signals()?;
    let node = args.open_guest("plan")?;
    settle_hops(&node, SETTLE, &stop);
    let live = (!stop.requested()).then(|| read_from(&node, pattern, choices)).transpose();
    node.close();
    live
}

fn read_from(node: &Node, pattern: &Pattern, choices: &Choices) -> anyhow::Result<Live> {
    if node.nodes().len() <= 1 {
        return Err(exit::refused(
            "--live: no node is reachable: start one on this host with `paceline node`, or name one \
             with --link connect=tcp/HOST:PORT",
        ));
    }
    let all = node.sources(&Pattern::new("**")?);
    if !all.iter().any(|source| pattern.matches(&source.tag)) {
        let tags = describe_tags(&all.iter().map(|source| source.tag.to_string()).collect());
        return Err(exit::refused(format!("--live: no publisher on {pattern}; {tags}")));
    }
    let network = node.network(pattern);
    let live = Live::new(&network, &node.status(ANSWER), node.id(), pattern, choices)?;
    if live.problem.tags.is_empty() {
        let unknown = live.notes.iter().map(|note| format!("; {note}"));
        return Err(exit::refused(format!(
            "--live: nothing to plan: no other host subscribes to {pattern}{}",
            unknown.collect::<String>()
        )));
    }
    Ok(live)
}

/// The tables that a problem is built from.
struct Hosts<'a> {
    network: &'a NetworkView,
    status: BTreeMap<NodeId, &'a NodeStatus>,
    /// The publishers of the planned tags; contracts of all others keep their part of the links.
    planned: BTreeSet<PublisherId>,
    /// The index of each node's host in the problem.
    index: BTreeMap<NodeId, usize>,
}

/// The stream of a spare on a link.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct SpareStream {
    publisher: PublisherId,
    /// The next node.
    next: NodeId,
    of: SpareOf,
}

/// What distinguishes the streams of spares of a publisher to a node.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum SpareOf {
    /// The requested form.
    Form(Form),
    /// The subscription, if its form is unknown.
    Subscription(SubscriptionId),
}

impl Live {
    fn new(
        network: &NetworkView,
        status: &[NodeStatus],
        me: NodeId,
        pattern: &Pattern,
        choices: &Choices,
    ) -> anyhow::Result<Self> {
        let publishers = status.iter().flat_map(|node| &node.publishers);
        let planned = publishers.filter(|it| pattern.matches(&it.tag)).map(|it| it.id);
        let mut hosts = Hosts {
            network,
            status: status.iter().map(|node| (node.id, node)).collect(),
            planned: planned.chain(network.streams.iter().map(|it| it.publisher)).collect(),
            index: BTreeMap::new(),
        };
        let mut live = Self {
            problem: PlanProblem::default(),
            places: Vec::new(),
            notes: Vec::new(),
            shared: BTreeMap::new(),
        };
        live.problem.nodes = hosts.nodes(me, &mut live.notes);
        for hop in &network.hops {
            live.link(&hosts, hop);
        }
        let mut streams: BTreeMap<PublisherId, Vec<&NetworkStream>> = BTreeMap::new();
        for stream in &network.streams {
            streams.entry(stream.publisher).or_default().push(stream);
        }
        for streams in streams.into_values() {
            live.tag(&hosts, &streams);
        }
        choices.or(MODELS).apply(&mut live.problem).map_err(exit::usage)?;
        Ok(live)
    }

    fn link(&mut self, hosts: &Hosts<'_>, hop: &HopView) {
        let ends = (hosts.index.get(&hop.from), hosts.index.get(&hop.to));
        let (Some(&from), Some(&to)) = ends else { return };
        if from == to {
            return;
        }
        let capacity = hop.capacity.and_then(|capacity| {
            let free = capacity.bits_per_s().saturating_sub(hosts.reserved(hop));
            Capacity::from_bits_per_s(free.max(FREE_LEAST)).ok()
        });
        let shared = self.shared.entry((from, hop.link.clone())).or_default();
        shared.push(self.problem.links.len());
        let segment = shared.first().copied().filter(|_| hop.multicast);
        let delay = hosts.delay(hop);
        self.problem.links.push(PlanLink { from, to, capacity, delay, segment });
    }

    /// Adds the streams of one publisher.
    fn tag(&mut self, hosts: &Hosts<'_>, streams: &[&NetworkStream]) {
        let Some(first) = streams.first() else { return };
        let others = self.problem.tags.iter().map(|tag| tag.tag.as_str());
        let name = match others.filter(|name| *name == first.tag.as_str()).count() {
            0 => first.tag.to_string(),
            _ => format!("{} of {}", first.tag, first.publisher),
        };
        let Some(full) = first.full_bytes_per_s else {
            self.notes
                .push(format!("{name} is left out: its size is unknown before its first sample"));
            return;
        };
        let Some(&publisher) = hosts.index.get(&first.publisher.node) else { return };
        let period = Duration::from(first.period);
        let mut tag = PlanTag::new(&name, publisher, period, bytes(full, period, 1));
        let scale = first.work.as_secs_f64();
        tag.cpu = SampleCpu { scale, ..SampleCpu::default() };
        let mut places = Vec::new();
        for stream in streams {
            let node = hosts.index.get(&stream.subscription.node);
            let place = hosts.index.get(&stream.place);
            let (Some(&node), Some(&place)) = (node, place) else { continue };
            let every = every(stream);
            let sent = stream.bytes_per_s.unwrap_or(full);
            let within = stream.within.map(Duration::from);
            let bytes = bytes(sent, period, every);
            tag.subscribers.push(PlanSubscriber { node, scale: every, bytes, within });
            places.push(place);
        }
        tag.allowed = hosts.allowed(&tag);
        self.problem.tags.push(tag);
        self.places.push(places);
    }

    /// Returns a note for each link whose neighbours together get more than its free capacity.
    pub(super) fn overloads(&self, planned: &Planned) -> Vec<String> {
        let load = |link: &usize| planned.link_bits.get(*link).copied().unwrap_or_default();
        let over = self.shared.iter().filter_map(|((node, name), links)| {
            let capacity = self.problem.links.get(*links.first()?)?.capacity?.bits_per_s();
            let sum: f64 = links.iter().map(load).sum();
            let node = &self.problem.nodes.get(*node)?.id;
            (links.len() > 1 && sum > bits_of(capacity)).then(|| {
                format!(
                    "the neighbours on the link {name} of {node} share {capacity} bit/s; the plan \
                     needs {sum:.0} bit/s"
                )
            })
        });
        over.collect()
    }
}

impl Hosts<'_> {
    /// Returns the nodes of the problem, one for each host. The node of this command is left out.
    fn nodes(&mut self, me: NodeId, notes: &mut Vec<String>) -> Vec<PlanNode> {
        let hosts = self.network.nodes.iter().filter(|node| node.host == node.id && node.id != me);
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for node in hosts.clone() {
            *names.entry(&node.name).or_default() += 1;
        }
        let mut found = Vec::new();
        for node in hosts {
            self.index.insert(node.id, found.len());
            let id = match names.get(node.name.as_str()) {
                Some(1) => node.name.clone(),
                Some(_) | None => format!("{} ({})", node.name, node.id),
            };
            match self.status.get(&node.id) {
                Some(status) => found.push(PlanNode { id, cpu: self.cpu(status) }),
                None => {
                    notes.push(format!("{id} did not answer: its reservations are unknown"));
                    found.push(PlanNode::new(&id));
                }
            }
        }
        for node in self.network.nodes.iter().filter(|node| node.host != node.id) {
            if let Some(&host) = self.index.get(&node.host) {
                self.index.insert(node.id, host);
            }
        }
        found
    }

    fn is_kept(&self, link: &LinkStatus) -> bool {
        let kept = |publisher| !self.planned.contains(publisher);
        link.streams.iter().any(|it| it.contract.is_some() && kept(&it.publisher))
    }

    /// Returns the hops from a node that spares of other tags reserve, each with its stream.
    fn spares<'s>(
        &self,
        status: &'s NodeStatus,
    ) -> impl Iterator<Item = (SpareStream, &'s ReservedHop)> {
        let kept = status.reservations.iter().filter(|it| !self.planned.contains(&it.publisher));
        kept.flat_map(|grant| {
            let after = grant.spare.iter().skip(1).map(|hop| hop.node);
            let after = after.chain([grant.subscription.node]);
            let hops = grant.spare.iter().zip(after);
            let hops = hops.filter(|(hop, _)| hop.node == status.id);
            hops.map(|(hop, next)| {
                let unknown = SpareOf::Subscription(grant.subscription);
                let of = self.form_of(grant.subscription).map_or(unknown, SpareOf::Form);
                (SpareStream { publisher: grant.publisher, next, of }, hop)
            })
        })
    }

    /// Returns the form of a subscription's samples on a path without a proxy between its ends; `None` if its node did
    /// not answer.
    fn form_of(&self, subscription: SubscriptionId) -> Option<Form> {
        let all = &self.status.get(&subscription.node)?.subscriptions;
        let row = all.iter().find(|row| row.id == subscription)?;
        Some(if row.proxy == Proxy::Subscriber { Form::FULL } else { row.form })
    }

    /// Returns the processors of a host for streams. If contracts of other tags or their spares pass there, they keep all
    /// that is reserved, also for the planned tags: the status has no time per tag.
    fn cpu(&self, status: &NodeStatus) -> Option<f64> {
        let processor = status.processor?;
        let keeps = status.links.iter().any(|link| self.is_kept(link))
            || self.spares(status).next().is_some();
        let held = if keeps { processor.held_us_per_s } else { 0 };
        Some(Wait::from_micros(processor.most_us_per_s.saturating_sub(held)).as_secs_f64())
    }

    fn link_of(&self, hop: &HopView) -> Option<&LinkStatus> {
        self.status.get(&hop.from)?.links.iter().find(|link| link.name == hop.link)
    }

    /// Returns the smallest round trip of a hop's link; zero before the first measurement.
    fn round_trip(&self, hop: &HopView) -> Wait {
        self.link_of(hop).map_or(Wait::ZERO, |link| link.least_round_trip)
    }

    /// Returns the bits per second that contracts of other tags and their spares reserve on the link of a hop.
    fn reserved(&self, hop: &HopView) -> u64 {
        let streams = self.link_of(hop).into_iter().flat_map(|link| &link.streams);
        let kept = streams.filter(|stream| !self.planned.contains(&stream.publisher));
        let contracts: u64 =
            kept.filter_map(|stream| stream.contract).map(|it| it.bits_per_s).sum();
        let spares = self.status.get(&hop.from).into_iter().flat_map(|status| self.spares(status));
        // Spares of one stream for several subscriptions share what they reserve: as much as the largest of them.
        let mut shared: BTreeMap<SpareStream, u64> = BTreeMap::new();
        for (stream, spare) in spares.filter(|(_, spare)| spare.link == hop.link) {
            let bits = shared.entry(stream).or_default();
            *bits = (*bits).max(spare.bits_per_s);
        }
        contracts + shared.into_values().sum::<u64>()
    }

    /// Returns half of the smallest round trip of a hop's link, or of the opposite one if only that measured it.
    fn delay(&self, hop: &HopView) -> Duration {
        let own = Some(self.round_trip(hop)).filter(|trip| !trip.is_zero());
        let mut hops = self.network.hops.iter();
        let back = hops.find(|other| (other.from, other.to) == (hop.to, hop.from));
        let trip = own.or_else(|| back.map(|back| self.round_trip(back)));
        (trip.unwrap_or_default() / 2).into()
    }

    /// Returns the nodes that may scale a tag: those with the right to relay, and the ends.
    fn allowed(&self, tag: &PlanTag) -> Option<Vec<usize>> {
        let leaves = self.network.nodes.iter().filter(|node| node.host == node.id && !node.relays);
        let leaves: BTreeSet<usize> =
            leaves.filter_map(|node| self.index.get(&node.id)).copied().collect();
        if leaves.is_empty() {
            return None;
        }
        let ends = tag.publishers.iter().chain(tag.subscribers.iter().map(|it| &it.node));
        let ends: BTreeSet<usize> = ends.copied().collect();
        let all: BTreeSet<usize> = self.index.values().copied().collect();
        Some(all.into_iter().filter(|it| !leaves.contains(it) || ends.contains(it)).collect())
    }
}

/// Converts a rate for comparisons.
pub(super) fn bits_of(bits: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "only printed")]
    let bits = bits as f64;
    bits
}

/// Returns the number of published samples for each sample of a stream, rounded.
fn every(stream: &NetworkStream) -> u32 {
    let (one, other) = (stream.period.as_nanos().max(1), stream.form_period.as_nanos());
    u32::try_from((other + one / 2) / one).unwrap_or(u32::MAX).max(1)
}

/// Returns the bytes of one in `every` samples at a rate in bytes per second, at least 1.
fn bytes(bytes_per_s: u64, period: Duration, every: u32) -> u64 {
    let nanos = u128::from(period.as_nanos()) * u128::from(every);
    let bytes = u128::from(bytes_per_s) * nanos / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;
    use paceline::Tag;
    use paceline::contract::Rate;
    use paceline::network::NetworkNode;
    use paceline::status::{Drops, Reservation, SubscriptionHealth, SubscriptionStatus};

    #[test]
    fn neighbours_that_receive_the_groups_of_a_link_are_a_segment() {
        let node = |(at, name): (u64, &str)| {
            let (id, host) = (NodeId(at), NodeId(at));
            NetworkNode { id, name: name.to_owned(), host, relays: true }
        };
        let hop = |(to, link, multicast): (u64, &str, bool)| {
            let (from, to, link) = (NodeId(1), NodeId(to), link.to_owned());
            HopView { from, to, link, capacity: None, multicast }
        };
        let names = [(1, "robot"), (2, "a"), (3, "b"), (4, "c"), (5, "d")];
        let hops = [(2, "lan", false), (3, "lan", true), (4, "lan", true), (5, "radio", true)];
        let (nodes, hops) = (names.map(node).to_vec(), hops.map(hop).to_vec());
        let network = NetworkView { nodes, hops, streams: Vec::new() };
        let all = Pattern::new("**").unwrap();
        let live = Live::new(&network, &[], NodeId(9), &all, &Choices::default()).unwrap();
        let segments: Vec<Option<usize>> =
            live.problem.links.iter().map(|link| link.segment).collect();
        assert_eq!(segments, [None, Some(0), Some(0), Some(3)]);
    }

    /// Returns the status of a node without publishers, subscriptions and links.
    fn node_status(at: u64) -> NodeStatus {
        NodeStatus { name: format!("node{at}"), ..NodeStatus::new(NodeId(at)) }
    }

    /// Returns the status of node 1, whose publisher 7 has subscriptions with these spares, and that of their node 2. Each
    /// subscription requests one in `every` samples.
    fn with_spares(spares: &[(u32, Vec<ReservedHop>)]) -> [NodeStatus; 2] {
        let numbered = || (0..).zip(spares);
        let id = |index| SubscriptionId { node: NodeId(2), index };
        let grant = |(index, (_, spare)): (u32, &(u32, Vec<ReservedHop>))| Reservation {
            subscription: id(index),
            publisher: PublisherId { node: NodeId(1), index: 7 },
            tag: None,
            bound: Wait::ZERO,
            within: None,
            learned: false,
            hops: Vec::new(),
            spare: spare.clone(),
        };
        let row = |(index, (every, _)): (u32, &(u32, Vec<ReservedHop>))| SubscriptionStatus {
            id: id(index),
            pattern: "lidar".to_owned(),
            form: Form { rate: Rate::every(NonZeroU32::new(*every).unwrap()), ..Form::FULL },
            elastic: None,
            importance: 50,
            within: None,
            loss: None,
            proxy: Proxy::Publisher,
            scaled_at: Vec::new(),
            publishers: Vec::new(),
            refusals: Vec::new(),
            delivered: 0,
            bytes: 0,
            rate_millihertz: 0,
            late: 0,
            overdue: 0,
            age_max: Wait::ZERO,
            age_mean: None,
            age_sum: Wait::ZERO,
            dropped: Drops::default(),
            jitter: Wait::ZERO,
            lost: 0,
            timed: None,
            players: None,
            health: SubscriptionHealth::default(),
        };
        let reservations = numbered().map(grant).collect();
        let subscriptions = numbered().map(row).collect();
        [
            NodeStatus { reservations, ..node_status(1) },
            NodeStatus { subscriptions, ..node_status(2) },
        ]
    }

    #[test]
    fn spares_of_other_tags_keep_their_part_of_a_link() {
        let node = |at: u64| {
            let (id, host) = (NodeId(at), NodeId(at));
            NetworkNode { id, name: format!("node{at}"), host, relays: true }
        };
        let capacity = Capacity::from_bits_per_s(10_000_000).ok();
        let hop = |(from, to, link): (u64, u64, &str)| {
            let (from, to, link) = (NodeId(from), NodeId(to), link.to_owned());
            HopView { from, to, link, capacity, multicast: false }
        };
        let hops = [(1, 2, "radio"), (1, 3, "lan"), (3, 2, "radio")].map(hop).to_vec();
        let spare = |bytes_per_s: u64| {
            let hop = |node: u64| ReservedHop {
                node: NodeId(node),
                name: String::new(),
                link: "radio".to_owned(),
                capacity_bits_per_s: capacity.map(|capacity| capacity.bits_per_s()),
                bits_per_s: bytes_per_s * 8,
                burst_bytes: 1_000,
                bound: Wait::ZERO,
                realtime: false,
            };
            vec![hop(1), hop(3)]
        };
        let free = |planned: u32, status: &[NodeStatus]| {
            let publisher = PublisherId { node: NodeId(1), index: planned };
            let period = Wait::from_millis(100);
            let stream = NetworkStream {
                publisher,
                tag: Tag::new("camera").unwrap(),
                period,
                full_bytes_per_s: Some(1_000),
                work: Wait::ZERO,
                subscription: SubscriptionId { node: NodeId(2), index: 0 },
                form: Form::FULL,
                bytes_per_s: None,
                form_period: period,
                within: None,
                place: NodeId(1),
            };
            let nodes = [1, 2, 3].map(node).to_vec();
            let network = NetworkView { nodes, hops: hops.clone(), streams: vec![stream] };
            let all = Pattern::new("**").unwrap();
            let live = Live::new(&network, status, NodeId(9), &all, &Choices::default()).unwrap();
            live.problem
                .links
                .iter()
                .map(|it| it.capacity.unwrap().bits_per_s())
                .collect::<Vec<_>>()
        };
        let shared = with_spares(&[(1, spare(300_000)), (1, spare(300_000))]);
        assert_eq!(free(8, &shared), [7_600_000, 10_000_000, 10_000_000], "a spare of another tag");
        assert_eq!(
            free(7, &shared),
            [10_000_000; 3],
            "the plan replaces the contracts of its own tags"
        );
        let rates = with_spares(&[(1, spare(300_000)), (1, spare(500_000))]);
        assert_eq!(free(8, &rates)[0], 6_000_000, "spares of one form share the larger rate");
        let forms = with_spares(&[(2, spare(300_000)), (3, spare(300_000))]);
        assert_eq!(free(8, &forms)[0], 5_200_000, "each form has its own stream");
        let [publisher, _] = shared;
        assert_eq!(
            free(8, &[publisher])[0],
            5_200_000,
            "forms that are unknown count as different"
        );
    }
}
