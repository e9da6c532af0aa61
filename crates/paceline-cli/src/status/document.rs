//! The document of `paceline ls --json`, described in docs/reference/json.md.

use super::neighbour::{Neighbour, NeighbourMemory};
use super::reservation::{Processor, QueueBuffer, Reservation};
use super::timed::{NodeClock, Timed};
use crate::args::RequestedRate;
use paceline::class::ClassStatus;
use paceline::contract::Form;
use paceline::status::{
    BufferStatus, Drops, LinkReserved, LinkStatus, MendCounters, MutedStatus, NodeStatus,
    PublisherStatus, StalledThread, StreamAges, StreamContract, StreamCounters, StreamStatus,
    SubscriptionStatus, UnreadStatus,
};
use paceline_tool::show::micros;
use paceline_tool::stats::{by_reason, round3};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the document; it increases when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Document {
    schema: u32,
    /// Nodes, sorted by name, then by id.
    pub(crate) nodes: Vec<Node>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Time at which the counters were read, by the node's own clock: only differences are
    /// meaningful.
    pub(crate) at_us: u64,
    pub(crate) publishers: Vec<Publisher>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) links: Vec<Link>,
    /// Reservations on paths that begin at, end at or cross this node.
    pub(crate) reservations: Vec<Reservation>,
    /// Processor time reserved by contracts on this host; null if admission does not charge it.
    pub(crate) processor: Option<Processor>,
    /// Queue space of the node for contracts, on all its links and for its subscribers together; null for an earlier
    /// version. `greatest_bytes` includes payloads that its subscribers had not read.
    pub(crate) buffer: Option<QueueBuffer>,
    /// Memory of the node for the input of its neighbours; null for an earlier version.
    #[serde(default)]
    pub(crate) memory: Option<NeighbourMemory>,
    /// Samples that arrived without any recipient.
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub(crate) dropped: Drops,
    /// Threads that are blocked.
    pub(crate) stalled: Vec<Stalled>,
    /// State of its clock; null for a node of an earlier version.
    #[serde(default)]
    pub(crate) clock: Option<NodeClock>,
    /// Publishers, subscriptions and other entries of nodes that the node cannot read and ignores.
    #[serde(default)]
    pub(crate) unread: Vec<Unread>,
}

/// An entry in the record of a node that another node cannot read.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Unread {
    /// Id of the node that announced it.
    pub(crate) node: String,
    pub(crate) entry: String,
    pub(crate) reason: String,
}

/// A thread whose next iteration is more than two seconds late.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Stalled {
    pub(crate) thread: String,
    /// Delay of the iteration in microseconds.
    pub(crate) for_us: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Publisher {
    pub(crate) id: String,
    pub(crate) tag: String,
    pub(crate) kind: String,
    pub(crate) encoding: String,
    pub(crate) period_us: Option<u64>,
    pub(crate) published: u64,
    pub(crate) rate_hz: f64,
    /// True if the rate differs from the declared one by more than a tenth; false in a pause.
    pub(crate) off_rate: bool,
    pub(crate) matching: bool,
}

