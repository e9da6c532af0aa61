//! Changing running subscriptions.

use crate::contract::Quote;
use crate::error::ChangeError;
use crate::node::Node;
use crate::shell::command::Command;
use crate::status::SubscriptionView;
use crate::subscriber::{Subscriber, SubscriberBuilder, Subscription};
use paceline_proto::SubscriptionId;
use paceline_proto::control::ChangeOutcome;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest wait for the answer of a subscription's node.
const PATIENCE: Duration = Duration::from_secs(2);
/// The polling interval for the outcome of a change.
const STEP: Duration = Duration::from_millis(20);

impl Node {
    /// Returns the subscriptions of all reachable nodes.
    ///
    /// Reads the registry of this node and sends nothing.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<SubscriptionView> {
        let (reply, answer) = channel();
        if !self.commands().send(Command::Subscriptions(reply)) {
            return Vec::new();
        }
        answer.recv().unwrap_or_default()
    }

    /// Changes a running subscription's rate, size, deadline or loss tolerance.
    ///
    /// The subscription may be on this node or another. `wish` receives a builder with the current
    /// request and returns the new one. A wrong value is reported before anything changes. The
    /// pattern, the queue and the buffer do not change.
    ///
    /// Returns when the subscription's node has accepted the request; [`Self::change_and_wait`]
    /// also waits for the answer of the paths. Delivery continues: the old contract stays in force
    /// until the paths have granted the new one.
    ///
    /// If a path refuses, the old request becomes active again and the subscriber receives
    /// [`SubscriberEvent::ChangeRefused`](crate::SubscriberEvent::ChangeRefused). With
    /// [`SubscriberBuilder::or_stop`] it receives
    /// [`SubscriberEvent::Refused`](crate::SubscriberEvent::Refused) instead, and no samples until
    /// the path grants the new request.
    ///
    /// # Errors
    /// Returns a [`ChangeError`] if
    /// - there is no such subscription,
    /// - the new request is not valid,
    /// - the subscription's node does not answer within 2 s, or
    /// - this node is closed.
    pub fn change<F>(&self, subscription: SubscriptionId, wish: F) -> Result<(), ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    {
        self.request(subscription, wish).map(drop)
    }

    /// Changes a running subscription and blocks until the paths have answered this request. See
    /// [`Self::change`].
    ///
    /// Returns [`ChangeOutcome::Pending`] if they have not answered within `timeout`.
    ///
    /// # Errors
    /// The errors of [`Self::change`].
    pub fn change_and_wait<F>(
        &self,
        subscription: SubscriptionId,
        timeout: Duration,
        wish: F,
    ) -> Result<ChangeOutcome, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
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

    /// Asks the paths of a running subscription whether they would grant the changed request now, in place of the present
    /// one. Changes and reserves nothing. Blocks for at most 500 ms.
    ///
    /// The quotas of rights count the present request too, so a node may allow a change that it does not allow here.
    ///
    /// # Errors
    /// The errors of [`Self::change`], except that the node of the subscription need not answer.
    pub fn quote_change<F>(
        &self,
        subscription: SubscriptionId,
        wish: F,
    ) -> Result<Vec<Quote>, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    {
        Ok(wish(self.present(subscription)?).change_quotes(subscription)?)
    }

    /// Returns a builder with the present request of a subscription.
    fn present(&self, subscription: SubscriptionId) -> Result<SubscriberBuilder<'_>, ChangeError> {
        let (reply, answer) = channel();
        self.commands().send(Command::Wish(subscription, reply));
        let now = answer.recv().map_err(|_| ChangeError::Closed)?;
        let now = now.ok_or(ChangeError::Unknown(subscription))?;
        Ok(SubscriberBuilder::of(self, now))
    }

    /// Asks the subscription's node for the outcome of a request; pending if it does not answer in
    /// time.
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

    /// Sends a request to the subscription's node and returns its number.
    fn request<F>(&self, subscription: SubscriptionId, wish: F) -> Result<u64, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    {
        let (_, spec) = wish(self.present(subscription)?).into_parts()?;
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
    /// Changes this subscription. See [`Node::change`].
    ///
    /// # Errors
    /// The errors of [`Node::change`].
    pub fn change<F>(&self, wish: F) -> Result<(), ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    {
        self.node().change(self.id(), wish)
    }

    /// Changes this subscription and waits for the answer. See [`Node::change_and_wait`].
    ///
    /// # Errors
    /// The errors of [`Node::change_and_wait`].
    pub fn change_and_wait<F>(
        &self,
        timeout: Duration,
        wish: F,
    ) -> Result<ChangeOutcome, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    {
        self.node().change_and_wait(self.id(), timeout, wish)
    }
}

impl Subscriber {
    /// Changes this subscription. See [`Node::change`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = paceline::Node::open()?;
    /// let camera = node.subscriber("robot/camera").max_hz(30.0).declare()?;
    /// camera.change(|wish| wish.max_hz(5.0).size(320, 240))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Node::change`].
    pub fn change<F>(&self, wish: F) -> Result<(), ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    {
        self.subscription().change(wish)
    }

    /// Changes this subscription and waits for the answer. See [`Node::change_and_wait`].
    ///
    /// ```no_run
    /// # use paceline::contract::ChangeOutcome;
    /// # use std::time::Duration;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = paceline::Node::open()?;
    /// let camera = node.subscriber("robot/camera").max_hz(5.0).declare()?;
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
    /// The errors of [`Node::change_and_wait`].
    pub fn change_and_wait<F>(
        &self,
        timeout: Duration,
        wish: F,
    ) -> Result<ChangeOutcome, ChangeError>
    where
        F: for<'a> FnOnce(SubscriberBuilder<'a>) -> SubscriberBuilder<'a>,
    {
        self.subscription().change_and_wait(timeout, wish)
    }
}
