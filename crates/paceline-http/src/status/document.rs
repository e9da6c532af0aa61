//! The document of `paceline ls --json`, described in docs/reference/json.md.

use super::neighbour::{MemoryJson, NeighbourJson};
use super::reservation::{ProcessorJson, QueueJson, ReservationJson};
use super::timed::{ClockJson, TimedJson};
use paceline::class::ClassStatus;
use paceline::contract::Form;
use paceline::status::{
    BufferStatus, Drops, LinkReserved, LinkStatus, MendCounters, MutedStatus, NodeStatus,
    PublisherStatus, StalledThread, StreamAges, StreamContract, StreamCounters, StreamStatus,
    SubscriptionStatus, UnreadStatus,
};
use paceline_tool::args::RequestedRate;
use paceline_tool::show::micros;
use paceline_tool::stats::{by_reason, round3};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the document; it increases when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// The status of several nodes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Document"))]
pub struct StatusJson {
    schema: u32,
    /// Nodes, sorted by name, then by id.
    pub nodes: Vec<NodeJson>,
}

/// The status of a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Node"))]
pub struct NodeJson {
    /// Id of the node.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Time at which the counters were read, by the node's own clock: only differences are
    /// meaningful.
    pub at_us: u64,
    /// Its publishers.
    pub publishers: Vec<PublisherJson>,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionJson>,
    /// Its pull buffers.
    pub buffers: Vec<BufferJson>,
    /// Its links.
    pub links: Vec<LinkJson>,
    /// Reservations on paths that begin at, end at or cross this node.
    pub reservations: Vec<ReservationJson>,
    /// Processor time reserved by contracts on this host; null if admission does not charge it.
    pub processor: Option<ProcessorJson>,
    /// Queue space of the node for contracts, on all its links and for its subscribers together; null for an earlier
    /// version. `greatest_bytes` includes payloads that its subscribers had not read.
    pub buffer: Option<QueueJson>,
    /// Memory of the node for the input of its neighbours; null for an earlier version.
    #[serde(default)]
    pub memory: Option<MemoryJson>,
    /// Samples that arrived without any recipient.
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub dropped: Drops,
    /// Threads that are blocked.
    pub stalled: Vec<StalledJson>,
    /// State of its clock; null for a node of an earlier version.
    #[serde(default)]
    pub clock: Option<ClockJson>,
    /// Publishers, subscriptions and other entries of nodes that the node cannot read and ignores.
    #[serde(default)]
    pub unread: Vec<UnreadJson>,
}

/// An entry in the record of a node that another node cannot read.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Unread"))]
pub struct UnreadJson {
    /// Id of the node that announced it.
    pub node: String,
    /// The kind of the entry, in words.
    pub entry: String,
    /// The reason, in words.
    pub reason: String,
}

/// A thread whose next iteration is more than two seconds late.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Stalled"))]
pub struct StalledJson {
    /// Name of the thread.
    pub thread: String,
    /// Delay of the iteration in microseconds.
    pub for_us: u64,
}

/// A publisher.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Publisher"))]
pub struct PublisherJson {
    /// Id of the publisher.
    pub id: String,
    /// Tag of its samples.
    pub tag: String,
    /// Kind of its samples.
    pub kind: String,
    /// Media type of its samples.
    pub encoding: String,
    /// Declared period; null if none is declared.
    pub period_us: Option<u64>,
    /// Samples since the start.
    pub published: u64,
    /// Samples per second.
    pub rate_hz: f64,
    /// True if the rate differs from the declared one by more than a tenth; false in a pause.
    pub off_rate: bool,
    /// True if any subscription matches.
    pub matching: bool,
}

/// The requested form of the samples.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "RequestedForm"))]
pub struct FormJson {
    /// Description for display.
    pub form: String,
    /// One sample in this many; null for every sample.
    pub every: Option<u32>,
    /// Largest rate; null if none is requested.
    pub max_hz: Option<f64>,
    /// Width in pixels; null for the full size.
    pub width: Option<u32>,
    /// Height in pixels; null for the full size.
    pub height: Option<u32>,
}

