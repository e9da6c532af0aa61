//! What publishers declare, what subscriptions ask for, and the plan that follows for one node.

use crate::form::{Form, Proxy, Rate, Size};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::retransmit::Retransmit;
use crate::sample::{Encoding, Kind};
use crate::tag::{Pattern, Tag};
use paceline_sched::{Capacity, Contract, Duration, Late, LossTolerance};

/// What a publisher declares of its samples.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PublisherSpec {
    /// The tag it publishes on.
    pub tag: Tag,
    /// What its samples are.
    pub kind: Kind,
    /// The media type of its samples.
    pub encoding: Encoding,
    /// The time between two samples, if it is known.
    pub period: Option<Duration>,
    /// What becomes of a sample that can no longer arrive in time.
    pub late: Late,
    /// The loss that subscriptions with a delay bound bear if they state none; none if not declared.
    pub loss: Option<LossTolerance>,
    /// The size of its pictures, if it has any and it is known.
    pub size: Option<Size>,
    /// The largest sample's payload in bytes, declared or observed.
    pub bytes_max: Option<u64>,
    /// The publisher waits for room before it publishes: none of its samples expires.
    pub waits: bool,
}

/// How long a best-effort sample may wait at each link before its first byte is sent, by default. Longer than a hop
/// may be silent before it counts as down, so that a pause which the hop survives expires nothing.
pub const BEST_EFFORT_WAIT_MAX: Duration = Duration::from_secs(2);

impl PublisherSpec {
    /// How long its samples may wait at a link as best effort; `None` if they may wait for any time: those of a
    /// publisher that sends late samples or waits for room, and private ones. A picture or state waits until a newer
    /// one replaces it.
    #[must_use]
    pub fn max_wait(&self) -> Option<Duration> {
        let waits = self.waits || self.late == Late::Send;
        let expires = !waits && !self.kind.is_replaced() && !self.tag.is_private();
        expires.then_some(BEST_EFFORT_WAIT_MAX)
    }

    /// The form in which a subscription that asks for `asked` gets this publisher's samples: what
    /// would change nothing is left out, so that equal streams are shared.
    ///
    /// A size means nothing to samples that are no pictures: a pattern may match both.
    #[must_use]
    pub fn form_of(&self, asked: Form) -> Form {
        let rate = match asked.rate {
            Rate::Every(n) if n.get() == 1 => Rate::All,
            rate @ (Rate::All | Rate::Every(_) | Rate::Max(_)) => rate,
        };
        let size =
            asked.size.filter(|_| self.has_pictures()).filter(|size| self.size != Some(*size));
        let audio = asked.audio.filter(|_| self.has_sound());
        Form { rate, size, audio }
    }

    /// The form in which its samples travel over links to a subscription: scaled before the first of them, or
    /// not before the last.
    #[must_use]
    pub fn travelling(&self, request: &SubscriptionSpec) -> Form {
        match request.proxy {
            Proxy::Publisher => self.form_of(request.form),
            Proxy::Subscriber => Form::FULL,
        }
    }

    fn has_sound(&self) -> bool {
        self.kind == Kind::Audio || self.encoding.as_str().starts_with("audio/")
    }

    /// True if its samples are pictures, by any of the ways to say so.
    fn has_pictures(&self) -> bool {
        let encoding = self.encoding.as_str();
        self.kind == Kind::Picture
            || self.kind.is_video()
            || self.size.is_some()
            || encoding.starts_with("image/")
            || encoding.starts_with("video/")
    }
}

/// What a subscription asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubscriptionSpec {
    /// The tags it wants.
    pub pattern: Pattern,
    /// The rate and size it wants them at.
    pub form: Form,
    /// The delay bound Δ, publish to delivery.
    pub within: Option<Duration>,
    /// How many samples of each window may miss the delay bound.
    pub loss: Option<LossTolerance>,
    /// Where the scaling is done.
    pub proxy: Proxy,
    /// What it gets is held in a pull buffer here, for any node to pull from.
    pub holds: bool,
    /// It wants the publishers of its own node only.
    pub local: bool,
    /// What is done about loss on links that lose frames.
    pub retransmit: Retransmit,
    /// The number of this request: 0 as declared, a higher one after each change. Answers repeat it, so that the
    /// answer to an older request is never taken for the answer to a newer one.
    pub revision: u64,
    /// If the path refuses this request, the stream of the request before it ends too. By default that stays.
    pub or_stop: bool,
}

impl SubscriptionSpec {
    /// All samples that match, as they are published, best effort.
    #[must_use]
    pub const fn all_of(pattern: Pattern) -> Self {
        Self {
            pattern,
            form: Form::FULL,
            within: None,
            loss: None,
            proxy: Proxy::Publisher,
            holds: false,
            local: false,
            retransmit: Retransmit::Selective,
            revision: 0,
            or_stop: false,
        }
    }

    /// True if both ask for the same, whatever the numbers of the requests.
    #[must_use]
    pub fn asks_the_same(&self, other: &Self) -> bool {
        *self == Self { revision: self.revision, or_stop: self.or_stop, ..other.clone() }
    }

    /// True if it asks for a promise; others are carried best effort.
    #[must_use]
    pub const fn wants_contract(&self) -> bool {
        self.within.is_some() || self.loss.is_some()
    }
}

/// The way to a neighbour.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HopInfo {
    /// The name of the link that it leads over; hops with the same name share the link's capacity.
    pub link_name: String,
    /// What the link carries; a link without a capacity holds whatever comes.
    pub capacity: Option<Capacity>,
}

/// Samples of one publisher in the form in which they arrive at this node.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SourceKey {
    /// Whose samples.
    pub publisher: PublisherId,
    /// What earlier nodes left of them; [`Form::FULL`] on the publisher's own node.
    pub form: Form,
}

/// Where a stream goes.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Target {
    /// Over the link to this neighbour.
    Hop(NodeId),
    /// To subscriptions on this node.
    Local,
}

/// What a stream asks of a link under its contract, headers counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Demand {
    /// Bytes of its longest sample; of one whose publisher does not tell, those of one segment.
    pub bytes: u64,
    /// Bytes per second: such a sample in each period of the contract.
    pub bytes_per_s: u64,
    /// The publisher tells how long its samples are, and so can be held to it.
    pub declared: bool,
}

/// One stream that leaves a source: its form, its way and its contract.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutputPlan {
    /// Where it goes.
    pub target: Target,
    /// The form that leaves.
    pub form: Form,
    /// What this node must still do to the source for that; [`Form::FULL`] if nothing.
    pub scale: Form,
    /// Its contract on the link of [`Target::Hop`]; none for best effort and for local delivery.
    pub contract: Option<Contract>,
    /// What that asks of the link; none without a contract.
    pub demand: Option<Demand>,
    /// The part of the delay bound that the hops before this one may use.
    pub upstream: Duration,
    /// How much later than within its part of the delay bound a sample may leave here and still be worth it.
    pub slack: Duration,
    /// The strictest delay bound of the subscriptions behind it, end to end.
    pub within: Option<Duration>,
    /// What becomes of a sample that can no longer arrive in time.
    pub late: Late,
    /// What the samples are.
    pub kind: Kind,
    /// It is a stream of a private tag: links serve it when no live sample waits.
    pub background: bool,
    /// How long a sample may wait at the link before its first byte is sent: of best effort only, else `None`.
    pub max_wait: Option<Duration>,
    /// What is done about loss on links that lose frames: what the strictest of them asks for.
    pub retransmit: Retransmit,
    /// The subscriptions behind it, in order.
    pub subscriptions: Vec<SubscriptionId>,
}
