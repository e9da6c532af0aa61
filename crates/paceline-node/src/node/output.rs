//! The outputs and wake-ups of a node.

use crate::deliver::Silence;
use bytes::Bytes;
use paceline_proto::control::ControlOutput;
use paceline_proto::guard::Flood;
use paceline_proto::plan::SourceKey;
use paceline_proto::reason::StreamCounters;
use paceline_proto::{NodeId, SubscriptionId};
use paceline_sched::Instant;

/// An output of a [`Node`](super::Node).
#[derive(Clone, Debug)]
pub enum NodeOutput {
    /// Send a frame to a neighbour.
    Frame {
        /// The index of the link.
        link: usize,
        /// The neighbour.
        to: NodeId,
        /// The frame, for [`Node::handle_frame`](super::Node::handle_frame) there.
        frame: Bytes,
    },
    /// Control notifies a publisher, a subscription or the operator. Messages and outputs of sources never appear here, because
    /// the node handles them itself.
    Control(ControlOutput),
    /// The commands of a subscription with an age limit have fallen silent, and its safe action has started.
    Silence(SubscriptionId, Silence),
    /// A stream was closed.
    StreamClosed(ClosedStream),
    /// A neighbour is muted: it sends more of this kind than any node needs to. Its traffic of this kind is dropped until a few
    /// seconds after the flood.
    Muted {
        /// The index of the link.
        link: usize,
        /// The neighbour.
        from: NodeId,
        /// The kind of traffic.
        flood: Flood,
    },
    /// All stream indexes of a link are in use, so an output waits for one.
    NoStream {
        /// The index of the link.
        link: usize,
    },
}

/// A stream that a node has closed, with its counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClosedStream {
    /// The index of its link.
    pub link: usize,
    /// The neighbour.
    pub hop: NodeId,
    /// The source of its samples.
    pub source: SourceKey,
    /// The final counters.
    pub counters: StreamCounters,
    /// The samples that were passed to the stream or reported as lost before it, as counted in front of the link.
    pub offered: u64,
}

/// The reason for a wake-up of a [`Node`](super::Node).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum WakeReason {
    /// There was input since the last [`Node::poll_output`](super::Node::poll_output).
    Input,
    /// Control has a timer: a request, a report, or a record that expires.
    Control,
    /// Samples have waited too long for the outputs of their stream.
    Arrivals,
    /// The use of reservations has to be reported ([`Node::set_reports`](super::Node::set_reports)).
    Use,
    /// A subscription has to release samples, or its commands fall silent.
    Delivery(SubscriptionId),
    /// A link may send its next frame, has a timer of a hop, or has waited too long for a missing frame. The index of the link.
    Link(usize),
    /// Nothing is due before the next input.
    Idle,
}

/// The time of the next [`Node::poll_output`](super::Node::poll_output) without input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wakeup {
    /// The instant; [`Instant::ZERO`] for at once and [`Instant::FAR`] for never.
    pub at: Instant,
    /// The reason.
    pub reason: WakeReason,
}

impl Wakeup {
    pub(super) const INPUT: Self = Self { at: Instant::ZERO, reason: WakeReason::Input };
    pub(super) const IDLE: Self = Self { at: Instant::FAR, reason: WakeReason::Idle };

    /// Returns the earlier of two wake-ups.
    pub(super) fn or(self, at: Instant, reason: WakeReason) -> Self {
        if at < self.at { Self { at, reason } } else { self }
    }
}
