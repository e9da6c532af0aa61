//! Packets to other participants.

use super::peer::Peer;
use super::{Destination, Outgoing, PUBLISH_MAX, Participant, SILENCE, WorldEvent, WorldTime};
use crate::exchange::{Exchange, ExchangeClass, ExchangeList, ExchangeUpdate, UpdateKind};
use crate::flight::Flight;
use crate::ids::{ObjectIndex, PeerId};
use crate::pack::{OutgoingUpdate, pack};
use crate::packet::{
    Fate, Fragment, ObserverView, Packet, PeerDescription, UpdateClass, UpdateRecord,
};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The time between two views of an observer that moves or receives.
const VIEW: Duration = Duration::from_millis(100);
/// The time between two views of a participant that does neither.
const IDLE_VIEW: Duration = Duration::from_millis(1_000);

/// The greatest number of messages of one call, so that decisions, and promised updates that become due meanwhile, wait for
/// a few milliseconds at most.
const MESSAGES_MAX: usize = 64;

/// How objects that are no longer owned have ended, until all observers know.
#[derive(Debug, Default)]
pub(super) struct Fates {
    ended: BTreeMap<ObjectIndex, Fate>,
    cleaned: Instant,
}

impl Fates {
    /// The time between two searches for objects whose end all observers know.
    const CLEAN: Duration = Duration::from_secs(1);

    pub(super) fn insert(&mut self, index: ObjectIndex, fate: Fate) {
        self.ended.insert(index, fate);
    }

    fn clean(&mut self, exchanges: &ExchangeList, now: Instant) {
        if !self.ended.is_empty() && now.since(self.cleaned) >= Self::CLEAN {
            self.cleaned = now;
            self.ended.retain(|index, _| exchanges.is_known(*index));
        }
    }
}

/// Returns the earliest of some times, after `now`.
fn after(now: Instant, wakes: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    wakes.into_iter().flatten().min().map(|wake| wake.max(now + Duration::from_nanos(1)))
}

impl Participant {
    /// Makes the packets that are due, and returns when to call it again at the latest. [`Self::outgoing`] returns
    /// them.
    pub fn poll(&mut self, time: WorldTime) -> Option<Instant> {
        let wake = self.poll_decisions(time);
        wake.into_iter().chain(self.poll_messages(time)).min()
    }

    /// The first part of [`Self::poll`]: ends what has timed out, and decides on updates. Its modules run to
    /// completion, and so do those of the second part.
    pub fn poll_decisions(&mut self, time: WorldTime) -> Option<Instant> {
        let WorldTime { now, .. } = time;
        let silent = self.forget_silent(now);
        let remembered = self.forget_silent_for_long(now);
        self.replicas.expire(now);
        let resolved = self.resolve(now);
        let retried = self.retry(now);
        let reported = self.report_conflicts(now);
        self.publish(now);
        let expiry = self.expire(now);
        self.decide(now);
        after(
            now,
            [silent, remembered, expiry, resolved, retried, reported, Some(self.own.publish_at)],
        )
    }

    /// The second part of [`Self::poll`]: makes messages that are due, and their fragments. If there are too many for one
    /// call, it returns a time that is due at once.
    pub fn poll_messages(&mut self, time: WorldTime) -> Option<Instant> {
        let WorldTime { now, .. } = time;
        self.hand(now);
        let complete = self.exchange(time);
        self.announce(time);
        let own = if complete { self.exchanges.next_wake() } else { Some(now) };
        let announced = self.announcements.first().map(|(at, _)| at);
        after(now, [own, announced, self.hand_overs.next_wake(), Some(self.own.view_at)])
    }

