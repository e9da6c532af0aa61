//! A node between a well-behaved neighbour and a hostile one, in virtual time.
//!
//! The hostile neighbour is stateful: it completes the handshake, follows epochs and acknowledges frames. The
//! node therefore executes its segments instead of only parsing them. A frame counts once the node has
//! acknowledged it. Frames contain streams, samples, parts and control messages with extreme values
//! ([`attacker`]). Some of them are also slightly corrupted. Its rights differ between seeds ([`rights`]).
//!
//! Nothing may panic, and the well-behaved neighbour must not be affected. All three share one link. On it
//! the streams of the well-behaved neighbour keep their contracts in both directions, without a lost sample.

mod attacker;
mod node;
mod rights;

use attacker::Attacker;
use bytes::Bytes;
use node::{Arrival, Node};
use paceline_proto::NodeId;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// The node under test and its two neighbours.
const VICTIM: NodeId = NodeId(1);
const GOOD: NodeId = NodeId(2);
const HOSTILE: NodeId = NodeId(3);
/// The delay of the wires, and the interval between two steps of all nodes.
const DELAY: Duration = Duration::from_millis(1);
const STEP: Duration = Duration::from_micros(500);
/// Period and deadline of the stream with a contract.
const PERIOD: Duration = Duration::from_millis(10);
const DEADLINE: Duration = Duration::from_millis(25);
/// The greatest age on arrival: link, wire, and one step at either end.
const AGE_MAX: Duration = Duration::from_millis(25 + 1 + 1);
/// Frames sent per acknowledged frame, at most. The node mutes a neighbour for a while after a flood of
/// malformed frames, and completes handshakes at a hundredth of the link.
const SENT_MAX: u64 = 120;

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostileOutcome {
    /// Frames that the hostile neighbour sent.
    pub sent: u64,
    /// Frames of the hostile neighbour that the node acknowledged.
    pub acknowledged: u64,
    /// Frames of the hostile neighbour that the node could not parse to their end.
    pub malformed: u64,
    /// Number of handshakes that the hostile neighbour completed.
    pub handshakes: u64,
    /// Samples of streams with a contract that arrived.
    pub promised: u64,
    /// The greatest age of these samples on arrival.
    pub oldest: Duration,
}

/// Runs until the node has acknowledged `frames` hostile frames. The same seed gives the same run.
///
/// # Errors
/// Returns a description of the first property that was violated.
pub fn hostile(seed: u64, frames: u64) -> Result<HostileOutcome, String> {
    let mut world = World::new(seed);
    while world.attacker.acknowledged < frames {
        world.step()?;
        if world.attacker.sent > (frames + 1_000) * SENT_MAX {
            let Attacker { sent, acknowledged, .. } = world.attacker;
            return Err(format!("of {sent} hostile frames {acknowledged} were acknowledged"));
        }
    }
    // Lets the frames in flight arrive.
    (0..100).try_for_each(|_| world.step())?;
    world.outcome()
}

struct World {
    now: Instant,
    victim: Node,
    good: Node,
    attacker: Attacker,
    /// Frames in flight: arrival time, sender, receiver and content.
    wires: VecDeque<(Instant, NodeId, NodeId, Bytes)>,
    next_sample: Instant,
    outcome: HostileOutcome,
}

impl World {
    fn new(seed: u64) -> Self {
        let now = Instant::from_millis(10_000);
        let mut victim = Node::new(now, VICTIM, &[GOOD, HOSTILE]);
        let peers = [(GOOD, rights::peer("good")), (HOSTILE, rights::peer("hostile"))];
        victim.guard_by(now, rights::policy(seed), peers);
        let mut good = Node::new(now, GOOD, &[VICTIM]);
        victim.promise(GOOD, PERIOD, DEADLINE);
        good.promise(VICTIM, PERIOD, DEADLINE);
        Self {
            now,
            victim,
            good,
            attacker: Attacker::new(now, seed),
            wires: VecDeque::new(),
            // The handshakes are complete by then.
            next_sample: now + Duration::from_millis(500),
            outcome: HostileOutcome::default(),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.now += STEP;
        if self.now >= self.next_sample {
            self.next_sample += PERIOD;
            self.victim.publish(self.now);
            self.good.publish(self.now);
        }
        while self.wires.front().is_some_and(|(at, ..)| *at <= self.now) {
            let Some((_, from, to, frame)) = self.wires.pop_front() else { break };
            self.deliver(from, to, frame)?;
        }
        let mut leave = Vec::new();
        leave.extend(
            self.victim.drive(self.now)?.into_iter().map(|(to, frame)| (VICTIM, to, frame)),
        );
        leave.extend(self.good.drive(self.now)?.into_iter().map(|(to, frame)| (GOOD, to, frame)));
        let hostile = self.attacker.drive(self.now);
        leave.extend(hostile.into_iter().map(|frame| (HOSTILE, VICTIM, frame)));
        let arrive = |(from, to, frame)| (self.now + DELAY, from, to, frame);
        self.wires.extend(leave.into_iter().map(arrive));
        Ok(())
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, frame: Bytes) -> Result<(), String> {
        let arrivals = match to {
            VICTIM => self.victim.receive(self.now, from, frame),
            GOOD => self.good.receive(self.now, from, frame),
            _ => {
                self.attacker.hear(self.now, frame);
                return Ok(());
            }
        };
        for arrival in arrivals.into_iter().filter(|_| from != HOSTILE) {
            match arrival {
                Arrival::Sample { published_at, seq } => {
                    let age = self.now.since(published_at);
                    self.outcome.promised += 1;
                    self.outcome.oldest = self.outcome.oldest.max(age);
                    if age > AGE_MAX {
                        return Err(format!("promised sample {seq} from {from} is {age} old"));
                    }
                }
                Arrival::Lost(samples) => {
                    return Err(format!("{samples} promised samples from {from} are lost"));
                }
            }
        }
        Ok(())
    }

    fn outcome(self) -> Result<HostileOutcome, String> {
        for (node, name) in [(&self.victim, "the node"), (&self.good, "its good neighbour")] {
            let counters = node.counters();
            // The last sample may still be in flight.
            if counters.offered > counters.sent + 1 || counters.late > 0 {
                return Err(format!("the promised stream of {name}: {counters:?}"));
            }
        }
        let Attacker { sent, acknowledged, handshakes, .. } = self.attacker;
        let malformed = self.victim.malformed;
        Ok(HostileOutcome { sent, acknowledged, malformed, handshakes, ..self.outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_run() {
        let run = |seed| format!("{:?}", hostile(seed, 500).unwrap());
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }
}
