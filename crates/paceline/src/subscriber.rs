//! Subscribers: requests for a rate, size, delay bound and loss tolerance, and delivery of samples.

mod builder;
mod choice;
mod draft;
mod timing;

pub use builder::SubscriberBuilder;

use crate::Sample;
use crate::arrival::Arrival;
use crate::delivery::{Decisions, SpacingReport, SyncReport};
use crate::error::{RecvError, SubscribeError};
use crate::event::SubscriberEvent;
use crate::node::Node;
use crate::shell::command::Command;
use crate::shell::sink::Sink;
use crate::status::PlayersStatus;
use event_listener::{EventListener, Listener};
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::{Drops, SubscriptionId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A subscription that delivers samples to a callback. Created by [`SubscriberBuilder::callback`].
///
/// Dropping it ends the subscription. Until then it keeps its node open.
pub struct Subscription {
    id: SubscriptionId,
    sink: Arc<Sink>,
    node: Node,
}

impl Subscription {
    pub(crate) fn declare(
        node: &Node,
        spec: SubscriptionSpec,
        sink: Sink,
    ) -> Result<Self, SubscribeError> {
        let sink = Arc::new(sink);
        sink.bind(node.is_realtime());
        let (reply, answer) = std::sync::mpsc::channel();
        node.commands().send(Command::Subscribe(spec, sink.clone(), reply));
        let id =
            answer.recv().map_err(|_| SubscribeError::Closed)?.ok_or(SubscribeError::TooMany)?;
        Ok(Self { id, sink, node: node.clone() })
    }

    /// Returns the identifier of this subscription.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.id
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the samples dropped at this subscription, by reason. Earlier nodes of the path count
    /// their own drops, per link and stream.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.sink.counts().drops()
    }

    /// Returns the number of late samples that had arrived in time, and then waited in this process: for
    /// the application, or because the process was stopped or not scheduled.
    #[must_use]
    pub fn overdue(&self) -> u64 {
        self.sink.counts().overdue
    }

    /// Returns the number of samples that were published but not delivered, between the first and the
    /// newest delivered sample of each publisher.
    ///
    /// It counts gaps in the sequence numbers, so it includes the drops of all nodes, and samples lost
    /// with a node that failed. With a reduced rate it includes only samples that arrived here.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.sink.counts().missing()
    }

    /// Returns the next event, or `None` if there is none. Does not block.
    #[must_use]
    pub fn try_event(&self) -> Option<SubscriberEvent> {
        self.sink.pop_event()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.sink.close();
        self.node.commands().send(Command::Unsubscribe(self.id));
    }
}

/// The result of one look at the queue.
enum Next {
    Sample(Sample),
    Wait(EventListener),
}

/// Receives the samples of a subscription through a bounded queue. Created by
/// [`SubscriberBuilder::declare`].
///
/// Dropping it ends the subscription. Until then it keeps its node open.
///
/// ```no_run
/// use paceline::{Node, SubscriberEvent};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Node::open()?;
/// let mut pictures = node
///     .subscriber("robot/camera")
///     .max_hz(10.0)
///     .size(160, 120)
///     .within(Duration::from_millis(200))
///     .declare()?;
/// while let Ok(sample) = pictures.recv() {
///     println!("{} {}: {} bytes, age {:?}", sample.tag, sample.seq, sample.payload.len(), sample.age);
///     while let Some(event) = pictures.try_event() {
///         if let SubscriberEvent::Refused(publisher, refusal) = event {
///             println!("{publisher}: {refusal}");
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Subscriber {
    subscription: Subscription,
}

