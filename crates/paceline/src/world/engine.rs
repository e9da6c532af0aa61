//! The thread of a world.

use super::channels::Channels;
use super::reservation::Reservations;
use super::state::Shared;
use super::worker;
use crate::shell::clock;
use paceline_objects::PeerId;
use paceline_objects::contract::{DelayParts, PromisedService};
use paceline_objects::participant::{Outgoing, ReceivedPacket};
use paceline_sched::{Duration as Span, Instant};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest time between two iterations.
const IDLE: Duration = Duration::from_millis(500);

/// The least time between two examinations of the answers of paths.
const ANSWERS: Span = Span::from_millis(10);

/// Starts the thread of a world.
pub(super) fn start(channels: Channels, shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let engine = Engine {
        channels,
        reservations: Reservations::default(),
        changes: 0,
        answered: Instant::ZERO,
        shared,
    };
    std::thread::Builder::new().name("paceline-world".to_owned()).spawn(move || engine.run())
}

/// Returns a random number.
pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        // Unique on this host at least.
        return clock::now().as_nanos() ^ u64::from(std::process::id()).rotate_left(40);
    }
    u64::from_le_bytes(bytes)
}

struct Engine {
    channels: Channels,
    reservations: Reservations,
    /// The changes of interests that the channels follow.
    changes: u64,
    /// When the answers of the paths were last examined.
    answered: Instant,
    shared: Arc<Shared>,
}

impl Engine {
    fn run(mut self) {
        while let Some(wake) = self.iterate() {
            worker::feed(&self.shared);
            let wake = wake.min(self.answers());
            self.shared.wait(wake);
        }
        self.shared.lock().workers = None;
    }

    /// Takes the answers of the paths, and requests contracts. Not in each iteration, because it takes as long as there
    /// are contracts. Returns the time until the next call.
    fn answers(&mut self) -> Duration {
        let now = clock::now();
        let next = self.answered + ANSWERS;
        if now < next {
            return next.since(now).into();
        }
        self.answered = now;
        let grants = self.channels.grants();
        if !grants.is_empty() {
            let mut state = self.shared.lock();
            grants
                .into_iter()
                .for_each(|(peer, service)| state.participant.grant(peer, service, now));
        }
        self.reservations.update(&self.shared);
        IDLE
    }

    /// Applies the packets that have arrived, and sends those that are due. Returns the time until the next are, and
    /// `None` at the end.
    fn iterate(&mut self) -> Option<Duration> {
        let (packets, dropped) = self.shared.take();
        let time = self.shared.time();
        let mut state = self.shared.lock();
        state.packets_dropped += dropped;
        if state.ended {
            let farewell = state.participant.farewell();
            drop(state);
            self.send(farewell);
            return None;
        }
        let begin = clock::now();
        let count = packets.len();
        for packet in packets {
            // Packets that cannot be read are counted there.
            let received = ReceivedPacket {
                bytes: &packet.payload,
                class: packet.class,
                age: time.now.since(packet.published),
                node: packet.node.0,
                channel: packet.peer,
            };
            let _counted = state.participant.receive(&received, time);
        }
        let applied = clock::now();
        let decisions = state.participant.poll_decisions(time);
        let decided = clock::now();
        let messages = state.participant.poll_messages(time);
        let wake = decisions.into_iter().chain(messages).min();
        let outgoing: Vec<_> = std::iter::from_fn(|| state.participant.outgoing()).collect();
        let written = clock::now();
        let notify = state.collect();
        let changes = state.participant.interest_changes();
        let peers = (changes != self.changes).then(|| {
            self.changes = changes;
            let peers = state.participant.peers().map(|(peer, _)| peer);
            peers.map(|peer| (peer, state.participant.promised_service(peer))).collect()
        });
        drop(state);
        if let Some(peers) = peers {
            self.declare(&peers);
        }
        let sends = !outgoing.is_empty();
        for packet in outgoing {
            self.send(packet);
        }
        let sent = clock::now();
        // Only iterations in which a module did its work count; a packet may wait for all that arrived with it.
        let if_any = |any: bool, cost| if any { cost } else { Span::ZERO };
        let costs = DelayParts {
            deciding: if_any(sends, decided.since(applied)),
            fragmenting: if_any(sends, written.since(decided)),
            sending: if_any(sends, sent.since(applied)),
            observer: if_any(count > 0, applied.since(begin)),
        };
        self.shared.lock().participant.note_costs(costs, sent);
        if notify {
            self.shared.arrived.notify(usize::MAX);
        }
        Some(wake.map_or(IDLE, |wake| Duration::from(wake.since(clock::now()))))
    }

    /// Declares the promised traffic after a change of interests.
    fn declare(&mut self, peers: &BTreeMap<PeerId, Option<PromisedService>>) {
        let ended = self.channels.declare(peers).unwrap_or_else(|error| {
            crate::warn_limited!("{error}");
            // None of them can be sure of its reservation.
            peers.keys().copied().collect()
        });
        // Other traffic needs a new grant.
        let now = clock::now();
        let mut state = self.shared.lock();
        ended.into_iter().for_each(|peer| state.participant.grant(peer, None, now));
    }

    fn send(&mut self, packet: Outgoing) {
        if let Err(error) = self.channels.send(packet) {
            crate::warn_limited!("{error}");
        }
    }
}
