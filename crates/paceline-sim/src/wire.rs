//! Wires: what lies between two links, one direction each.

use crate::random::Random;
use bytes::Bytes;
use paceline_proto::ids::NodeId;
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::VecDeque;

/// What the layers below add to each frame; as much as the link counts.
const OVERHEAD: u64 = 80;
/// What a beacon takes.
const BEACON_BYTES: u64 = 60;
/// Frames that the layers below hold for a node that does not read; more are lost.
const HELD_MAX: usize = 64;

/// One direction of a wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WireSpec {
    /// What it carries; without one a frame takes no time to leave.
    pub rate: Option<Capacity>,
    /// How long a frame is on its way.
    pub delay: Duration,
    /// How many frames in a thousand are lost.
    pub loss_per_mille: u32,
}

impl Default for WireSpec {
    /// Loopback: no rate, 50 µs, no loss.
    fn default() -> Self {
        Self { rate: None, delay: Duration::from_micros(50), loss_per_mille: 0 }
    }
}

/// What one direction of a wire has carried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WireCounters {
    /// Frames put on it.
    pub frames: u64,
    /// Their bytes, with what the layers below add.
    pub bytes: u64,
    /// Frames that were lost: by chance, by a cut, or behind a node that did not read.
    pub lost: u64,
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
    pub(super) arrives: Instant,
    pub(super) from: NodeId,
    pub(super) item: Item,
}

/// One direction of a wire.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) spec: WireSpec,
    /// The node and link at each end, by their places.
    pub(super) from: (usize, usize),
    pub(super) to: (usize, usize),
    pub(super) cut: bool,
    pub(super) counters: WireCounters,
    /// When each frame was put on it, and its bytes; only if asked for.
    pub(super) log: Option<Vec<(Instant, u64)>>,
    busy_until: Instant,
    held: VecDeque<Carried>,
}

impl Wire {
    pub(super) fn new(spec: WireSpec, from: (usize, usize), to: (usize, usize)) -> Self {
        Self {
            spec,
            from,
            to,
            cut: false,
            counters: WireCounters::default(),
            log: None,
            busy_until: Instant::ZERO,
            held: VecDeque::new(),
        }
    }

    pub(super) fn send(&mut self, now: Instant, from: NodeId, item: Item, chance: &mut Random) {
        let bytes = match &item {
            Item::Beacon => BEACON_BYTES,
            Item::Frame { frame, .. } => frame.len() as u64 + OVERHEAD,
        };
        let counters = &mut self.counters;
        counters.frames += 1;
        counters.bytes += bytes;
        if let Some(log) = &mut self.log {
            log.push((now, bytes));
        }
        let start = self.busy_until.max(now);
        counters.queued_max = counters.queued_max.max(start.since(now));
        self.busy_until =
            start + self.spec.rate.map_or(Duration::ZERO, |rate| rate.time_for(bytes));
        let gone = chance.chance(self.spec.loss_per_mille);
        if gone || self.cut || self.held.len() >= HELD_MAX {
            counters.lost += 1;
            return;
        }
        let arrives = self.busy_until + self.spec.delay;
        self.held.push_back(Carried { arrives, from, item });
        counters.held_max = counters.held_max.max(self.held.len());
    }

    /// Whatever is on its way is lost.
    pub(super) fn clear(&mut self) {
        self.counters.lost += self.held.len() as u64;
        self.held.clear();
    }

    pub(super) fn arrives_at(&self) -> Instant {
        self.held.front().map_or(Instant::FAR, |carried| carried.arrives)
    }

    /// What has arrived at `now`, one at a time.
    pub(super) fn receive(&mut self, now: Instant) -> Option<Carried> {
        if self.arrives_at() > now {
            return None;
        }
        self.held.pop_front()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }
}
