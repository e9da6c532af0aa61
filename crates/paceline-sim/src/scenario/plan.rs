//! A scenario whose every value is checked: what both worlds run.

use crate::impair::{Impairment, WireKind};
use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::link::{Carrier, Link, LinkSpec};
use paceline_proto::sample::{Encoding, Kind};
use paceline_proto::tag::{Pattern, Tag};
use paceline_sched::{Capacity, Duration, Late, LossTolerance, Policy};

/// A network, its load and its bad days. Instants count from the end of the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What people call it.
    pub name: String,
    /// What decides about chance.
    pub seed: u64,
    /// What is counted.
    pub duration: Duration,
    /// What passes before: nodes find each other, and publishers publish already.
    pub warm_up: Duration,
    /// The nodes, by the places that everything else names.
    pub nodes: Vec<NodePlan>,
    /// What joins them.
    pub links: Vec<Wiring>,
    /// Who publishes.
    pub publishers: Vec<PublisherPlan>,
    /// Who subscribes.
    pub subscribers: Vec<SubscriberPlan>,
    /// What goes wrong, by its instant.
    pub faults: Vec<Fault>,
    /// What is allowed and probably not meant, in words.
    pub warnings: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodePlan {
    /// Its name.
    pub name: String,
    /// By how many millionths its clock is too fast.
    pub drift_ppm: i32,
    /// When its clock is set, and by how many nanoseconds.
    pub steps: Vec<(Duration, i64)>,
}

/// A link each way between two nodes, and the wire below.
#[derive(Clone, Debug, PartialEq)]
pub struct Wiring {
    /// The two nodes.
    pub between: [usize; 2],
    /// What the nodes are told that it carries.
    pub capacity: Option<Capacity>,
    /// Which discipline schedules it.
    pub policy: Policy,
    /// What travels on the wire.
    pub protocol: Protocol,
    /// What the wire carries and does to packets, each way.
    pub wire: Impairment,
}

impl Wiring {
    /// What each of the two nodes is told of its link.
    #[must_use]
    pub fn spec(&self) -> LinkSpec {
        let carrier = match self.protocol {
            Protocol::Tcp => Carrier::Ordered,
            Protocol::Udp => Carrier::Datagrams,
        };
        let (capacity, policy) = (self.capacity, self.policy);
        LinkSpec { capacity, policy, carrier, ..LinkSpec::default() }
    }
}

/// What carries the frames of a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Protocol {
    /// What is lost comes later, and all that follows waits for it.
    #[default]
    Tcp,
    /// What is lost is lost, and the link mends it (docs/lossy.md).
    Udp,
}

impl Protocol {
    /// What stands before an address.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    /// The wire that does so.
    #[must_use]
    pub const fn wire(self) -> WireKind {
        match self {
            Self::Tcp => WireKind::Reliable,
            Self::Udp => WireKind::Datagrams,
        }
    }
}

/// What a publisher's samples are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Content {
    /// Data: the oldest waits, all are wanted.
    Data,
    /// Pictures: a newer one replaces one that waits.
    Pictures,
    /// Video: this group of I, P and B over and over.
    Video(String),
}

/// When something is there, from and to, from the end of the warm-up; `None` is from the beginning of
/// the warm-up and to the end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Span {
    /// Since when.
    pub from: Option<Duration>,
    /// Until when.
    pub to: Option<Duration>,
}

/// A publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct PublisherPlan {
    /// Its node.
    pub node: usize,
    /// Its tag.
    pub tag: Tag,
    /// What it publishes.
    pub content: Content,
    /// The time between two samples.
    pub period: Duration,
    /// The bytes of each sample.
    pub bytes: u64,
    /// Each sample comes up to this much after its time.
    pub jitter: Duration,
    /// When it publishes.
    pub span: Span,
    /// What becomes of late samples.
    pub late: Late,
}

impl PublisherPlan {
    /// What it declares.
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
            waits: false,
        }
    }
}

/// A subscriber.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriberPlan {
    /// Its node.
    pub node: usize,
    /// What it asks for.
    pub spec: SubscriptionSpec,
    /// When it is subscribed.
    pub span: Span,
}

impl SubscriberPlan {
    /// One that asks for everything that `pattern` matches.
    #[must_use]
    pub fn new(node: usize, pattern: Pattern) -> Self {
        let spec = SubscriptionSpec::all_of(pattern);
        Self { node, spec, span: Span::default() }
    }

    /// The delay bound and the misses that it bears in each window; none if it states no bound.
    #[must_use]
    pub fn window(&self) -> Option<(Duration, LossTolerance)> {
        let within = self.spec.within?;
        Some((within, self.spec.loss.unwrap_or(LossTolerance::NONE)))
    }
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// When.
    pub at: Duration,
    /// When it is mended; `None` if it never is.
    pub until: Option<Duration>,
    /// What.
    pub what: FaultKind,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultKind {
    /// Nothing passes between two nodes.
    Cut([usize; 2]),
    /// A node ends without a word.
    Crash(usize),
    /// A node neither reads nor sends.
    Stall(usize),
    /// The wire between two nodes does something else to frames.
    Impair([usize; 2], Impairment),
}

impl Plan {
    /// The name of a node.
    #[must_use]
    pub fn node(&self, place: usize) -> &str {
        self.nodes.get(place).map_or("?", |node| &node.name)
    }

    /// How long a full frame keeps the slowest link busy: what a sample may have to wait for.
    #[must_use]
    pub fn segment(&self) -> Duration {
        let links = self.links.iter().map(|link| Link::new(link.spec()).frame_time());
        links.max().unwrap_or_default()
    }

    /// When everything ends, from the end of the warm-up: what was published before may arrive until
    /// then.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.duration.saturating_add(COOL_DOWN)
    }

    /// The same in less time: everything after the warm-up is that much sooner and shorter, but for
    /// periods and delays. Unchanged if it is no longer than `most`.
    #[must_use]
    pub fn squeezed(&self, most: Duration) -> Self {
        let (all, most) = (self.duration.as_nanos(), most.min(self.duration).as_nanos());
        let sooner = |at: Duration| at.mul_div(most, all.max(1));
        let span = |span: Span| Span { from: span.from.map(sooner), to: span.to.map(sooner) };
        let mut plan = Self { duration: sooner(self.duration), ..self.clone() };
        plan.publishers.iter_mut().for_each(|one| one.span = span(one.span));
        plan.subscribers.iter_mut().for_each(|one| one.span = span(one.span));
        for fault in &mut plan.faults {
            (fault.at, fault.until) = (sooner(fault.at), fault.until.map(sooner));
        }
        for (at, _) in plan.nodes.iter_mut().flat_map(|node| &mut node.steps) {
            *at = sooner(*at);
        }
        plan
    }

    /// What a fault is, in words.
    #[must_use]
    pub fn told(&self, fault: &Fault) -> String {
        let pair = |[a, b]: [usize; 2]| format!("{} - {}", self.node(a), self.node(b));
        match &fault.what {
            FaultKind::Cut(between) => format!("cut {}", pair(*between)),
            FaultKind::Crash(node) => format!("crash {}", self.node(*node)),
            FaultKind::Stall(node) => format!("stall {}", self.node(*node)),
            FaultKind::Impair(between, ..) => format!("impair {}", pair(*between)),
        }
    }
}

/// How long after the end a sample may still arrive: what comes later counts as lost.
pub const COOL_DOWN: Duration = Duration::from_secs(4);
