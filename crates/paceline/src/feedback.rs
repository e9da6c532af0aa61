//! What becomes of a publisher's samples at those who asked for them, so that applications can adapt: the
//! feedback path of seed 001 §4.2.

use crate::node::Node;
use crate::publisher::Publisher;
use crate::shell::engine::Command;
use paceline_proto::control::{Grant, Refusal};
use paceline_proto::{Form, PublisherId, SubscriptionId};
use paceline_sched::LossTolerance;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// What one subscription asked for, what was granted to it, and what it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Feedback {
    /// Which one.
    pub subscription: SubscriptionId,
    /// What people call its node, a label only.
    pub node: String,
    /// The rate and size asked for, as the publisher can give them.
    pub form: Form,
    /// The time from sample to sample that it should get, if it is known.
    pub period: Option<Duration>,
    /// The delay bound asked for.
    pub within: Option<Duration>,
    /// The loss tolerance asked for.
    pub loss: Option<LossTolerance>,
    /// What its path promises; nothing for best effort.
    pub grant: Option<Grant>,
    /// Why it gets nothing, if it was refused.
    pub refusal: Option<Refusal>,
    /// What its node counted; nothing if that did not answer in time.
    pub measured: Option<Measured>,
}

/// What a subscription's node counted: of all publishers that it hears.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Measured {
    /// Samples delivered.
    pub delivered: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// Delivered later than the delay bound.
    pub late: u64,
    /// Dropped at its node, for whatever reason. What a link on the way dropped never came there.
    pub dropped: u64,
    /// Delivered per second over the last second or more, in millihertz.
    pub rate_millihertz: u64,
    /// Longest age at delivery in the last second or more.
    pub age_max: Duration,
    /// The ages of all samples delivered, together: the difference of two readings gives the mean.
    pub age_sum: Duration,
}

impl Node {
    /// Asks the nodes of the subscriptions of a publisher what they get, once. Each answers with some 30 bytes
    /// for each of its subscriptions; those that do not answer within `timeout` are listed without figures. Their
    /// figures of a second change once a second: to ask more often tells nothing new. What is granted is told
    /// of paths that this node has a part in, so ask where the publisher is.
    #[must_use]
    pub fn feedback(&self, publisher: PublisherId, timeout: Duration) -> Vec<Feedback> {
        let (reply, answers) = channel();
        if !self.commands().send(Command::Feedback(publisher, reply)) {
            return Vec::new();
        }
        let until = Instant::now() + timeout;
        // First all of them, then those that were measured elsewhere, node by node.
        let mut all = answers.recv().unwrap_or_default();
        while let Ok(measured) =
            answers.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            for one in measured {
                if let Some(known) = all.iter_mut().find(|it| it.subscription == one.subscription) {
                    *known = one;
                }
            }
        }
        all
    }
}

impl Publisher {
    /// As [`Node::feedback`], of this one: what an application adapts by.
    #[must_use]
    pub fn feedback(&self, timeout: Duration) -> Vec<Feedback> {
        self.node().feedback(self.id(), timeout)
    }
}