/// The requested form of the samples.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct RequestedForm {
    /// Description for display.
    pub(crate) form: String,
    pub(crate) every: Option<u32>,
    pub(crate) max_hz: Option<f64>,
    pub(crate) width: Option<u32>,
    pub(crate) height: Option<u32>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) pattern: String,
    pub(crate) asked: RequestedForm,
    pub(crate) within_us: Option<u64>,
    pub(crate) loss: Option<String>,
    pub(crate) proxy: String,
    /// Names of the nodes that scale the samples, one per publisher of `publishers`.
    pub(crate) scaled_at: Vec<String>,
    pub(crate) publishers: Vec<String>,
    pub(crate) refusals: Vec<String>,
    pub(crate) delivered: u64,
    pub(crate) bytes: u64,
    pub(crate) rate_hz: f64,
    pub(crate) late: u64,
    /// Largest age of the samples that arrived in the last second or more.
    pub(crate) age_max_us: u64,
    /// Mean age of the same samples; null if none arrived.
    pub(crate) age_mean_us: Option<u64>,
    /// Sum of the ages of all samples delivered since the start.
    pub(crate) age_sum_us: u64,
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub(crate) dropped: Drops,
    /// Largest jitter of a publisher's samples at arrival, by RFC 3550.
    #[serde(default)]
    pub(crate) jitter_us: u64,
    /// Samples that were published between two that arrived, but did not arrive.
    #[serde(default)]
    pub(crate) lost: u64,
    /// Delivery by time; null without one.
    #[serde(default)]
    pub(crate) timed: Option<Timed>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Buffer {
    /// Id of the subscription that feeds the buffer.
    pub(crate) id: String,
    pub(crate) pattern: String,
    pub(crate) samples_max: usize,
    pub(crate) bytes_max: u64,
    pub(crate) age_max_us: u64,
    pub(crate) samples: u64,
    pub(crate) bytes: u64,
    pub(crate) oldest_ns: Option<u64>,
    pub(crate) newest_ns: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Link {
    pub(crate) name: String,
    /// Time at which the counters of the link and its streams were read, by its node's clock.
    pub(crate) at_us: u64,
    pub(crate) capacity_bits_per_s: Option<u64>,
    /// Rate between the last two readings.
    pub(crate) use_bits_per_s: Option<u64>,
    /// Rate reserved by the contracts of its streams.
    pub(crate) reserved_bits_per_s: u64,
    /// Minimum of 10 to 20 s.
    pub(crate) round_trip_us: u64,
    /// Last round trip of the slowest neighbour.
    pub(crate) delay_us: u64,
    /// Jitter of the round trips, by RFC 3550.
    pub(crate) jitter_us: u64,
    pub(crate) hops: Vec<String>,
    /// Traffic to each of the hops.
    pub(crate) neighbours: Vec<Neighbour>,
    pub(crate) wire_bytes: u64,
    pub(crate) frames: u64,
    pub(crate) frames_lost: u64,
    /// Frames lost by a carrier that may lose them.
    pub(crate) frames_dropped: u64,
    /// Part of the frames lost between the last two readings.
    pub(crate) loss: Option<f64>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) closed: Closed,
    pub(crate) classes: Vec<Class>,
    pub(crate) muted: Vec<Muted>,
    pub(crate) mended: Repaired,
    /// Null for a link without a capacity or a neighbour.
    pub(crate) buffer: Option<QueueBuffer>,
}

/// Losses on a link and their repair.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Repaired {
    /// Retransmitted pieces.
    pub(crate) repeated: u64,
    /// Payload bytes of the retransmitted pieces.
    pub(crate) repeated_bytes: u64,
    /// Samples that could no longer arrive in time.
    pub(crate) given_up: u64,
}

/// A neighbour that overloaded its node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Muted {
    pub(crate) peer: String,
    /// Kind of excess traffic: `control` messages, `unasked` samples or `malformed` frames.
    pub(crate) flood: String,
    /// True if the neighbour is muted now.
    pub(crate) muted: bool,
    /// Number of times that the neighbour was muted.
    pub(crate) times: u64,
    /// Dropped messages, samples or frames.
    pub(crate) dropped: u64,
}

