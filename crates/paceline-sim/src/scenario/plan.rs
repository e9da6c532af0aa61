//! A validated scenario, which runs in virtual time and on live nodes.

use super::course::CapacityCourse;
use crate::impair::{Impairment, WireKind};
use paceline_proto::Carrier;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::link::{Link, LinkSpec};
use paceline_proto::sample::{Encoding, Kind};
use paceline_proto::tag::{Pattern, Tag};
use paceline_sched::{Duration, Late, LossTolerance, Policy};

/// A network, its load and its faults. Instants count from the end of the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The name of the scenario.
    pub name: String,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The duration of the measurement, after the warm-up.
    pub duration: Duration,
    /// The time before the measurement, in which nodes find each other and publishers already publish.
    pub warm_up: Duration,
    /// The nodes. Everything else refers to them by index.
    pub nodes: Vec<NodePlan>,
    /// The links between the nodes.
    pub links: Vec<Wiring>,
    /// The publishers.
    pub publishers: Vec<PublisherPlan>,
    /// The subscribers.
    pub subscribers: Vec<SubscriberPlan>,
    /// The faults, in the order of their instants.
    pub faults: Vec<Fault>,
    /// Messages about values that are valid but probably unintended.
    pub warnings: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodePlan {
    /// The name of the node.
    pub name: String,
    /// The clock's drift, in parts per million; positive if it runs fast.
    pub drift_ppm: i32,
    /// The steps of its clock: instants and sizes in nanoseconds.
    pub steps: Vec<(Duration, i64)>,
}

/// A pair of links between two nodes, one per direction, and the wire below.
#[derive(Clone, Debug, PartialEq)]
pub struct Wiring {
    /// The indices of the two nodes.
    pub between: [usize; 2],
    /// The capacity that the nodes assume, or measure.
    pub capacity: Option<LinkCapacity>,
    /// The scheduling discipline.
    pub policy: Policy,
    /// The protocol of the wire.
    pub protocol: Protocol,
    /// The wire's rate and impairment, in each direction.
    pub wire: Impairment,
}

impl Wiring {
    /// Returns the link specification for either node.
    #[must_use]
    pub fn spec(&self) -> LinkSpec {
        let carrier = match self.protocol {
            Protocol::Tcp => Carrier::Ordered,
            Protocol::Quic => Carrier::Datagrams,
        };
        let (capacity, policy) = (self.capacity.map(|setting| setting.first()), self.policy);
        LinkSpec { capacity, policy, carrier, ..LinkSpec::default() }
    }
}

/// The protocol that carries the frames of a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Protocol {
    /// Lost frames arrive later, and all subsequent frames wait for them.
    #[default]
    Tcp,
    /// Lost frames stay lost, and the link repairs losses (docs/concepts/lossy.md). Encrypted, with certificates.
    Quic,
}

impl Protocol {
    /// Returns the prefix of addresses with this protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Quic => "quic",
        }
    }

    /// Returns the bytes per frame that encryption adds.
    #[must_use]
    pub const fn seal_bytes(self) -> u64 {
        match self {
            Self::Tcp => 0,
            Self::Quic => 16,
        }
    }

    /// Returns the kind of wire that simulates this protocol.
    #[must_use]
    pub const fn wire(self) -> WireKind {
        match self {
            Self::Tcp => WireKind::Reliable,
            Self::Quic => WireKind::Datagrams,
        }
    }
}

/// The content of a publisher's samples.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Content {
    /// Data: all samples are kept in a queue.
    Data,
    /// Pictures: a new one replaces the queued one.
    Pictures,
    /// Video that repeats this group of I, P and B pictures.
    Video(String),
}

/// An interval of existence, relative to the end of the warm-up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lifetime {
    /// The start; `None` means the beginning of the warm-up.
    pub from: Option<Duration>,
    /// The end; `None` means the end of the run.
    pub to: Option<Duration>,
}

/// A publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct PublisherPlan {
    /// The index of its node.
    pub node: usize,
    /// Its tag.
    pub tag: Tag,
    /// The content of its samples.
    pub content: Content,
    /// The time between two samples.
    pub period: Duration,
    /// Bytes per sample.
    pub bytes: u64,
    /// The largest delay of a sample relative to its nominal time.
    pub jitter: Duration,
    /// The interval in which it publishes.
    pub lifetime: Lifetime,
    /// The rule for late samples.
    pub late: Late,
    /// The instants and bytes of its samples, in their order, in place of `period`, `bytes` and `jitter`, which are then only
    /// declared. Empty for a regular publisher.
    pub trace: Vec<(Duration, u64)>,
}