impl Subscriber {
    /// Returns the identifier of this subscription.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.subscription.id()
    }

    pub(crate) const fn subscription(&self) -> &Subscription {
        &self.subscription
    }

    /// Blocks until the next sample arrives and returns it.
    ///
    /// # Errors
    /// [`RecvError::Closed`] if the node is closed and the queue is empty.
    pub fn recv(&mut self) -> Result<Sample, RecvError> {
        self.wait(None)
    }

    /// Blocks for at most `timeout` until the next sample arrives and returns it.
    ///
    /// # Errors
    /// [`RecvError::Timeout`] if none arrives in time, and [`RecvError::Closed`] if the node is
    /// closed and the queue is empty.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Sample, RecvError> {
        self.wait(Some(Instant::now() + timeout))
    }

    fn wait(&self, until: Option<Instant>) -> Result<Sample, RecvError> {
        loop {
            match (self.next()?, until) {
                (Next::Sample(delivery), _) => return Ok(delivery),
                (Next::Wait(arrival), None) => arrival.wait(),
                (Next::Wait(arrival), Some(until)) => {
                    if arrival.wait_deadline(until).is_none() {
                        return self.subscription.sink.pop().ok_or(RecvError::Timeout);
                    }
                }
            }
        }
    }

    /// Returns the next sample, or a listener for its arrival.
    fn next(&self) -> Result<Next, RecvError> {
        let sink = &self.subscription.sink;
        if let Some(delivery) = sink.pop() {
            return Ok(Next::Sample(delivery));
        }
        let arrival = sink.arrival.listen();
        // A sample may have arrived before the listener existed.
        match sink.pop() {
            Some(delivery) => Ok(Next::Sample(delivery)),
            None if sink.is_closed() => Err(RecvError::Closed),
            None => Ok(Next::Wait(arrival)),
        }
    }

    /// Returns the next queued sample, or `None` if the queue is empty. Does not block.
    #[must_use]
    pub fn try_recv(&mut self) -> Option<Sample> {
        self.subscription.sink.pop()
    }

    /// Waits for the next sample and returns it. Works on any asynchronous runtime.
    ///
    /// # Errors
    /// [`RecvError::Closed`] if the node is closed and the queue is empty.
    pub async fn recv_async(&mut self) -> Result<Sample, RecvError> {
        loop {
            match self.next()? {
                Next::Sample(delivery) => return Ok(delivery),
                Next::Wait(arrival) => arrival.await,
            }
        }
    }

    /// Returns a notification for the next sample or event, or the end of the subscription.
    ///
    /// Create it before the calls of [`Self::try_recv`], [`Self::try_event`] and
    /// [`Self::is_closed`], so that nothing is missed in between.
    pub fn arrival(&self) -> Arrival {
        Arrival::new(self.subscription.sink.arrival.listen())
    }

    /// Returns true if the node is closed. Samples queued before can still be received.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.subscription.sink.is_closed()
    }

    /// Returns the samples dropped at this subscription, by reason.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.subscription.drops()
    }

    /// Returns the measurements of [`SubscriberBuilder::spacing`] or [`SubscriberBuilder::max_jitter`]; `None`
    /// without either.
    #[must_use]
    pub fn spacing_report(&self) -> Option<SpacingReport> {
        self.subscription.spacing_report()
    }

    /// Returns the measurements of [`SubscriberBuilder::sync_group`]; `None` without it.
    #[must_use]
    pub fn sync_report(&self) -> Option<SyncReport> {
        self.subscription.sync_report()
    }

    /// Returns the decisions of [`SubscriberBuilder::fresh_within`]; all 0 without it.
    #[must_use]
    pub fn decisions(&self) -> Decisions {
        self.subscription.decisions()
    }

    /// Returns the number of late samples that waited in this process. See [`Subscription::overdue`].
    #[must_use]
    pub fn overdue(&self) -> u64 {
        self.subscription.overdue()
    }

    /// Returns the number of samples that were published but not delivered. See
    /// [`Subscription::missing`].
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.subscription.missing()
    }

    /// Returns the next event, or `None` if there is none. Does not block.
    #[must_use]
    pub fn try_event(&self) -> Option<SubscriberEvent> {
        self.subscription.try_event()
    }

    /// States the reception of the players that receive the samples from this program by another protocol.
    ///
    /// The status of the node and the feedback of publishers contain it.
    pub fn set_players(&self, players: PlayersStatus) {
        self.subscription.sink.set_players(players);
    }
}
