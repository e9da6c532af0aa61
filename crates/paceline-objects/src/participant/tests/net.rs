//! A network of participants in virtual time.

use crate::ids::{ObjectIndex, PeerId};
use crate::interest::Interest;
use crate::owned::ObjectError;
use crate::packet::{Packet, UpdateClass};
use crate::participant::{
    Destination, Outgoing, Participant, ParticipantSettings, ReceivedPacket, WorldEvent, WorldTime,
};
use crate::schema::{FieldValue, Schema};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The effects of the network.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) delay: Duration,
    /// Packets arrive up to this much later, in any order.
    pub(super) jitter: Duration,
    /// In percent.
    pub(super) loss: u64,
    pub(super) seed: u64,
}

impl Default for Link {
    fn default() -> Self {
        Self { delay: Duration::from_millis(10), jitter: Duration::from_nanos(0), loss: 0, seed: 1 }
    }
}

impl Link {
    pub(super) fn lossy() -> Self {
        Self { jitter: Duration::from_millis(30), loss: 20, ..Self::default() }
    }
}

struct InFlight {
    from: usize,
    to: usize,
    class: UpdateClass,
    sent: Instant,
    payload: Vec<u8>,
}

pub(super) struct Net {
    link: Link,
    now: Instant,
    random: u64,
    peers: Vec<Option<Participant>>,
    abouts: Vec<Option<Vec<u8>>>,
    flying: BTreeMap<(Instant, u64), InFlight>,
    next: u64,
    cuts: BTreeSet<(usize, usize)>,
    events: Vec<Vec<WorldEvent>>,
    /// The bytes of fragments.
    pub(super) update_bytes: usize,
    /// The times of promised fragments.
    pub(super) promised: Vec<Instant>,
    /// The greatest number of fragments of one call.
    pub(super) fragments_at_once: usize,
}

impl Net {
    pub(super) fn new(link: Link, names: &[&str]) -> Self {
        Self::with(link, names, ParticipantSettings::default())
    }

    pub(super) fn with(link: Link, names: &[&str], settings: ParticipantSettings) -> Self {
        let now = Instant::from_millis(1_000);
        let peer = |(index, name): (usize, &&str)| {
            Some(
                Participant::new(PeerId(index as u128 + 1), name, settings, now)
                    .expect("valid settings"),
            )
        };
        Self {
            link,
            now,
            random: link.seed | 1,
            peers: names.iter().enumerate().map(peer).collect(),
            abouts: vec![None; names.len()],
            flying: BTreeMap::new(),
            next: 0,
            cuts: BTreeSet::new(),
            events: vec![Vec::new(); names.len()],
            update_bytes: 0,
            promised: Vec::new(),
            fragments_at_once: 0,
        }
    }

    fn peer(&mut self, index: usize) -> &mut Participant {
        self.peers[index].as_mut().expect("it has not left")
    }

    fn time(&self) -> WorldTime {
        WorldTime {
            now: self.now,
            stamp: 1_700_000_000_000_000_000 + self.now.as_nanos(),
            error: 255,
        }
    }

    fn draw(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit.max(1)
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        let step = Duration::from_millis(1);
        loop {
            self.deliver();
            for index in 0..self.peers.len() {
                let time = self.time();
                let Some(peer) = &mut self.peers[index] else { continue };
                peer.poll(time);
                let outgoing: Vec<_> = std::iter::from_fn(|| peer.outgoing()).collect();
                let fragments = outgoing.iter().filter(|it| matches!(it.to, Destination::Peer(..)));
                self.fragments_at_once = self.fragments_at_once.max(fragments.count());
                self.events[index].extend(std::iter::from_fn(|| peer.event()));
                for packet in outgoing {
                    self.send(index, packet);
                }
            }
            if self.now >= end {
                break;
            }
            self.now = (self.now + step).min(end);
        }
    }

    fn send(&mut self, from: usize, Outgoing { to, payload }: Outgoing) {
        let all = 0..self.peers.len();
        match to {
            Destination::PeerDescription => {
                self.abouts[from] = Some(payload.clone());
                all.filter(|to| *to != from)
                    .for_each(|to| self.fly(from, to, UpdateClass::BestEffort, &payload, false));
            }
            Destination::ObserverView => {
                all.filter(|to| *to != from)
                    .for_each(|to| self.fly(from, to, UpdateClass::BestEffort, &payload, true));
            }
            Destination::Peer(peer, class) => {
                let to = usize::try_from(peer.0 - 1).expect("small");
                if matches!(Packet::decode(&payload), Ok(Packet::Fragment(_))) {
                    self.update_bytes += payload.len();
                    if class == UpdateClass::Promised {
                        self.promised.push(self.now);
                    }
                }
                self.fly(from, to, class, &payload, true);
            }
        }
    }