impl PublisherPlan {
    /// Returns its declaration.
    #[must_use]
    pub fn spec(&self) -> PublisherSpec {
        let (kind, encoding) = match self.content {
            Content::Data => (Kind::Data, Encoding::Bytes),
            Content::Pictures => (Kind::Picture, Encoding::Bytes),
            Content::Video(_) => (Kind::VideoI, Encoding::new("video/h264")),
        };
        PublisherSpec {
            tag: self.tag.clone(),
            kind,
            encoding,
            period: Some(self.period),
            late: self.late,
            loss: None,
            size: None,
            bytes_max: Some(self.bytes),
            envelope: None,
            waits: false,
            latch: false,
            unscalable: None,
            key_interval: None,
            structure: None,
            scaled: Vec::new(),
            within: None,
        }
    }
}

/// A subscriber.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriberPlan {
    /// The index of its node.
    pub node: usize,
    /// Its request.
    pub spec: SubscriptionSpec,
    /// The interval in which it is subscribed.
    pub lifetime: Lifetime,
}

impl SubscriberPlan {
    /// Creates a subscriber to all samples that `pattern` matches.
    #[must_use]
    pub fn new(node: usize, pattern: Pattern) -> Self {
        let spec = SubscriptionSpec::all_of(pattern);
        Self { node, spec, lifetime: Lifetime::default() }
    }

    /// Returns the delay bound and the loss tolerance, or `None` without a bound.
    #[must_use]
    pub fn window(&self) -> Option<(Duration, LossTolerance)> {
        let within = self.spec.within?;
        Some((within, self.spec.loss.unwrap_or(LossTolerance::NONE)))
    }
}

/// A fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Its start.
    pub at: Duration,
    /// Its end; `None` if it lasts.
    pub until: Option<Duration>,
    /// Its kind.
    pub what: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// The connection between two nodes is cut.
    Cut([usize; 2]),
    /// A node ends without notice.
    Crash(usize),
    /// A node neither reads nor sends.
    Stall(usize),
    /// The wire between two nodes gets another impairment.
    Impair([usize; 2], Impairment),
    /// The capacity of the link between two nodes changes. A link with a fixed capacity is notified at once, as by a modem; one
    /// with a measured capacity has to find it.
    Capacity([usize; 2], CapacityCourse),
}

impl Plan {
    /// Returns the name of a node.
    #[must_use]
    pub fn node(&self, place: usize) -> &str {
        self.nodes.get(place).map_or("?", |node| &node.name)
    }

    /// Returns the transmission time of a full frame on the slowest link, for which a sample may have to
    /// wait.
    #[must_use]
    pub fn segment(&self) -> Duration {
        let links = self.links.iter().map(|link| Link::new(link.spec()).frame_time());
        links.max().unwrap_or_default()
    }

    /// Returns the end of the run, relative to the end of the warm-up. Samples published before may arrive
    /// until then.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.duration.saturating_add(COOL_DOWN)
    }

    /// Returns the same plan compressed to a duration of at most `most`.
    ///
    /// Scales all instants after the warm-up, but no periods and no delays. A plan that is not longer stays
    /// unchanged.
    #[must_use]
    pub fn squeezed(&self, most: Duration) -> Self {
        let (all, most) = (self.duration.as_nanos(), most.min(self.duration).as_nanos());
        let sooner = |at: Duration| at.mul_div(most, all.max(1));
        let shorter =
            |Lifetime { from, to }| Lifetime { from: from.map(sooner), to: to.map(sooner) };
        let mut plan = Self { duration: sooner(self.duration), ..self.clone() };
        plan.publishers.iter_mut().for_each(|one| one.lifetime = shorter(one.lifetime));
        plan.subscribers.iter_mut().for_each(|one| one.lifetime = shorter(one.lifetime));
        for fault in &mut plan.faults {
            (fault.at, fault.until) = (sooner(fault.at), fault.until.map(sooner));
            if let FaultKind::Capacity(_, course) = &mut fault.what {
                *course = course.scaled(sooner);
            }
        }
        for (at, _) in plan.nodes.iter_mut().flat_map(|node| &mut node.steps) {
            *at = sooner(*at);
        }
        plan
    }

    /// Describes a fault.
    #[must_use]
    pub fn describe(&self, fault: &Fault) -> String {
        let pair = |[a, b]: [usize; 2]| format!("{} - {}", self.node(a), self.node(b));
        match &fault.what {
            FaultKind::Cut(between) => format!("cut {}", pair(*between)),
            FaultKind::Crash(node) => format!("crash {}", self.node(*node)),
            FaultKind::Stall(node) => format!("stall {}", self.node(*node)),
            FaultKind::Impair(between, ..) => format!("impair {}", pair(*between)),
            FaultKind::Capacity(between, ..) => format!("capacity {}", pair(*between)),
        }
    }
}

/// The time after the end within which samples may still arrive. Later samples count as lost.
pub const COOL_DOWN: Duration = Duration::from_secs(4);
