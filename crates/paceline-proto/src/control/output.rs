//! What a [`Control`](super::Control) tells its owner.

use super::grant::Grant;
use super::refusal::Refusal;
use super::spec::{OutputPlan, PublisherSpec, SourceKey, SubscriptionSpec};
use super::unpromised::Unpromised;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::reason::Excess;
use bytes::Bytes;
use std::sync::Arc;

/// What the owner of a [`Control`](super::Control) is to do or to know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Output {
    /// Send a message to a neighbour: reliably and in order, as long as the hop is up.
    Send {
        /// The neighbour.
        hop: NodeId,
        /// The message, for [`Control::handle_message`](super::Control::handle_message) there.
        message: Bytes,
    },
    /// Replace the streams that leave a source. Comes before the [`Output::Send`]s of the same
    /// change: a node on the way is ready before the publisher's node hears of it.
    Install {
        /// The source.
        source: SourceKey,
        /// What its publisher declares.
        publisher: Arc<PublisherSpec>,
        /// The complete new set; empty to remove it.
        outputs: Vec<OutputPlan>,
    },
    /// Whether anyone wants what a local publisher publishes has changed; at first nobody does.
    Matching {
        /// The publisher.
        publisher: PublisherId,
        /// True if at least one subscription gets it.
        matching: bool,
    },
    /// The publishers that a local subscription hears have changed; at first there are none.
    Subscribed {
        /// The subscription.
        subscription: SubscriptionId,
        /// Those that match, can be reached and are not refused, in order.
        publishers: Vec<PublisherId>,
    },
    /// A node on the path refused a subscription for a publisher; one of both at least is local.
    Refused {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher that it will not hear until [`Output::Subscribed`] says so.
        publisher: PublisherId,
        /// Why, and what would be possible.
        refusal: Refusal,
    },
    /// The path from a publisher to a subscription, one of which at least is local, holds what was asked for,
    /// or holds it otherwise than before: over another path, for example.
    Granted {
        /// What is promised, to whom, and by whom.
        grant: Grant,
    },
    /// What [`Output::Granted`] or [`Output::Refused`] told is so no longer, and neither is told instead: the path
    /// is gone, or nobody asks for it any more.
    Over {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher.
        publisher: PublisherId,
    },
    /// A local subscription hears a publisher without the promise that it asked for, or for another reason than before.
    /// Until it is granted, refused, or not heard any more.
    Unpromised {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher.
        publisher: PublisherId,
        /// Why.
        why: Unpromised,
    },
    /// A node of the path from a publisher to a local subscription counted more of its samples as more than was granted
    /// ([`Control::tell_excess`](super::Control::tell_excess) there).
    Excess {
        /// The subscription.
        subscription: SubscriptionId,
        /// The publisher.
        publisher: PublisherId,
        /// Who counted.
        node: NodeId,
        /// What people call it, a label only.
        node_name: String,
        /// All that its link counted since it opened the stream.
        excess: Excess,
    },
    /// The answer to [`Control::survey`](super::Control::survey).
    Surveyed {
        /// The number that it returned.
        survey: u64,
        /// All nodes of the path have answered.
        complete: bool,
        /// What would be promised if nothing stands in the way; nothing if the publisher's samples would be
        /// carried as best effort.
        grant: Option<Grant>,
        /// What stands in the way; nothing if all that have answered would promise it.
        refusal: Option<Refusal>,
    },
    /// A subscription of this node asks for something else now, because somebody wanted that. What was granted before stays
    /// in force until [`Output::InForce`].
    Changed {
        /// Which one.
        subscription: SubscriptionId,
        /// What it asks for.
        spec: SubscriptionSpec,
    },
    /// All paths have answered the last change of a subscription of this node: what it asks for is in force, as far as it
    /// was not refused.
    InForce {
        /// Which one.
        subscription: SubscriptionId,
        /// What it asks for.
        spec: SubscriptionSpec,
    },
    /// A path refused a change of a subscription of this node: what it asked for before is in force again.
    ChangeRefused {
        /// Which one.
        subscription: SubscriptionId,
        /// Why, for each publisher.
        refusals: Vec<Refusal>,
        /// What it asks for again.
        spec: SubscriptionSpec,
    },
    /// Someone asks this node: answer by [`Control::answer`](super::Control::answer), or not at all.
    Asked {
        /// The question's number at `from`.
        request: u64,
        /// Who asks.
        from: NodeId,
        /// What was given to [`Control::ask`](super::Control::ask) there; its first byte is a [`Topic`](super::Topic)'s.
        body: Bytes,
    },
    /// The answer to a question of [`Control::ask`](super::Control::ask).
    Answered {
        /// The number that it returned.
        request: u64,
        /// Who answers.
        node: NodeId,
        /// What that node gave to [`Control::answer`](super::Control::answer).
        body: Bytes,
    },
}
