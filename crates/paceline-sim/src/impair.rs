//! Network impairments: rate and queue, delay, jitter, loss, reordering and blackout.
//!
//! An [`Emulator`] is one direction of an impaired network. Like the rest of this crate it is a pure value.
//! It takes packets and `now`, returns packets that have arrived, and neither opens sockets nor sleeps. The
//! same seed loses the same packets. The wires of a [`World`](crate::World) use it, and so does `paceline
//! impair`, which impairs the packets of real programs.

mod emulator;
mod line;
mod loss;

pub use emulator::{Counters, Dropped, Emulator};
pub use loss::{Loss, PPM_MAX};

use paceline_sched::{Capacity, Duration};

/// The impairment of one direction of a network.
///
/// A packet passes these stages in order. It waits in the queue for earlier packets and leaves at the rate.
/// It may be lost or duplicated. It then takes the delay plus a random part of the jitter, and possibly an
/// extra delay for reordering.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Impairment {
    /// The transmission rate; `None` means that transmission takes no time.
    pub rate: Option<Capacity>,
    /// Bytes that may wait for the rate, including the packet in transmission. A packet that exceeds them is
    /// dropped, unless the queue is empty.
    pub queue_bytes: u64,
    /// Bytes that pass at once before the rate applies, as with a token-bucket shaper. With 0, even a packet
    /// that finds an empty queue takes its transmission time, as on a real line.
    pub burst_bytes: u64,
    /// The propagation delay of every packet.
    pub delay: Duration,
    /// The upper bound of a uniformly distributed extra delay. Jitter does not reorder packets.
    pub jitter: Duration,
    /// The loss model.
    pub loss: Loss,
    /// Packets per million that get the extra delay `reorder_by`, so that later packets overtake them.
    pub reorder_ppm: u32,
    /// The extra delay of a reordered packet.
    pub reorder_by: Duration,
    /// Packets per million that arrive twice.
    pub duplicate_ppm: u32,
    /// Drops every packet sent while it is set.
    pub blackout: bool,
}

impl Impairment {
    /// A network without impairment. Its queue of 64 KiB applies once a rate is set.
    pub const NONE: Self = Self {
        rate: None,
        queue_bytes: 65_536,
        burst_bytes: 0,
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        loss: Loss::None,
        reorder_ppm: 0,
        reorder_by: Duration::from_millis(10),
        duplicate_ppm: 0,
        blackout: false,
    };

    /// Returns true if every packet that the queue accepts arrives, once and in order.
    #[must_use]
    pub const fn keeps_all(&self) -> bool {
        let whole = matches!(self.loss, Loss::None) && !self.blackout;
        whole && self.reorder_ppm == 0 && self.duplicate_ppm == 0
    }
}

impl Default for Impairment {
    fn default() -> Self {
        Self::NONE
    }
}

/// The kind of transport, which determines the effect of a loss.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WireKind {
    /// Datagrams: lost packets stay lost, and reordered packets are overtaken.
    #[default]
    Datagrams,
    /// One connection of a reliable transport, such as TCP: everything arrives once and in order.
    ///
    /// A lost packet arrives later by a retransmission timeout, which is the round-trip time plus
    /// [`MIN_RTO`]. The timeout doubles with each further loss, and all later packets wait. A reordered
    /// packet delays those behind it. A blackout ends one timeout after it is switched off. The queue is
    /// unbounded: the sender keeps the excess.
    Reliable,
}

/// The minimum by which the retransmission timeout exceeds the round-trip time, as in Linux.
pub const MIN_RTO: Duration = Duration::from_millis(200);
