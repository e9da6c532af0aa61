//! The tags of a world.

use super::error::WorldError;
use super::state::{InboxPacket, Shared};
use crate::shell::clock;
use crate::status::SubscriptionId;
use crate::{
    Node, PublishError, Publisher, PublisherBuilder, PublisherEvent, Sample, Subscription,
};
use paceline_objects::contract::{ContractTraffic, PromisedService};
use paceline_objects::packet::UpdateClass;
use paceline_objects::participant::{Destination, Outgoing};
use paceline_objects::{InterestContract, PeerId};
use paceline_proto::{Envelope, NodeId};
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
    service: PromisedService,
    /// The subscriptions to which the path has granted them, of any node.
    granted: BTreeSet<SubscriptionId>,
    /// Whether one of them is the observer's, as last reported.
    in_force: bool,
}

impl PromisedChannel {
    /// Takes the answers of the paths, and returns the service that the path to the observer has granted if that has
    /// changed.
    ///
    /// Only subscriptions of the observer's node count. A grant to another node that subscribes to the same tag
    /// reserves nothing on the path to the observer.
    fn answers(&mut self, observer: NodeId) -> Option<Option<PromisedService>> {
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
                PublisherEvent::Excess(_) | PublisherEvent::Warned(..) => {}
            }
        }
        let in_force = self.granted.iter().any(|granted| granted.node == observer);
        let changed = std::mem::replace(&mut self.in_force, in_force) != in_force;
        changed.then(|| in_force.then_some(self.service))
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
                    let tag = format!("{}/@updates/{peer}/{}", self.world, self.id);
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
    /// that are gone. Returns the participants whose earlier traffic is not granted any more.
    pub(super) fn declare(
        &mut self,
        peers: &BTreeMap<PeerId, Option<PromisedService>>,
    ) -> Result<Vec<PeerId>, WorldError> {
        self.updates.retain(|peer, _| peers.contains_key(peer));
        let mut ended = Vec::new();
        self.promised.retain(|peer, channel| {
            let same = peers.get(peer) == Some(&Some(channel.service));
            if !same {
                ended.push(*peer);
            }
            same
        });
        for (peer, service) in peers {
            let Some(service) = *service else { continue };
            if let Entry::Vacant(place) = self.promised.entry(*peer) {
                let PromisedService { each, objects, .. } = service;
                let contract = InterestContract { each, objects };
                let tag = promised(&self.world, *peer, &contract, self.id);
                let publisher = declare(self.node.publisher(&tag), &service.traffic)?;
                let (granted, in_force) = (BTreeSet::new(), false);
                place.insert(PromisedChannel { publisher, service, granted, in_force });
            }
        }
        Ok(ended)
    }

    /// Returns the observers whose path has granted their contract, or has withdrawn it, since the last call.
    pub(super) fn grants(&mut self) -> Vec<(PeerId, Option<PromisedService>)> {
        let changes = self.promised.iter_mut();
        changes
            .filter_map(|(peer, channel)| Some((*peer, channel.answers(NodeId(peer.node()))?)))
            .collect()
    }
}

/// Declares the publisher of promised updates.
fn declare(
    builder: PublisherBuilder<'_>,
    traffic: &ContractTraffic,
) -> Result<Publisher, PublishError> {
    let (period, largest, envelope) = declaration(traffic);
    let builder = builder.period(period.into()).bytes_max(largest);
    builder.traffic(envelope.bytes_per_s().saturating_mul(8), envelope.burst()).declare()
}

/// Returns the declared period, largest sample and envelope of promised updates.
pub(super) const fn declaration(traffic: &ContractTraffic) -> (Duration, u64, Envelope) {
    let ContractTraffic { bytes_per_s, burst, largest, spacing, .. } = *traffic;
    (spacing, largest, Envelope::declared(burst, bytes_per_s))
}

/// The shortest delay that is requested from the network.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

/// Returns the delay bound that is requested of the time that remains for the network. A tenth less, so that the
/// measured times may grow a little without a new request.
pub(super) const fn requested(network: Duration) -> Duration {
    network.mul_div(9, 10)
}

/// Returns the tag of the promised updates of an owner to an observer, under one contract.
pub(super) fn promised(
    world: &str,
    observer: PeerId,
    contract: &InterestContract,
    owner: PeerId,
) -> String {
    format!("{world}/@promised/{observer}/{:016x}/{owner}", contract.fingerprint())
}

/// Passes a sample of the world to its thread.
pub(super) fn take(shared: &Shared, sample: &Sample, class: UpdateClass) {
    let age = Duration::from(sample.age);
    let published = Instant::from_nanos(clock::now().as_nanos().saturating_sub(age.as_nanos()));
    // The last chunk of each tag is the number of the participant that publishes on it.
    let chunk = sample.tag.as_str().rsplit('/').next().unwrap_or_default();
    let peer = u128::from_str_radix(chunk, 16).ok().map(PeerId);
    let (payload, node) = (sample.payload.clone(), sample.publisher.node);
    shared.deliver(InboxPacket { payload, class, published, peer, node });
}
