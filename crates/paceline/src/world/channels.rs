//! The tags of a world.

use super::error::WorldError;
use super::state::{ReceivedPacket, Shared};
use crate::shell::clock;
use crate::{Node, Publisher, Sample, Subscription};
use paceline_objects::PeerId;
use paceline_objects::packet::UpdateClass;
use paceline_objects::participant::{Destination, Outgoing};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
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
    peers: BTreeMap<(PeerId, UpdateClass), Publisher>,
    /// The subscriptions, which end with the channels.
    _received: Vec<Subscription>,
}

/// The traffic of the promised updates to one observer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PromisedTraffic {
    pub(super) bits_per_s: u64,
    pub(super) burst: u64,
    /// The largest fragment, in bytes.
    pub(super) largest: u64,
    /// Fragments per second.
    pub(super) hertz: u64,
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
            peers: BTreeMap::new(),
            _received: received,
        })
    }

    /// Sends a packet.
    pub(super) fn send(
        &mut self,
        outgoing: Outgoing,
        traffic: Option<PromisedTraffic>,
    ) -> Result<(), WorldError> {
        let publisher = match outgoing.to {
            Destination::PeerDescription => &mut self.about,
            Destination::ObserverView => &mut self.view,
            Destination::Peer(peer, class) => self.publisher(peer, class, traffic)?,
        };
        publisher.put(outgoing.payload)?;
        Ok(())
    }

    /// Declares the promised traffic to an observer before its first update, so that it can be reserved.
    pub(super) fn publisher(
        &mut self,
        peer: PeerId,
        class: UpdateClass,
        traffic: Option<PromisedTraffic>,
    ) -> Result<&mut Publisher, WorldError> {
        if !self.peers.contains_key(&(peer, class)) {
            let tag = tag(&self.world, class, peer, self.id);
            let mut builder = self.node.publisher(&tag).bytes_max(self.fragment_bytes as u64);
            if let Some(traffic) = traffic {
                let hertz = u32::try_from(traffic.hertz.max(1)).unwrap_or(u32::MAX);
                let period = std::time::Duration::from_secs(1) / hertz;
                builder = builder
                    .period(period)
                    .bytes_max(traffic.largest)
                    .traffic(traffic.bits_per_s, traffic.burst);
            }
            self.peers.insert((peer, class), builder.declare()?);
        }
        self.peers.get_mut(&(peer, class)).ok_or_else(|| WorldError::Name(self.world.clone()))
    }

    /// Ends the publishers to participants that are gone, or whose promised traffic has changed.
    pub(super) fn retain(&mut self, keep: impl Fn(PeerId, UpdateClass) -> bool) {
        self.peers.retain(|(peer, class), _| keep(*peer, *class));
    }
}

/// Returns the tag of the updates of an owner to an observer.
fn tag(world: &str, class: UpdateClass, observer: PeerId, owner: PeerId) -> String {
    format!("{world}/{}/{observer}/{owner}", chunk(class))
}

/// Returns the pattern of the promised updates to an observer.
pub(super) fn promised(world: &str, observer: PeerId) -> String {
    format!("{world}/{}/{observer}/*", chunk(UpdateClass::Promised))
}

/// Returns the owner of a tag of updates.
pub(super) fn owner(tag: &str) -> Option<PeerId> {
    let (_, number) = tag.rsplit_once('/')?;
    u64::from_str_radix(number, 16).ok().map(PeerId)
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
