//! Declares what a link's session sends on and listens to, on a thread of its own.
//!
//! A declaration waits until Zenoh has room for it on every connection of the session, and a peer that reads nothing can
//! fill that room for seconds. No frame waits for it: until a hop is declared its frames name their key in full, and arrive
//! at the subscriber to all neighbours.

use super::{Inbound, listen, subscribe_to};
use paceline_proto::NodeId;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use zenoh::bytes::ZBytes;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Session, Wait};

/// Jobs that wait. A hop that finds no room stays as it is.
const JOBS_MAX: usize = 1_024;

/// What was declared for one hop.
pub(super) struct Declared {
    /// Puts a frame into a batch that may wait for more.
    merging: Publisher<'static>,
    /// Sends the batch with the frame at once, on links where that makes a difference.
    express: Option<Publisher<'static>>,
    _back: Subscriber<()>,
}

impl Declared {
    /// Hands a frame over; `merges` where it may share a batch with others.
    pub(super) fn put(&self, frame: ZBytes, merges: bool) -> zenoh::Result<()> {
        let express = self.express.as_ref().filter(|_| !merges);
        express.unwrap_or(&self.merging).put(frame).wait()
    }
}

/// What is declared for one hop, once it is.
pub(super) type Slot = Arc<OnceLock<Declared>>;

enum Job {
    Declare { node: NodeId, express: bool, slot: Slot },
    Forget(Slot),
    ListenAgain,
}

/// The session, and what its link listens to.
pub(super) struct Listening {
    pub(super) me: NodeId,
    pub(super) session: Session,
    pub(super) inbound: Arc<dyn Inbound>,
    pub(super) subscribers: Vec<Subscriber<()>>,
}

/// The way to the thread, which ends when this is dropped.
pub(super) struct Declarer {
    jobs: SyncSender<Job>,
    /// Hops that are gone and found no room among the jobs.
    leaving: Vec<Slot>,
}

impl Declarer {
    pub(super) fn start(link: &str, listening: Listening) -> std::io::Result<Self> {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let named = std::thread::Builder::new().name(format!("paceline-{link}-declare"));
        named.spawn(move || listening.work(&inbox))?;
        Ok(Self { jobs, leaving: Vec::new() })
    }

    /// Declares a hop; never waits.
    pub(super) fn declare(&mut self, node: NodeId, express: bool, slot: Slot) {
        self.retry();
        if self.jobs.try_send(Job::Declare { node, express, slot }).is_err() {
            tracing::debug!("no room to declare the hop to node {node}: its frames name their key");
        }
    }

    /// Takes back what was declared for a hop; never waits.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.leaving.push(slot);
        self.retry();
    }

    pub(super) fn listen_again(&mut self) {
        // Whoever is behind with it will do so anyway.
        let _ = self.jobs.try_send(Job::ListenAgain);
    }

    fn retry(&mut self) {
        while let Some(slot) = self.leaving.pop() {
            if let Err(TrySendError::Full(Job::Forget(slot))) =
                self.jobs.try_send(Job::Forget(slot))
            {
                self.leaving.push(slot);
                return;
            }
        }
    }
}

impl Listening {
    fn work(mut self, inbox: &Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            match job {
                Job::Declare { node, express, slot } => match self.declare(node, express) {
                    Ok(declared) => drop(slot.set(declared)),
                    Err(error) => tracing::warn!("declaring the hop to node {node}: {error}"),
                },
                Job::Forget(slot) => drop(slot),
                Job::ListenAgain => self.listen_again(),
            }
        }
    }

    fn declare(&self, node: NodeId, express: bool) -> zenoh::Result<Declared> {
        let Self { me, session, .. } = self;
        let publisher = |express| {
            let publisher = session.declare_publisher(format!("p/{node}/{me}"));
            let publisher = publisher.congestion_control(CongestionControl::Drop);
            publisher.priority(Priority::Data).express(express).wait()
        };
        let express = if express { Some(publisher(true)?) } else { None };
        let (merging, back) = (publisher(false)?, subscribe_to(node, *me, session)?);
        Ok(Declared { merging, express, _back: back })
    }

    fn listen_again(&mut self) {
        self.subscribers.clear();
        match listen(self.me, &self.session, &self.inbound) {
            Ok(subscribers) => self.subscribers = subscribers,
            Err(error) => tracing::warn!("listening again: {error}"),
        }
    }
}
