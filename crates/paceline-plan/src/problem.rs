//! The problem: a network, its tags, and the models of cost and delay.

use paceline_sched::{Capacity, Duration};

/// The quantity that a plan minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Objective {
    /// The sum of the bits per second on all links.
    #[default]
    Bandwidth,
    /// The processor time of all nodes, in seconds per second.
    Cpu,
    /// Bits per second plus this weight times the processor time; the weight is in bits per second
    /// for one whole processor (Juvva 1999, §2.4.1).
    Weighted(f64),
}

/// The streams that subscribers share.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CostModel {
    /// None: each subscriber has its own copy on the whole path, also before the proxy (Juvva 1999,
    /// §2.4).
    #[default]
    PerSubscriber,
    /// The part before the proxy: one copy from each publisher to each proxy. A proxy scales a
    /// stream once per form.
    SharedUpstream,
    /// All parts: each form of a publisher's stream crosses a link at most once, and leaves a node for all links on one
    /// [segment](PlanLink::segment) at most once.
    Multicast,
}

/// The delay that the plan predicts for a stream.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DelayModel {
    /// One period per link: δ = d_pub·T + d_sub·T′, with hops d before and after the proxy, period T
    /// of the publisher and period T′ of the subscriber (Juvva 1999, §2.2).
    #[default]
    Periods,
    /// The sum of the delays of the links.
    Links,
    /// A bound for streams that reserve their mean rate on each link (Shenker, Partridge, Guerin:
    /// RFC 2212, 1997). Each part of the path adds one period, and for each link its delay, one
    /// segment at the reserved rate and one segment at the capacity. Capacities must be finite on
    /// links for which the last term matters; a link without one adds none.
    Bounds,
}

/// A node of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanNode {
    /// The unique name.
    pub id: String,
    /// The processor time for streams in seconds per second; 2.0 are two processors. `None` is
    /// unlimited.
    pub cpu: Option<f64>,
}

impl PlanNode {
    /// Returns a node without a limit.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), cpu: None }
    }
}

/// A directed link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanLink {
    /// The index of the sending node.
    pub from: usize,
    /// The index of the receiving node.
    pub to: usize,
    /// The rate for streams, `None` for no limit.
    pub capacity: Option<Capacity>,
    /// The delay of a bit.
    pub delay: Duration,
    /// The network segment with multicast on which the link lies. With [`CostModel::Multicast`], the links from one node
    /// on one segment together count the bits of a form once; each keeps its own load.
    pub segment: Option<usize>,
}

impl PlanLink {
    /// Returns a link without delay and limit.
    #[must_use]
    pub const fn new(from: usize, to: usize) -> Self {
        Self { from, to, capacity: None, delay: Duration::ZERO, segment: None }
    }

    /// Returns the same link in the other direction.
    #[must_use]
    pub const fn back(&self) -> Self {
        let Self { from, to, capacity, delay, segment } = *self;
        Self { from: to, to: from, capacity, delay, segment }
    }
}

/// The processor time for one sample of a tag, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleCpu {
    /// At the receiving end of each link.
    pub receive: f64,
    /// At the sending end of each link.
    pub send: f64,
    /// At the proxy, for each sample that leaves it in another form.
    pub scale: f64,
}

/// A subscription to a tag.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlanSubscriber {
    /// The index of the subscriber's node.
    pub node: usize,
    /// One sample in this many is delivered; at least 1.
    pub scale: u32,
    /// The bytes of a delivered sample; at least 1.
    pub bytes: u64,
    /// The delay bound, `None` for any delay.
    pub within: Option<Duration>,
}

/// A tag with its publishers and subscribers. Every subscriber receives from every publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanTag {
    /// The name.
    pub tag: String,
    /// The indices of the publishers' nodes.
    pub publishers: Vec<usize>,
    /// The time between two samples of a publisher.
    pub period: Duration,
    /// The bytes of a published sample.
    pub bytes: u64,
    /// The processor time for a sample.
    pub cpu: SampleCpu,
    /// The subscriptions.
    pub subscribers: Vec<PlanSubscriber>,
    /// The nodes that may run a proxy of the tag, such as those with its key. `None` allows all.
    pub allowed: Option<Vec<usize>>,
}

impl PlanTag {
    /// Returns a tag with one publisher, without subscribers and processor costs.
    #[must_use]
    pub fn new(tag: &str, publisher: usize, period: Duration, bytes: u64) -> Self {
        Self {
            tag: tag.to_owned(),
            publishers: vec![publisher],
            period,
            bytes,
            cpu: SampleCpu::default(),
            subscribers: Vec::new(),
            allowed: None,
        }
    }
}

/// A whole problem.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanProblem {
    /// The nodes. Links and tags name them by their index.
    pub nodes: Vec<PlanNode>,
    /// The directed links.
    pub links: Vec<PlanLink>,
    /// The tags.
    pub tags: Vec<PlanTag>,
    /// The quantity to minimise.
    pub objective: Objective,
    /// The streams that subscribers share.
    pub cost: CostModel,
    /// The predicted delay.
    pub delays: DelayModel,
    /// The most proxies per tag, at least 1.
    pub proxies: usize,
}

impl PlanProblem {
    /// Returns a problem of nodes without links and tags, with the default models.
    #[must_use]
    pub fn new(nodes: Vec<PlanNode>) -> Self {
        Self { nodes, ..Self::default() }
    }
}

impl Default for PlanProblem {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            links: Vec::new(),
            tags: Vec::new(),
            objective: Objective::default(),
            cost: CostModel::default(),
            delays: DelayModel::default(),
            proxies: 1,
        }
    }
}
