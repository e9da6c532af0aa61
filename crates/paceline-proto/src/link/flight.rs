//! What may be in flight: whether another frame may leave, and how much of the background.

use super::{Link, WINDOW_FRAMES, on_wire};
use crate::ids::NodeId;
use paceline_sched::{Duration, Instant};

/// Without a capacity the background may fill one part in this many of the window.
const BACKGROUND_PART: u64 = 4;
/// Where frames may be lost so many that are probably lost do not keep the next ones waiting until that is known:
/// what was promised has no time for it. After more nobody seems to hear.
const OVERDUE_FRAMES: u64 = 4;
/// A queue below us may hold one part in this many of a frame before we let it empty.
const QUEUED_PART: u64 = 4;

/// What is in flight to all hops that answer.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    /// Bytes of frames that carry live samples, or none.
    live: u64,
    /// Bytes of frames that carry the background alone.
    background: u64,
    /// Bytes that the wire holds in a round trip.
    holds: u64,
    /// Bytes that the wire carries while answers wait for their turn at the other end.
    answers: u64,
    /// Bytes, among those that are live, of frames whose answer should have come by now: on a wire that loses.
    overdue: u64,
    /// Answers come late: something waits below us.
    queues: bool,
}

impl Link {
    /// Bytes that may be in flight to a hop over a link without a capacity.
    pub(super) const fn window_bytes(&self) -> u64 {
        WINDOW_FRAMES as u64 * self.spec.carrier.frame_bytes_max()
    }

    /// With a capacity, all hops share what may be in flight: what the wire holds in a round trip,
    /// what it carries while an answer waits for its turn at the other end, behind frames of its own,
    /// and one frame more, so that the wire is not idle while a frame's answer is on its way.
    ///
    /// The pacer keeps frames from queueing below as long as capacity and headers are what we believe.
    /// Where they are not, answers come late; then the next frame waits for the answer to the last,
    /// which empties that queue, so a command never finds more than a part of a frame in it.
    ///
    /// What is in the background does not count: live samples wait for no answer to it.
    pub(super) fn is_window_full(&self, now: Instant) -> bool {
        if self.spec.capacity.is_none() {
            return false;
        }
        let Flight { live, holds, answers, overdue, queues, .. } = self.flight(now);
        if queues {
            // Less than this in flight is no queue: the answers wait, at the other end.
            return live > holds.max(self.frame_bytes / 2);
        }
        let frame = on_wire(self.frame_bytes);
        live.saturating_sub(overdue.min(OVERDUE_FRAMES * frame)) >= holds + answers + frame
    }

    /// How many bytes on the wire the next frame in the background may take; `None` if none may leave.
    ///
    /// A live sample that comes just behind it finds no more than this one frame below us: it leaves
    /// when the wire has carried everything, and with what is in flight it is no more than the wire
    /// holds in a round trip and one frame. Where less than half a frame is left of that, it waits.
    pub(super) fn background_room(&self, now: Instant) -> Option<u64> {
        let frame = on_wire(self.frame_bytes);
        if self.spec.capacity.is_none() {
            // Most of the window is for what is live.
            let flight: u64 = self.neighbours.values().map(|n| n.hop.background_bytes()).sum();
            return (flight + frame <= self.window_bytes() / BACKGROUND_PART).then_some(frame);
        }
        if now < self.pacer.free_at() {
            return None;
        }
        let Flight { live, background, holds, queues, .. } = self.flight(now);
        let most = if queues { holds.max(frame) } else { holds + frame };
        let room = most.saturating_sub(live + background).min(frame);
        (room >= frame / 2).then_some(room)
    }

    fn flight(&self, now: Instant) -> Flight {
        let mut flight = Flight::default();
        let mut queued = Duration::ZERO;
        let time = self.frame_time();
        for neighbour in self.neighbours.values().filter(|n| !n.hop.is_stalled(now, time)) {
            let background = neighbour.hop.background_bytes();
            flight.background += background;
            flight.live += neighbour.hop.flight_bytes() - background;
            let trip = neighbour.hop.least_round_trip().unwrap_or_default();
            // What is lost is in flight until that is known: it must not keep the wire idle.
            let trip = if neighbour.hop.is_lossy() { trip.mul_div(5, 4) } else { trip };
            flight.overdue += neighbour.hop.overdue_bytes(now, trip);
            let holds = self.spec.capacity.map_or(0, |capacity| capacity.bytes_in(trip));
            flight.holds = flight.holds.max(holds);
            let held = neighbour.hop.longest_held(time);
            let answers = self.spec.capacity.map_or(0, |capacity| capacity.bytes_in(held));
            flight.answers = flight.answers.max(answers);
            queued = queued.max(neighbour.hop.queued_below());
        }
        flight.queues = queued > self.frame_time().mul_div(1, QUEUED_PART);
        flight
    }

    pub(super) fn has_credit(&self, now: Instant, node: NodeId) -> bool {
        self.neighbours.get(&node).is_some_and(|neighbour| {
            let hop = &neighbour.hop;
            hop.is_up()
                && hop.can_be_told()
                && match self.spec.capacity {
                    Some(_) => !hop.is_stalled(now, self.frame_time()) && hop.has_queue_room(now),
                    None => {
                        hop.flight_bytes() + self.frame_bytes <= self.window_bytes()
                            && hop.flight_frames() < WINDOW_FRAMES
                    }
                }
        })
    }
}
