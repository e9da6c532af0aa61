//! A participant of a world: its objects, its replicas, and the packets between it and the others.
//!
//! It is a value: packets and the time go in, packets and the next wake-up come out.

mod ages;
mod claims;
mod conflicts;
mod contest;
mod cost;
mod deciding;
mod hand_over;
mod owning;
mod peer;
mod receiving;
mod refused;
mod remembered;
mod sending;
mod settings;

pub use cost::ModuleCost;
use cost::ModuleCosts;
pub use deciding::FieldSnapshot;
pub use settings::{ParticipantSettings, SettingsError};

use crate::budget::Charge;
use crate::contract::UpdateSizes;
use crate::exchange::{ExchangeList, PeerTimetable};
use crate::ids::{ObjectIndex, PeerId};
use crate::interest::{Interest, InterestError};
use crate::owned::OwnedObjects;
use crate::packet::{Claim, Packet, UpdateClass};
use crate::replicas::{ReplicaEvent, Replicas};
use crate::run_queue::DecisionWorkers;
use crate::schema::Schema;
use crate::semantic::{EvaluationBatch, SemanticError, SemanticFunction};
use crate::shares::Shares;
use claims::Claims;
use conflicts::Conflicts;
use contest::Contests;
use hand_over::{Adopted, HandOvers};
use paceline_sched::{Duration, Instant};
use peer::{Peer, Remembered};
use sending::Fates;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A participant that has not been heard for this time is gone.
const SILENCE: Duration = Duration::from_secs(3);

/// The time after which a changed description is published again; it doubles with each time.
const PUBLISH_AGAIN: Duration = Duration::from_secs(1);
/// The greatest time between two publications of a description.
const PUBLISH_MAX: Duration = Duration::from_secs(64);

/// A participant of a world.
pub struct Participant {
    id: PeerId,
    name: String,
    settings: ParticipantSettings,
    schemas: BTreeMap<u64, Arc<Schema>>,
    owned: OwnedObjects,
    replicas: Replicas,
    exchanges: ExchangeList,
    peers: BTreeMap<PeerId, Peer>,
    /// When each of them may be silent for too long: not later than it is.
    silences: PeerTimetable,
    /// When fragments to each of them may be overdue: not later than they are.
    overdue: PeerTimetable,
    /// When observers that may have replicas of an earlier run are to be informed of the new one, unless they have
    /// received a fragment of it by then.
    announcements: PeerTimetable,
    /// The places of participants, shared by their nodes.
    places: Shares,
    /// When the descriptions of participants that are gone are freed.
    memories: PeerTimetable,
    /// Participants that are gone.
    remembered: BTreeMap<PeerId, Remembered>,
    /// Objects that were handed over to this participant.
    adopted: Adopted,
    interests: BTreeMap<PeerId, Interest>,
    /// The memory of their rules.
    interest_bytes: BTreeMap<PeerId, Charge>,
    /// Observers whose interest had no room.
    unserved: BTreeSet<PeerId>,
    /// The earliest time of the next request for objects that had no room.
    retry_at: Instant,
    /// The number of changes of the interests.
    interest_changes: u64,
    functions: BTreeMap<PeerId, Box<dyn SemanticFunction>>,
    /// The workers on which the application decides about all observers, instead of the rules that they state.
    workers: Option<DecisionWorkers>,
    disabled: BTreeSet<PeerId>,
    batches: VecDeque<EvaluationBatch>,
    hand_overs: HandOvers,
    contests: Contests,
    conflicts: Conflicts,
    fates: Fates,
    claims: Claims,
    /// The time stamp of the last message.
    stamp: u64,
    own: Own,
    events: VecDeque<WorldEvent>,
    outgoing: VecDeque<Outgoing>,
    counts: PacketCounts,
}

/// What this participant publishes about itself.
#[derive(Debug)]
struct Own {
    interest: Option<Interest>,
    sizes: UpdateSizes,
    motion: Option<([f64; 3], [f64; 3])>,
    direction: Option<[f64; 3]>,
    costs: ModuleCosts,
    /// The number of the description, and whether it is to be published.
    revision: u32,
    unpublished: bool,
    /// When it is published again, and after how long: a packet can be lost.
    publish_at: Instant,
    publish_again: Duration,
    /// The number of the next view, and when it is due.
    view: u32,
    view_at: Instant,
    /// The time of the last view that was published.
    viewed: Option<Instant>,
    moved: bool,
}

