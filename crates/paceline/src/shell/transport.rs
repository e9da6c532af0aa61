//! The transport of one link: Zenoh between the processes of a host, connections between hosts.

mod over_connections;
mod over_zenoh;

use crate::config::LinkConfig;
use crate::identity::Introduction;
use bytes::Bytes;
use over_connections::OverConnections;
use over_zenoh::OverZenoh;
pub use over_zenoh::open_session;
use paceline_proto::NodeId;
use paceline_proto::wire::frame::FrameBuf;
use std::sync::Arc;
use std::time::Duration;

/// The timeout of connecting or accepting a connection.
///
/// TLS and Zenoh need three round trips. This is enough for an RTT of 0.8 s: a satellite's 0.6 s and a
/// slow link.
pub(crate) const OPEN_MAX: Duration = Duration::from_millis(2_500);

/// The result of sending a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sent {
    /// The transport accepted the frame.
    Taken,
    /// The hop is closed.
    Down,
}

/// The receiver of frames and beacons, called on the transport's threads.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// Handles a frame of a neighbour.
    fn frame(&self, from: NodeId, frame: Bytes);
    /// Handles a beacon of a node.
    fn found(&self, node: NodeId);
}

/// An error of opening a transport.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// The open transport of one link.
pub(crate) enum Transport {
    Zenoh(Box<OverZenoh>),
    Connections(OverConnections),
}

impl Transport {
    /// Opens the link and listens for frames and beacons.
    pub(crate) fn open(
        me: Introduction,
        link: &LinkConfig,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Self, Error> {
        if link.is_host() {
            Self::open_host(me.id(), link, inbound)
        } else {
            OverConnections::open(me, link, inbound).map(Self::Connections)
        }
    }

    /// Opens a link between the processes of a host.
    pub(crate) fn open_host(
        me: NodeId,
        link: &LinkConfig,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Self, Error> {
        OverZenoh::open(me, link, inbound).map(|it| Self::Zenoh(Box::new(it)))
    }

    /// Returns the name in a peer's certificate; `None` if this transport does not identify peers.
    pub(crate) fn peer_name(&self, node: NodeId) -> Option<String> {
        match self {
            Self::Zenoh(_) => None,
            Self::Connections(it) => it.peer_name(node),
        }
    }

    /// Sends a beacon to all nodes at the other end.
    pub(crate) fn greet(&self) {
        match self {
            Self::Zenoh(it) => it.greet(),
            Self::Connections(it) => it.find(),
        }
    }

    /// Sends a frame to a node that is not a neighbour.
    pub(crate) fn greet_stranger(&self, node: NodeId, frame: Vec<u8>) {
        match self {
            Self::Zenoh(it) => it.greet_stranger(node, frame),
            Self::Connections(it) => drop(it.send(node, &frame)),
        }
    }

    /// Adds a neighbour, so that frames can be sent to it. Never blocks.
    pub(crate) fn add_hop(&mut self, node: NodeId) -> Result<(), Error> {
        match self {
            Self::Zenoh(it) => it.add_hop(node),
            Self::Connections(_) => Ok(()),
        }
    }

    /// Starts to declare a neighbour's key, which makes its frames shorter. `express` frames are
    /// never delayed for batching. Never blocks.
    pub(crate) fn declare_hop(&mut self, node: NodeId, express: bool) {
        match self {
            Self::Zenoh(it) => it.declare_hop(node, express),
            Self::Connections(_) => {}
        }
    }

    /// Removes a neighbour. Never blocks.
    pub(crate) fn remove_hop(&mut self, node: NodeId) {
        match self {
            Self::Zenoh(it) => it.remove_hop(node),
            Self::Connections(_) => {}
        }
    }

    /// Sends a frame. Never blocks.
    ///
    /// The caller's window keeps the data in flight below the capacity of the transport's queue, so
    /// there is room whenever the hop is alive.
    pub(crate) fn try_send(&self, node: NodeId, frame: &mut FrameBuf) -> Sent {
        match self {
            Self::Zenoh(it) => it.try_send(node, frame),
            Self::Connections(it) => it.try_send(node, frame),
        }
    }

    /// Closes the transport on another thread: Zenoh waits for the end of a connection attempt, and
    /// nothing is left to send.
    pub(crate) fn close_aside(self) {
        let aside = std::thread::Builder::new().name("paceline-close".to_owned());
        if let Err(error) = aside.spawn(move || self.close()) {
            crate::warn_limited!("cannot start a thread to close a link: {error}");
        }
    }

    /// Closes the transport. Blocks for as long as Zenoh does.
    pub(crate) fn close(self) {
        match self {
            Self::Zenoh(it) => it.close(),
            Self::Connections(it) => it.close(),
        }
    }
}