/// Total counters of the closed streams.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Closed {
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) late: u64,
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub(crate) dropped: Drops,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) peer: Option<String>,
    pub(crate) share: f64,
    pub(crate) served_bytes: u64,
    pub(crate) guaranteed_bytes: u64,
    /// Rate that the class guarantees to contracts; 0 if it guarantees nothing.
    pub(crate) guaranteed_bits_per_s: u64,
    /// Part of it that contracts reserve.
    pub(crate) reserved_bits_per_s: u64,
    pub(crate) streams: u32,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) late: u64,
    pub(crate) violations: u64,
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub(crate) dropped: Drops,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Stream {
    pub(crate) publisher: String,
    pub(crate) tag: Option<String>,
    pub(crate) asked: RequestedForm,
    pub(crate) hop: String,
    pub(crate) contracted: bool,
    /// Contract of the stream on this link.
    pub(crate) contract: Option<Contract>,
    pub(crate) ages: Ages,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) bytes: u64,
    pub(crate) late: u64,
    /// Violated windows since the stream was opened.
    pub(crate) violations: u64,
    /// Samples dropped after their first segment was sent, so the next hop also counts them as
    /// lost.
    pub(crate) aborted: u64,
    /// Time from the last violation to the reading of the counters; null if there was none.
    pub(crate) broken_ago_us: Option<u64>,
    /// Multicast group from which the hop receives it; null with unicast.
    pub(crate) group: Option<String>,
    /// Samples in excess of the contract: too early, or longer than declared.
    pub(crate) too_early: u64,
    pub(crate) too_long: u64,
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub(crate) dropped: Drops,
}

/// The contract of a stream on a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Contract {
    pub(crate) period_us: u64,
    pub(crate) deadline_us: u64,
    pub(crate) loss: String,
    pub(crate) bits_per_s: u64,
}

/// The ages of a stream's samples at a link, as monotonic sums.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Ages {
    /// Samples that the link accepted.
    pub(crate) entered: u64,
    /// Sum of their ages at that time.
    pub(crate) entered_us: u64,
    /// Sum of the ages of the sent samples when they left the link.
    pub(crate) left_us: u64,
}

impl Contract {
    fn new(contract: &StreamContract) -> Self {
        let (x, y) = contract.loss;
        Self {
            period_us: micros(contract.period),
            deadline_us: micros(contract.deadline),
            loss: format!("{x}/{y}"),
            bits_per_s: contract.bits_per_s,
        }
    }
}

impl Ages {
    const fn new(ages: &StreamAges) -> Self {
        let StreamAges { entered, entered_ns, left_ns } = *ages;
        Self { entered, entered_us: entered_ns / 1_000, left_us: left_ns / 1_000 }
    }
}

impl Closed {
    const fn new(sum: &StreamCounters) -> Self {
        let StreamCounters { offered, sent, late, drops, .. } = *sum;
        Self { offered, sent, late, dropped: drops }
    }
}

impl Document {
    /// Returns the published tags.
    pub(crate) fn published(&self) -> BTreeSet<String> {
        let publishers = self.nodes.iter().flat_map(|node| &node.publishers);
        publishers.map(|publisher| publisher.tag.clone()).collect()
    }

    /// Creates the document from the nodes' answers. The use of links is not known yet.
    pub(crate) fn new(status: &[NodeStatus]) -> Self {
        let mut nodes: Vec<Node> = status.iter().map(|node| Node::new(node, status)).collect();
        nodes.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        Self { schema: SCHEMA, nodes }
    }

    /// Returns true if any node has a link.
    pub(crate) fn has_links(&self) -> bool {
        self.nodes.iter().any(|node| !node.links.is_empty())
    }
}

impl Node {
    fn new(node: &NodeStatus, all: &[NodeStatus]) -> Self {
        Self {
            id: node.id.to_string(),
            name: node.name.clone(),
            at_us: micros(node.at),
            publishers: node.publishers.iter().map(Publisher::new).collect(),
            subscriptions: node.subscriptions.iter().map(Subscription::new).collect(),
            buffers: node.buffers.iter().map(Buffer::new).collect(),
            links: node.links.iter().map(|link| Link::new(link, all)).collect(),
            reservations: node.reservations.iter().map(|it| Reservation::new(it, all)).collect(),
            processor: node.processor.as_ref().map(Processor::new),
            buffer: node.buffer.as_ref().map(QueueBuffer::of_host),
            memory: node.memory.map(NeighbourMemory::new),
            dropped: node.drops,
            stalled: node.stalled.iter().map(Stalled::new).collect(),
            clock: node.clock.as_ref().map(NodeClock::new),
            unread: node.unread.iter().map(Unread::new).collect(),
        }
    }
}

