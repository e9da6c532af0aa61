//! Packets that have arrived and wait to be applied.

use crate::shares::Shares;

/// Packets that wait to be applied, of which each node has a share.
///
/// ```
/// use paceline_objects::inbox::Inbox;
///
/// let mut inbox = Inbox::default();
/// let accepted = (0..20_000).filter(|_| inbox.push(1, 100, "flood")).count();
/// assert_eq!(accepted, 14_336);
/// assert!(inbox.push(2, 100, "another node"));
/// assert_eq!((inbox.take().len(), inbox.take_dropped()), (14_337, 5_664));
/// ```
#[derive(Debug)]
pub struct Inbox<T> {
    packets: Vec<T>,
    count: Shares,
    bytes: Shares,
    dropped: u64,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        let (count, bytes) = (Shares::new(Self::PACKETS_MAX), Shares::new(Self::BYTES_MAX));
        Self { packets: Vec::new(), count, bytes, dropped: 0 }
    }
}

impl<T> Inbox<T> {
    /// The greatest number of packets.
    pub const PACKETS_MAX: usize = 16_384;
    /// The greatest number of bytes of all packets.
    pub const BYTES_MAX: usize = 32 << 20;
    /// The greatest number of bytes of a packet: the largest description.
    pub const PACKET_BYTES_MAX: usize = 1 << 20;

    /// Adds a packet of a node, and returns whether there was room. Others are counted.
    pub fn push(&mut self, node: u64, bytes: usize, packet: T) -> bool {
        let fits = bytes <= Self::PACKET_BYTES_MAX && self.count.has_room(node);
        let room = fits && self.bytes.take(node, bytes) && self.count.take(node, 1);
        if room {
            self.packets.push(packet);
        } else {
            self.dropped += 1;
        }
        room
    }

    /// Returns whether no packet waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Takes all packets, in the order of their arrival.
    pub fn take(&mut self) -> Vec<T> {
        let dropped = self.dropped;
        let Self { packets, .. } = std::mem::take(self);
        self.dropped = dropped;
        packets
    }

    /// Takes the number of packets without room since the last call.
    pub const fn take_dropped(&mut self) -> u64 {
        let dropped = self.dropped;
        self.dropped = 0;
        dropped
    }
}