/// A subscription.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Subscription"))]
pub struct SubscriptionJson {
    /// Id of the subscription.
    pub id: String,
    /// Pattern of its tags.
    pub pattern: String,
    /// Requested form.
    pub asked: FormJson,
    /// Requested delay bound; null if none is requested.
    pub within_us: Option<u64>,
    /// Requested loss tolerance, such as `1/10`; null if none is requested.
    pub loss: Option<String>,
    /// Place of the scaling: `publisher`, `subscriber`, `auto` or `node:NAME`.
    pub proxy: String,
    /// Names of the nodes that scale the samples, one per publisher of `publishers`.
    pub scaled_at: Vec<String>,
    /// Ids of the received publishers.
    pub publishers: Vec<String>,
    /// Reasons of the publishers that refuse it, in words.
    pub refusals: Vec<String>,
    /// Samples since the start.
    pub delivered: u64,
    /// Payload bytes since the start.
    pub bytes: u64,
    /// Delivered samples per second, over the last second or more.
    pub rate_hz: f64,
    /// Samples that were older than `within_us` at their arrival, or when the application took them, since the start.
    pub late: u64,
    /// The part of `late` that arrived in time: the samples waited in the process of the subscription.
    #[serde(default)]
    pub overdue: u64,
    /// Largest age of the samples that the application took in the last second or more, or that were dropped unread.
    pub age_max_us: u64,
    /// Mean age of the same samples; null without any.
    pub age_mean_us: Option<u64>,
    /// Sum of the ages of all samples delivered since the start.
    pub age_sum_us: u64,
    /// Samples dropped at this node since the start.
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub dropped: Drops,
    /// Largest jitter of a publisher's samples at arrival, by RFC 3550.
    #[serde(default)]
    pub jitter_us: u64,
    /// Samples that were published between two that arrived, but did not arrive.
    #[serde(default)]
    pub lost: u64,
    /// Delivery by time; null without one.
    #[serde(default)]
    pub timed: Option<TimedJson>,
}

/// A pull buffer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Buffer"))]
pub struct BufferJson {
    /// Id of the subscription that feeds the buffer.
    pub id: String,
    /// Pattern of its tags.
    pub pattern: String,
    /// Limit of its samples.
    pub samples_max: usize,
    /// Limit of its bytes.
    pub bytes_max: u64,
    /// Limit of the age of a sample.
    pub age_max_us: u64,
    /// Buffered samples.
    pub samples: u64,
    /// Buffered bytes.
    pub bytes: u64,
    /// First capture time in nanoseconds since 1970 UTC; null if it is empty.
    pub oldest_ns: Option<u64>,
    /// Last capture time in nanoseconds since 1970 UTC; null if it is empty.
    pub newest_ns: Option<u64>,
}

/// A link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Link"))]
pub struct LinkJson {
    /// Name of the link.
    pub name: String,
    /// Time at which the counters of the link and its streams were read, by its node's clock.
    pub at_us: u64,
    /// Capacity; null without one.
    pub capacity_bits_per_s: Option<u64>,
    /// Rate between the last two readings.
    pub use_bits_per_s: Option<u64>,
    /// Rate reserved by the contracts of its streams.
    pub reserved_bits_per_s: u64,
    /// Minimum of 10 to 20 s.
    pub round_trip_us: u64,
    /// Last round trip of the slowest neighbour.
    pub delay_us: u64,
    /// Jitter of the round trips, by RFC 3550.
    pub jitter_us: u64,
    /// Ids of its neighbours.
    pub hops: Vec<String>,
    /// Traffic to each of the hops.
    pub neighbours: Vec<NeighbourJson>,
    /// Bytes sent, with an estimate of all headers.
    pub wire_bytes: u64,
    /// Frames sent.
    pub frames: u64,
    /// Frames lost by a transport that should keep order; 0 unless the transport has a fault.
    pub frames_lost: u64,
    /// Frames lost by a carrier that may lose them.
    pub frames_dropped: u64,
    /// Part of the frames lost between the last two readings.
    pub loss: Option<f64>,
    /// Open streams.
    pub streams: Vec<StreamJson>,
    /// Sums over closed streams.
    pub closed: ClosedJson,
    /// Its classes; empty without classes.
    pub classes: Vec<ClassJson>,
    /// Neighbours that flooded the node.
    pub muted: Vec<MutedJson>,
    /// Retransmissions on a QUIC link.
    pub mended: RepairedJson,
    /// Null for a link without a capacity or a neighbour.
    pub buffer: Option<QueueJson>,
}

/// Losses on a link and their repair.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Repaired"))]
pub struct RepairedJson {
    /// Retransmitted pieces.
    pub repeated: u64,
    /// Payload bytes of the retransmitted pieces.
    pub repeated_bytes: u64,
    /// Samples that could no longer arrive in time.
    pub given_up: u64,
}

/// A neighbour that overloaded its node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Muted"))]
pub struct MutedJson {
    /// Id of the neighbour.
    pub peer: String,
    /// Kind of excess traffic: `control` messages, `unasked` samples or `malformed` frames.
    pub flood: String,
    /// True if the neighbour is muted now.
    pub muted: bool,
    /// Number of times that the neighbour was muted.
    pub times: u64,
    /// Dropped messages, samples or frames.
    pub dropped: u64,
}

