//! Asking for something else while samples come.

use crate::error::ChangeError;
use crate::error::SubscribeError;
use crate::node::Node;
use crate::shell::engine::Command;
use crate::subscriber::{Subscriber, SubscriberBuilder, Subscription};
use paceline_proto::control::{ChangeOutcome, SubscriptionSpec};
use paceline_proto::{Form, Pattern, Proxy, SubscriptionId};
use paceline_sched::LossTolerance;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a subscription's node has to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked what has become of a change.
const STEP: Duration = Duration::from_millis(20);

/// A subscription of any node, as every node knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionView {
    /// Which one.
    pub id: SubscriptionId,
    /// What people call its node, a label only.
    pub node: String,
    /// What it was made for.
    pub pattern: Pattern,
    /// The rate and size asked for.
    pub form: Form,
    /// The delay bound asked for.
    pub within: Option<Duration>,
    /// The loss tolerance asked for.
    pub loss: Option<LossTolerance>,
    /// Where the scaling is done.
    pub proxy: Proxy,
}

impl SubscriptionView {
    pub(crate) fn new(id: SubscriptionId, node: &str, spec: &SubscriptionSpec) -> Self {
        let SubscriptionSpec { pattern, form, within, loss, proxy, .. } = spec.clone();
        let within = within.map(Into::into);
        Self { id, node: node.to_owned(), pattern, form, within, loss, proxy }
    }
}

impl Node {
    /// The subscriptions of all nodes that can be reached. It is what every node knows: nobody is asked.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<SubscriptionView> {
        let (reply, answer) = channel();
        if !self.commands().send(Command::Subscriptions(reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// Lets a subscription, of this node or another, ask for something else: `wish` gets it as it asks now.
    /// What it is for, its queue and its buffer stay as they are.
    ///
    /// Returns when the subscription's node has taken the request; [`Self::change_and_wait`] waits for the answer of
    /// the paths. Delivery continues: the old contract stays in force until the paths have granted the new one. If one
    /// of them refuses, the subscriber gets [`SubscriberEvent::ChangeRefused`](crate::SubscriberEvent::ChangeRefused) and
    /// asks for what it asked before. With [`SubscriberBuilder::or_stop`] it gets
    /// [`SubscriberEvent::Refused`](crate::SubscriberEvent::Refused) instead, and nothing until there is room.
    ///
    /// # Errors
    /// [`ChangeError`]: no such subscription, a wish that cannot be, a node that does not answer for two
    /// seconds, or this node closed.
    pub fn change<F>(&self, subscription: SubscriptionId, wish: F) -> Result<(), ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> Result<SubscriberBuilder<'a>, SubscribeError>,
    {
        self.request(subscription, wish).map(drop)
    }

    /// As [`Self::change`], and returns the answer of the paths: that of this request, whatever others ask for meanwhile.
    ///
    /// Returns [`ChangeOutcome::Pending`] if they have not answered within `timeout`.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub fn change_and_wait<F>(
        &self,
        subscription: SubscriptionId,
        timeout: Duration,
        wish: F,
    ) -> Result<ChangeOutcome, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> Result<SubscriberBuilder<'a>, SubscribeError>,
    {
        let until = Instant::now() + timeout;
        let revision = self.request(subscription, wish)?;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.outcome(subscription, revision, left.min(PATIENCE))? {
                ChangeOutcome::Unknown => return Err(ChangeError::Unknown(subscription)),
                ChangeOutcome::Pending if left > STEP => std::thread::sleep(STEP),
                outcome @ (ChangeOutcome::Pending
                | ChangeOutcome::Replaced
                | ChangeOutcome::InForce { .. }
                | ChangeOutcome::Refused { .. }) => return Ok(outcome),
            }
        }
    }

    /// What has become of a request as the subscription's node knows it; pending if that does not answer in time.
    fn outcome(
        &self,
        subscription: SubscriptionId,
        revision: u64,
        timeout: Duration,
    ) -> Result<ChangeOutcome, ChangeError> {
        let (reply, answer) = channel();
        self.commands().send(Command::Outcome(subscription, revision, reply));
        match answer.recv_timeout(timeout) {
            Ok(outcome) => Ok(outcome),
            Err(RecvTimeoutError::Timeout) => Ok(ChangeOutcome::Pending),
            Err(RecvTimeoutError::Disconnected) => Err(ChangeError::Closed),
        }
    }

    /// Lets a subscription ask for something else. Returns the number of that request.
    fn request<F>(&self, subscription: SubscriptionId, wish: F) -> Result<u64, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> Result<SubscriberBuilder<'a>, SubscribeError>,
    {
        let (reply, answer) = channel();
        self.commands().send(Command::Wish(subscription, reply));
        let now = answer.recv().map_err(|_| ChangeError::Closed)?;
        let now = now.ok_or(ChangeError::Unknown(subscription))?;
        let (_, spec) = wish(SubscriberBuilder::of(self, now))?.into_parts();
        let (reply, answer) = channel();
        self.commands().send(Command::Change(subscription, spec, reply));
        match answer.recv_timeout(PATIENCE) {
            Ok(Some(revision)) => Ok(revision),
            Ok(None) => Err(ChangeError::Unknown(subscription)),
            Err(RecvTimeoutError::Timeout) => Err(ChangeError::NoAnswer(subscription.node)),
            Err(RecvTimeoutError::Disconnected) => Err(ChangeError::Closed),
        }
    }
}

impl Subscription {
    /// As [`Node::change`], of this one.
    ///
    /// # Errors
    /// As there.
    pub fn change<F>(&self, wish: F) -> Result<(), ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> Result<SubscriberBuilder<'a>, SubscribeError>,
    {
        self.node().change(self.id(), wish)
    }

    /// As [`Node::change_and_wait`], of this one.
    ///
    /// # Errors
    /// As there.
    pub fn change_and_wait<F>(
        &self,
        timeout: Duration,
        wish: F,
    ) -> Result<ChangeOutcome, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> Result<SubscriberBuilder<'a>, SubscribeError>,
    {
        self.node().change_and_wait(self.id(), timeout, wish)
    }
}

impl Subscriber {
    /// As [`Node::change`], of this one.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = paceline::Node::open()?;
    /// let camera = node.subscriber("robot/camera")?.max_hz(30.0)?.declare()?;
    /// camera.change(|wish| wish.max_hz(5.0)?.size(320, 240))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn change<F>(&self, wish: F) -> Result<(), ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> Result<SubscriberBuilder<'a>, SubscribeError>,
    {
        self.subscription().change(wish)
    }

    /// As [`Node::change_and_wait`], of this one.
    ///
    /// ```no_run
    /// # use paceline::ChangeOutcome;
    /// # use std::time::Duration;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = paceline::Node::open()?;
    /// let camera = node.subscriber("robot/camera")?.max_hz(5.0)?.declare()?;
    /// if let ChangeOutcome::Refused { refusals, .. } =
    ///     camera.change_and_wait(Duration::from_secs(2), |wish| wish.max_hz(30.0))?
    /// {
    ///     println!("still at 5 Hz: {}", refusals[0]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub fn change_and_wait<F>(
        &self,
        timeout: Duration,
        wish: F,
    ) -> Result<ChangeOutcome, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> Result<SubscriberBuilder<'a>, SubscribeError>,
    {
        self.subscription().change_and_wait(timeout, wish)
    }
}