    fn fly(&mut self, from: usize, to: usize, class: UpdateClass, payload: &[u8], losable: bool) {
        let lost = self.draw(100) < self.link.loss;
        if (losable && lost) || self.cuts.contains(&(from, to)) {
            return;
        }
        let jitter = Duration::from_nanos(self.draw(self.link.jitter.as_nanos() + 1));
        let arrival = self.now + self.link.delay + jitter;
        self.next += 1;
        let packet = InFlight { from, to, class, sent: self.now, payload: payload.to_vec() };
        self.flying.insert((arrival, self.next), packet);
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let packet = entry.remove();
            if self.cuts.contains(&(packet.from, packet.to)) {
                continue;
            }
            let time = self.time();
            let age = self.now.since(packet.sent);
            let received = ReceivedPacket {
                bytes: &packet.payload,
                class: packet.class,
                age,
                node: 0,
                channel: Some(PeerId(packet.from as u128 + 1)),
            };
            if let Some(peer) = &mut self.peers[packet.to] {
                peer.receive(&received, time).expect("a packet");
            }
        }
    }

    /// Cuts or joins two participants; after a cut they receive each other's description again.
    pub(super) fn cut(&mut self, one: usize, other: usize, cut: bool) {
        self.cut_one_way(one, other, cut);
        self.cut_one_way(other, one, cut);
    }

    pub(super) fn cut_one_way(&mut self, from: usize, to: usize, cut: bool) {
        if cut {
            self.cuts.insert((from, to));
            return;
        }
        self.cuts.remove(&(from, to));
        if let Some(about) = self.abouts[from].clone() {
            self.fly(from, to, UpdateClass::BestEffort, &about, false);
        }
    }

    /// Ends losses and cuts.
    pub(super) fn settle(&mut self) {
        self.link.loss = 0;
        for (from, to) in std::mem::take(&mut self.cuts) {
            self.cut_one_way(from, to, false);
        }
    }

    pub(super) fn try_create(
        &mut self,
        peer: usize,
        path: &str,
        schema: &Schema,
    ) -> Result<ObjectIndex, ObjectError> {
        let now = self.now;
        self.peer(peer).create(path, schema, &[], now)
    }

    pub(super) fn create(
        &mut self,
        peer: usize,
        path: &str,
        schema: &Schema,
        fields: &[(&str, FieldValue)],
    ) -> ObjectIndex {
        let now = self.now;
        self.peer(peer).create(path, schema, fields, now).expect("a new object")
    }

    pub(super) fn try_set(
        &mut self,
        peer: usize,
        object: ObjectIndex,
        fields: &[(&str, FieldValue)],
    ) -> Result<(), ObjectError> {
        let now = self.now;
        self.peer(peer).set(object, fields, now).map(|_| ())
    }

    pub(super) fn set(&mut self, peer: usize, object: ObjectIndex, fields: &[(&str, FieldValue)]) {
        self.try_set(peer, object, fields).expect("an own object");
    }

    pub(super) fn delete(&mut self, peer: usize, object: ObjectIndex) {
        let now = self.now;
        self.peer(peer).delete(object, now).expect("an own object");
    }

    pub(super) fn try_hand_over(
        &mut self,
        peer: usize,
        object: ObjectIndex,
        to: usize,
    ) -> Result<(), ObjectError> {
        let now = self.now;
        self.peer(peer).hand_over(object, PeerId(to as u128 + 1), now)
    }

    pub(super) fn hand_over(&mut self, peer: usize, object: ObjectIndex, to: usize) {
        self.try_hand_over(peer, object, to).expect("a known participant");
    }

    pub(super) fn observe(&mut self, peer: usize, interest: Option<Interest>) {
        self.peer(peer).observe(interest).expect("a valid interest");
    }

    pub(super) fn grant(&mut self, owner: usize, observer: usize) {
        let now = self.now;
        let observer = PeerId(observer as u128 + 1);
        let service = self.peer(owner).promised_service(observer);
        self.peer(owner).grant(observer, service, now);
    }

    pub(super) fn look(&mut self, peer: usize, position: [f64; 3]) {
        self.peer(peer).look(position, [0.0; 3], None);
    }

    pub(super) fn leave(&mut self, peer: usize) {
        let packet = self.peer(peer).farewell();
        self.send(peer, packet);
        self.peers[peer] = None;
    }

    pub(super) fn owned(&mut self, peer: usize, path: &str) -> Option<ObjectIndex> {
        self.peer(peer).owned().find(path)
    }

    pub(super) fn value(&mut self, peer: usize, path: &str, field: &str) -> Option<FieldValue> {
        self.peer(peer).replicas().get(path)?.value(field).cloned()
    }

    pub(super) fn replicas(&mut self, peer: usize) -> usize {
        self.peer(peer).replicas().len()
    }

    pub(super) fn refused_replicas(&mut self, peer: usize) -> u64 {
        self.peer(peer).replicas().counts().too_many
    }

    pub(super) fn events(&self, peer: usize) -> &[WorldEvent] {
        &self.events[peer]
    }

    /// Panics unless each object has one owner, and all others have its state.
    pub(super) fn check_equal(&self) {
        let mut owners = BTreeMap::new();
        for peer in self.peers.iter().flatten() {
            for (_, object) in peer.owned().iter() {
                let known =
                    owners.insert(object.path().to_owned(), (peer.id(), object.values().to_vec()));
                assert!(
                    known.is_none(),
                    "{} has two owners: {known:?} and {}",
                    object.path(),
                    peer.id()
                );
            }
        }
        for peer in self.peers.iter().flatten() {
            let others: BTreeMap<_, _> = owners
                .iter()
                .filter(|(_, (owner, _))| *owner != peer.id())
                .map(|(path, (owner, values))| (path.as_str(), (*owner, values.as_slice())))
                .collect();
            let known: BTreeMap<_, _> =
                peer.replicas().iter().map(|replica| (&**replica.path(), replica)).collect();
            assert_eq!(
                known.keys().collect::<Vec<_>>(),
                others.keys().collect::<Vec<_>>(),
                "objects that {} knows, and those that there are",
                peer.id()
            );
            for (path, replica) in known {
                let (owner, values) = others[path];
                assert_eq!(replica.owner(), owner, "{path} at {}", peer.id());
                let missing = |field: &Option<FieldValue>| field.clone();
                for (field, value) in values.iter().map(missing).enumerate() {
                    if value.is_some() {
                        assert_eq!(replica.values()[field], value, "{path} at {}", peer.id());
                    }
                }
            }
        }
    }
}