/// Total counters of the closed streams.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Closed"))]
pub struct ClosedJson {
    /// Samples passed to the link.
    pub offered: u64,
    /// Samples whose last byte was sent.
    pub sent: u64,
    /// Sent samples that missed their deadline.
    pub late: u64,
    /// Samples that were not sent.
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub dropped: Drops,
}

/// A class of a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Class"))]
pub struct ClassJson {
    /// Name of the class.
    pub name: String,
    /// Name of the class above; null directly below the link.
    pub parent: Option<String>,
    /// Id of the next hop for a class per peer; null for other classes.
    pub peer: Option<String>,
    /// Its part of a busy link, 0 to 1; 0 with only a guarantee.
    pub share: f64,
    /// Bytes sent on the wire.
    pub served_bytes: u64,
    /// Bytes sent because of the guarantee.
    pub guaranteed_bytes: u64,
    /// Rate that the class guarantees to contracts; 0 if it guarantees nothing.
    pub guaranteed_bits_per_s: u64,
    /// Part of it that contracts reserve.
    pub reserved_bits_per_s: u64,
    /// Open streams.
    pub streams: u32,
    /// Samples passed to the link.
    pub offered: u64,
    /// Samples whose last byte was sent.
    pub sent: u64,
    /// Sent samples that missed their deadline.
    pub late: u64,
    /// Windows that exceeded the loss tolerance.
    pub violations: u64,
    /// Samples that were not sent.
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub dropped: Drops,
}

/// A stream on a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Stream"))]
pub struct StreamJson {
    /// Id of the publisher.
    pub publisher: String,
    /// Tag; null if the publisher's node did not answer.
    pub tag: Option<String>,
    /// Requested form.
    pub asked: FormJson,
    /// Id of the next node.
    pub hop: String,
    /// True if it has a contract.
    pub contracted: bool,
    /// Contract of the stream on this link.
    pub contract: Option<ContractJson>,
    /// Sums of the ages of its samples.
    pub ages: AgesJson,
    /// Samples passed to the link.
    pub offered: u64,
    /// Samples whose last byte was sent.
    pub sent: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Sent samples that missed their deadline.
    pub late: u64,
    /// Violated windows since the stream was opened.
    pub violations: u64,
    /// Samples dropped after their first segment was sent, so the next hop also counts them as
    /// lost.
    pub aborted: u64,
    /// Time from the last violation to the reading of the counters; null if there was none.
    pub broken_ago_us: Option<u64>,
    /// Multicast group from which the hop receives it; null with unicast.
    pub group: Option<String>,
    /// Samples in excess of the contract: too early, or longer than declared.
    pub too_early: u64,
    /// Samples longer than the contract permits.
    pub too_long: u64,
    /// Samples that were not sent.
    #[serde(with = "by_reason")]
    #[cfg_attr(test, ts(type = "Drops"))]
    pub dropped: Drops,
}

/// The contract of a stream on a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Contract"))]
pub struct ContractJson {
    /// Time between two samples.
    pub period_us: u64,
    /// Longest time from arrival at the link to the end of service.
    pub deadline_us: u64,
    /// Loss tolerance, such as `1/10`.
    pub loss: String,
    /// Reserved rate.
    pub bits_per_s: u64,
}

/// The ages of a stream's samples at a link, as monotonic sums.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Ages"))]
pub struct AgesJson {
    /// Samples that the link accepted.
    pub entered: u64,
    /// Sum of their ages at that time.
    pub entered_us: u64,
    /// Sum of the ages of the sent samples when they left the link.
    pub left_us: u64,
}

impl ContractJson {
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

impl AgesJson {
    const fn new(ages: &StreamAges) -> Self {
        let StreamAges { entered, entered_ns, left_ns } = *ages;
        Self { entered, entered_us: entered_ns / 1_000, left_us: left_ns / 1_000 }
    }
}

impl ClosedJson {
    const fn new(sum: &StreamCounters) -> Self {
        let StreamCounters { offered, sent, late, drops, .. } = *sum;
        Self { offered, sent, late, dropped: drops }
    }
}

impl StatusJson {
    /// Returns the published tags.
    pub fn published(&self) -> BTreeSet<String> {
        let publishers = self.nodes.iter().flat_map(|node| &node.publishers);
        publishers.map(|publisher| publisher.tag.clone()).collect()
    }

    /// Creates the document from the nodes' answers. The use of links is not known yet.
    pub fn new(status: &[NodeStatus]) -> Self {
        let mut nodes: Vec<NodeJson> =
            status.iter().map(|node| NodeJson::new(node, status)).collect();
        nodes.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        Self { schema: SCHEMA, nodes }
    }