/// Where a packet is to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Destination {
    /// To all, also those who join later: the newest packet counts.
    PeerDescription,
    /// To all who are there.
    ObserverView,
    /// To one participant.
    Peer(PeerId, UpdateClass),
}

/// A packet to be sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outgoing {
    /// Where to.
    pub to: Destination,
    /// The packet.
    pub payload: Vec<u8>,
}

/// The current time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorldTime {
    /// On the clock of this host.
    pub now: Instant,
    /// In nanoseconds of UTC, greater than in every call before.
    pub stamp: u64,
    /// The error of the stamp: at most 2^error microseconds, 255 if unknown.
    pub error: u8,
}

/// A packet as it arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceivedPacket<'a> {
    /// The packet.
    pub bytes: &'a [u8],
    /// The class of the channel on which it arrived.
    pub class: UpdateClass,
    /// The time since it was sent, according to the clocks of both hosts.
    pub age: Duration,
    /// The number of the node that published it.
    pub node: u64,
    /// The participant whose channel it arrived on; `None` for a channel of nobody.
    pub channel: Option<PeerId>,
}

impl ReceivedPacket<'_> {
    /// Returns whether it names a participant of another node or channel. Bytes that are no packet name nobody.
    #[must_use]
    pub fn is_forged(&self) -> bool {
        Packet::sender(self.bytes)
            .is_some_and(|named| named.node() != self.node || self.channel != Some(named))
    }
}

/// A change in a world.
#[derive(Clone, Debug, PartialEq)]
pub enum WorldEvent {
    /// A participant has joined.
    Joined(PeerId, String),
    /// A participant has left or is silent.
    Left(PeerId, String),
    /// A replica has changed.
    Replica(ReplicaEvent),
    /// This participant owns an object that was handed over to it.
    Adopted(ObjectIndex, String),
    /// Another participant owns an object that was this one's.
    Yielded(ObjectIndex, Claim),
    /// The new owner of an object did not answer, so this participant keeps it.
    Kept(ObjectIndex, PeerId),
    /// The rule of an observer failed; it receives objects by the fallback rule from now on.
    Disabled(PeerId, SemanticError),
}

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PacketCounts {
    /// Packets that could not be read.
    pub wrong: u64,
    /// Fragments that arrived twice.
    pub twice: u64,
    /// Packets that claimed to be from this participant.
    pub own: u64,
    /// Packets that named a participant of another node or channel than their own.
    pub forged: u64,
    /// Participants beyond the greatest number or the share of their node, and interests without room.
    pub too_many: u64,
    /// Objects that were handed over and refused, because the sender's node has used its share, or its
    /// schema has no place or another one of its name and version is in use.
    pub hands_refused: u64,
}

impl Participant {
    /// Returns a participant that knows nobody.
    ///
    /// # Errors
    /// A setting that is out of range.
    pub fn new(
        id: PeerId,
        name: &str,
        settings: ParticipantSettings,
        now: Instant,
    ) -> Result<Self, SettingsError> {
        settings.check(name)?;
        Ok(Self {
            id,
            name: name.to_owned(),
            schemas: BTreeMap::new(),
            owned: OwnedObjects::new(settings.objects_max, settings.group_bytes_max()),
            replicas: Replicas::new(settings.replicas_max, settings.state_bytes_max),
            exchanges: ExchangeList::new(settings.exchange()),
            settings,
            peers: BTreeMap::new(),
            silences: PeerTimetable::default(),
            overdue: PeerTimetable::default(),
            announcements: PeerTimetable::default(),
            places: Shares::new(settings.peers_max),
            memories: PeerTimetable::default(),
            remembered: BTreeMap::new(),
            adopted: Adopted::new(settings.objects_max),
            interest_bytes: BTreeMap::new(),
            unserved: BTreeSet::new(),
            retry_at: now,
            interests: BTreeMap::new(),
            interest_changes: 0,
            functions: BTreeMap::new(),
            workers: None,
            disabled: BTreeSet::new(),
            batches: VecDeque::new(),
            hand_overs: HandOvers::default(),
            contests: Contests::default(),
            conflicts: Conflicts::new(now),
            fates: Fates::default(),
            claims: Claims::new(),
            stamp: 0,
            own: Own {
                interest: None,
                sizes: UpdateSizes {
                    groups: 0,
                    largest_group: 0,
                    fragment_bytes: u32::try_from(settings.fragment_bytes).unwrap_or(u32::MAX),
                },
                motion: None,
                direction: None,
                costs: ModuleCosts::new(now),
                revision: 0,
                unpublished: true,
                publish_at: now,
                publish_again: PUBLISH_AGAIN,
                view: 0,
                view_at: now,
                viewed: None,
                moved: false,
            },
            events: VecDeque::new(),
            outgoing: VecDeque::new(),
            counts: PacketCounts::default(),
        })
    }

