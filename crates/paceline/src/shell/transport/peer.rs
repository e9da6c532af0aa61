//! A connected peer.

use super::Sent;
use super::datagrams::Datagrams;
use super::liveness::Liveness;
use super::origin::Origin;
use super::outbox::Outbox;
use super::proof::Proof;
use paceline_proto::ProbeInterval;
use paceline_proto::rights::PeerName;
use paceline_proto::wire::frame::{FrameBuf, Piece};
use quinn::Connection;
use std::time::Duration;
use tokio::sync::Notify;

/// A connected peer, and the way of frames to it.
pub(super) struct Peer {
    /// The address and the protocol, for messages.
    pub(super) from: String,
    pub(super) proof: Proof,
    /// The origin of an incoming connection; `None` if this end has connected.
    pub(super) origin: Option<Origin>,
    pub(super) outbox: Outbox,
    pub(super) liveness: Liveness,
    /// The time that the introductions took, if this end has connected.
    pub(super) met_within: Duration,
    /// The frames for a connection that carries them in datagrams. Without it they go into the stream.
    pub(super) datagrams: Option<Datagrams>,
    /// Notified when the task of the connection shall end it.
    pub(super) ends: Notify,
}

impl Peer {
    /// Returns the peer at the other end of a new connection. `probes` is the interval of this end's link, and `met_within` is
    /// at least the round trip, or zero.
    pub(super) fn new(
        from: String,
        (proof, origin): (Proof, Option<Origin>),
        datagrams: Option<Connection>,
        probes: ProbeInterval,
        met_within: Duration,
    ) -> Self {
        let (outbox, ends) = (Outbox::default(), Notify::new());
        let datagrams = datagrams.map(Datagrams::new);
        let probes = probes.max(ProbeInterval::at_least(met_within.into()));
        let liveness = Liveness::new(probes, origin.is_none());
        Self { from, proof, origin, outbox, liveness, met_within, datagrams, ends }
    }

    /// Returns the name that it has proven.
    pub(super) fn name(&self) -> Option<PeerName> {
        self.proof.name()
    }

    /// Sends a frame. Never blocks.
    pub(super) fn send(&self, frame: &FrameBuf) -> Sent {
        let pieces = frame.pieces().map(|piece| match piece {
            Piece::Copied(bytes) => bytes,
            Piece::Shared(bytes) => &bytes[..],
        });
        self.send_pieces(frame.len(), pieces)
    }

    /// Sends a frame of `bytes` in these pieces. Never blocks.
    pub(super) fn send_pieces<'p>(
        &self,
        bytes: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) -> Sent {
        let Some(datagrams) = &self.datagrams else { return self.outbox.put(bytes, pieces) };
        self.liveness.note_sent();
        datagrams.put(bytes, pieces)
    }

    /// Ends the connection behind the frames that wait, and sends the reason to the other end.
    pub(super) fn close(&self, reason: &str) {
        self.outbox.close(reason);
        self.ends.notify_one();
    }
}
