//! Limits on data in flight, for live and for background frames.

use super::Hops;
use super::hop::{Hop, WINDOW_FRAMES};
use crate::ids::NodeId;
use crate::link::pacing::{Pacer, Wire};
use paceline_sched::{Duration, Instant};

/// The share of the window for the background on links without a capacity, as the fraction
/// 1/`BACKGROUND_PART`.
const BACKGROUND_PART: u64 = 4;
/// The number of probably lost frames that do not count against the window before the loss is certain, on carriers that may
/// lose frames and on links with several hops, of which one may be silent. Contracted samples have no time to wait for
/// that. Beyond this number, the peer seems unreachable.
const OVERDUE_FRAMES: u64 = 4;
/// The queue below the link that is accepted before the link lets it drain, as the fraction 1/`QUEUED_PART`
/// of a frame's time, or of 1 ms if that is longer.
const QUEUED_PART: u64 = 4;

/// The data in flight to all hops that answer.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    /// Bytes of frames that are not background frames.
    live: u64,
    /// Bytes of background frames.
    background: u64,
    /// The bandwidth-delay product: bytes on the wire during one round trip.
    holds: u64,
    /// Bytes that the wire carries during the acknowledgement delay.
    answers: u64,
    /// The part of `live` whose acknowledgement is overdue, on carriers that may lose frames and next to other hops.
    overdue: u64,
    /// The acknowledgement of the newest frame that has arrived was late, so there is a queue below the link.
    queues: bool,
}

/// Returns the maximum number of bytes in flight to a hop over a link without a capacity.
pub(in crate::link) const fn window_bytes(wire: &Wire) -> u64 {
    WINDOW_FRAMES as u64 * wire.carrier.frame_bytes_max()
}

impl Hops {
    /// Returns `true` if no live frame may leave, on a link with a capacity. All hops share one window, so
    /// that the wire does not idle while an acknowledgement is in transit. It consists of:
    /// - the bandwidth-delay product,
    /// - the bytes sent during the acknowledgement delay at the hop, behind its own frames,
    /// - one more frame, or what the wire carries in 1 ms if that is more.
    ///
    /// Pacing prevents queues below the link as long as the configured capacity and header sizes are correct.
    /// If they are not, the acknowledgement of the newest frame arrives late. Then the next frame waits for the acknowledgement of
    /// the last, which drains that queue. So a command never finds more than a part of a frame in it.
    ///
    /// Next to other hops, a frame whose acknowledgement is overdue does not count once a later one to another hop has
    /// arrived: it has left the queue that they share.
    ///
    /// Background frames do not count: live samples do not wait for their acknowledgement.
    pub(in crate::link) fn is_window_full(&self, now: Instant, wire: &Wire) -> bool {
        if !wire.is_paced() {
            return false;
        }
        let Flight { live, holds, answers, overdue, queues, .. } = self.flight(now, wire);
        let known = live.saturating_sub(overdue.min(OVERDUE_FRAMES * wire.frame_on_wire()));
        if queues {
            // With so little in flight, the acknowledgements are delayed at the hop and not by a queue here.
            let waiting = if self.is_shared() { known } else { live };
            return waiting > holds.max(wire.frame_bytes / 2);
        }
        known >= holds + answers + wire.carried(wire.grain())
    }

    /// Returns the maximum size on the wire of the next background frame, in bytes; `None` if none may leave.
    ///
    /// A live sample that arrives just after it finds no more than this one frame below the link. The frame
    /// leaves only when the wire is free. Together with the data in flight it is at most the bandwidth-delay
    /// product plus one frame. It waits while that leaves room for less than half a frame.
    pub(in crate::link) fn background_room(&self, now: Instant, pacer: &Pacer) -> Option<u64> {
        let wire = &pacer.wire;
        let frame = wire.frame_on_wire();
        if !wire.is_paced() {
            // Most of the window is reserved for live data.
            let flight: u64 = self.neighbours.values().map(|n| n.hop.background_bytes()).sum();
            return (flight + frame <= window_bytes(wire) / BACKGROUND_PART).then_some(frame);
        }
        if now < pacer.free_at() {
            return None;
        }
        let Flight { live, background, holds, queues, .. } = self.flight(now, wire);
        let most = if queues { holds.max(frame) } else { holds + frame };
        let room = most.saturating_sub(live + background).min(frame);
        (room >= frame / 2).then_some(room)
    }

