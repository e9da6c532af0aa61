//! The streams of a node, as planned by [`crate::control`] and carried out by [`crate::ingress`] and
//! [`crate::link`].

use crate::form::{Form, Rate};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::retransmit::Retransmit;
use crate::sample::Kind;
use crate::tag::Tag;
use paceline_sched::{Contract, Duration, Late};

/// One publisher's samples in the form in which they arrive at this node.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SourceKey {
    /// The publisher.
    pub publisher: PublisherId,
    /// The form after scaling on earlier nodes; [`Form::FULL`] on the publisher's own node.
    pub form: Form,
}

/// The destination of a stream.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Target {
    /// The link to this neighbour.
    Hop(NodeId),
    /// Subscriptions on this node.
    Local,
}

/// A stream's demand on a link under its contract, including headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Demand {
    /// Bytes of its longest sample, or of one segment if the publisher declares no size.
    pub bytes: u64,
    /// The burst in bytes at that rate: the longest sample, and what jitter allows in addition; or that of the
    /// publisher's [`Envelope`](crate::Envelope).
    pub burst: u64,
    /// Bytes per second: one such sample in each period of the contract, or the mean rate of the envelope.
    pub bytes_per_s: u64,
    /// True if the publisher declares the size of its samples, so that it can be enforced.
    pub declared: bool,
    /// True if rate and burst are those of an envelope, and samples may be shorter than the longest one only.
    pub varies: bool,
    /// True if admission reserves less because of a loss tolerance, except for video.
    pub saves_loss: bool,
}

/// One stream that leaves a source: its form, destination and contract.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OutputPlan {
    /// The destination.
    pub target: Target,
    /// The form of the outgoing samples.
    pub form: Form,
    /// The scaling of the source that this node must still do; [`Form::FULL`] for none.
    pub scale: Form,
    /// The contract on the link of [`Target::Hop`]; `None` for best effort and for local delivery.
    pub contract: Option<Contract>,
    /// The demand of the contract on the link; `None` without a contract.
    pub demand: Option<Demand>,
    /// The path has granted its samples a contract, on this link or on those to the subscriptions here; or they need no link.
    /// Other samples are best effort, and may use the processor time that contracts leave.
    pub is_granted: bool,
    /// The part of the delay bound for the hops before this one.
    pub upstream: Duration,
    /// The time after its deadline at this hop during which a sample is still worth sending.
    pub slack: Duration,
    /// The strictest end-to-end delay bound of its subscriptions.
    pub within: Option<Duration>,
    /// The treatment of a sample that can no longer arrive in time.
    pub late: Late,
    /// The kind of the samples.
    pub kind: Kind,
    /// True for a stream of a private tag: links serve it only when no live sample waits.
    pub background: bool,
    /// The longest wait of a best-effort sample at the link before its first byte is sent; `None` for other
    /// streams.
    pub max_wait: Option<Duration>,
    /// The treatment of loss on links that lose frames: the strictest request of its subscriptions.
    pub retransmit: Retransmit,
    /// The priority level on links with static priorities; `None` if the deadline sets it.
    pub level: Option<u32>,
    /// True if another stream may carry its samples instead, so that scalers on all nodes must take the same ones
    /// ([`TemporalScaler::align`](crate::temporal::TemporalScaler::align)).
    pub aligned: bool,
    /// The form of arriving samples, of the same publisher, that replaces this output: it ends with the first newer sample
    /// in that form that was published after the stream in that form was installed. So its subscriptions miss none.
    pub until: Option<Form>,
    /// Its subscriptions, in order.
    pub subscriptions: Vec<SubscriptionId>,
}

impl OutputPlan {
    /// Returns a best-effort output without subscriptions, for data that is neither scaled nor retransmitted and that is
    /// dropped when late.
    #[must_use]
    pub const fn new(target: Target, form: Form) -> Self {
        Self {
            target,
            form,
            scale: Form::FULL,
            contract: None,
            demand: None,
            is_granted: false,
            upstream: Duration::ZERO,
            slack: Duration::ZERO,
            within: None,
            late: Late::Drop,
            kind: Kind::Data,
            background: false,
            max_wait: None,
            retransmit: Retransmit::None,
            level: None,
            aligned: false,
            until: None,
            subscriptions: Vec::new(),
        }
    }

    /// Returns true if its samples must arrive in time: they have a contract on the link, or a delay bound after the
    /// last hop. Scalers serve such outputs first.
    #[must_use]
    pub const fn is_promised(&self) -> bool {
        self.contract.is_some() || self.within.is_some() && matches!(self.target, Target::Local)
    }

    /// Returns the part of [`Self::scale`] that the port performs: picture size and audio, and for video also
    /// the rate. Only pictures that no other depends on may be omitted ([`crate::video::Thinner`]). Returns
    /// [`Form::FULL`] if the port has nothing to do.
    #[must_use]
    pub const fn at_port(&self) -> Form {
        let rate = if self.kind.is_video() { self.scale.rate } else { Rate::ALL };
        Form { rate, ..self.scale }
    }
}

/// The names of a stream that, together with its contract, select its class.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StreamNames {
    /// The next hop's name.
    pub peer: String,
    /// The name of the publisher's node.
    pub node: String,
    /// The publisher's tag.
    pub tag: Option<Tag>,
}
