//! Derives the displayed data from readings: rates and means are differences between two readings. Uses no
//! clock: counts have timestamps from the node that counted.

use paceline::status::{
    Drops, LinkStatus, NodeId, NodeStatus, StreamStatus, SubscriptionHealth, SubscriptionStatus,
};
use paceline_http::status::StatusDocument;
use paceline_tool::show;
use paceline_tool::show::micros;
use paceline_tool::stats::round3;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Display time of a node that no longer answers.
const GONE_FOR: Duration = Duration::from_secs(10);

/// The sort column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    Tag,
    Node,
    Rate,
    Bits,
    Delay,
    Late,
    Drops,
}

impl Order {
    /// All columns, in the order in which the sort key cycles.
    pub(super) const ALL: [Self; 7] =
        [Self::Tag, Self::Node, Self::Rate, Self::Bits, Self::Delay, Self::Late, Self::Drops];

    /// Returns the column's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Node => "node",
            Self::Rate => "rate",
            Self::Bits => "bits",
            Self::Delay => "delay",
            Self::Late => "late",
            Self::Drops => "drops",
        }
    }

    /// Returns the column `by` positions further, cyclically.
    pub(super) fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|&order| order == self).unwrap_or_default();
        Self::ALL.iter().cycle().nth(at + by).copied().unwrap_or(self)
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|order| order.name() == text);
        found.ok_or_else(|| "must be tag, node, rate, bits, delay, late or drops".to_owned())
    }
}

/// A stream or a subscription between two readings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) tag: String,
    /// The node, with the link of a stream.
    pub(super) place: String,
    /// The next hop of a stream.
    pub(super) to: String,
    pub(super) form: String,
    pub(super) rate_hz: f64,
    pub(super) bits_per_s: u64,
    /// Mean time on the link, or mean age at delivery in the last second; `None` without samples.
    pub(super) delay_us: Option<u64>,
    /// The bound from the contract or `--within`.
    pub(super) bound_us: Option<u64>,
    pub(super) late: u64,
    pub(super) violations: Option<u64>,
    pub(super) dropped: Drops,
    /// The health of a subscription: its rate, `late` and state cover the time of it.
    pub(super) health: Option<SubscriptionHealth>,
    pub(super) gone: bool,
}

/// A link between two readings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkRow {
    pub(super) place: String,
    pub(super) to: String,
    pub(super) capacity: Option<u64>,
    pub(super) used: Option<u64>,
    pub(super) reserved: u64,
    pub(super) delay_us: u64,
    pub(super) jitter_us: u64,
    pub(super) loss: Option<f64>,
    pub(super) streams: usize,
    pub(super) gone: bool,
}

/// All displayed data.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct View {
    pub(super) nodes: usize,
    /// Number of known nodes without an answer.
    pub(super) silent: usize,
    pub(super) gone: Vec<String>,
    pub(super) links: Vec<LinkRow>,
    pub(super) streams: Vec<Row>,
    pub(super) subscriptions: Vec<Row>,
    /// Node, pattern and reason of each refusal.
    pub(super) refusals: Vec<String>,
}

/// A node's last two answers.
#[derive(Debug)]
struct Known {
    node: NodeStatus,
    at: Instant,
    before: Option<NodeStatus>,
}

/// The state derived from all readings.
#[derive(Debug, Default)]
pub(super) struct Model {
    nodes: BTreeMap<NodeId, Known>,
    known: usize,
    now: Option<Instant>,
}

impl Model {
    /// Adds a reading; `known` is the number of all other nodes, including those not queried.
    pub(super) fn take(&mut self, document: StatusDocument, at: Instant, known: usize) {
        self.now = Some(at);
        self.known = known;
        for node in document.nodes {
            let before = self.nodes.remove(&node.id).map(|known| known.node);
            self.nodes.insert(node.id, Known { node, at, before });
        }
        self.nodes.retain(|_, known| at.saturating_duration_since(known.at) <= GONE_FOR);
    }

