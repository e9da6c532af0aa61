//! The wires between links, one value per direction.

use crate::impair::{Emulator, Impairment, WireKind};
use bytes::Bytes;
use paceline_proto::Carrier;
use paceline_proto::ids::NodeId;
use paceline_sched::{Capacity, Duration, Instant};

/// Bytes that the layers below add to each frame: TCP, IP and Ethernet, and a margin.
const OVERHEAD: u64 = 80;
/// The same in datagrams: QUIC without encryption (30 bytes), UDP, IP and Ethernet. Both values are below the overhead
/// that links assume. Measured by `paceline-lab bench examples/scenarios/steering-loss.toml`.
const DATAGRAM_OVERHEAD: u64 = 72;
/// Frame bytes in one Ethernet packet, and the overhead of each further packet.
const PACKET_BYTES: u64 = 1_448;
const PACKET_OVERHEAD: u64 = 66;
/// The share of TCP's acknowledgements in the same direction per frame on a reliable wire. Measured by
/// `paceline-lab bench examples/scenarios/thin-link.toml`.
const ACKNOWLEDGEMENTS: u64 = 3;
/// The size of a pure TCP acknowledgement. The receiver sends one for every two full packets.
const ACKNOWLEDGEMENT_ALONE: u64 = 66;
/// The size of a beacon.
const BEACON_BYTES: u64 = 60;
/// Frames that the layers below buffer for a node that does not read, beyond those on a long path; further frames are lost.
const BUFFERED_MAX: usize = 64;
/// The size on the wire of short frames.
const SHORT_BYTES: u64 = 200;

/// Returns the most frames under way on a path.
fn in_flight_max(path: &Impairment) -> usize {
    let longest = path.delay.saturating_add(path.jitter);
    let bytes = path.rate.map_or(0, |rate| rate.bytes_in(longest));
    BUFFERED_MAX.saturating_add(usize::try_from(bytes / SHORT_BYTES).unwrap_or(usize::MAX))
}

/// The properties of one direction of a wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WireSpec {
    /// The kind of transport, which determines the effect of a loss.
    pub kind: WireKind,
    /// The impairment of frames.
    pub impairment: Impairment,
    /// Bytes per frame in addition to the headers of the kind, such as those of encryption.
    pub seal_bytes: u64,
}

impl WireSpec {
    /// Creates a loopback wire with a capacity of at most `rate`.
    #[must_use]
    pub const fn limited(rate: Option<Capacity>) -> Self {
        let delay = Duration::from_micros(50);
        let impairment = Impairment { rate, delay, ..Impairment::NONE };
        Self { kind: WireKind::Datagrams, impairment, seal_bytes: 0 }
    }

    /// Creates a wire on which lost frames arrive later.
    #[must_use]
    pub const fn reliable(impairment: Impairment) -> Self {
        Self { kind: WireKind::Reliable, impairment, seal_bytes: 0 }
    }

    /// Creates a wire on which lost frames stay lost.
    #[must_use]
    pub const fn datagrams(impairment: Impairment) -> Self {
        Self { kind: WireKind::Datagrams, impairment, seal_bytes: 0 }
    }

    /// Returns true if all frames that the queue accepts arrive, once and in order.
    pub(super) fn keeps_all(&self) -> bool {
        self.kind == WireKind::Reliable || self.impairment.keeps_all()
    }
}

impl Default for WireSpec {
    /// Returns a loopback wire: no rate limit, 50 µs of delay, no loss.
    fn default() -> Self {
        Self::limited(None)
    }
}

/// The counters of one direction of a wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WireCounters {
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent, including the overhead of the layers below.
    pub bytes: u64,
    /// Frames lost at random, in a full queue, by a cut, or because the receiving node did not read.
    pub lost: u64,
    /// Frames that arrived after a frame sent later.
    pub reordered: u64,
    /// Frames that were duplicated.
    pub duplicated: u64,
    /// Retransmissions of a reliable wire.
    pub retransmitted: u64,
    /// The most frames in flight at a time.
    pub in_flight_max: usize,
    /// The longest time that a frame waited for earlier frames.
    pub queued_max: Duration,
}

/// The content of a transmission.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// The transport's announcement of its node.
    Beacon,
    /// A frame of a link, addressed to one incarnation of the receiving node.
    Frame { to: NodeId, frame: Bytes },
}

