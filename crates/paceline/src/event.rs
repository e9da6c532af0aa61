//! Events of subscriptions and publishers.

use crate::delivery::{Resumption, Silence};
use paceline_proto::control::{Adaptation, BestEffort, Grant, Refusal, Warning};
use paceline_proto::{Excess, Form, NodeId, PublisherId, SubscriptionId};
use paceline_sched::LossTolerance;
use std::time::Duration;

/// An event of a subscription.
///
/// [`Subscriber::try_event`](crate::Subscriber::try_event) returns the events in order. The state of each publisher's
/// stream follows from the last one:
///
/// ```no_run
/// use paceline::SubscriberEvent;
///
/// # let node = paceline::Node::open()?;
/// # let pictures = node.subscriber("robot/camera").declare()?;
/// while let Some(event) = pictures.try_event() {
///     match event {
///         SubscriberEvent::Granted(grant) => println!("within {:?}", grant.bound),
///         SubscriberEvent::Refused(publisher, refusal) => println!("{publisher}: {refusal}"),
///         SubscriberEvent::Withdrawn(publisher) => println!("{publisher}: no contract"),
///         SubscriberEvent::BestEffort(publisher, _) => println!("{publisher}: best effort"),
///         other => println!("{other:?}"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SubscriberEvent {
    /// The set of publishers that the subscription receives has changed; lists all of them.
    Publishers(Vec<PublisherId>),
    /// A path refused the request for a publisher's stream.
    Refused(PublisherId, Refusal),
    /// The path of a publisher's stream has granted the request, or has changed its grant. The
    /// grant lists the delay bound, the nodes and links, and the share of each.
    Granted(Grant),
    /// After a takeover or a change, a granted stream has no spare although
    /// [`SubscriberBuilder::spare`](crate::SubscriberBuilder::spare) requested one: the refusal of the second path. The grant stays in force, and the spare is requested again. Once it is
    /// reserved, [`Self::Granted`] contains it.
    NoSpare(Refusal),
    /// A grant or refusal of a publisher's stream is no longer valid, and no contract is in force.
    /// The path is lost, or the subscription no longer requests a contract.
    Withdrawn(PublisherId),
    /// A publisher's stream is delivered as best effort although a contract was requested. Lasts
    /// until the path grants or refuses the contract, or the publisher ends.
    BestEffort(PublisherId, BestEffort),
    /// A publisher sent more than the grant: samples arrived too early or were too long. They were
    /// queued behind all contracted traffic.
    ///
    /// Reported at most once per second for each node of the path.
    Excess {
        /// The publisher of the samples.
        publisher: PublisherId,
        /// The node whose link counted them. Each node of the path counts for itself.
        node: NodeId,
        /// The display name of that node.
        node_name: String,
        /// The total since that node opened the stream.
        excess: Excess,
    },
    /// The request has changed, by this program or by another node
    /// ([`Node::change`](crate::Node::change)). The old grant stays in force until the paths have
    /// answered.
    Changed {
        /// The number of the request, repeated in its answers ([`Grant::revision`],
        /// [`Refusal::revision`]).
        revision: u64,
        /// The requested rate and size.
        form: Form,
        /// The requested delay bound.
        within: Option<Duration>,
        /// The requested loss tolerance.
        loss: Option<LossTolerance>,
    },
    /// The nodes of the paths have reduced an elastic contract, or restored a part of it. The old grant stays in force until
    /// the new one replaces it between two samples, unless the path can no longer carry it.
    ///
    /// See [`SubscriberBuilder::min_hz`](crate::SubscriberBuilder::min_hz).
    Adapted {
        /// The number of the request, repeated in its answers.
        revision: u64,
        /// The requested rate and size from now on.
        form: Form,
        /// The requested delay bound.
        within: Option<Duration>,
        /// The requested loss tolerance.
        loss: Option<LossTolerance>,
        /// The step and the reason.
        adaptation: Adaptation,
    },
    /// The measured capacity of a link of a publisher's path falls, and will soon be too little for the contract. The grant is
    /// still in force; if the capacity recovers, nothing follows.
    Warned(PublisherId, Warning),
    /// A path refused the last change. The previous request is active again; its grant stayed in
    /// force throughout.
    ChangeRefused {
        /// The reason, for each publisher.
        refusals: Vec<Refusal>,
        /// The rate and size of the previous request.
        form: Form,
        /// The delay bound of the previous request.
        within: Option<Duration>,
        /// The loss tolerance of the previous request.
        loss: Option<LossTolerance>,
    },
    /// The last command of a tag has reached the age limit of
    /// [`SubscriberBuilder::fresh_within`](crate::SubscriberBuilder::fresh_within), and its safe action has started.
    Silent(Silence),
    /// A command was released after a silence: its safe action has ended.
    Resumed(Resumption),
}

/// An event of a publisher, reported at once.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PublisherEvent {
    /// The path to a subscription has granted its request, or has changed its grant, for example
    /// over another path.
    Granted(Grant),
    /// A path refused the request of a subscription.
    Refused(Refusal),
    /// A grant or refusal of a subscription is no longer valid, and no contract is in force. The
    /// path is lost, or the subscription no longer requests a contract.
    Withdrawn(SubscriptionId),
    /// A link of a subscription's path will soon no longer carry its contract.
    Warned(SubscriptionId, Warning),
    /// The publisher exceeded its declared rate or size: samples arrived too early or were too
    /// long.
    ///
    /// Contains the total so far. Reported at most once per second.
    Excess(Excess),
}
