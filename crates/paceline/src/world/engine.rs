//! The thread of a world.

use super::channels::{Channels, PromisedTraffic};
use super::reservation::{self, Reservation};
use super::state::Shared;
use super::worker;
use crate::shell::clock;
use paceline_objects::PeerId;
use paceline_objects::packet::UpdateClass;
use paceline_objects::participant::{Destination, Outgoing};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest time between two iterations.
const IDLE: Duration = Duration::from_millis(500);

/// Starts the thread of a world.
pub(super) fn start(channels: Channels, shared: Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let engine =
        Engine { channels, reservation: Reservation::default(), promised: BTreeMap::new(), shared };
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
    reservation: Reservation,
    /// The declared traffic of promised updates.
    promised: BTreeMap<PeerId, PromisedTraffic>,
    shared: Arc<Shared>,
}

impl Engine {
    fn run(mut self) {
        loop {
            let (outgoing, wake, ended) = self.turn();
            for packet in outgoing {
                self.send(packet);
            }
            if ended {
                return;
            }
            worker::feed(&self.shared);
            self.reservation.update(&self.shared);
            let now = clock::now();
            let time = wake.map_or(IDLE, |wake| Duration::from(wake.since(now)));
            self.shared.wait(time.min(IDLE));
        }
    }

    /// Makes the packets that are due.
    fn turn(&mut self) -> (Vec<Outgoing>, Option<paceline_sched::Instant>, bool) {
        let time = self.shared.time();
        let mut state = self.shared.lock();
        state.changed = false;
        if state.ended {
            return (vec![state.participant.farewell()], None, true);
        }
        let wake = state.participant.poll(time);
        let outgoing: Vec<_> = std::iter::from_fn(|| state.participant.outgoing()).collect();
        state.participant.note_sending(clock::now().since(time.now), time.now);
        let notify = state.collect();
        let peers = state.participant.peers().map(|(peer, _)| peer);
        let peers =
            peers.map(|peer| (peer, reservation::traffic(&state.participant, peer))).collect();
        drop(state);
        self.declare(&peers);
        if notify {
            self.shared.arrived.notify(usize::MAX);
        }
        (outgoing, wake, false)
    }

    /// Declares what contracts promise, before the first update leaves.
    fn declare(&mut self, peers: &BTreeMap<PeerId, Option<PromisedTraffic>>) {
        let before = std::mem::take(&mut self.promised);
        self.promised =
            peers.iter().filter_map(|(peer, traffic)| Some((*peer, (*traffic)?))).collect();
        let promised = &self.promised;
        self.channels.retain(|peer, class| match class {
            UpdateClass::BestEffort => peers.contains_key(&peer),
            UpdateClass::Promised => {
                promised.get(&peer).is_some_and(|new| before.get(&peer) == Some(new))
            }
        });
        for (peer, traffic) in &self.promised {
            if let Err(error) =
                self.channels.publisher(*peer, UpdateClass::Promised, Some(*traffic))
            {
                crate::warn_limited!("{error}");
            }
        }
    }

    fn send(&mut self, packet: Outgoing) {
        let traffic = match packet.to {
            Destination::Peer(peer, UpdateClass::Promised) => self.promised.get(&peer).copied(),
            Destination::Peer(_, UpdateClass::BestEffort)
            | Destination::PeerDescription
            | Destination::ObserverView => None,
        };
        if let Err(error) = self.channels.send(packet, traffic) {
            crate::warn_limited!("{error}");
        }
    }
}