impl Unread {
    fn new(unread: &UnreadStatus) -> Self {
        let UnreadStatus { node, entry, reason } = unread.clone();
        Self { node: node.to_string(), entry, reason }
    }
}

impl Stalled {
    fn new(stalled: &StalledThread) -> Self {
        Self { thread: stalled.thread.clone(), for_us: micros(stalled.still) }
    }
}

impl Publisher {
    fn new(publisher: &PublisherStatus) -> Self {
        Self {
            id: publisher.id.to_string(),
            tag: publisher.tag.to_string(),
            kind: publisher.kind.to_string(),
            encoding: publisher.encoding.clone(),
            period_us: publisher.period.map(micros),
            published: publisher.published,
            rate_hz: hertz(publisher.rate_millihertz),
            off_rate: is_off(publisher),
            matching: publisher.matching,
        }
    }
}

/// Returns true if a publisher's present rate differs from the declared one by more than a tenth, and by more than one
/// sample per second.
fn is_off(publisher: &PublisherStatus) -> bool {
    let (Some(period), sent) = (publisher.period, hertz(publisher.rate_millihertz)) else {
        return false;
    };
    let declared = 1.0 / period.as_secs_f64().max(1e-9);
    sent > 0.0 && (sent - declared).abs() > (declared / 10.0).max(1.0)
}

impl RequestedForm {
    fn new(form: &Form) -> Self {
        let RequestedRate { every, max_hz } = RequestedRate::of(form.rate);
        Self {
            form: form.to_string(),
            every,
            max_hz,
            width: form.size.map(|size| size.width),
            height: form.size.map(|size| size.height),
        }
    }
}

impl Subscription {
    fn new(subscription: &SubscriptionStatus) -> Self {
        Self {
            id: subscription.id.to_string(),
            pattern: subscription.pattern.clone(),
            asked: RequestedForm::new(&subscription.form),
            within_us: subscription.within.map(micros),
            loss: subscription.loss.map(|(x, y)| format!("{x}/{y}")),
            proxy: subscription.proxy.to_string(),
            scaled_at: subscription.scaled_at.clone(),
            publishers: subscription.publishers.iter().map(ToString::to_string).collect(),
            refusals: subscription.refusals.clone(),
            delivered: subscription.delivered,
            bytes: subscription.bytes,
            rate_hz: hertz(subscription.rate_millihertz),
            late: subscription.late,
            age_max_us: micros(subscription.age_max),
            age_mean_us: subscription.age_mean.map(micros),
            age_sum_us: micros(subscription.age_sum),
            dropped: subscription.drops,
            jitter_us: micros(subscription.jitter),
            lost: subscription.lost,
            timed: subscription.timed.as_ref().map(Timed::new),
        }
    }
}

impl Buffer {
    fn new(buffer: &BufferStatus) -> Self {
        let limits = &buffer.limits;
        Self {
            id: buffer.id.to_string(),
            pattern: buffer.pattern.clone(),
            samples_max: limits.samples(),
            bytes_max: limits.bytes(),
            age_max_us: micros(limits.age().into()),
            samples: buffer.samples,
            bytes: buffer.bytes,
            oldest_ns: buffer.captured.map(|(oldest, _)| oldest),
            newest_ns: buffer.captured.map(|(_, newest)| newest),
        }
    }
}

