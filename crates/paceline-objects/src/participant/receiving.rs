//! Packets from other participants.

use super::{Participant, ReceivedPacket, SILENCE, WorldEvent, WorldTime};
use crate::codec::PacketError;
use crate::contract::{DelayParts, PromisedService, UpdateSizes};
use crate::exchange::Observer;
use crate::flight::Arrival;
use crate::ids::{ObjectIndex, PeerId};
use crate::interest::{Interest, InterestContract};
use crate::modules::InteractorModules;
use crate::motion::Motion;
use crate::packet::{
    Claim, Fragment, ObserverView, Packet, PeerDescription, UpdateClass, outranks,
};
use crate::participant::peer::{Peer, Receipt};
use crate::replicas::ReplicaEvent;
use crate::schema::GroupMask;
use paceline_sched::{Duration, Instant};

/// How soon a claim is published.
const CLAIM_DELAY: Duration = Duration::from_millis(20);
/// How soon an observer is informed that objects are introduced anew if no update informs it.
const ANNOUNCE_DELAY: Duration = Duration::from_millis(200);

impl Participant {
    /// Takes a packet. One that names a participant of another node than the one that sent it, or is not on the channel of
    /// this participant, is dropped and counted as forged.
    ///
    /// # Errors
    /// Bytes that are no packet. They are counted and change nothing.
    pub fn receive(
        &mut self,
        received: &ReceivedPacket<'_>,
        time: WorldTime,
    ) -> Result<(), PacketError> {
        if received.is_forged() {
            self.counts.forged += 1;
            return Ok(());
        }
        let ReceivedPacket { bytes, class, mut age, .. } = *received;
        let packet = Packet::decode(bytes).inspect_err(|_| self.counts.wrong += 1)?;
        let from = packet.from();
        if from == self.id {
            self.counts.own += 1;
            return Ok(());
        }
        if !self.peers.contains_key(&from) {
            // A packet that took longer to arrive than a silence says nothing about now.
            if age >= SILENCE && !matches!(packet, Packet::PeerDescription(_)) {
                return Ok(());
            }
            if !self.places.take(from.node(), 1) {
                self.counts.too_many += 1;
                return Ok(());
            }
            let remembered = self.recall(from);
            self.peers.insert(from, Peer::new(&remembered, time.now));
            self.silences.set(from, Some(time.now + SILENCE));
            if let Some(about) = remembered.about {
                self.know(about, time.now);
            }
        }
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.heard = peer.heard.max(time.now);
            age = peer.ages.plausible(age, time.now);
        }
        match packet {
            Packet::Fragment(fragment) => self.take_fragment(&fragment, class, age, time.now),
            Packet::PeerDescription(about) => self.take_about(about, time.now),
            Packet::ObserverView(view) => self.take_view(&view, age, time.now),
            Packet::Hand(hand) => self.take_hand(&hand, time.now),
        }
        Ok(())
    }

    /// Takes the measured times of modules: of [`Self::poll_decisions`], of [`Self::poll_messages`], of both and sending
    /// their packets, and of applying packets. Zero leaves a module as it is.
    pub fn note_costs(&mut self, costs: DelayParts, now: Instant) {
        let DelayParts { deciding, fragmenting, sending, observer } = costs;
        let own = &mut self.own.costs;
        for (cost, known) in [
            (deciding, &mut own.deciding),
            (fragmenting, &mut own.fragmenting),
            (sending, &mut own.sending),
            (observer, &mut own.applying),
        ] {
            if !cost.is_zero() {
                known.add(cost, now);
            }
        }
    }

    /// Returns the times that are charged for an update of an owner to this participant.
    #[must_use]
    pub fn delay_parts(&self, owner: PeerId) -> Option<DelayParts> {
        let peer = self.peers.get(&owner)?;
        // Its view states them.
        peer.view?;
        Some(DelayParts { observer: self.own.costs.applying.charged(), ..peer.parts })
    }

    /// Returns the times that are charged for an update of this participant to an observer, and the observer's
    /// interest.
    #[must_use]
    pub fn service(&self, observer: PeerId) -> Option<(DelayParts, &Interest)> {
        let (peer, interest) = (self.peers.get(&observer)?, self.interests.get(&observer)?);
        Some((DelayParts { observer: peer.parts.observer, ..self.own.costs.charged() }, interest))
    }

    fn take_fragment(
        &mut self,
        fragment: &Fragment,
        class: UpdateClass,
        age: Duration,
        now: Instant,
    ) {
        let Some(peer) = self.peers.get_mut(&fragment.owner) else { return };
        match peer.receive(class, fragment.run, fragment.number) {
            Receipt::New => {}
            Receipt::Begins => self.replicas.restart(fragment.owner),
            Receipt::Known => {
                self.counts.twice += 1;
                return;
            }
        }
        if self.own.interest.is_none() {
            return;
        }
        let here = Instant::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
        self.replicas.apply(fragment, here);
        for claim in self.replicas.claims() {
            self.claim(claim, fragment.owner, now);
        }
        self.defend(fragment, now);
    }

    /// Compares the introduced objects with the own ones: two owners of one path become one.
    fn defend(&mut self, fragment: &Fragment, now: Instant) {
        for introduction in
            fragment.updates.iter().filter_map(|update| update.introduction.as_ref())
        {
            let Some((object, own)) = self.own_claim(&introduction.path) else { continue };
            let (path, owner) = (introduction.path.clone(), fragment.owner);
            let other = Claim { path, owner, ownership: introduction.ownership };
            if self.hand_overs.goes_to(object, &other) {
                self.yield_to(object, other, now);
            } else if other.takes(&own) && !self.adopted.is_past(object, &other, &own) {
                self.claim(other.clone(), owner, now);
                self.contests.note(object, other, now);
            } else {
                let replica = self.replicas.get(&introduction.path);
                if replica.is_some_and(|replica| replica.owner() == fragment.owner) {
                    self.replicas.adopt(&introduction.path);
                }
                self.claim(own, fragment.owner, now);
            }
        }
    }

    pub(super) fn own_claim(&self, path: &str) -> Option<(ObjectIndex, Claim)> {
        let object = self.owned.find(path)?;
        let ownership = self.owned.get(object)?.ownership();
        Some((object, Claim { path: path.to_owned(), owner: self.id, ownership }))
    }

    /// Yields the objects that others have claimed for long enough.
    pub(super) fn resolve(&mut self, now: Instant) -> Option<Instant> {
        let replicas = &self.replicas;
        let persists = |claim: &Claim| {
            replicas.get(&claim.path).is_some_and(|replica| replica.owner() == claim.owner)
        };
        for (object, claim) in self.contests.decided(persists, now) {
            self.yield_to(object, claim, now);
        }
        self.contests.next_wake()
    }

    /// Publishes a claim soon, which a packet of another participant causes.
    pub(super) fn claim(&mut self, claim: Claim, cause: PeerId, now: Instant) {
        // Without room, the view makes some.
        let _room = self.claims.insert(claim, cause.node(), now);
        self.own.view_at = self.own.view_at.min(now + CLAIM_DELAY);
    }

    fn take_about(&mut self, mut about: PeerDescription, now: Instant) {
        let Some(peer) = self.peers.get_mut(&about.peer) else { return };
        if let Some(known) = peer.about.as_ref().map(|known| known.revision) {
            let again = known == about.revision && self.replicas.lacks_schemas(about.peer);
            if known >= about.revision && !again {
                return;
            }
        }
        self.replicas.describe(about.peer, std::mem::take(&mut about.schemas));
        self.know(about, now);
    }

    /// Takes a description without its schemas.
    fn know(&mut self, about: PeerDescription, now: Instant) {
        let Some(peer) = self.peers.get_mut(&about.peer) else { return };
        let (id, name, interest) = (about.peer, about.name.clone(), about.interest.clone());
        if peer.about.as_ref().is_none_or(|known| known.sizes != about.sizes) {
            self.interest_changes += 1;
        }
        if peer.about.replace(about).is_none() {
            self.events.push_back(WorldEvent::Joined(id, name));
        }
        match interest {
            Some(interest) => self.serve(id, interest, now),
            None => self.stop_serving(id),
        }
    }

    /// Begins to send objects to an observer, or changes how.
    pub(super) fn serve(&mut self, id: PeerId, interest: Interest, now: Instant) {
        if !self.charge_interest(id, &interest) {
            self.counts.too_many += 1;
            self.stop_serving(id);
            self.unserved.insert(id);
            return;
        }
        if !self.interests.contains_key(&id) {
            if let Some(peer) = self.peers.get_mut(&id) {
                // Its exchanges are numbered from 0 again.
                peer.begin(now);
                if peer.run() > 1 {
                    self.announcements.set(id, Some(now + ANNOUNCE_DELAY));
                }
            }
            let observer = Observer { range: interest.range, ..Observer::EVERYWHERE };
            if self.exchanges.join(id, observer, now).is_err() {
                self.counts.too_many += 1;
                self.interest_bytes.remove(&id);
                self.unserved.insert(id);
                return;
            }
        }
        if self.interests.get(&id).is_none_or(|known| known.rule != interest.rule) {
            self.exchanges.enable(id);
            self.disabled.remove(&id);
            // An interest that was received has been checked.
            if let Ok(function) = interest.function() {
                self.functions.insert(id, function);
            }
        }
        // The observer has joined.
        let _chosen = self.exchanges.choose(id, interest.modules, now);
        self.interests.insert(id, interest);
        self.unserved.remove(&id);
        self.interest_changes += 1;
        self.promise(id, now);
    }

    /// Charges the memory of an interest instead of that of the observer's last one, and returns whether there is room.
    fn charge_interest(&mut self, id: PeerId, interest: &Interest) -> bool {
        let bytes = interest.memory_bytes();
        if let Some(charge) = self.interest_bytes.get_mut(&id) {
            return charge.resize(bytes);
        }
        let charge = self.replicas.charge(id, bytes);
        charge.map(|charge| self.interest_bytes.insert(id, charge)).is_some()
    }

    /// Notes the service that the path to an observer has granted. While its interest has no contract or another one,
    /// all updates for it are best effort, so that no more is sent than reserved.
    pub fn grant(&mut self, observer: PeerId, granted: Option<PromisedService>, now: Instant) {
        if let Some(peer) = self.peers.get_mut(&observer) {
            peer.granted = granted;
            self.promise(observer, now);
        }
    }

    /// Promises the contract of an observer if its path has granted it.
    fn promise(&mut self, observer: PeerId, now: Instant) {
        let granted = self.peers.get(&observer).and_then(|peer| peer.granted);
        let contract = self.interests.get(&observer).and_then(|interest| interest.contract);
        let service =
            granted.zip(contract).filter(|(granted, InterestContract { each, objects })| {
                (granted.each, granted.objects) == (*each, *objects)
            });
        // It was checked when it was received, and an observer that is not served needs none.
        let _promised = self.exchanges.promise(observer, service.map(|(granted, _)| granted), now);
    }

    /// Returns the service of an observer's contract, with the traffic to be reserved; `None` without a contract, and
    /// while this participant has never owned an object.
    #[must_use]
    pub fn promised_service(&self, observer: PeerId) -> Option<PromisedService> {
        let contract = self.interests.get(&observer)?.contract?;
        let modules = self.interests.get(&observer)?.modules;
        let sizes = self.own.sizes;
        (sizes.groups > 0).then(|| self.service_with(&contract, modules, sizes))
    }

    /// Returns the service of a contract of this participant with the objects of an owner, as that owner computes it;
    /// `None` if the owner is not known or has never owned an object.
    #[must_use]
    pub fn service_from(
        &self,
        owner: PeerId,
        contract: &InterestContract,
    ) -> Option<PromisedService> {
        let sizes = self.peers.get(&owner)?.about.as_ref()?.sizes;
        let modules = self.own.interest.as_ref()?.modules;
        (sizes.groups > 0).then(|| self.service_with(contract, modules, sizes))
    }

    fn service_with(
        &self,
        contract: &InterestContract,
        modules: InteractorModules,
        sizes: UpdateSizes,
    ) -> PromisedService {
        let headers = self.settings.exchange().headers();
        let bytes = usize::try_from(sizes.fragment_bytes).unwrap_or(usize::MAX);
        let fragment_bytes = u32::try_from(modules.fragment_bytes(bytes)).unwrap_or(u32::MAX);
        let sizes = UpdateSizes { fragment_bytes, ..sizes };
        PromisedService::new(contract.each, contract.objects, &sizes, &headers)
    }

    /// Returns a number that grows whenever [`Self::promised_service`] or [`Self::service_from`] may have changed.
    #[must_use]
    pub const fn interest_changes(&self) -> u64 {
        self.interest_changes
    }

    /// Begins with an observer anew, which has forgotten all objects.
    fn serve_again(&mut self, peer: PeerId, now: Instant) {
        if let Some(interest) = self.interests.get(&peer).cloned() {
            self.stop_serving(peer);
            self.serve(peer, interest, now);
        }
    }

    fn stop_serving(&mut self, peer: PeerId) {
        self.functions.remove(&peer);
        self.disabled.remove(&peer);
        self.interests.remove(&peer);
        self.interest_bytes.remove(&peer);
        self.unserved.remove(&peer);
        self.announcements.set(peer, None);
        self.interest_changes += 1;
        self.exchanges.leave(peer);
    }

    fn take_view(&mut self, view: &ObserverView, age: Duration, now: Instant) {
        if view.leaving {
            self.forget(view.peer, true, now);
            return;
        }
        let own = self.id;
        let Some(peer) = self.peers.get_mut(&view.peer) else { return };
        if peer.view.is_some_and(|newest| newest.wrapping_sub(view.number) < u32::MAX / 2) {
            return;
        }
        peer.view = Some(view.number);
        peer.parts = view.parts;
        let forgotten = peer.report(view, own, now);
        self.expire_of(view.peer, now);
        if forgotten {
            self.serve_again(view.peer, now);
        }
        let at = Instant::from_nanos(now.as_nanos().saturating_sub(age.as_nanos()));
        let motion = view.motion.map(|(position, velocity)| Motion { position, velocity, at });
        if let Some(interest) = self.interests.get(&view.peer) {
            let observer = Observer { motion, view: view.direction, range: interest.range };
            // Its numbers have been checked.
            let _checked = self.exchanges.observe(view.peer, observer);
        }
        for claim in &view.claims {
            self.take_claim(claim, view.peer, now);
        }
    }

    /// Settles messages of the exchange list.
    pub(super) fn settle(&mut self, peer: PeerId, ends: &[Arrival], now: Instant) {
        for end in ends {
            let Some(part) = &end.part else {
                self.exchanges.delivered(peer, end.exchange, now);
                continue;
            };
            let groups = |object| {
                let masks =
                    part.iter().filter(|(received, _)| *received == object).map(|(_, mask)| *mask);
                masks.reduce(GroupMask::with)
            };
            self.exchanges.arrived(peer, end.exchange, groups, now);
        }
    }

    /// Takes a claim from the view of a participant. Only its own ones take an object. Of claims for others, the one that
    /// they name learns of the conflict and claims its object itself.
    fn take_claim(&mut self, claim: &Claim, by: PeerId, now: Instant) {
        let Some((object, own)) = self.own_claim(&claim.path) else { return };
        if claim.owner == self.id {
            self.claim(own, by, now);
        } else if claim.owner != by {
        } else if self.hand_overs.goes_to(object, claim) {
            self.yield_to(object, claim.clone(), now);
        } else if claim.takes(&own) && !self.adopted.is_past(object, claim, &own) {
            self.contests.note(object, claim.clone(), now);
        }
    }

    /// Forgets participants that are silent, and returns when the next one may be.
    pub(super) fn forget_silent(&mut self, now: Instant) -> Option<Instant> {
        while let Some(id) = self.silences.due(now) {
            match self.peers.get(&id).map(|peer| peer.heard + SILENCE) {
                Some(end) if end <= now => self.forget(id, false, now),
                later => self.silences.set(id, later),
            }
        }
        self.silences.first().map(|(at, _)| at)
    }

    fn forget(&mut self, id: PeerId, leaves: bool, now: Instant) {
        let Some(peer) = self.peers.remove(&id) else { return };
        self.places.free_of(id.node(), 1);
        self.silences.set(id, None);
        self.overdue.set(id, None);
        self.stop_serving(id);
        self.replicas.leave(id, !leaves);
        for object in self.hand_overs.abandon(id) {
            self.owned.keep(object);
            self.events.push_back(WorldEvent::Kept(object, id));
        }
        let mut about = peer.about.clone();
        if let Some(about) = &about {
            self.events.push_back(WorldEvent::Left(id, about.name.clone()));
        }
        if leaves {
            about = None;
        }
        self.remember(id, peer.remember(about), now);
    }
}

impl Claim {
    /// Returns whether its owner outranks that of another claim, which yields.
    fn takes(&self, other: &Self) -> bool {
        other.ownership.yields
            && outranks((self.owner, self.ownership), (other.owner, other.ownership))
    }
}

impl Packet {
    /// Returns the participant that made it.
    #[must_use]
    pub const fn from(&self) -> PeerId {
        match self {
            Self::Fragment(fragment) => fragment.owner,
            Self::PeerDescription(about) => about.peer,
            Self::ObserverView(view) => view.peer,
            Self::Hand(hand) => hand.from,
        }
    }
}

impl ReplicaEvent {
    /// Returns the path of the object.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Created(path)
            | Self::Changed(path, _)
            | Self::Deleted(path)
            | Self::Withdrawn(path)
            | Self::OwnerChanged(path, _)
            | Self::Lost(path) => path,
        }
    }
}
