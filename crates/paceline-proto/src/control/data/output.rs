//! Outputs of a [`Control`](crate::control::Control) to its owner.

use super::best_effort::BestEffort;
use super::elastic::Adaptation;
use super::grant::Grant;
use super::opposite::OppositeStream;
use super::refusal::Refusal;
use super::spec::{PublisherSpec, SubscriptionSpec};
use super::warning::Warning;
use crate::entry::EntryLimit;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::{OutputPlan, SourceKey};
use crate::reason::Excess;
use crate::rights::{Lack, Right};
use crate::wire::WireError;
use bytes::Bytes;
use paceline_sched::Capacity;
use std::sync::Arc;

/// An action or notification for the owner of a [`Control`](crate::control::Control).
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ControlOutput {
    /// Send a message to a neighbour, reliably and in order, while the hop is up.
    Send {
        /// The neighbour.
        hop: NodeId,
        /// The message, for [`Control::handle_message`](crate::control::Control::handle_message) there.
        message: Bytes,
    },
    /// The policy of this node did not allow a stream or question of another node.
    Denied {
        /// The node that wants it.
        node: NodeId,
        /// The node whose rights do not suffice: the same, or one that relays.
        of: NodeId,
        /// The missing right.
        lack: Lack,
        /// The tag or pattern; empty if the right applies to the whole node.
        tag: String,
    },
    /// Another node uses a right at this node, or at one behind it: the question was passed on or is answered.
    Used {
        /// The node that asks.
        node: NodeId,
        /// The node that it asks.
        at: NodeId,
        /// The right.
        right: Right,
        /// The tag or pattern; empty if the right applies to the whole node.
        tag: String,
    },
    /// Send at most this rate on a link of a [shared medium](crate::medium), as
    /// [`Link::set_capacity`](crate::link::Link::set_capacity) does. It precedes the messages that announce it.
    Allotted {
        /// The name of the link.
        link: String,
        /// The rate.
        capacity: Capacity,
    },
    /// A node has announced entries that this node cannot read, and therefore ignores.
    Unread {
        /// The node.
        node: NodeId,
        /// The first entries.
        entries: Vec<UnreadEntry>,
        /// The number of further ones.
        more: usize,
    },
    /// This node has changed one of its subscriptions for another node.
    ChangedFor {
        /// The other node.
        node: NodeId,
        /// The subscription.
        subscription: SubscriptionId,
    },
    /// Replace the streams that leave a source.
    ///
    /// This precedes the [`ControlOutput::Send`]s of the same change, so a node on the path is ready before the
    /// publisher's node receives them.
    Install {
        /// The source.
        source: SourceKey,
        /// The publisher's declaration.
        publisher: Arc<PublisherSpec>,
        /// The neighbours from which the samples may arrive, in order; empty for a publisher of this node.
        /// Samples of the source from others are forged, or were sent before a change of path.
        from: Vec<NodeId>,
        /// The limits of the samples that arrive, by the rules of this node.
        entry: Vec<EntryLimit>,
        /// The complete new set; empty to remove it.
        outputs: Vec<OutputPlan>,
    },
    /// A local publisher gained its first subscription or lost its last one. Initially it has none.
    Matching {
        /// The publisher.
        publisher: PublisherId,
        /// True if at least one subscription receives the publisher's samples.
        matching: bool,
    },
    /// The set of publishers that a local subscription receives has changed. Initially it is empty.
    Subscribed {
        /// The subscription.
        subscription: SubscriptionId,
        /// The matching, reachable and accepted publishers, in order.
        publishers: Vec<PublisherId>,
    },
    /// A node on the path refused a subscription for a publisher; at least one of the two is local.
    Refused {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher, whose samples the subscription does not receive until [`ControlOutput::Subscribed`]
        /// includes it.
        publisher: PublisherId,
        /// The reason, and the best alternative.
        refusal: Refusal,
    },
    /// The path from a publisher to a subscription has reserved the request, or its reservation changed, for
    /// example to another path. At least one of the two is local.
    Granted {
        /// The promise and its path.
        grant: Grant,
    },
    /// A local subscription has a grant without the requested spare: no second path could be reserved. The grant stays in
    /// force. The request for a spare is repeated; [`ControlOutput::Granted`] contains it once it is reserved.
    NoSpare {
        /// The refusal of the second path.
        refusal: Refusal,
    },
    /// The last [`ControlOutput::Granted`] or [`ControlOutput::Refused`] no longer applies and neither replaces it:
    /// the path was lost, or the request ended.
    Withdrawn {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher.
        publisher: PublisherId,
    },
    /// A link of a path will soon no longer carry a granted contract; at least one of the two ends is local.
    Warned {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher.
        publisher: PublisherId,
        /// The forecast.
        warning: Warning,
    },
    /// A local subscription receives a publisher without the requested promise, or for another reason than
    /// before.
    ///
    /// This applies until the request is granted or refused, or the subscription no longer receives the
    /// publisher.
    BestEffort {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher.
        publisher: PublisherId,
        /// The reason.
        why: BestEffort,
    },
    /// A node of the path from a publisher to a local subscription counted more samples beyond the grant
    /// ([`Control::report_excess`](crate::control::Control::report_excess) there).
    Excess {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher.
        publisher: PublisherId,
        /// The node that counted the excess.
        node: NodeId,
        /// The node's name, a label only.
        node_name: String,
        /// The total that its link has counted since it opened the stream.
        excess: Excess,
    },
    /// The answer to [`Control::survey`](crate::control::Control::survey).
    Surveyed {
        /// The survey's number.
        survey: u64,
        /// True if all nodes of the path have answered.
        complete: bool,
        /// The contract that the path would grant if there is no obstacle; `None` if the stream would be
        /// carried with best effort.
        grant: Option<Grant>,
        /// The obstacle; `None` if all nodes that have answered would grant the contract.
        refusal: Option<Refusal>,
        /// The opposite stream, if the request is tied to one.
        opposite: Option<Box<OppositeStream>>,
        /// The trials of [`Control::survey_trials`](crate::control::Control::survey_trials) that all nodes of the path would
        /// grant, one bit each.
        fits: u64,
    },
    /// The request of a subscription of this node has changed. The previous grant stays in force until
    /// [`ControlOutput::InForce`].
    Changed {
        /// The subscription.
        subscription: SubscriptionId,
        /// Its new request.
        spec: SubscriptionSpec,
        /// The new step of an elastic contract; `None` if a program or another node has changed the request.
        adaptation: Option<Box<Adaptation>>,
    },
    /// All paths have answered the last change of a subscription of this node. Its request is in force,
    /// except where refused.
    InForce {
        /// The subscription.
        subscription: SubscriptionId,
        /// Its request.
        spec: SubscriptionSpec,
    },
    /// A path refused a change of a subscription of this node. Its previous request is in force again.
    ChangeRefused {
        /// The subscription.
        subscription: SubscriptionId,
        /// One refusal per publisher.
        refusals: Vec<Refusal>,
        /// The restored request.
        spec: SubscriptionSpec,
    },
    /// A node asks this one a question. Answer with [`Control::answer`](crate::control::Control::answer), or not at
    /// all.
    Asked {
        /// The question's number at `from`.
        request: u64,
        /// The asking node.
        from: NodeId,
        /// The body passed to [`Control::ask`](crate::control::Control::ask) there; its first byte is a
        /// [`Topic`](crate::control::Topic)'s.
        body: Bytes,
    },
    /// The answer to a question of [`Control::ask`](crate::control::Control::ask).
    Answered {
        /// The question's number.
        request: u64,
        /// The answering node.
        node: NodeId,
        /// The body passed to [`Control::answer`](crate::control::Control::answer) there.
        body: Bytes,
    },
}

/// An entry in the record of a node that this node cannot read: a publisher, subscription, neighbour or refusal. It
/// has no effect here, and neighbours get it unchanged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnreadEntry {
    /// The entry, such as `publisher 3 'robot/camera'`.
    pub entry: String,
    /// The first field that this node refuses.
    pub error: WireError,
}