impl Link {
    fn new(link: &LinkStatus, all: &[NodeStatus]) -> Self {
        Self {
            name: link.name.clone(),
            at_us: micros(link.at),
            capacity_bits_per_s: link.capacity_bits_per_s,
            use_bits_per_s: None,
            reserved_bits_per_s: link
                .streams
                .iter()
                .filter_map(|stream| stream.contract)
                .fold(0, |sum, contract| sum.saturating_add(contract.bits_per_s)),
            round_trip_us: micros(link.least_round_trip),
            delay_us: micros(link.round_trip),
            jitter_us: micros(link.jitter),
            hops: link.hops.iter().map(ToString::to_string).collect(),
            neighbours: link.sent.iter().map(Neighbour::new).collect(),
            wire_bytes: link.wire_bytes,
            frames: link.frames,
            frames_lost: link.frames_lost,
            frames_dropped: link.frames_dropped,
            loss: None,
            streams: link.streams.iter().map(|stream| Stream::new(stream, all)).collect(),
            closed: Closed::new(&link.closed),
            classes: link.classes.iter().map(|class| Class::new(class, &link.reserved)).collect(),
            muted: link.muted.iter().map(Muted::new).collect(),
            mended: Repaired::new(link.mended),
            buffer: QueueBuffer::new(&link.reserved),
        }
    }
}

impl Muted {
    fn new(row: &MutedStatus) -> Self {
        let MutedStatus { node, flood, muted, times, dropped } = *row;
        Self { peer: node.to_string(), flood: flood.name().to_owned(), muted, times, dropped }
    }
}

impl Repaired {
    const fn new(row: MendCounters) -> Self {
        let MendCounters { repeated, repeated_bytes, given_up } = row;
        Self { repeated, repeated_bytes, given_up }
    }
}

impl Class {
    fn new(class: &ClassStatus, link: &LinkReserved) -> Self {
        let contracts =
            link.classes.iter().find(|it| class.peer.is_none() && it.name == class.name);
        let counters = &class.counters;
        Self {
            name: class.name.clone(),
            parent: class.parent.clone(),
            peer: class.peer.map(|peer| peer.to_string()),
            share: f64::from(class.part) / 1_000_000.0,
            served_bytes: class.served,
            guaranteed_bytes: class.guaranteed,
            guaranteed_bits_per_s: contracts.map_or(0, |it| it.most),
            reserved_bits_per_s: contracts.map_or(0, |it| it.held),
            streams: class.streams,
            offered: counters.offered,
            sent: counters.sent,
            late: counters.late,
            violations: counters.violations,
            dropped: counters.drops,
        }
    }
}

impl Stream {
    fn new(stream: &StreamStatus, all: &[NodeStatus]) -> Self {
        let mut publishers = all.iter().flat_map(|node| &node.publishers);
        let source = publishers.find(|publisher| publisher.id == stream.publisher);
        let counters = &stream.counters;
        Self {
            publisher: stream.publisher.to_string(),
            tag: source.map(|publisher| publisher.tag.to_string()),
            asked: RequestedForm::new(&stream.form),
            hop: stream.hop.to_string(),
            contracted: stream.contracted,
            contract: stream.contract.as_ref().map(Contract::new),
            ages: Ages::new(&stream.ages),
            offered: counters.offered,
            sent: counters.sent,
            bytes: counters.bytes,
            late: counters.late,
            violations: counters.violations,
            aborted: counters.aborted,
            broken_ago_us: stream.broken_ago.map(micros),
            group: stream.group.map(|group| group.to_string()),
            too_early: counters.excess.early,
            too_long: counters.excess.long,
            dropped: counters.drops,
        }
    }
}

/// Converts millihertz to hertz.
fn hertz(millihertz: u64) -> f64 {
    f64::from(u32::try_from(millihertz).unwrap_or(u32::MAX)) / 1_000.0
}

/// Returns the rate in bits per second for a number of bytes in a time.
pub(crate) fn bits_per_s(bytes: u64, seconds: f64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "displayed only")]
    let bits = round3(bytes as f64 * 8.0 / seconds.max(1e-6)).clamp(0.0, 1e18);
    #[expect(clippy::cast_possible_truncation, reason = "in range by clamp")]
    let whole = bits as u64;
    whole
}

#[cfg(test)]
pub(crate) mod tests;
