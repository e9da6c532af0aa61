//! The tags of a world.

use super::error::WorldError;
use super::state::{ReceivedPacket, Shared};
use crate::shell::clock;
use crate::status::SubscriptionId;
use crate::{
    Node, PublishError, Publisher, PublisherBuilder, PublisherEvent, Sample, Subscription,
};
use paceline_objects::PeerId;
use paceline_objects::contract::ContractTraffic;
use paceline_objects::packet::UpdateClass;
use paceline_objects::participant::{Destination, Outgoing};
use paceline_sched::{Duration, Instant};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The publishers and subscriptions of a participant. Chunks that begin with `@` match no wildcard, so subscriptions
/// of applications do not receive these samples.
pub(super) struct Channels {
    node: Node,
    world: String,
    id: PeerId,
    fragment_bytes: usize,
    about: Publisher,
    view: Publisher,
    updates: BTreeMap<PeerId, Publisher>,
    promised: BTreeMap<PeerId, PromisedChannel>,
    /// The subscriptions, which end with the channels.
    _received: Vec<Subscription>,
}

/// The promised updates to one observer.
struct PromisedChannel {
    publisher: Publisher,
    traffic: ContractTraffic,
    /// The subscriptions to which the path has granted them: that of the observer.
    granted: BTreeSet<SubscriptionId>,
}

impl PromisedChannel {
    /// Takes the answers of the path, and returns whether it has granted the contract if that has changed.
    fn answers(&mut self) -> Option<bool> {
        let before = self.granted.is_empty();
        while let Some(event) = self.publisher.try_event() {
            match event {
                PublisherEvent::Granted(grant) => {
                    self.granted.insert(grant.subscription);
                }
                PublisherEvent::Refused(refusal) => {
                    self.granted.remove(&refusal.subscription);
                }
                PublisherEvent::Withdrawn(subscription) => {
                    self.granted.remove(&subscription);
                }
                PublisherEvent::Excess(_) => {}
            }
        }
        (self.granted.is_empty() != before).then_some(before)
    }
}

impl Channels {
    pub(super) fn open(
        node: &Node,
        world: &str,
        id: PeerId,
        fragment_bytes: usize,
        shared: &Arc<Shared>,
    ) -> Result<Self, WorldError> {
        let about = node.publisher(&format!("{world}/@about/{id}")).latch().declare()?;
        let view = node.publisher(&format!("{world}/@view/{id}")).hz(10.0).declare()?;
        let receive = |tag: &str, class| {
            let shared = Arc::clone(shared);
            node.subscriber(&format!("{world}/{tag}"))
                .callback(move |sample| take(&shared, &sample, class))
        };
        let best_effort = UpdateClass::BestEffort;
        let received = vec![
            receive("@about/*", best_effort)?,
            receive("@view/*", best_effort)?,
            receive(&format!("@updates/{id}/*"), best_effort)?,
        ];
        Ok(Self {
            node: node.clone(),
            world: world.to_owned(),
            id,
            fragment_bytes,
            about,
            view,
            updates: BTreeMap::new(),
            promised: BTreeMap::new(),
            _received: received,
        })
    }

    /// Sends a packet. A promised one whose observer has just ended its contract is lost, and sent again as best effort.
    pub(super) fn send(&mut self, outgoing: Outgoing) -> Result<(), WorldError> {
        let publisher = match outgoing.to {
            Destination::PeerDescription => &mut self.about,
            Destination::ObserverView => &mut self.view,
            Destination::Peer(peer, UpdateClass::BestEffort) => match self.updates.entry(peer) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let tag = tag(&self.world, UpdateClass::BestEffort, peer, self.id);
                    let builder = self.node.publisher(&tag).bytes_max(self.fragment_bytes as u64);
                    place.insert(builder.declare()?)
                }
            },
            Destination::Peer(peer, UpdateClass::Promised) => match self.promised.get_mut(&peer) {
                Some(channel) => &mut channel.publisher,
                None => return Ok(()),
            },
        };
        publisher.put(outgoing.payload)?;
        Ok(())
    }

    /// Declares the promised traffic to each participant, so that it can be reserved, and ends the publishers to those
    /// that are gone.
    pub(super) fn declare(
        &mut self,
        peers: &BTreeMap<PeerId, Option<ContractTraffic>>,
    ) -> Result<(), WorldError> {
        self.updates.retain(|peer, _| peers.contains_key(peer));
        self.promised.retain(|peer, channel| peers.get(peer) == Some(&Some(channel.traffic)));
        for (peer, traffic) in peers {
            let Some(traffic) = *traffic else { continue };
            if let Entry::Vacant(place) = self.promised.entry(*peer) {
                let tag = tag(&self.world, UpdateClass::Promised, *peer, self.id);
                let publisher = declare(self.node.publisher(&tag), traffic)?;
                place.insert(PromisedChannel { publisher, traffic, granted: BTreeSet::new() });
            }
        }
        Ok(())
    }

    /// Returns the observers whose path has granted their contract, or has withdrawn it, since the last call.
    pub(super) fn grants(&mut self) -> Vec<(PeerId, bool)> {
        let changes = self.promised.iter_mut();
        changes.filter_map(|(peer, channel)| Some((*peer, channel.answers()?))).collect()
    }

    /// Returns whether an observer has a granted contract.
    pub(super) fn is_granted(&self, peer: PeerId) -> bool {
        self.promised.get(&peer).is_some_and(|channel| !channel.granted.is_empty())
    }
}

/// Declares the publisher of promised updates.
fn declare(
    builder: PublisherBuilder<'_>,
    traffic: ContractTraffic,
) -> Result<Publisher, PublishError> {
    let hertz = u32::try_from(traffic.fragments_per_s.max(1)).unwrap_or(u32::MAX);
    let builder = builder.period(std::time::Duration::from_secs(1) / hertz);
    let bits_per_s = traffic.bytes_per_s.saturating_mul(8);
    builder.bytes_max(traffic.largest).traffic(bits_per_s, traffic.burst).declare()
}

/// Returns the tag of the updates of an owner to an observer.
fn tag(world: &str, class: UpdateClass, observer: PeerId, owner: PeerId) -> String {
    format!("{world}/{}/{observer}/{owner}", chunk(class))
}

/// Returns the pattern of the promised updates to an observer.
pub(super) fn promised(world: &str, observer: PeerId) -> String {
    format!("{world}/{}/{observer}/*", chunk(UpdateClass::Promised))
}

const fn chunk(class: UpdateClass) -> &'static str {
    match class {
        UpdateClass::Promised => "@promised",
        UpdateClass::BestEffort => "@updates",
    }
}

/// Passes a sample of the world to its thread.
pub(super) fn take(shared: &Shared, sample: &Sample, class: UpdateClass) {
    let age = Duration::from(sample.age);
    let published = Instant::from_nanos(clock::now().as_nanos().saturating_sub(age.as_nanos()));
    shared.deliver(ReceivedPacket { payload: sample.payload.clone(), class, published });
}
