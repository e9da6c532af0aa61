//! A scenario whose every value is checked: what both worlds run.

use paceline_proto::control::{PublisherSpec, SubscriptionSpec};
use paceline_proto::form::Form;
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

/// What a network does to the frames of one direction beside letting them wait for its rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Trouble {
    /// How long each is on its way.
    pub delay: Duration,
    /// Up to how much longer.
    pub jitter: Duration,
    /// How they are lost.
    pub loss: Loss,
    /// How many in a million are overtaken.
    pub reorder_ppm: u32,
    /// How many in a million arrive twice.
    pub duplicate_ppm: u32,
    /// Bytes that may wait for the rate.
    pub queue_bytes: u64,
}

/// How frames are lost, in millionths.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Loss {
    /// None is.
    #[default]
    None,
    /// Each by itself.
    Random {
        /// How many in a million.
        ppm: u32,
    },
    /// In bursts: the network is in a good or a bad state.
    GilbertElliott {
        /// How often in a million frames the good state ends.
        good_to_bad_ppm: u32,
        /// How often in a million frames the bad state ends.
        bad_to_good_ppm: u32,
        /// How many in a million are lost in the good state.
        loss_good_ppm: u32,
        /// How many in a million are lost in the bad state.
        loss_bad_ppm: u32,
    },
}

impl Trouble {
    /// None at all: what two hosts on one switch have.
    pub const NONE: Self = Self {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        loss: Loss::None,
        reorder_ppm: 0,
        duplicate_ppm: 0,
        queue_bytes: 65_536,
    };

    /// True if frames do nothing but wait for the rate.
    #[must_use]
    pub fn is_none(&self) -> bool {
        Self { queue_bytes: Self::NONE.queue_bytes, ..*self } == Self::NONE
    }
}

/// A link each way between two nodes, and the wire below.
#[derive(Clone, Debug, PartialEq)]
pub struct Wiring {
    /// The two nodes.
    pub between: [usize; 2],
    /// What the wire carries, each way; without one whatever comes.
    pub rate: Option<Capacity>,
    /// What the nodes are told that it carries.
    pub capacity: Option<Capacity>,
    /// Which discipline schedules it.
    pub policy: Policy,
    /// What else the wire does.
    pub trouble: Trouble,
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
        let spec = SubscriptionSpec {
            pattern,
            form: Form::FULL,
            within: None,
            loss: None,
            proxy: paceline_proto::form::Proxy::Publisher,
            holds: false,
            local: false,
        };
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
    Impair([usize; 2], Option<Capacity>, Trouble),
}

impl Plan {
    /// The name of a node.
    #[must_use]
    pub fn node(&self, place: usize) -> &str {
        self.nodes.get(place).map_or("?", |node| &node.name)
    }

    /// When everything ends, from the end of the warm-up: what was published before may arrive until
    /// then.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.duration.saturating_add(COOL_DOWN)
    }

    /// The same with another duration: what lies behind its end is left out, and what reaches beyond
    /// it ends there.
    #[must_use]
    pub fn shortened(&self, duration: Duration) -> Self {
        let mut plan = Self { duration: duration.min(self.duration), ..self.clone() };
        let end = plan.duration;
        plan.faults.retain(|fault| fault.at < end);
        for node in &mut plan.nodes {
            node.steps.retain(|(at, _)| *at < end);
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
