//! Feedback to publishers about delivery, so that applications can adapt.
//!
//! The feedback path is that of paper 001 in docs/internals/papers.md (Dionisys interactors), section 4.2.

use crate::arrival::Arrival;
use crate::event::PublisherEvent;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::shell::command::Command;
use crate::shell::source::PublisherShared;
use crate::status::{Feedback, Measured};
use event_listener::Listener as _;
use paceline_proto::{PublisherId, SubscriptionId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The interval of a watch without events. Rates over one second change once per second.
const EVERY: Duration = Duration::from_secs(1);
/// The longest wait for the counters of other nodes.
const MEASURED_WITHIN: Duration = Duration::from_millis(500);
/// The longest delay of an event by a node that does not answer.
const STEP: Duration = Duration::from_millis(20);

impl Node {
    /// Asks the nodes of a publisher's subscriptions for their delivery counters, once.
    ///
    /// Blocks for at most `timeout`. The rows of nodes that do not answer in time have no counters.
    /// Each answer takes about 30 bytes per subscription. Rates over one second change once per
    /// second, so shorter polling intervals return no new values.
    ///
    /// Grants are known on nodes of the path only, so call this at the publisher's node.
    #[must_use]
    pub fn feedback(&self, publisher: PublisherId, timeout: Duration) -> Vec<Feedback> {
        self.read_feedback(publisher, Some(timeout), || false)
    }

    /// Reads feedback: with counters of other nodes if there is a `timeout`, until `enough` returns
    /// true.
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
        // The first answer has all rows. Each node's counters follow.
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
    /// Asks the nodes of this publisher's subscriptions for their delivery counters. See
    /// [`Node::feedback`].
    #[must_use]
    pub fn feedback(&self, timeout: Duration) -> Vec<Feedback> {
        self.node().feedback(self.id(), timeout)
    }

    /// Returns the next event, or `None` if there is none. Does not block. The queue keeps the last
    /// 64 events.
    #[must_use]
    pub fn try_event(&self) -> Option<PublisherEvent> {
        self.shared().events.pop()
    }

    /// Returns a notification for the next event, and for any change that [`Self::match_change`]
    /// notifies. Create it before the call of [`Self::try_event`], so that no event is missed.
    pub fn news(&self) -> Arrival {
        self.match_change()
    }

    /// Calls `told` with the feedback of all subscriptions: now, then once per second, and on every
    /// event.
    ///
    /// Events are: a subscription is added or removed; its request is granted or refused; its path
    /// changes or is lost. After an event the counters are those of the last second's reading.
    ///
    /// `told` runs on its own thread and may block. Calls end when the watch or the publisher is
    /// dropped. The node stays open until then.
    ///
    /// # Errors
    /// Returns the error of the operating system if it cannot start a thread.
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

/// Ends [`Publisher::watch`] when it is dropped. A call that is running completes.
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

/// The state of a watch thread.
struct Watcher {
    node: Node,
    publisher: PublisherId,
    shared: Arc<PublisherShared>,
    over: Arc<AtomicBool>,
    /// The last counters of each subscription.
    measured: BTreeMap<SubscriptionId, Measured>,
}

impl Watcher {
    fn run(mut self, mut told: impl FnMut(&[Feedback])) {
        // The first call reports known values without asking other nodes.
        let (mut measure, mut measure_at) = (false, Instant::now());
        loop {
            // Listen before reading, so that a change during the read starts another one.
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

    /// Reads the feedback of all subscriptions; asks other nodes for their counters only if
    /// `measure`.
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
