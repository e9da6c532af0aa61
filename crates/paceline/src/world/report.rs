//! The view of a participant on the others, and its counts.

use paceline_objects::contract::DelayParts;
use paceline_objects::exchange::ExchangeCounters;
use paceline_objects::participant::PacketCounts;
use paceline_objects::replicas::ReplicaCounts;
use paceline_objects::run_queue::DecisionWorkers;
use paceline_objects::semantic::SemanticError;
use paceline_objects::{Interest, PeerId};

/// The view of a participant on the others, and its counts.
#[derive(Clone, Debug)]
pub struct WorldReport {
    /// The name of the world.
    pub world: String,
    /// This participant.
    pub id: PeerId,
    /// Its name.
    pub name: String,
    /// The number of its objects.
    pub owned: usize,
    /// The number of its replicas.
    pub replicas: usize,
    /// The other participants.
    pub participants: Vec<ParticipantReport>,
    /// Updates that were exchanged or suppressed, with the reasons.
    pub exchanges: ExchangeCounters,
    /// Updates that could not be applied.
    pub applied: ReplicaCounts,
    /// Packets that could not be used.
    pub packets: PacketCounts,
    /// Events and answers that the application did not take in time.
    pub events_dropped: u64,
    /// Packets that arrived faster than they could be applied.
    pub packets_dropped: u64,
    /// Packets that named another participant than their tag, or a participant of another node: only the participant
    /// itself states its interest, its position and its objects.
    pub packets_forged: u64,
}

/// Another participant.
#[derive(Clone, Debug)]
pub struct ParticipantReport {
    /// Its number.
    pub id: PeerId,
    /// Its name; empty until it is known.
    pub name: String,
    /// The times that are debited from the delay of its objects, as an owner; `None` until they are known.
    pub as_owner: Option<DelayParts>,
    /// Its updates from this participant; `None` if it observes nothing.
    pub as_observer: Option<ObserverReport>,
    /// The workers on which its application decides about its objects; `None` if observers' rules decide.
    pub workers: Option<DecisionWorkers>,
}

/// An observer of this participant's objects.
#[derive(Clone, Debug)]
pub struct ObserverReport {
    /// Its interest.
    pub interest: Interest,
    /// The times that are debited from the delay of its contract.
    pub parts: DelayParts,
    /// Its updates.
    pub exchanges: ExchangeCounters,
    /// Why its semantic function is disabled.
    pub disabled: Option<SemanticError>,
}
