//! The thread that declares the keys and subscriptions of a link's session.
//!
//! A declaration blocks until Zenoh has room for it on every connection of the session. A peer that
//! reads nothing can fill that room for seconds. Frames do not wait for it: until a hop is
//! declared, they carry their key in full, and the wildcard subscriber receives them.

use super::subscribe_to;
use paceline_proto::NodeId;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use zenoh::bytes::ZBytes;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Session, Wait};

/// The limit of queued jobs. A hop that finds no room stays undeclared.
const JOBS_MAX: usize = 1_024;

/// The declarations for one hop.
pub(super) struct Declared {
    /// Adds frames to a batch that may wait for more.
    merging: Publisher<'static>,
    /// Sends the batch with the frame at once, on links with a low capacity.
    express: Option<Publisher<'static>>,
    _back: Subscriber<()>,
}

impl Declared {
    /// Sends a frame; `merges` allows batching.
    pub(super) fn put(&self, frame: ZBytes, merges: bool) -> zenoh::Result<()> {
        let express = self.express.as_ref().filter(|_| !merges);
        express.unwrap_or(&self.merging).put(frame).wait()
    }
}

/// The declarations for one hop, once they exist.
pub(super) type Slot = Arc<OnceLock<Declared>>;

enum Job {
    Declare { node: NodeId, express: bool, slot: Slot },
    Forget(Slot),
}

/// The session and its subscribers.
pub(super) struct Listening {
    pub(super) me: NodeId,
    pub(super) session: Session,
    pub(super) _subscribers: Vec<Subscriber<()>>,
}

/// A handle of the thread, which ends when this is dropped.
pub(super) struct Declarer {
    jobs: SyncSender<Job>,
    /// Removed hops that found no room in the queue.
    leaving: Vec<Slot>,
}

impl Declarer {
    pub(super) fn start(link: &str, listening: Listening) -> std::io::Result<Self> {
        let (jobs, inbox) = sync_channel(JOBS_MAX);
        let named = std::thread::Builder::new().name(format!("paceline-{link}-declare"));
        named.spawn(move || listening.work(&inbox))?;
        Ok(Self { jobs, leaving: Vec::new() })
    }

    /// Queues the declaration of a hop. Never blocks.
    pub(super) fn declare(&mut self, node: NodeId, express: bool, slot: Slot) {
        self.retry();
        if self.jobs.try_send(Job::Declare { node, express, slot }).is_err() {
            tracing::debug!(
                "the queue is full, so the hop to node {node} is not declared; its frames carry the full key"
            );
        }
    }

    /// Queues the undeclaration of a hop. Never blocks.
    pub(super) fn forget(&mut self, slot: Slot) {
        self.leaving.push(slot);
        self.retry();
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
    fn work(self, inbox: &Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            match job {
                Job::Declare { node, express, slot } => match self.declare(node, express) {
                    Ok(declared) => drop(slot.set(declared)),
                    Err(error) => tracing::warn!("cannot declare the hop to node {node}: {error}"),
                },
                Job::Forget(slot) => drop(slot),
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
}
