//! The transport that carries a link's frames.

/// The longest frame over TCP and TLS. Zenoh 1.10 cuts the batches of such a link to the largest multiple of half the
/// segment size below 65,495 bytes, so a batch holds at least 32,747. A longer frame could take two.
const STREAM_BYTES_MAX: u64 = 32_000;
/// The longest frame over a unix socket, whose batches hold 65,535 bytes.
const LOCAL_BYTES_MAX: u64 = 65_000;
/// A frame that may be lost is one packet of the network: of a frame cut in two, the loss of either part loses it.
const DATAGRAM_BYTES_MAX: u64 = 1_350;

/// The transport that carries a link's frames. It decides how long a frame may be, and what a missing frame means.
///
/// It follows from the endpoints of the link. The two ends need not agree beforehand: a hop on which either
/// end reports that frames may be lost is one of datagrams for both.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Carrier {
    /// TCP or TLS: a frame that arrives does so once and in order.
    #[default]
    Ordered,
    /// A unix socket of this host: ordered too, with longer frames.
    Local,
    /// Datagrams: frames are lost, overtake each other or arrive twice; Paceline repairs that itself.
    Datagrams,
}

impl Carrier {
    /// Returns `true` if every frame arrives once and in order while the connection is up.
    #[must_use]
    pub const fn is_ordered(self) -> bool {
        matches!(self, Self::Ordered | Self::Local)
    }

    /// The longest frame, in bytes. With every header below ours it fits one batch of the transport.
    pub(super) const fn frame_bytes_max(self) -> u64 {
        match self {
            Self::Ordered => STREAM_BYTES_MAX,
            Self::Local => LOCAL_BYTES_MAX,
            Self::Datagrams => DATAGRAM_BYTES_MAX,
        }
    }
}
