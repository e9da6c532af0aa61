//! What the engine is asked to do, and the way to it.

use super::super::pull::PullCommand;
use super::super::sink::Sink;
use super::super::source::PublisherShared;
use crate::change::SubscriptionView;
use crate::error::{CapacityError, ClassesError};
use crate::feedback::Feedback;
use crate::passages::NodePassages;
use crate::prospect::Prospect;
use crate::source::SourceView;
use crate::status::NodeStatus;
use bytes::Bytes;
use paceline_proto::control::{ChangeOutcome, PublisherSpec, SubscriptionSpec};
use paceline_proto::link::LinkClass;
use paceline_proto::{NodeId, Pattern, PublisherId, SubscriptionId};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Duration};
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, TrySendError};

/// Commands that wait for the engine; what a link brings beyond that is dropped and mended by the
/// next digest.
pub(crate) const COMMANDS_MAX: usize = 8_192;

/// What the engine is asked to do.
pub(crate) enum Command {
    Publish(PublisherSpec, Arc<PublisherShared>, Sender<PublisherId>),
    UpdatePublisher(PublisherId, PublisherSpec),
    /// It has gone; what it published may take so long to be sent, and whom to tell whether it was.
    Unpublish(PublisherId, Option<(Duration, Sender<bool>)>),
    /// A scaler has handed on all that it had of a publisher that has gone.
    Scaled(PublisherId),
    Subscribe(SubscriptionSpec, Arc<Sink>, Sender<SubscriptionId>),
    Unsubscribe(SubscriptionId),
    /// All subscriptions that are known, by their nodes.
    Subscriptions(Sender<Vec<SubscriptionView>>),
    /// What a subscription of any node asks for, if it is known.
    Wish(SubscriptionId, Sender<Option<SubscriptionSpec>>),
    /// It is to ask for this; the number of the request, if its node does so.
    Change(SubscriptionId, SubscriptionSpec, Sender<Option<u64>>),
    /// What has become of this request of a subscription.
    Outcome(SubscriptionId, u64, Sender<ChangeOutcome>),
    Hop {
        link: usize,
        node: NodeId,
        up: bool,
    },
    Message {
        from: NodeId,
        message: Bytes,
    },
    Settled {
        link: usize,
        stream: StreamIndex,
    },
    /// A link has closed a stream whose place another took: its index is free.
    Retired {
        link: usize,
        stream: StreamIndex,
    },
    /// Asks all nodes, or only these.
    Status(Option<Vec<NodeId>>, std::time::Duration, Sender<Vec<NodeStatus>>),
    View(SubscriptionId, Sender<Option<Arc<Sink>>>),
    Nodes(Sender<Vec<(NodeId, String)>>),
    Near(Sender<Vec<NodeId>>),
    Sources(Pattern, Sender<Vec<SourceView>>),
    /// What the subscriptions of a publisher get: all at once, then node by node if those are asked.
    Feedback {
        publisher: PublisherId,
        measured: bool,
        reply: Sender<Vec<Feedback>>,
    },
    /// When samples of a publisher passed these nodes, from this number on; the answers come one by one.
    Passages {
        publisher: PublisherId,
        nodes: Vec<NodeId>,
        from: u64,
        reply: Sender<NodePassages>,
    },
    /// Whether a subscription would be granted now; the answers come one by one.
    Ask(SubscriptionSpec, Sender<Prospect>),
    SetCapacity {
        link: String,
        capacity: Capacity,
        reply: Sender<Result<(), CapacityError>>,
    },
    SetClasses {
        link: String,
        classes: Vec<LinkClass>,
        reply: Sender<Result<(), ClassesError>>,
    },
    Pull(PullCommand),
    Close,
}

/// The way to the engine.
#[derive(Clone)]
pub(crate) struct Commands(SyncSender<Command>);

impl Commands {
    pub(crate) const fn new(sender: SyncSender<Command>) -> Self {
        Self(sender)
    }

    /// From application threads: waits for room; false if the node is closed.
    pub(crate) fn send(&self, command: Command) -> bool {
        self.0.send(command).is_ok()
    }

    /// From data-path threads: never waits. False if it was lost; the engine hears of it again.
    pub(crate) fn offer(&self, command: Command) -> bool {
        let lost = matches!(self.0.try_send(command), Err(TrySendError::Full(_)));
        if lost {
            crate::warn_limited!(
                "the engine is behind by {COMMANDS_MAX} commands; one was dropped"
            );
        }
        !lost
    }
}
