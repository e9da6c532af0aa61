//! What a bad network does to packets: rate and queue, delay, jitter, loss, order, blackout.
//!
//! An [`Emulator`] is one direction of such a network, and a value as everything here: packets and
//! `now` go in, packets come out when they have arrived, and nothing is opened or slept on. The same
//! seed loses the same packets. The wires of a [`World`](crate::World) and `paceline impair`, which
//! does it to the packets of real programs, are made of it.

mod emulator;
mod line;
mod loss;

pub use emulator::{Counters, Dropped, Emulator};
pub use loss::{Loss, PPM_MAX};

use paceline_sched::{Capacity, Duration};

/// What one direction of a network does to packets.
///
/// In this order: a packet waits in the queue for those before it and leaves at the rate, is lost or
/// doubled, and is on its way for the delay and its share of the jitter, or longer if it is held back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Impairment {
    /// What leaves in a second; without one a packet takes no time to leave.
    pub rate: Option<Capacity>,
    /// Bytes that may wait for the rate, the packet that is leaving among them; what comes on top
    /// is dropped. A packet that finds nobody waiting is always taken.
    pub queue_bytes: u64,
    /// Bytes that pass at once before the rate counts, as of a shaper with a token bucket. With 0 a packet
    /// takes its time to leave even if nobody waits, as on a real line.
    pub burst_bytes: u64,
    /// How long every packet is on its way.
    pub delay: Duration,
    /// Up to how much longer, evenly distributed. Nobody overtakes by jitter.
    pub jitter: Duration,
    /// How packets are lost.
    pub loss: Loss,
    /// How many packets in a million are held back, so that those behind them overtake.
    pub reorder_ppm: u32,
    /// How much longer than the others one that is held back is on its way.
    pub reorder_by: Duration,
    /// How many packets in a million arrive twice.
    pub duplicate_ppm: u32,
    /// Nothing arrives of what is sent while this is so.
    pub blackout: bool,
}

impl Impairment {
    /// A network that does nothing to packets. Its queue is of 64 KiB, for when it gets a rate.
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

    /// True if every packet that the queue takes arrives, once and in order.
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

/// What travels over a network, and so what a loss is.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WireKind {
    /// Datagrams: what is lost is lost, what is held back is overtaken.
    #[default]
    Datagrams,
    /// One connection of a reliable transport, such as TCP: everything arrives once and in order.
    ///
    /// What is lost comes later by a retransmission timeout, which is the time there and back and
    /// [`MIN_RTO`], twice that if it is lost again, and so on; all that follows waits for it. What is
    /// held back makes those behind it wait. A blackout ends a timeout after it is over. The queue has
    /// no bound of its own: the sender keeps what does not fit.
    Reliable,
}

/// The least that a sender waits beyond a round trip before it sends again; as Linux has it.
pub const MIN_RTO: Duration = Duration::from_millis(200);
