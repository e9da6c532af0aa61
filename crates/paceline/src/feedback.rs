//! What becomes of a publisher's samples at those who asked for them, so that applications can adapt: the
//! feedback path of seed 001 §4.2.

use crate::arrival::Arrival;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::shell::engine::Command;
use crate::shell::source::PublisherShared;
use event_listener::Listener as _;
use paceline_proto::control::{Grant, Refusal};
use paceline_proto::{Excess, Form, PublisherId, SubscriptionId};
use paceline_sched::LossTolerance;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
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
    /// Samples to it that were more than the publisher declared and so waited behind what was promised, as the links of the
    /// publisher's node counted them; of all subscriptions in the same form together.
    pub excess: Excess,
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

/// What a publisher is told of its subscriptions, at once.
#[derive(Clone, Debug, PartialEq)]
pub enum PublisherEvent {
    /// The path to a subscription holds what that asked for, or holds it otherwise than before, over another path
    /// for example.
    Granted(Grant),
    /// A subscription was refused, and why.
    Refused(Refusal),
    /// What was granted to a subscription, or refused, is so no longer, and nothing is promised to it now: the path
    /// is gone, or it does not ask for it any more.
    Over(SubscriptionId),
    /// More samples were more than was declared since this was last told, once a second at most: they came sooner, or
    /// were longer. All of them so far.
    Excess(Excess),
}

/// How often those who watch are told in any case: figures of a second change once a second.
const EVERY: Duration = Duration::from_secs(1);
/// How long a node may take to say what it counted.
const MEASURED_WITHIN: Duration = Duration::from_millis(500);
/// How long news may wait for a node that does not answer.
const STEP: Duration = Duration::from_millis(20);

impl Node {
    /// Asks the nodes of the subscriptions of a publisher what they get, once. Each answers with some 30 bytes
    /// for each of its subscriptions; those that do not answer within `timeout` are listed without figures. Their
    /// figures of a second change once a second: to ask more often tells nothing new. What is granted is told
    /// of paths that this node has a part in, so ask where the publisher is.
    #[must_use]
    pub fn feedback(&self, publisher: PublisherId, timeout: Duration) -> Vec<Feedback> {
        self.read_feedback(publisher, Some(timeout), || false)
    }

    /// With what others measured if there is time for that, until `enough`.
    fn read_feedback(
        &self,
        publisher: PublisherId,
        timeout: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> Vec<Feedback> {
        let (reply, answers) = channel();
        let command = Command::Feedback { publisher, measured: timeout.is_some(), reply };
        if !self.commands().send(command) {
            return Vec::new();
        }
        let until = Instant::now() + timeout.unwrap_or_default();
        // First all of them, then those that were measured elsewhere, node by node.
        let mut all = answers.recv().unwrap_or_default();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match answers.recv_timeout(left.min(STEP)) {
                Ok(measured) => {
                    for one in measured {
                        let same = |it: &&mut Feedback| it.subscription == one.subscription;
                        if let Some(known) = all.iter_mut().find(same) {
                            *known = one;
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) if left > STEP && !enough() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return all,
            }
        }
    }
}

impl Publisher {
    /// As [`Node::feedback`], of this one: what an application adapts by.
    #[must_use]
    pub fn feedback(&self, timeout: Duration) -> Vec<Feedback> {
        self.node().feedback(self.id(), timeout)
    }

    /// The next event, if there is one. Of those that nobody takes the last 64 are kept.
    #[must_use]
    pub fn try_event(&self) -> Option<PublisherEvent> {
        self.shared().events.pop()
    }

    /// What tells of the next event, and of whatever else [`Self::match_change`] tells of. To be had before looking
    /// with [`Self::try_event`].
    pub fn news(&self) -> Arrival {
        self.match_change()
    }

    /// Calls `told` with what all subscriptions get: now, once a second, and at once whenever one comes or goes, is
    /// granted or refused something, gets it over another path, or loses it; what was measured is then what the last
    /// second said. It is called on a thread of its own, where it may wait, until the watch or the publisher is
    /// dropped. The node stays open until then.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch(
        &self,
        told: impl FnMut(&[Feedback]) + Send + 'static,
    ) -> std::io::Result<FeedbackWatch> {
        let (over, shared) = (Arc::new(AtomicBool::new(false)), self.shared().clone());
        let watcher = Watcher {
            node: self.node().clone(),
            publisher: self.id(),
            shared: shared.clone(),
            over: over.clone(),
            measured: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new().name("paceline-watch".to_owned());
        thread.spawn(move || watcher.run(told))?;
        Ok(FeedbackWatch { over, shared })
    }
}

/// Ends [`Publisher::watch`] when it is dropped; what is being told then is told to the end.
#[must_use = "dropping it ends the watch"]
pub struct FeedbackWatch {
    over: Arc<AtomicBool>,
    shared: Arc<PublisherShared>,
}

impl Drop for FeedbackWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.shared.change.notify(usize::MAX);
    }
}

/// Who asks and tells.
struct Watcher {
    node: Node,
    publisher: PublisherId,
    shared: Arc<PublisherShared>,
    over: Arc<AtomicBool>,
    /// What was measured last.
    measured: BTreeMap<SubscriptionId, Measured>,
}

impl Watcher {
    fn run(mut self, mut told: impl FnMut(&[Feedback])) {
        // What there is now is told at once, before others are asked.
        let (mut measure, mut measure_at) = (false, Instant::now());
        loop {
            // Had before reading: what changes meanwhile is read next.
            let change = self.shared.change.listen();
            if self.is_over() {
                return;
            }
            let rows = self.read(measure);
            if self.is_over() {
                return;
            }
            told(&rows);
            if measure {
                measure_at = (measure_at + EVERY).max(Instant::now());
            }
            measure = change.wait_deadline(measure_at).is_none();
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.shared.closed.load(Ordering::Acquire)
    }

    /// What all subscriptions get; others are asked for their figures only if `measure`.
    fn read(&mut self, measure: bool) -> Vec<Feedback> {
        let timeout = measure.then_some(MEASURED_WITHIN);
        let before = self.shared.told.load(Ordering::Acquire);
        let news = || self.is_over() || self.shared.told.load(Ordering::Acquire) != before;
        let mut rows = self.node.read_feedback(self.publisher, timeout, news);
        for row in &mut rows {
            row.measured = row.measured.or_else(|| self.measured.get(&row.subscription).copied());
        }
        let known = rows.iter().filter_map(|row| Some((row.subscription, row.measured?)));
        self.measured = known.collect();
        rows
    }
}