    /// Returns true if no node has answered.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the data to display; `turned` reverses the order.
    pub(super) fn view(&self, order: Order, turned: bool) -> View {
        let mut view = View::default();
        let names = self.nodes.values().map(|known| (known.node.id, known.node.name.as_str()));
        let names: Names<'_> = names.collect();
        for known in self.nodes.values() {
            let gone = self.now != Some(known.at);
            let node = &known.node;
            match gone {
                true => view.gone.push(node.name.clone()),
                false => view.nodes += 1,
            }
            // Links to processes of the same host appear and disappear; an empty one is not interesting.
            let idle = |link: &&LinkStatus| {
                link.hops.is_empty()
                    && link.streams.is_empty()
                    && link.capacity_bits_per_s.is_none()
            };
            for link in node.links.iter().filter(|link| !idle(link)) {
                view.links.push(known.link_row(link, &names, gone));
                for stream in &link.streams {
                    view.streams.push(known.stream_row(link, stream, &names, gone));
                }
            }
            for subscription in &node.subscriptions {
                view.subscriptions.push(known.subscription_row(subscription, gone));
                for why in &subscription.refusals {
                    view.refusals.push(format!("{} {}: {why}", node.name, subscription.pattern));
                }
            }
        }
        view.silent = self.known.saturating_sub(view.nodes);
        view.links.sort_by(|a, b| a.place.cmp(&b.place));
        sort(&mut view.streams, order, turned);
        sort(&mut view.subscriptions, order, turned);
        view
    }
}

fn sort(rows: &mut [Row], order: Order, turned: bool) {
    rows.sort_by(|a, b| {
        let name = || (&a.tag, &a.place, &a.to, &a.form).cmp(&(&b.tag, &b.place, &b.to, &b.form));
        // Numbers sort in descending order.
        let by = match order {
            Order::Tag => name(),
            Order::Node => a.place.cmp(&b.place),
            Order::Rate => b.rate_hz.total_cmp(&a.rate_hz),
            Order::Bits => b.bits_per_s.cmp(&a.bits_per_s),
            Order::Delay => b.delay_us.cmp(&a.delay_us),
            Order::Late => (b.late, b.violations).cmp(&(a.late, a.violations)),
            Order::Drops => total(&b.dropped).cmp(&total(&a.dropped)),
        };
        (if turned { by.reverse() } else { by }).then_with(name)
    });
}

/// Returns the drops of all reasons.
pub(super) fn total(drops: &Drops) -> u64 {
    drops.total()
}

/// The names of nodes.
type Names<'a> = BTreeMap<NodeId, &'a str>;

fn named(names: &Names<'_>, id: NodeId) -> String {
    names.get(&id).map_or_else(|| id.to_string(), |name| (*name).to_owned())
}

/// Returns the increase of a counter. A smaller value than before means that the counter was reset.
fn grown(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

fn dropped_since(now: &Drops, before: Option<&Drops>) -> Drops {
    let mut since = Drops::default();
    for (reason, count) in now.iter() {
        let was = before.map_or(0, |before| {
            before.iter().find(|(other, _)| *other == reason).map_or(0, |(_, count)| count)
        });
        since.add(reason, grown(count, was));
    }
    since
}

/// Returns the seconds between two readings; `None` if the counts were not read again.
fn seconds(now: Duration, before: Duration) -> Option<f64> {
    let over = now.checked_sub(before).filter(|over| !over.is_zero())?;
    Some(over.as_secs_f64())
}

/// Returns the stream in the previous reading. Several streams can have the same key while one replaces
/// another. Takes the one with the greatest count that does not exceed the current count.
fn stream_before<'a>(link: &'a LinkStatus, stream: &StreamStatus) -> Option<&'a StreamStatus> {
    let same = |other: &&StreamStatus| {
        (other.publisher, other.hop, other.form) == (stream.publisher, stream.hop, stream.form)
            && other.counters.offered <= stream.counters.offered
    };
    link.streams.iter().filter(same).max_by_key(|other| other.counters.offered)
}

impl Known {
    fn link_before(&self, link: &LinkStatus) -> Option<&LinkStatus> {
        self.before.iter().flat_map(|node| &node.links).find(|other| other.name == link.name)
    }

    fn link_row(&self, link: &LinkStatus, names: &Names<'_>, gone: bool) -> LinkRow {
        let to: Vec<String> = link.hops.iter().map(|hop| named(names, *hop)).collect();
        let used = self.link_before(link).filter(|_| !gone).and_then(|before| {
            let seconds = seconds(link.at, before.at)?;
            Some(bits_per_s(grown(link.wire_bytes, before.wire_bytes), seconds))
        });
        LinkRow {
            place: format!("{}.{}", self.node.name, link.name),
            to: to.join(", "),
            capacity: link.capacity_bits_per_s,
            used,
            reserved: link.reserved_bits_per_s,
            delay_us: micros(link.round_trip),
            jitter_us: micros(link.jitter),
            loss: link.loss,
            streams: link.streams.len(),
            gone,
        }
    }