    fn flight(&self, now: Instant, wire: &Wire) -> Flight {
        let mut flight = Flight::default();
        let time = wire.frame_time();
        let (passed, shared) = (self.passed(), self.is_shared());
        for neighbour in self.neighbours.values().filter(|n| !n.hop.is_stalled(now, time)) {
            let hop = &neighbour.hop;
            let background = hop.background_bytes();
            flight.background += background;
            flight.live += hop.flight_bytes() - background;
            let trip = trip(hop);
            let held = hop.longest_held(time);
            if hop.is_lossy() {
                flight.overdue += hop.overdue_bytes(now, trip);
            } else if shared {
                let late = now - trip.saturating_add(held);
                let left = hop.live_before(late.min(passed));
                flight.live -= left;
                flight.overdue += hop.live_before(late) - left;
            }
            flight.holds = flight.holds.max(wire.carried(trip));
            flight.answers = flight.answers.max(wire.carried(held));
            // The newest measurements count, and those that differ by little from them.
            let newest = hop.passed() + time.saturating_add(held) >= passed;
            flight.queues |= newest && queues(hop, wire);
        }
        flight
    }

    /// Returns the departure of the newest frame that is known to have arrived at any neighbour.
    ///
    /// All frames leave over one wire. So a frame that left before and whose acknowledgement is overdue no longer waits there,
    /// although a neighbour that is gone does not acknowledge it.
    fn passed(&self) -> Instant {
        self.neighbours.values().map(|it| it.hop.passed()).max().unwrap_or_default()
    }

    /// Returns true if several hops are up.
    const fn is_shared(&self) -> bool {
        self.up > 1
    }

    /// Returns true if a hop that keeps order answers too late for further frames, next to other hops. What waits in its
    /// transport would leave in one burst once it answers again.
    pub(in crate::link) fn is_silent(&self, now: Instant, hop: &Hop, wire: &Wire) -> bool {
        if hop.is_lossy() || !wire.is_paced() || !self.is_shared() {
            return false;
        }
        let trip = hop.least_round_trip().unwrap_or_default();
        let late = now - trip.saturating_add(hop.longest_held(wire.frame_time()));
        hop.live_before(late) > OVERDUE_FRAMES * wire.frame_on_wire()
    }

    /// Returns `true` if the neighbour `node` is known and has credit for another frame.
    pub(in crate::link) fn has_credit(&self, now: Instant, node: NodeId, wire: &Wire) -> bool {
        let hop = self.neighbours.get(&node).map(|neighbour| &neighbour.hop);
        let waits = |hop| {
            wire.is_paced()
                && self.is_shared()
                && (self.is_silent(now, hop, wire) || drains(hop, wire))
        };
        hop.is_some_and(|hop| has_credit(hop, now, wire) && !waits(hop))
    }

    /// Returns `true` if any neighbour has credit for another frame.
    pub(in crate::link) fn any_has_credit(&self, now: Instant, wire: &Wire) -> bool {
        self.neighbours.values().any(|neighbour| has_credit(&neighbour.hop, now, wire))
    }
}

/// Returns true if frames to this hop wait in a queue below the link.
fn queues(hop: &Hop, wire: &Wire) -> bool {
    // The last frame of a burst has waited for the others.
    let accepted = wire.grain().mul_div(1, QUEUED_PART).saturating_add(wire.answers_within());
    hop.queued_below() > accepted
}

/// Returns the round trip of the path, and more where frames may be lost: a lost one counts as in flight until the loss is
/// detected, and must not keep the wire idle.
fn trip(hop: &Hop) -> Duration {
    let trip = hop.least_round_trip().unwrap_or_default();
    if hop.is_lossy() { trip.mul_div(5, 4) } else { trip }
}

/// Returns true if the queue on the path to this hop must drain before the next frame.
fn drains(hop: &Hop, wire: &Wire) -> bool {
    let holds = wire.carried(trip(hop));
    let live = hop.flight_bytes() - hop.background_bytes();
    live > holds.max(wire.frame_bytes / 2) && queues(hop, wire)
}

fn has_credit(hop: &Hop, now: Instant, wire: &Wire) -> bool {
    hop.is_up()
        && hop.can_be_told()
        && match wire.capacity {
            Some(_) => !hop.is_stalled(now, wire.frame_time()) && hop.has_queue_room(now),
            None => {
                hop.flight_bytes() + wire.frame_bytes <= window_bytes(wire)
                    && hop.flight_frames() < WINDOW_FRAMES
            }
        }
}
