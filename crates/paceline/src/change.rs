//! Asking for something else while samples come.

use crate::error::ChangeError;
use crate::error::SubscribeError;
use crate::node::Node;
use crate::shell::engine::Command;
use crate::subscriber::{Subscriber, SubscriberBuilder, Subscription};
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::{Form, Pattern, Proxy, SubscriptionId};
use paceline_sched::LossTolerance;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long a subscription's node has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

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
    /// What comes goes on coming: a promised stream stays until its path has promised the other. If the path
    /// refuses, the subscriber is told ([`SubscriberEvent::Refused`](crate::SubscriberEvent::Refused)) and gets
    /// nothing that it did not ask for; ask for something else again, or for less.
    ///
    /// # Errors
    /// [`ChangeError`]: no such subscription, a wish that cannot be, a node that does not answer for two
    /// seconds, or this node closed.
    pub fn change<F>(&self, subscription: SubscriptionId, wish: F) -> Result<(), ChangeError>
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
            Ok(true) => Ok(()),
            Ok(false) => Err(ChangeError::Unknown(subscription)),
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
}