    /// Returns its number.
    #[must_use]
    pub const fn id(&self) -> PeerId {
        self.id
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its limits.
    #[must_use]
    pub const fn settings(&self) -> &ParticipantSettings {
        &self.settings
    }

    /// Returns its objects.
    #[must_use]
    pub const fn owned(&self) -> &OwnedObjects {
        &self.owned
    }

    /// Returns its copies of others' objects.
    #[must_use]
    pub const fn replicas(&self) -> &Replicas {
        &self.replicas
    }

    /// Returns when, and with whom, its objects are exchanged.
    #[must_use]
    pub const fn exchanges(&self) -> &ExchangeList {
        &self.exchanges
    }

    /// Returns the number and name of each other participant; the name is empty until it is known.
    pub fn peers(&self) -> impl Iterator<Item = (PeerId, &str)> {
        self.peers.iter().map(|(id, peer)| (*id, peer.name()))
    }

    /// Returns the name of another participant; it is empty until it is known.
    #[must_use]
    pub fn name_of(&self, peer: PeerId) -> Option<&str> {
        self.peers.get(&peer).map(Peer::name)
    }

    /// Returns the workers on which another participant decides about its objects; `None` if observers' rules decide,
    /// or nothing is known of it.
    #[must_use]
    pub fn workers_of(&self, peer: PeerId) -> Option<DecisionWorkers> {
        self.peers.get(&peer)?.about.as_ref()?.workers
    }

    /// Returns the counts of packets.
    #[must_use]
    pub const fn counts(&self) -> PacketCounts {
        self.counts
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Option<WorldEvent> {
        for event in self.replicas.events() {
            self.events.push_back(WorldEvent::Replica(event));
        }
        self.events.pop_front()
    }

    /// Returns its interest.
    #[must_use]
    pub const fn interest(&self) -> Option<&Interest> {
        self.own.interest.as_ref()
    }

    /// Changes its interest; `None` ends it.
    ///
    /// # Errors
    /// A value of the interest that is out of range.
    pub fn observe(&mut self, interest: Option<Interest>) -> Result<(), InterestError> {
        if let Some(interest) = &interest {
            interest.check()?;
        }
        if self.own.interest != interest {
            if interest.is_none() {
                self.replicas.withdraw();
                // Owners may see the end of the interest only after its next beginning.
                self.peers.values_mut().for_each(Peer::forget_objects);
            }
            self.own.interest = interest;
            self.describe();
        }
        Ok(())
    }

    /// Changes its position and velocity, and the direction of its view. Values that are not finite are ignored.
    pub fn look(&mut self, position: [f64; 3], velocity: [f64; 3], direction: Option<[f64; 3]>) {
        let finite = |vector: [f64; 3]| vector.iter().all(|part| part.is_finite());
        if finite(position) && finite(velocity) && direction.is_none_or(finite) {
            self.own.motion = Some((position, velocity));
            self.own.direction = direction;
            self.own.moved = true;
        }
    }

    fn describe(&mut self) {
        self.own.revision += 1;
        self.own.unpublished = true;
        self.own.publish_again = PUBLISH_AGAIN;
    }
}

#[cfg(test)]
mod tests;
