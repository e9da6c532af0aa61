//! The commands of the engine and the queue to it.

mod pull;

pub(crate) use pull::{Holders, PullCommand, Reply};

use super::sink::Sink;
use super::source::PublisherShared;
use crate::contract::Quote;
use crate::error::{CapacityError, ClassesError};
use crate::network::NetworkView;
use crate::status::{Feedback, NodePassages, SourceView, SubscriptionView};
use bytes::Bytes;
use paceline_node::install::StreamPlace;
use paceline_proto::control::{ChangeOutcome, PublisherSpec, SubscriptionSpec, TrafficTrial};
use paceline_proto::link::LinkClass;
use paceline_proto::{NodeId, Pattern, PublisherId, SubscriptionId};
use paceline_sched::{Capacity, Duration};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, TrySendError};

/// The capacity of the engine's command queue.
///
/// Commands of a link beyond it are dropped; the next digest repairs the state.
pub(crate) const COMMANDS_MAX: usize = 8_192;

/// The answer of a path, and the trials that it would grant, one bit each.
pub(crate) type TriedQuote = (Quote, u64);

/// A command of the engine.
pub(crate) enum Command {
    Publish(PublisherSpec, Arc<PublisherShared>, Sender<Option<PublisherId>>),
    UpdatePublisher(PublisherId, PublisherSpec),
    /// Ends a publisher; optionally with the time for sending its samples, and the caller to
    /// notify.
    Unpublish(PublisherId, Option<(Duration, Sender<bool>)>),
    /// A scaler has delivered all samples of an ended publisher.
    Scaled(PublisherId),
    Subscribe(SubscriptionSpec, Arc<Sink>, Sender<Option<SubscriptionId>>),
    Unsubscribe(SubscriptionId),
    /// Reads all known subscriptions.
    Subscriptions(Sender<Vec<SubscriptionView>>),
    /// Reads the current request of a subscription, if it is known.
    Wish(SubscriptionId, Sender<Option<SubscriptionSpec>>),
    /// Changes a subscription; replies with the number of the request once its node has accepted
    /// it.
    Change(SubscriptionId, SubscriptionSpec, Sender<Option<u64>>),
    /// Reads the outcome of a request.
    Outcome(SubscriptionId, u64, Sender<ChangeOutcome>),
    /// Wakes the engine: inputs of neighbours wait.
    Inputs,
    /// A stream of an ended publisher has sent its samples.
    Settled(StreamPlace),
    /// A link has closed a retired stream: its index is free.
    Retired(StreamPlace),
    /// Reads the status of all nodes, or of the listed ones.
    Status(Option<Vec<NodeId>>, std::time::Duration, Sender<Vec<(NodeId, Bytes)>>),
    View(SubscriptionId, Sender<Option<Arc<Sink>>>),
    /// Sends a question for the time to a neighbour, on behalf of the clock.
    AskTime(NodeId, Bytes),
    Nodes(Sender<Vec<(NodeId, String)>>),
    Near(Sender<Vec<NodeId>>),
    /// Reads whether the registry is complete.
    IsComplete(Sender<bool>),
    Sources(Pattern, Sender<Vec<SourceView>>),
    Network(Pattern, Sender<NetworkView>),
    /// Reads the feedback of a publisher's subscriptions. Replies with all rows, then with the
    /// counters of each node if `measured`.
    Feedback {
        publisher: PublisherId,
        measured: bool,
        reply: Sender<Vec<Feedback>>,
    },
    /// Reads the trace of a publisher's samples on each node, from this sequence number on.
    Passages {
        publisher: PublisherId,
        nodes: Vec<NodeId>,
        from: u64,
        reply: Sender<NodePassages>,
    },
    /// Asks all matching paths for admission without a reservation, also of trials; one reply per publisher.
    Ask(SubscriptionSpec, Vec<TrafficTrial>, Sender<TriedQuote>),
    /// As [`Self::Ask`], for a change of a subscription.
    AskChange(SubscriptionId, SubscriptionSpec, Sender<TriedQuote>),
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
    /// Connects a node that this process steps itself to the link between the processes of the host; false if there is none.
    Attach(UnixStream, Sender<bool>),
    Pull(PullCommand),
    Close,
}

/// A sender to the engine's command queue.
#[derive(Clone)]
pub(crate) struct Commands(SyncSender<Command>);

impl Commands {
    pub(crate) const fn new(sender: SyncSender<Command>) -> Self {
        Self(sender)
    }

    /// Sends a command from an application thread. Blocks while the queue is full; returns false if
    /// the node is closed.
    pub(crate) fn send(&self, command: Command) -> bool {
        self.0.send(command).is_ok()
    }

    /// Wakes the engine, which looks for inputs of neighbours before it sleeps.
    pub(crate) fn wake(&self) {
        // With a full queue it is awake.
        let _ = self.0.try_send(Command::Inputs);
    }

    /// Sends a command from a data-path thread. Never blocks; returns false if the queue was full.
    ///
    /// The caller repeats the command, or the engine detects its content in another message.
    pub(crate) fn offer(&self, command: Command) -> bool {
        let lost = matches!(self.0.try_send(command), Err(TrySendError::Full(_)));
        if lost {
            crate::warn_limited!(
                "the engine's queue of {COMMANDS_MAX} commands is full; one command was dropped"
            );
        }
        !lost
    }
}
