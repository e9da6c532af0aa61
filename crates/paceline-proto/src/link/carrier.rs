//! What carries a link's frames.

/// What carries a link's frames, and so what a frame that does not arrive means.
///
/// It follows from the transport's endpoints. Two ends need not agree beforehand: a hop on which either
/// end says that frames may be lost is one of datagrams for both.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Carrier {
    /// A stream (TCP, TLS, a unix socket): what arrives does so once and in order.
    #[default]
    Ordered,
    /// Datagrams: frames are lost, overtake each other or come twice, and are mended by us.
    Datagrams,
}
