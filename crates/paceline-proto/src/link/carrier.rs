//! The transport that carries a link's frames.

/// The maximum frame length over TCP and TLS, in bytes. Zenoh 1.10 limits the batches of such a link to the
/// largest multiple of half the segment size below 65,495 bytes. So a batch has room for at least 32,747. A
/// longer frame could occupy two.
const STREAM_BYTES_MAX: u64 = 32_000;
/// The maximum frame length over a unix socket, in bytes; its batches have room for 65,535.
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
    /// TCP or TLS: every frame arrives once and in order.
    #[default]
    Ordered,
    /// A unix socket of this host: in order, with longer frames.
    Local,
    /// Datagrams: frames may be lost, reordered or duplicated; Paceline handles that itself.
    Datagrams,
}

impl Carrier {
    /// Returns `true` if every frame arrives once and in order while the connection is up.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        matches!(self, Self::Ordered | Self::Local)
    }

    /// Returns the maximum frame length, in bytes. With all lower-layer headers, a frame fits into one batch
    /// of the transport.
    pub(super) const fn frame_bytes_max(self) -> u64 {
        match self {
            Self::Ordered => STREAM_BYTES_MAX,
            Self::Local => LOCAL_BYTES_MAX,
            Self::Datagrams => DATAGRAM_BYTES_MAX,
        }
    }
}