    /// Returns the next packet to send.
    pub fn outgoing(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    /// Returns the packet that reports that it leaves.
    #[must_use]
    pub fn farewell(&mut self) -> Outgoing {
        let view = ObserverView { leaving: true, acks: Vec::new(), ..self.view(self.own.view_at) };
        Outgoing { to: Destination::ObserverView, payload: Packet::ObserverView(view).encode() }
    }

    fn publish(&mut self, now: Instant) {
        if std::mem::take(&mut self.own.unpublished) || now >= self.own.publish_at {
            self.own.publish_at = now + self.own.publish_again;
            self.own.publish_again = self.own.publish_again.mul_div(2, 1).min(PUBLISH_MAX);
            let about = PeerDescription {
                peer: self.id,
                name: self.name.clone(),
                revision: self.own.revision,
                schemas: self.schemas.values().map(|schema| (**schema).clone()).collect(),
                sizes: self.own.sizes,
                interest: self.own.interest.clone(),
                workers: self.workers,
            };
            self.outgoing.push_back(Outgoing {
                to: Destination::PeerDescription,
                payload: Packet::PeerDescription(about).encode(),
            });
        }
        if now < self.own.view_at {
            return;
        }
        let idle = self.own.viewed.is_some_and(|viewed| now.since(viewed) < IDLE_VIEW);
        let news = self.peers.values().any(Peer::has_news);
        self.own.view_at = now + VIEW;
        if !news && self.claims.is_empty() && !self.own.moved && idle {
            return;
        }
        let view = self.view(now);
        self.own.moved = false;
        self.own.viewed = Some(now);
        self.outgoing.push_back(Outgoing {
            to: Destination::ObserverView,
            payload: Packet::ObserverView(view).encode(),
        });
    }

    fn view(&mut self, now: Instant) -> ObserverView {
        let mut acks = Vec::new();
        for (owner, peer) in &mut self.peers {
            if acks.len() + 2 <= ObserverView::ACKS_MAX {
                peer.acks(*owner, &mut acks);
            }
        }
        let number = self.own.view;
        self.own.view = number.wrapping_add(1);
        ObserverView {
            peer: self.id,
            number,
            motion: self.own.motion,
            direction: self.own.direction,
            parts: self.own.costs.charged(),
            acks,
            claims: self.claims.publish(now),
            leaving: false,
        }
    }

    /// Counts overdue fragments as lost, and returns when the next one may be overdue.
    fn expire(&mut self, now: Instant) -> Option<Instant> {
        while let Some(id) = self.overdue.due(now) {
            self.expire_of(id, now);
        }
        self.overdue.first().map(|(at, _)| at)
    }

    /// Counts overdue fragments to a participant as lost, and settles its exchanges that have ended.
    pub(super) fn expire_of(&mut self, id: PeerId, now: Instant) {
        let next = self.peers.get_mut(&id).and_then(|peer| peer.expire(now));
        self.overdue.set(id, next);
        let ends = self.peers.get_mut(&id).map(|peer| peer.open.ended());
        self.settle(id, &ends.unwrap_or_default(), now);
    }

    fn hand(&mut self, now: Instant) {
        let outgoing = &mut self.outgoing;
        let late = self.hand_overs.poll(now, |to, hand| {
            let to = Destination::Peer(to, UpdateClass::BestEffort);
            outgoing.push_back(Outgoing { to, payload: Packet::Hand(hand.clone()).encode() });
        });
        for (object, to) in late {
            self.owned.keep(object);
            self.events.push_back(WorldEvent::Kept(object, to));
        }
    }

    /// Makes messages that are due, and returns whether these were all.
    fn exchange(&mut self, time: WorldTime) -> bool {
        let largest = self.settings.fragment_bytes as u64;
        let mut complete = false;
        for _ in 0..MESSAGES_MAX {
            let peers = &self.peers;
            let budget = |peer: PeerId| {
                peers.get(&peer).map_or(0, |peer| peer.flights.best_effort.room() as u64)
            };
            let Some(exchange) = self.exchanges.poll(time.now, &budget, largest) else {
                complete = true;
                break;
            };
            self.message(&exchange, time);
        }
        self.fates.clean(&self.exchanges, time.now);
        complete
    }

    /// Informs observers that objects are introduced to them anew. An observer that has replicas of an earlier run
    /// must end them even if no object is left.
    fn announce(&mut self, time: WorldTime) {
        while let Some(id) = self.announcements.due(time.now) {
            let peer = self.peers.get_mut(&id).filter(|peer| !peer.has_begun());
            let again = peer.is_some().then(|| time.now + Flight::TIMEOUT);
            self.announcements.set(id, again);
            let Some(peer) = peer else { continue };
            self.stamp = time.stamp.max(self.stamp.saturating_add(1));
            let number = peer.flights.best_effort.send_empty(Fragment::HEADER, time.now);
            let packet = Packet::Fragment(Fragment {
                owner: self.id,
                run: peer.run(),
                number,
                position: 0,
                count: 1,
                sent: self.stamp,
                error: time.error,
                updates: Vec::new(),
            });
            let to = Destination::Peer(id, UpdateClass::BestEffort);
            self.outgoing.push_back(Outgoing { to, payload: packet.encode() });
            self.overdue.advance(id, time.now + Flight::TIMEOUT);
        }
    }

    /// Returns the update of an object for a message; `None` if the object has ended since.
    fn record(&self, update: &ExchangeUpdate, now: Instant) -> Option<OutgoingUpdate> {
        let ended = self.fates.ended.get(&update.object);
        let empty = UpdateRecord {
            object: update.object,
            introduction: None,
            fate: None,
            age: 0,
            groups: Vec::new(),
        };
        let bare = |fate| OutgoingUpdate {
            record: UpdateRecord { fate: Some(fate), ..empty.clone() },
            state_bytes: 0,
            fidelity_permille: 1_000,
        };
        match (update.kind, self.owned.get(update.object), ended) {
            (UpdateKind::Delete, _, Some(fate)) => Some(bare(*fate)),
            (UpdateKind::Withdraw, _, _) => Some(bare(Fate::Withdrawn)),
            (UpdateKind::Introduce | UpdateKind::Change | UpdateKind::Refresh, Some(object), _) => {
                let groups = update
                    .groups
                    .iter()
                    .filter_map(|group| Some((group, object.group(group)?.clone())));
                let age = object
                    .changed(update.groups)
                    .map_or(0, |changed| now.since(changed).as_micros());
                let introduction = update.kind.introduces().then(|| object.introduction());
                let record = UpdateRecord { introduction, age, groups: groups.collect(), ..empty };
                let fidelity_permille = update.fidelity_permille;
                Some(OutgoingUpdate {
                    record,
                    state_bytes: object.state_bytes(),
                    fidelity_permille,
                })
            }
            (UpdateKind::Delete, _, None)
            | (UpdateKind::Introduce | UpdateKind::Change | UpdateKind::Refresh, None, _) => None,
        }
    }

    /// Returns the time stamp of the next message. It is greater than the last one although the clock may be set back, so
    /// that no state is older than the one before.
    fn stamp(&mut self, time: WorldTime) -> u64 {
        self.stamp = time.stamp.max(self.stamp.saturating_add(1));
        self.stamp
    }

    /// Makes the fragments of a message.
    fn message(&mut self, exchange: &Exchange, time: WorldTime) {
        let updates =
            exchange.updates.iter().filter_map(|update| self.record(update, time.now)).collect();
        let modules = self.interests.get(&exchange.peer).map(|interest| interest.modules);
        let limit = modules.unwrap_or_default().fragment_bytes(self.settings.fragment_bytes);
        let packed = pack(updates, limit);
        let sent = self.stamp(time);
        let Some(peer) = self.peers.get_mut(&exchange.peer) else { return };
        if packed.is_empty() {
            self.exchanges.delivered(exchange.peer, exchange.number, time.now);
            return;
        }
        let count = u16::try_from(packed.len()).unwrap_or(u16::MAX);
        for (position, fragment) in packed.into_iter().enumerate() {
            let class = match exchange.class {
                ExchangeClass::Promised if !fragment.losable => UpdateClass::Promised,
                ExchangeClass::Promised | ExchangeClass::BestEffort => UpdateClass::BestEffort,
            };
            let useful: usize = fragment.updates.iter().map(UpdateRecord::len).sum();
            let content =
                fragment.updates.iter().map(|update| (update.object, update.mask())).collect();
            let run = peer.run();
            let bytes = Fragment::HEADER + useful;
            let Peer { flights, open, .. } = peer;
            let number = flights.get(class).send(exchange.number, content, bytes, open, time.now);
            let packet = Packet::Fragment(Fragment {
                owner: self.id,
                run,
                number,
                position: u16::try_from(position).unwrap_or(u16::MAX),
                count,
                sent,
                error: time.error,
                updates: fragment.updates,
            });
            let to = Destination::Peer(exchange.peer, class);
            self.outgoing.push_back(Outgoing { to, payload: packet.encode() });
        }
        self.overdue.advance(exchange.peer, time.now + Flight::TIMEOUT);
    }
}

/// A participant that is silent for longer than this is gone, so views are more frequent.
const _: () = assert!(IDLE_VIEW.as_nanos() * 2 < SILENCE.as_nanos());
