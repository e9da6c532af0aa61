//! The settings of delivery by time.

use super::choice::Choice;
use super::{SubscriberBuilder, Subscription};
use crate::delivery::{Decisions, Otherwise, SpacingReport, SyncReport, TimeBuffering};
use crate::shell::clock;
use paceline_node::deliver::Fresh;
use std::ops::RangeInclusive;
use std::time::Duration;

impl SubscriberBuilder<'_> {
    /// Delivers a sample only while it is provably younger than `limit`, from 1 µs to 1 h, and starts a safe action
    /// when the last delivered one reaches the limit.
    ///
    /// The age is the time since publish, and its largest possible value counts. It is known exactly on the
    /// publisher's node. Over links it is proved by the times that the hops measure, or by synchronized clocks. A
    /// sample without a proof is dropped, as are older ones, with
    /// [`DropReason::Stale`](crate::status::DropReason::Stale). The check is the last step before the callback or the
    /// return of [`Subscriber::recv`](super::Subscriber::recv); [`Sample::actuation`](crate::Sample::actuation) carries the
    /// instant at which the sample reaches the limit.
    ///
    /// Each tag of the pattern has its own silence. The safe action starts within 10 ms of the limit if the
    /// processor is free, once per silence, and not before the first sample.
    ///
    /// ```no_run
    /// # use paceline::{Node, delivery::{Actuation, Otherwise}};
    /// # use std::time::Duration;
    /// # let node = Node::open()?;
    /// # fn drive(_: &[u8]) {}
    /// let limit = Duration::from_millis(100);
    /// let mut commands = node.subscriber("robot/velocity").fresh_within(limit, Otherwise::Zero).declare()?;
    /// while let Ok(command) = commands.recv() {
    ///     if command.actuation.is_some_and(|decision| decision.may_act()) {
    ///         drive(&command.payload);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fresh_within(self, limit: Duration, otherwise: Otherwise) -> Self {
        self.set(|draft| draft.time(Choice::Fresh(limit, otherwise)))
    }

    /// Delivers samples in the order of their times. By default they are delivered as they arrive: in order for
    /// each publisher.
    ///
    /// The time of a sample is its capture time if the clocks of both nodes have known errors, else the time since
    /// publish as the hops measured it. [`Sample::placement`](crate::Sample::placement) reports whether the bounds
    /// decide the order.
    pub fn ordered(self, order: TimeBuffering) -> Self {
        self.set(|draft| draft.time(Choice::Ordered(order)))
    }

    /// Delivers samples with the spacing of their capture times.
    ///
    /// Each sample is delayed to the slowest samples of the last 512 of its publisher, by a time within `depth`, at
    /// most 60 s. A sample that arrives later is delivered at once. At most 4,096 samples and 64 MiB wait; beyond
    /// that the earliest are delivered early.
    pub fn spacing(self, depth: RangeInclusive<Duration>) -> Self {
        self.set(|draft| draft.time(Choice::Spaced(depth)))
    }

    /// Delivers each sample when its delay bound ends, so that the delay varies only by the wake-up of a thread and
    /// the error of the measured ages. Requires [`Self::within`].
    ///
    /// `jitter` is the largest variation that the application accepts, above 0 and at most 60 s. The declaration measures
    /// 15 wake-ups, which takes some 15 ms, and refuses a jitter that more than one in ten of them exceed with
    /// [`SubscribeError::MaxJitterRefused`](crate::SubscribeError::MaxJitterRefused), which names an achievable one.
    /// Afterwards [`SpacingReport::beyond`] counts the samples whose lateness plus the error of their measured age exceeded
    /// it.
    pub fn max_jitter(self, jitter: Duration) -> Self {
        self.set(|draft| draft.time(Choice::MaxJitter(jitter)))
    }

    /// Releases samples at their capture time plus `delay`, at the same instant as all members of `group` on this and on
    /// other hosts.
    ///
    /// The capture time counts by UTC if the clocks of the publisher's node and of this one have known errors
    /// ([`Node::clock`](crate::Node::clock)). Else the streams of one publishing node are synchronised with each other in
    /// this process, which suffices for sound and pictures. [`SyncReport::bound`] states the error.
    ///
    /// All members use the same delay, above 0 and at most 60 s, and not below the delay bound ([`Self::within`]). No
    /// member waits for another one. A sample that arrives after its release time is delivered at once. At most 4,096
    /// samples and 64 MiB wait; beyond that the earliest are delivered early.
    ///
    /// ```no_run
    /// # use paceline::Node;
    /// # use std::time::Duration;
    /// # let node = Node::open()?;
    /// let delay = Duration::from_millis(150);
    /// let sound = node.subscriber("robot/mic").sync_group("stage", delay).declare()?;
    /// let picture = node.subscriber("robot/camera").sync_group("stage", delay).declare()?;
    /// if let Some(bound) = picture.sync_report().and_then(|report| report.bound) {
    ///     println!("within {bound:?} of capture time + {delay:?}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sync_group(self, group: &str, delay: Duration) -> Self {
        self.set(|draft| draft.time(Choice::SyncGroup(group.to_owned(), delay)))
    }
}

impl Subscription {
    /// Returns the measurements of [`SubscriberBuilder::spacing`] or [`SubscriberBuilder::max_jitter`]; `None`
    /// without either.
    #[must_use]
    pub fn spacing_report(&self) -> Option<SpacingReport> {
        self.sink.delivery().spacing_report()
    }

    /// Returns the measurements of [`SubscriberBuilder::sync_group`]; `None` without it.
    #[must_use]
    pub fn sync_report(&self) -> Option<SyncReport> {
        self.sink.delivery().sync_report(self.sink.utc(clock::now()))
    }

    /// Returns the decisions of [`SubscriberBuilder::fresh_within`]; all 0 without it.
    #[must_use]
    pub fn decisions(&self) -> Decisions {
        self.sink.delivery().fresh().map(Fresh::decisions).unwrap_or_default()
    }
}