/// A transmission in flight.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) from: NodeId,
    pub(super) item: Item,
}

/// One direction of a wire.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) kind: WireKind,
    seal_bytes: u64,
    /// The carrier of the sending link.
    carrier: Carrier,
    /// The node and link at each end, by index.
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    pub(super) cut: bool,
    /// Frames that arrived at a node that was down or was another incarnation.
    pub(super) unheard: u64,
    /// The send time and size of each frame; `None` unless requested.
    pub(super) log: Option<Vec<(Instant, u64)>>,
    /// Bytes of pure acknowledgements sent in this direction.
    acknowledged: u64,
    emulator: Emulator<Carried>,
}

impl Wire {
    pub(super) fn new(
        spec: WireSpec,
        carrier: Carrier,
        from: (usize, usize),
        to: (usize, usize),
        seed: u64,
    ) -> Self {
        Self {
            kind: spec.kind,
            seal_bytes: spec.seal_bytes,
            carrier,
            from,
            to,
            cut: false,
            unheard: 0,
            log: None,
            acknowledged: 0,
            emulator: Emulator::new(
                spec.kind,
                spec.impairment,
                in_flight_max(&spec.impairment),
                seed,
            ),
        }
    }

    pub(super) fn send(&mut self, now: Instant, from: NodeId, item: Item) {
        let bytes = match &item {
            Item::Beacon => BEACON_BYTES,
            Item::Frame { frame, .. } => {
                on_wire(self.kind, self.carrier, frame.len() as u64) + self.seal_bytes
            }
        };
        if let Some(log) = &mut self.log {
            log.push((now, bytes));
        }
        self.emulator.handle(now, bytes, Carried { from, item });
        if self.cut {
            self.clear();
        }
    }

    /// Counts the acknowledgement of a frame in the opposite direction. A long frame is acknowledged at once;
    /// for a short one the acknowledgement rides on a later frame.
    pub(super) const fn acknowledge(&mut self, frame_bytes: u64) {
        if matches!(self.kind, WireKind::Reliable) {
            self.acknowledged += (frame_bytes / PACKET_BYTES).div_ceil(2) * ACKNOWLEDGEMENT_ALONE;
        }
    }

    pub(super) const fn impairment(&self) -> Impairment {
        self.emulator.impairment()
    }

    pub(super) fn impair(&mut self, now: Instant, impairment: Impairment) {
        self.emulator.set(now, impairment);
        self.emulator.allow(in_flight_max(&impairment));
    }

    pub(super) const fn spec(&self) -> WireSpec {
        WireSpec { kind: self.kind, impairment: self.impairment(), seal_bytes: self.seal_bytes }
    }

    pub(super) const fn counters(&self) -> WireCounters {
        let counters = self.emulator.counters();
        WireCounters {
            frames: counters.packets,
            bytes: counters.bytes + self.acknowledged,
            lost: counters.dropped.total() + self.unheard,
            reordered: counters.reordered,
            duplicated: counters.duplicated,
            retransmitted: counters.retransmitted,
            in_flight_max: counters.in_flight_max,
            queued_max: counters.waited_max,
        }
    }

    /// Drops everything in flight.
    pub(super) fn clear(&mut self) {
        self.emulator.clear();
    }

    pub(super) fn arrives_at(&self) -> Instant {
        self.emulator.next_at()
    }

    /// Returns one transmission that has arrived at `now`.
    pub(super) fn receive(&mut self, now: Instant) -> Option<Carried> {
        self.emulator.poll(now)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.emulator.in_flight() == 0
    }
}

/// Returns the bytes that a frame of `bytes` takes on a wire.
const fn on_wire(kind: WireKind, carrier: Carrier, bytes: u64) -> u64 {
    match (kind, carrier) {
        (WireKind::Datagrams, Carrier::Datagrams) => bytes + DATAGRAM_OVERHEAD,
        (WireKind::Datagrams, Carrier::Ordered | Carrier::Local) => bytes + OVERHEAD,
        (WireKind::Reliable, _) => {
            bytes + OVERHEAD + ACKNOWLEDGEMENTS + bytes / PACKET_BYTES * PACKET_OVERHEAD
        }
    }
}