    /// Returns true if any node has a link.
    pub fn has_links(&self) -> bool {
        self.nodes.iter().any(|node| !node.links.is_empty())
    }
}

impl NodeJson {
    fn new(node: &NodeStatus, all: &[NodeStatus]) -> Self {
        Self {
            id: node.id.to_string(),
            name: node.name.clone(),
            at_us: micros(node.at),
            publishers: node.publishers.iter().map(PublisherJson::new).collect(),
            subscriptions: node.subscriptions.iter().map(SubscriptionJson::new).collect(),
            buffers: node.buffers.iter().map(BufferJson::new).collect(),
            links: node.links.iter().map(|link| LinkJson::new(link, all)).collect(),
            reservations: node
                .reservations
                .iter()
                .map(|it| ReservationJson::new(it, all))
                .collect(),
            processor: node.processor.as_ref().map(ProcessorJson::new),
            buffer: node.buffer.as_ref().map(QueueJson::of_host),
            memory: node.memory.map(MemoryJson::new),
            dropped: node.drops,
            stalled: node.stalled.iter().map(StalledJson::new).collect(),
            clock: node.clock.as_ref().map(ClockJson::new),
            unread: node.unread.iter().map(UnreadJson::new).collect(),
        }
    }
}

impl UnreadJson {
    fn new(unread: &UnreadStatus) -> Self {
        let UnreadStatus { node, entry, reason } = unread.clone();
        Self { node: node.to_string(), entry, reason }
    }
}

impl StalledJson {
    fn new(stalled: &StalledThread) -> Self {
        Self { thread: stalled.thread.clone(), for_us: micros(stalled.still) }
    }
}

impl PublisherJson {
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

impl FormJson {
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

impl SubscriptionJson {
    fn new(subscription: &SubscriptionStatus) -> Self {
        Self {
            id: subscription.id.to_string(),
            pattern: subscription.pattern.clone(),
            asked: FormJson::new(&subscription.form),
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
            overdue: subscription.overdue,
            age_max_us: micros(subscription.age_max),
            age_mean_us: subscription.age_mean.map(micros),
            age_sum_us: micros(subscription.age_sum),
            dropped: subscription.drops,
            jitter_us: micros(subscription.jitter),
            lost: subscription.lost,
            timed: subscription.timed.as_ref().map(TimedJson::new),
        }
    }
}

impl BufferJson {
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

impl LinkJson {
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
            neighbours: link.sent.iter().map(NeighbourJson::new).collect(),
            wire_bytes: link.wire_bytes,
            frames: link.frames,
            frames_lost: link.frames_lost,
            frames_dropped: link.frames_dropped,
            loss: None,
            streams: link.streams.iter().map(|stream| StreamJson::new(stream, all)).collect(),
            closed: ClosedJson::new(&link.closed),
            classes: link
                .classes
                .iter()
                .map(|class| ClassJson::new(class, &link.reserved))
                .collect(),
            muted: link.muted.iter().map(MutedJson::new).collect(),
            mended: RepairedJson::new(link.mended),
            buffer: QueueJson::new(&link.reserved),
        }
    }
}

impl MutedJson {
    fn new(row: &MutedStatus) -> Self {
        let MutedStatus { node, flood, muted, times, dropped } = *row;
        Self { peer: node.to_string(), flood: flood.name().to_owned(), muted, times, dropped }
    }
}

impl RepairedJson {
    const fn new(row: MendCounters) -> Self {
        let MendCounters { repeated, repeated_bytes, given_up } = row;
        Self { repeated, repeated_bytes, given_up }
    }
}

impl ClassJson {
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

impl StreamJson {
    fn new(stream: &StreamStatus, all: &[NodeStatus]) -> Self {
        let mut publishers = all.iter().flat_map(|node| &node.publishers);
        let source = publishers.find(|publisher| publisher.id == stream.publisher);
        let counters = &stream.counters;
        Self {
            publisher: stream.publisher.to_string(),
            tag: source.map(|publisher| publisher.tag.to_string()),
            asked: FormJson::new(&stream.form),
            hop: stream.hop.to_string(),
            contracted: stream.contracted,
            contract: stream.contract.as_ref().map(ContractJson::new),
            ages: AgesJson::new(&stream.ages),
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
pub fn bits_per_s(bytes: u64, seconds: f64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "displayed only")]
    let bits = round3(bytes as f64 * 8.0 / seconds.max(1e-6)).clamp(0.0, 1e18);
    #[expect(clippy::cast_possible_truncation, reason = "in range by clamp")]
    let whole = bits as u64;
    whole
}

#[cfg(test)]
pub(crate) mod tests;
