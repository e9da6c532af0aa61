//! The engine's side of a link: commands to the egress thread, and snapshots from it.

use super::port::{Announcements, RingEnd};
use super::transport::{GroupView, Transport};
use crate::status::NeighbourStatus;
use bytes::Bytes;
use paceline_proto::capacity::CapacityEstimate;
use paceline_proto::link::{ClassTree, ClassView, Hop, Passage, RepairCounters, StreamSpec};
use paceline_proto::{Form, NodeId, ProbeInterval, PublisherId, StreamAges, StreamCounters};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// A command of the egress thread.
pub(crate) enum LinkCommand {
    /// Sends a control message to a hop.
    Control(NodeId, Bytes),
    /// Opens a stream with the consumer of its ring.
    Open(StreamIndex, StreamSpec, RingEnd),
    /// Changes the contract of a stream.
    Update(StreamIndex, StreamSpec),
    /// Requests a report once a stream has no samples queued or in flight.
    Watch(StreamIndex),
    /// Closes a replaced stream once it has sent its queue, and requests a report.
    Retire(StreamIndex),
    /// Closes a stream once it has sent its queue under its contract.
    HandOver(StreamIndex),
    /// Closes a stream at once.
    Close(StreamIndex),
    /// Changes the capacity, only on a link that has one.
    Capacity(Capacity),
    /// Changes or removes the classes.
    Classes(Option<Arc<ClassTree>>),
    /// Replaces the transport because this process has become the host's node.
    Reopen(Box<Transport>),
    /// Accepts a process at the end of a socket pair.
    Attach(UnixStream),
    /// Traces the samples of a publisher for a while.
    Trace(PublisherId),
    /// Stops the thread because the node closes.
    Stop,
}

/// The trace of a stream.
#[derive(Clone, Debug)]
pub(crate) struct TracedStream {
    pub(crate) publisher: PublisherId,
    pub(crate) hop: NodeId,
    pub(crate) form: Form,
    pub(crate) passages: Vec<Passage>,
}

/// The counters of a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamSnapshot {
    pub(crate) spec: StreamSpec,
    pub(crate) counters: StreamCounters,
    pub(crate) ages: StreamAges,
    /// The time of its last violation.
    pub(crate) broken: Option<Instant>,
}

/// The state of a hop that is up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HopSnapshot {
    pub(crate) node: NodeId,
    pub(crate) probes: ProbeInterval,
    pub(crate) wire_bytes: u64,
}

impl HopSnapshot {
    pub(crate) fn new(node: NodeId, hop: &Hop) -> Self {
        Self { node, probes: hop.probe_interval(), wire_bytes: hop.wire_bytes() }
    }

    /// Returns its part of the status.
    pub(crate) fn status(&self) -> NeighbourStatus {
        let Self { node, probes, wire_bytes } = *self;
        let down_after = probes.silence_max().into();
        NeighbourStatus { id: node, wire_bytes, use_bits_per_s: None, down_after, memory_bytes: 0 }
    }
}

/// The counters of a link.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkSnapshot {
    /// The time of the snapshot.
    pub(crate) at: Instant,
    /// The hops that are up.
    pub(crate) hops: Vec<HopSnapshot>,
    pub(crate) least_round_trip: Option<Duration>,
    /// The largest last round trip of the hops that are up, and the largest jitter.
    pub(crate) present: Option<(Duration, Duration)>,
    /// Frames that a carrier without order lost.
    pub(crate) lost: u64,
    pub(crate) frames: u64,
    pub(crate) groups: Vec<GroupView>,
    /// The neighbours that receive multicast groups.
    pub(crate) able: BTreeSet<NodeId>,
    pub(crate) frames_lost: u64,
    pub(crate) wire_bytes: u64,
    /// The measured capacity.
    pub(crate) estimate: Option<CapacityEstimate>,
    pub(crate) greatest_depth: u64,
    pub(crate) streams: Vec<StreamSnapshot>,
    pub(crate) traced: Vec<TracedStream>,
    pub(crate) closed: StreamCounters,
    pub(crate) classes: Vec<ClassView>,
    pub(crate) repairs: RepairCounters,
}

impl LinkSnapshot {
    /// Returns the multicast group that carries a stream to its hop.
    pub(crate) fn group_of(&self, spec: &StreamSpec) -> Option<SocketAddrV4> {
        let its = |group: &&GroupView| {
            group.stream == (spec.publisher, spec.form) && group.members.contains(&spec.hop)
        };
        let group = self.groups.iter().find(its).filter(|group| group.members.len() > 1);
        group.map(|group| group.address)
    }
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
    /// Sends a command to the egress thread and wakes it.
    pub(crate) fn send(&self, command: LinkCommand) {
        if self.commands.send(command).is_ok() {
            self.has_commands.store(true, Ordering::Release);
            self.announcements.waker.wake();
        }
    }
}
