//! The transport that carries a link's frames, and the bytes that a frame occupies on the wire.

use paceline_sched::{Capacity, Duration};

/// The minimum size of a full frame, also on the slowest link.
const FRAME_BYTES_MIN: u64 = 1_200;
/// The time for which a full frame may keep the link busy.
const FRAME_TIME: Duration = Duration::from_millis(2);
/// The overhead per frame below this layer, in bytes: up to 80 for the transport, IP and Ethernet, and a share of
/// TCP's own acknowledgements on this direction. A value that is too low causes a standing queue below the
/// link.
pub(crate) const WIRE_OVERHEAD: u64 = 100;
/// The bytes of a frame that fit into one Ethernet packet.
const PACKET_BYTES: u64 = 1_400;
/// The overhead of each further packet, in bytes.
const PACKET_OVERHEAD: u64 = 80;
/// The maximum frame length in a byte stream, in bytes. Longer frames would save little, and delay acknowledgements.
const STREAM_BYTES_MAX: u64 = 32_000;
/// The maximum frame length over a unix socket, in bytes; a record has room for 65,534.
const LOCAL_BYTES_MAX: u64 = 65_000;
/// The maximum frame length over datagrams, in bytes: one network packet. A frame in two packets would be
/// lost with either of them.
const DATAGRAM_BYTES_MAX: u64 = 1_350;

/// The transport that carries a link's frames. It determines the maximum frame length and the meaning of a
/// missing frame.
///
/// The endpoints of the link determine the carrier. The two ends need not agree beforehand: if either end
/// reports that frames may be lost, both treat the hop as one of datagrams.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Carrier {
    /// A byte stream, TCP, TLS or QUIC: every frame arrives once and in order.
    #[default]
    Ordered,
    /// A unix socket of this host: in order, with longer frames.
    Local,
    /// Datagrams: frames may be lost, reordered or duplicated; Paceline handles that itself.
    Datagrams,
}

impl Carrier {
    /// Returns the maximum frame length on a link of this capacity, in bytes.
    pub(crate) fn frame_bytes(self, capacity: Option<Capacity>) -> u64 {
        let most = self.frame_bytes_max();
        capacity.map_or(most, |capacity| capacity.bytes_in(FRAME_TIME).clamp(FRAME_BYTES_MIN, most))
    }

    /// Returns the longest frame of a link of this capacity in bytes on the wire. A sample may have to wait
    /// for one such frame.
    pub(crate) fn frame_on_wire(self, capacity: Capacity) -> u64 {
        on_wire(self.frame_bytes(Some(capacity)))
    }

    /// Returns the maximum frame length, in bytes.
    pub(crate) const fn frame_bytes_max(self) -> u64 {
        match self {
            Self::Ordered => STREAM_BYTES_MAX,
            Self::Local => LOCAL_BYTES_MAX,
            Self::Datagrams => DATAGRAM_BYTES_MAX,
        }
    }
}

/// Returns the bytes that a frame of `bytes` occupies on the wire.
pub(crate) const fn on_wire(bytes: u64) -> u64 {
    bytes + WIRE_OVERHEAD + bytes / PACKET_BYTES * PACKET_OVERHEAD
}

/// Returns the length of the longest frame that occupies at most `wire` bytes on the wire; 0 if there is
/// none.
pub(crate) const fn off_wire(wire: u64) -> u64 {
    let bytes = wire.saturating_sub(WIRE_OVERHEAD);
    // Counts packets as if the headers were part of the frame, which may overestimate by one.
    bytes.saturating_sub(bytes / PACKET_BYTES * PACKET_OVERHEAD)
}
