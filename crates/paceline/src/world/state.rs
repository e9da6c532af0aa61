//! The state that the threads of a world share.

use super::jobs::Workers;
use super::service::ServiceEvent;
use crate::Node;
use crate::shell::clock;
use bytes::Bytes;
use event_listener::Event;
use paceline_objects::inbox::Inbox;
use paceline_objects::packet::UpdateClass;
use paceline_objects::participant::WorldTime;
use paceline_objects::{Participant, PeerId};
use paceline_proto::NodeId;
use paceline_sched::Instant;
use paceline_time::TimeBounds;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The greatest number of events that wait for the application; the oldest are dropped first.
const EVENTS_MAX: usize = 65_536;

/// A participant, its events and its semantic function.
pub(super) struct State {
    pub(super) participant: Participant,
    /// Changes of the service of contracts.
    pub(super) services: VecDeque<ServiceEvent>,
    pub(super) events: VecDeque<paceline_objects::participant::WorldEvent>,
    /// Events that the application did not take in time.
    pub(super) events_dropped: u64,
    /// Packets that arrived faster than they could be applied.
    pub(super) packets_dropped: u64,
    /// The workers of the application's semantic function.
    pub(super) workers: Option<Workers>,
    pub(super) ended: bool,
}

/// The state that the threads of a world share.
pub(super) struct Shared {
    node: Node,
    world: String,
    state: Mutex<State>,
    inbox: Mutex<Arrived>,
    wake: Condvar,
    pub(super) arrived: Event,
}

/// Packets that the thread has not taken yet, so that the receiving thread of the node never waits for it.
struct Arrived {
    packets: Inbox<InboxPacket>,
    /// Set by a change that the thread has not seen yet.
    changed: bool,
}

/// A packet as it arrived.
pub(super) struct InboxPacket {
    pub(super) payload: Bytes,
    pub(super) class: UpdateClass,
    /// When it was published, on the clock of this host.
    pub(super) published: Instant,
    /// The participant in its tag.
    pub(super) peer: Option<PeerId>,
    /// The node that published it.
    pub(super) node: NodeId,
}

impl State {
    pub(super) const fn new(participant: Participant) -> Self {
        Self {
            participant,
            services: VecDeque::new(),
            events: VecDeque::new(),
            events_dropped: 0,
            packets_dropped: 0,
            workers: None,
            ended: false,
        }
    }

    /// Adds answers to the request of a contract.
    pub(super) fn answer(&mut self, events: impl IntoIterator<Item = ServiceEvent>) {
        self.services.extend(events);
        while self.services.len() > EVENTS_MAX {
            self.services.pop_front();
            self.events_dropped += 1;
        }
    }

    /// Moves the participant's events to those that wait, and returns whether there are any.
    pub(super) fn collect(&mut self) -> bool {
        let before = self.events.len();
        while let Some(event) = self.participant.event() {
            if self.events.len() >= EVENTS_MAX {
                self.events.pop_front();
                self.events_dropped += 1;
            }
            self.events.push_back(event);
        }
        self.events.len() != before
    }
}

impl Shared {
    pub(super) fn new(node: Node, world: String, state: State) -> Self {
        Self {
            node,
            world,
            state: Mutex::new(state),
            inbox: Mutex::new(Arrived { packets: Inbox::default(), changed: true }),
            wake: Condvar::new(),
            arrived: Event::new(),
        }
    }

    pub(super) const fn node(&self) -> &Node {
        &self.node
    }

    pub(super) fn world(&self) -> &str {
        &self.world
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the thread.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.inbox().changed = true;
        self.wake.notify_one();
        result
    }

    /// Adds a packet for the thread, and wakes it. It does not block on the thread's work. Fragments without room are
    /// lost, and repeated like those that a link loses.
    pub(super) fn deliver(&self, packet: InboxPacket) {
        let (node, bytes) = (packet.node.0, packet.payload.len());
        let _room = self.inbox().packets.push(node, bytes, packet);
        self.wake.notify_one();
    }

    /// Takes the packets that have arrived, and the number of those that did not fit.
    pub(super) fn take(&self) -> (Vec<InboxPacket>, u64) {
        let mut inbox = self.inbox();
        inbox.changed = false;
        (inbox.packets.take(), inbox.packets.take_dropped())
    }

    /// Blocks until the state changes, a packet arrives, or the time has passed.
    pub(super) fn wait(&self, time: Duration) {
        let inbox = self.inbox();
        let idle = |inbox: &mut Arrived| !inbox.changed && inbox.packets.is_empty();
        drop(self.wake.wait_timeout_while(inbox, time, idle));
    }

    fn inbox(&self) -> MutexGuard<'_, Arrived> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current time. Stamps are strictly increasing.
    pub(super) fn time(&self) -> WorldTime {
        let reading = self.node.clock().stamp();
        let TimeBounds { earliest, latest } = reading.bounds;
        let known = latest != u64::MAX && earliest != 0;
        let error = if known { reading.error_byte() } else { u8::MAX };
        WorldTime { now: clock::now(), stamp: reading.nanos, error }
    }
}
