//! Wires: what lies between two links, one direction each.

use crate::impair::{Emulator, Impairment, WireKind};
use bytes::Bytes;
use paceline_proto::ids::NodeId;
use paceline_proto::link::Carrier;
use paceline_sched::{Capacity, Duration, Instant};

/// What the layers below add to each frame: Zenoh, TCP, IP and Ethernet …
const OVERHEAD: u64 = 80;
/// … and Zenoh (30 bytes), UDP, IP and Ethernet on links over UDP. Both are less than links count. Measured by
/// `paceline bench examples/scenarios/steering-loss.toml`.
const DATAGRAM_OVERHEAD: u64 = 72;
/// What of a frame fits into one packet of Ethernet, and what each further packet costs.
const PACKET_BYTES: u64 = 1_448;
const PACKET_OVERHEAD: u64 = 66;
/// What a frame on a reliable wire costs besides: the share of TCP's own acknowledgements that go its
/// way. Measured by `paceline bench examples/scenarios/thin-link.toml`.
const ACKNOWLEDGEMENTS: u64 = 3;
/// An acknowledgement of TCP with nothing else in it; the other end sends one for every two full packets.
const ACKNOWLEDGEMENT_ALONE: u64 = 66;
/// What a beacon takes.
const BEACON_BYTES: u64 = 60;
/// Frames that the layers below hold for a node that does not read; more are lost.
const HELD_MAX: usize = 64;

/// One direction of a wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WireSpec {
    /// What travels on it, and so what becomes of a frame that is lost.
    pub kind: WireKind,
    /// What it does to frames.
    pub impairment: Impairment,
}

impl WireSpec {
    /// Loopback that carries at most `rate`.
    #[must_use]
    pub const fn limited(rate: Option<Capacity>) -> Self {
        let delay = Duration::from_micros(50);
        let impairment = Impairment { rate, delay, ..Impairment::NONE };
        Self { kind: WireKind::Datagrams, impairment }
    }

    /// A wire on which frames that are lost come later.
    #[must_use]
    pub const fn reliable(impairment: Impairment) -> Self {
        Self { kind: WireKind::Reliable, impairment }
    }

    /// A wire on which frames that are lost are lost.
    #[must_use]
    pub const fn datagrams(impairment: Impairment) -> Self {
        Self { kind: WireKind::Datagrams, impairment }
    }

    /// True if frames that the queue takes all arrive, once and in order.
    pub(super) fn keeps_all(&self) -> bool {
        self.kind == WireKind::Reliable || self.impairment.keeps_all()
    }
}

impl Default for WireSpec {
    /// Loopback: no rate, 50 µs, no loss.
    fn default() -> Self {
        Self::limited(None)
    }
}

/// What one direction of a wire has carried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WireCounters {
    /// Frames put on it.
    pub frames: u64,
    /// Their bytes, with what the layers below add.
    pub bytes: u64,
    /// Frames that were lost: by chance, in a full queue, by a cut, or behind a node that did not
    /// read.
    pub lost: u64,
    /// Frames that arrived after one that was sent later.
    pub reordered: u64,
    /// Frames that were doubled.
    pub duplicated: u64,
    /// Times that a reliable wire had to send again.
    pub retransmitted: u64,
    /// The most frames that were on it at once.
    pub held_max: usize,
    /// The longest that a frame waited for those before it.
    pub queued_max: Duration,
}

/// What travels.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// The transport's "I am here".
    Beacon,
    /// A frame of a link, for one incarnation of the node at the other end.
    Frame { to: NodeId, frame: Bytes },
}

/// Something on its way.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) from: NodeId,
    pub(super) item: Item,
}

/// One direction of a wire.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) kind: WireKind,
    /// What carries the frames of the link that sends on it.
    carrier: Carrier,
    /// The node and link at each end, by their places.
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    pub(super) cut: bool,
    /// Frames that arrived where nobody is, or not the one that they were for.
    pub(super) unheard: u64,
    /// When each frame was put on it, and its bytes; only if asked for.
    pub(super) log: Option<Vec<(Instant, u64)>>,
    /// Bytes of acknowledgements that went this way alone.
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
            carrier,
            from,
            to,
            cut: false,
            unheard: 0,
            log: None,
            acknowledged: 0,
            emulator: Emulator::new(spec.kind, spec.impairment, HELD_MAX, seed),
        }
    }

    pub(super) fn send(&mut self, now: Instant, from: NodeId, item: Item) {
        let bytes = match &item {
            Item::Beacon => BEACON_BYTES,
            Item::Frame { frame, .. } => on_wire(self.kind, self.carrier, frame.len() as u64),
        };
        if let Some(log) = &mut self.log {
            log.push((now, bytes));
        }
        self.emulator.handle(now, bytes, Carried { from, item });
        if self.cut {
            self.clear();
        }
    }

    /// Frames that went the other way are acknowledged on this one: a long one at once, for short ones
    /// there is a frame to ride on soon.
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
    }

    pub(super) const fn spec(&self) -> WireSpec {
        WireSpec { kind: self.kind, impairment: self.impairment() }
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
            held_max: counters.held_max,
            queued_max: counters.waited_max,
        }
    }

    /// Whatever is on its way is lost.
    pub(super) fn clear(&mut self) {
        self.emulator.clear();
    }

    pub(super) fn arrives_at(&self) -> Instant {
        self.emulator.next_at()
    }

    /// What has arrived at `now`, one at a time.
    pub(super) fn receive(&mut self, now: Instant) -> Option<Carried> {
        self.emulator.poll(now)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.emulator.on_their_way() == 0
    }
}

/// The bytes that a frame of `bytes` takes on a wire.
const fn on_wire(kind: WireKind, carrier: Carrier, bytes: u64) -> u64 {
    match (kind, carrier) {
        (WireKind::Datagrams, Carrier::Datagrams) => bytes + DATAGRAM_OVERHEAD,
        (WireKind::Datagrams, Carrier::Ordered | Carrier::Local) => bytes + OVERHEAD,
        (WireKind::Reliable, _) => {
            bytes + OVERHEAD + ACKNOWLEDGEMENTS + bytes / PACKET_BYTES * PACKET_OVERHEAD
        }
    }
}