    fn stream_row(
        &self,
        link: &LinkStatus,
        stream: &StreamStatus,
        names: &Names<'_>,
        gone: bool,
    ) -> Row {
        let link_before = self.link_before(link);
        let before = link_before.and_then(|link| stream_before(link, stream));
        let seconds = link_before.and_then(|before| seconds(link.at, before.at));
        let seconds = seconds.filter(|_| before.is_some() && !gone);
        let was = |of: fn(&StreamStatus) -> u64| grown(of(stream), before.map_or(0, of));
        let (entered, sent) = (was(|s| s.ages.entered), was(|s| s.counters.sent));
        let mean = |sum: u64, count: u64| sum.checked_div(count);
        let came = mean(was(|s| micros(s.ages.entered_age)), entered);
        let left = mean(was(|s| micros(s.ages.left_age)), sent);
        Row {
            tag: stream.tag.clone().unwrap_or_else(|| stream.publisher.to_string()),
            place: format!("{}.{}", self.node.name, link.name),
            to: named(names, stream.hop),
            form: stream.form.to_string(),
            rate_hz: seconds.map_or(0.0, |seconds| per_second(sent, seconds)),
            bits_per_s: seconds.map_or(0, |s| bits_per_s(was(|s| s.counters.bytes), s)),
            delay_us: left
                .zip(came)
                .map(|(left, came)| left.saturating_sub(came))
                .filter(|_| seconds.is_some()),
            bound_us: stream.contract.as_ref().map(|contract| micros(contract.deadline)),
            late: was(|s| s.counters.late),
            violations: stream.contracted.then(|| was(|s| s.counters.violations)),
            dropped: dropped_since(
                &stream.counters.dropped,
                before.map(|before| &before.counters.dropped),
            ),
            health: None,
            gone,
        }
    }

    fn subscription_row(&self, row: &SubscriptionStatus, gone: bool) -> Row {
        let node = self.before.as_ref();
        let before = node.and_then(|node| node.subscriptions.iter().find(|old| old.id == row.id));
        let seconds = node.and_then(|node| seconds(self.node.at, node.at));
        let seconds = seconds.filter(|_| before.is_some() && !gone);
        let was = |of: fn(&SubscriptionStatus) -> u64| grown(of(row), before.map_or(0, of));
        let health = Some(row.health.clone()).filter(|_| !gone);
        Row {
            tag: row.pattern.clone(),
            place: self.node.name.clone(),
            to: String::new(),
            form: row.form_in_words(),
            rate_hz: health.as_ref().and_then(|it| it.delivered_millihertz).map_or(0.0, in_hertz),
            bits_per_s: seconds.map_or(0, |s| bits_per_s(was(|s| s.bytes), s)),
            delay_us: row.age_mean.filter(|_| !gone).map(micros),
            bound_us: row.within.map(micros),
            late: health.as_ref().map_or(0, |health| health.late),
            violations: None,
            dropped: dropped_since(&row.dropped, before.map(|before| &before.dropped)),
            health,
            gone,
        }
    }
}

/// Returns the rate in bits per second for a number of bytes in a time.
fn bits_per_s(bytes: u64, seconds: f64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "displayed only")]
    let bits = round3(bytes as f64 * 8.0 / seconds.max(1e-6)).clamp(0.0, 1e18);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range by clamp"
    )]
    let whole = bits as u64;
    whole
}

fn in_hertz(millihertz: u64) -> f64 {
    f64::from(u32::try_from(millihertz).unwrap_or(u32::MAX)) / 1_000.0
}

fn per_second(count: u64, seconds: f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "displayed only")]
    let rate = count as f64 / seconds;
    rate
}

impl Row {
    /// Formats the delay with its bound.
    pub(super) fn delay(&self) -> String {
        let of = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), show::millis);
        match self.bound_us {
            Some(bound) => format!("{}/{}", of(self.delay_us), show::millis(bound)),
            None => of(self.delay_us),
        }
    }
}

#[cfg(test)]
#[path = "model/tests.rs"]
pub(super) mod tests;
