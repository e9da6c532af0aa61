//! The engine's side of a link: what it tells the egress thread, and what that shows.

use super::port::{Announcements, RingEnd};
use super::transport::Transport;
use crate::status::SentTo;
use bytes::Bytes;
use paceline_proto::link::{ClassTree, ClassView, MendCounters, Passage, StreamSpec};
use paceline_proto::{Form, NodeId, PublisherId, StreamAges, StreamCounters};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Duration, Instant};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// What the engine tells a link.
pub(crate) enum LinkCommand {
    /// A control message for a hop.
    Control(NodeId, Bytes),
    /// A new stream and the end of its ring.
    Open(StreamIndex, StreamSpec, RingEnd),
    /// A stream has another contract.
    Update(StreamIndex, StreamSpec),
    /// Tell the engine once nothing of a stream waits or is on its way any more.
    Watch(StreamIndex),
    /// Another stream takes this one's place: it is closed once it has sent what waits, and the engine is told.
    Retire(StreamIndex),
    /// A stream carries nothing any more.
    Close(StreamIndex),
    /// The link has another capacity; only for one that has a capacity.
    Capacity(Capacity),
    /// The link has other classes, or none.
    Classes(Option<Arc<ClassTree>>),
    /// The transport was opened anew: this process is the host's node now.
    Reopen(Box<Transport>),
    /// The transport was opened anew, since the path to a neighbour that was lost is there again.
    Redial(Box<Transport>),
    /// The passages of a publisher's samples are to be kept for a while.
    Trace(PublisherId),
    /// The node closes.
    Stop,
}

/// A stream that somebody traces, and its last samples.
#[derive(Clone, Debug)]
pub(crate) struct TracedStream {
    pub(crate) publisher: PublisherId,
    pub(crate) hop: NodeId,
    pub(crate) form: Form,
    pub(crate) passages: Vec<Passage>,
}

/// A stream of a link, and what became of its samples.
#[derive(Clone, Debug)]
pub(crate) struct StreamSnapshot {
    pub(crate) spec: StreamSpec,
    pub(crate) counters: StreamCounters,
    pub(crate) ages: StreamAges,
    /// When one of its windows was last broken.
    pub(crate) broken: Option<Instant>,
}

/// What a link shows of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkSnapshot {
    /// When it was taken.
    pub(crate) at: Instant,
    /// The hops that are up.
    pub(crate) hops: Vec<SentTo>,
    pub(crate) least_round_trip: Option<Duration>,
    pub(crate) frames: u64,
    pub(crate) frames_lost: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) streams: Vec<StreamSnapshot>,
    pub(crate) traced: Vec<TracedStream>,
    pub(crate) closed: StreamCounters,
    pub(crate) classes: Vec<ClassView>,
    pub(crate) mended: MendCounters,
}

/// The engine's side of a link.
#[derive(Clone)]
pub(crate) struct LinkHandle {
    pub(super) commands: Sender<LinkCommand>,
    pub(super) has_commands: Arc<AtomicBool>,
    pub(crate) announcements: Arc<Announcements>,
    pub(crate) snapshot: Arc<Mutex<LinkSnapshot>>,
}

impl LinkHandle {
    /// Tells the link something, and wakes it.
    pub(crate) fn send(&self, command: LinkCommand) {
        if self.commands.send(command).is_ok() {
            self.has_commands.store(true, Ordering::Release);
            self.announcements.waker.wake();
        }
    }
}
