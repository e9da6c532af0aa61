//! Honest participants in virtual time, and a hostile node that sends them any bytes.

use paceline_objects::packet::{
    Claim, Fate, Fragment, Introduction, ObserverView, Ownership, Packet, PeerDescription,
    UpdateClass, UpdateRecord,
};
use paceline_objects::participant::{
    Destination, Outgoing, Participant, ParticipantSettings, ReceivedPacket, WorldEvent, WorldTime,
};
use paceline_objects::replicas::ReplicaEvent;
use paceline_objects::{FieldValue, Interest, ObjectIndex, PeerId, Schema};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The number of the hostile node.
pub(crate) const HOSTILE: u64 = 0xbad;
const DELAY: Duration = Duration::from_millis(10);
const START_STAMP: u64 = 1_700_000_000_000_000_000;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn car() -> Schema {
    Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}").expect("valid")
}

pub(crate) fn fast() -> Interest {
    Interest::every(ms(50))
}

/// Settings of a participant whose objects do not yield.
pub(crate) fn keeps() -> ParticipantSettings {
    ParticipantSettings { yields: false, ..ParticipantSettings::default() }
}

/// Returns a participant of the hostile node.
pub(crate) const fn intruder(number: u64) -> PeerId {
    PeerId::of_node(HOSTILE, number)
}

struct InFlight {
    to: usize,
    channel: PeerId,
    node: u64,
    class: UpdateClass,
    sent: Instant,
    payload: Vec<u8>,
}

pub(crate) struct Net {
    pub(crate) now: Instant,
    pub(crate) peers: Vec<Participant>,
    pub(crate) events: Vec<Vec<WorldEvent>>,
    /// The newest packets of honest participants that the hostile node has received.
    pub(crate) heard: VecDeque<Vec<u8>>,
    wakes: Vec<Instant>,
    abouts: Vec<Option<Vec<u8>>>,
    flying: BTreeMap<(Instant, u64), InFlight>,
    next: u64,
    /// The number of updates for participants of the hostile node.
    pub(crate) updates_heard: u64,
    /// The sender and receiver whose updates are lost.
    pub(crate) lost: Option<(usize, usize)>,
    /// Participants that nobody reaches, and that reach nobody.
    cut: BTreeSet<usize>,
    /// The error of the clock of each participant in nanoseconds.
    pub(crate) skew: Vec<i64>,
    hostile_number: u32,
}

impl Net {
    pub(crate) fn new(settings: &[ParticipantSettings]) -> Self {
        let mut net = Self {
            now: Instant::from_millis(1_000),
            peers: Vec::new(),
            events: Vec::new(),
            heard: VecDeque::new(),
            wakes: Vec::new(),
            abouts: Vec::new(),
            flying: BTreeMap::new(),
            next: 0,
            updates_heard: 0,
            lost: None,
            cut: BTreeSet::new(),
            skew: Vec::new(),
            hostile_number: 0,
        };
        settings.iter().for_each(|settings| {
            net.join(*settings);
        });
        net
    }

    /// Adds a participant of a node of its own, which receives the descriptions of the others.
    pub(crate) fn join(&mut self, settings: ParticipantSettings) -> usize {
        let index = self.peers.len();
        let node = index as u64 + 1;
        self.join_as(PeerId::of_node(node, 100 + node), settings)
    }

    pub(crate) fn join_as(&mut self, id: PeerId, settings: ParticipantSettings) -> usize {
        let index = self.peers.len();
        let name = format!("honest-{index}");
        self.peers.push(Participant::new(id, &name, settings, self.now).expect("valid settings"));
        self.events.push(Vec::new());
        self.wakes.push(self.now);
        self.abouts.push(None);
        self.skew.push(0);
        self.describe_all_to(index);
        index
    }

    fn describe_all_to(&mut self, to: usize) {
        for from in 0..self.peers.len() {
            if from != to
                && let Some(about) = self.abouts[from].clone()
            {
                self.fly(from, to, UpdateClass::BestEffort, about);
            }
        }
    }

    pub(crate) fn id(&self, peer: usize) -> PeerId {
        self.peers[peer].id()
    }

    fn time(&self, peer: usize) -> WorldTime {
        let stamp = (START_STAMP + self.now.as_nanos()).saturating_add_signed(self.skew[peer]);
        WorldTime { now: self.now, stamp, error: 255 }
    }

    /// Lets time pass from one event to the next.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.deliver();
            for index in 0..self.peers.len() {
                if self.wakes[index] <= self.now {
                    self.poll(index);
                }
            }
            let wake = self.wakes.iter().min().copied();
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let next = wake.into_iter().chain(arrival).min().unwrap_or(end);
            if self.now >= end {
                return;
            }
            self.now = next.max(self.now).min(end);
        }
    }

    /// Lets time pass, and calls `act` at regular intervals.
    pub(crate) fn run_with(
        &mut self,
        time: Duration,
        every: Duration,
        mut act: impl FnMut(&mut Self),
    ) {
        let end = self.now + time;
        while self.now < end {
            act(self);
            self.run(every.min(end.since(self.now)));
        }
    }

    fn poll(&mut self, index: usize) {
        let time = self.time(index);
        let peer = &mut self.peers[index];
        let wake = peer.poll(time).unwrap_or(self.now + ms(500));
        self.wakes[index] = wake.max(self.now + Duration::from_micros(100));
        let outgoing: Vec<_> = std::iter::from_fn(|| peer.outgoing()).collect();
        self.events[index].extend(std::iter::from_fn(|| peer.event()));
        for packet in outgoing {
            self.send(index, packet);
        }
    }

    fn send(&mut self, from: usize, Outgoing { to, payload }: Outgoing) {
        let others = (0..self.peers.len()).filter(|to| *to != from);
        match to {
            Destination::PeerDescription => {
                self.abouts[from] = Some(payload.clone());
                self.hear(&payload);
                others.for_each(|to| self.fly(from, to, UpdateClass::BestEffort, payload.clone()));
            }
            Destination::ObserverView => {
                self.hear(&payload);
                others.for_each(|to| self.fly(from, to, UpdateClass::BestEffort, payload.clone()));
            }
            Destination::Peer(id, class) => {
                match self.peers.iter().position(|peer| peer.id() == id) {
                    Some(to) if self.lost == Some((from, to)) => {}
                    Some(to) => self.fly(from, to, class, payload),
                    None => {
                        self.updates_heard += 1;
                        self.hear(&payload);
                    }
                }
            }
        }
    }

    fn hear(&mut self, payload: &[u8]) {
        self.heard.push_back(payload.to_vec());
        if self.heard.len() > 64 {
            self.heard.pop_front();
        }
    }

    fn fly(&mut self, from: usize, to: usize, class: UpdateClass, payload: Vec<u8>) {
        if self.cut.contains(&from) || self.cut.contains(&to) {
            return;
        }
        let channel = self.id(from);
        self.launch(InFlight { to, channel, node: channel.node(), class, sent: self.now, payload });
    }

    fn launch(&mut self, packet: InFlight) {
        self.next += 1;
        self.flying.insert((self.now + DELAY, self.next), packet);
    }

    /// Sends bytes from the hostile node to everybody who is not cut off, on the channel of any participant.
    pub(crate) fn inject(&mut self, channel: PeerId, payload: &[u8]) {
        for to in 0..self.peers.len() {
            self.inject_to(to, channel, payload);
        }
    }

    pub(crate) fn inject_to(&mut self, to: usize, channel: PeerId, payload: &[u8]) {
        if !self.cut.contains(&to) {
            let (node, class) = (HOSTILE, UpdateClass::BestEffort);
            let payload = payload.to_vec();
            self.launch(InFlight { to, channel, node, class, sent: self.now, payload });
        }
    }

    /// Sends a packet of a participant of the hostile node.
    pub(crate) fn hostile(&mut self, packet: &Packet) {
        self.inject(packet.from(), &packet.encode());
    }

    /// Sends the next view of a participant of the hostile node, with claims.
    pub(crate) fn hostile_view(&mut self, peer: PeerId, claims: Vec<Claim>) {
        self.hostile_number += 1;
        let view = view(peer, self.hostile_number, claims);
        self.hostile(&Packet::ObserverView(view));
    }

    /// Sends a fragment of a participant of the hostile node.
    pub(crate) fn hostile_fragment(&mut self, owner: PeerId, updates: Vec<UpdateRecord>) {
        let sent = START_STAMP + self.now.as_nanos();
        self.hostile_fragment_at(owner, sent, updates);
    }

    /// As [`Self::hostile_fragment`], with a time stamp.
    pub(crate) fn hostile_fragment_at(
        &mut self,
        owner: PeerId,
        sent: u64,
        updates: Vec<UpdateRecord>,
    ) {
        self.hostile_number += 1;
        let (number, position, count) = (self.hostile_number, 0, 1);
        let packet = Fragment { owner, run: 1, number, position, count, sent, error: 255, updates };
        self.hostile(&Packet::Fragment(packet));
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let packet = entry.remove();
            if self.cut.contains(&packet.to) {
                continue;
            }
            // The receiver compares the stamp of the sender with its own clock.
            let sender = self.peers.iter().position(|peer| peer.id() == packet.channel);
            let error = self.skew[packet.to] - sender.map_or(0, |from| self.skew[from]);
            let age = self.now.since(packet.sent).as_nanos().saturating_add_signed(error);
            let received = ReceivedPacket {
                bytes: &packet.payload,
                class: packet.class,
                age: Duration::from_nanos(age),
                node: packet.node,
                channel: Some(packet.channel),
            };
            let time = self.time(packet.to);
            let result = self.peers[packet.to].receive(&received, time);
            assert!(result.is_ok() || packet.node == HOSTILE, "an honest packet: {result:?}");
            self.wakes[packet.to] = self.now;
        }
    }

    /// Cuts a participant off, or joins it again.
    pub(crate) fn cut(&mut self, peer: usize, cut: bool) {
        if cut {
            self.cut.insert(peer);
        } else if self.cut.remove(&peer) {
            self.describe_all_to(peer);
            if let Some(about) = self.abouts[peer].clone() {
                let others = (0..self.peers.len()).filter(|to| *to != peer);
                others.for_each(|to| self.fly(peer, to, UpdateClass::BestEffort, about.clone()));
            }
        }
    }

    /// As [`Self::cut`], without a new delivery of descriptions.
    pub(crate) fn cut_quietly(&mut self, peer: usize, cut: bool) {
        if cut {
            self.cut.insert(peer);
        } else {
            self.cut.remove(&peer);
        }
    }

    pub(crate) fn observe_all(&mut self) {
        for peer in &mut self.peers {
            peer.observe(Some(fast())).expect("valid");
        }
        self.wakes.fill(self.now);
    }

    pub(crate) fn create(&mut self, peer: usize, path: &str, paint: &str) -> ObjectIndex {
        let created = self.try_create(peer, path, paint);
        created.expect("a new object")
    }

    pub(crate) fn try_create(
        &mut self,
        peer: usize,
        path: &str,
        paint: &str,
    ) -> Result<ObjectIndex, paceline_objects::owned::ObjectError> {
        self.wakes[peer] = self.now;
        let now = self.now;
        self.peers[peer].create(path, &car(), &[("paint", paint.into())], now)
    }

    pub(crate) fn set(&mut self, peer: usize, object: ObjectIndex, fields: &[(&str, FieldValue)]) {
        self.wakes[peer] = self.now;
        let now = self.now;
        self.peers[peer].set(object, fields, now).expect("an own object");
    }

    pub(crate) fn look(&mut self, peer: usize, position: [f64; 3]) {
        self.wakes[peer] = self.now;
        self.peers[peer].look(position, [0.0; 3], None);
    }

    pub(crate) fn paint(&mut self, peer: usize, object: ObjectIndex, paint: &str) {
        self.wakes[peer] = self.now;
        let now = self.now;
        self.peers[peer].set(object, &[("paint", paint.into())], now).expect("an own object");
    }

    pub(crate) fn hand_over(&mut self, peer: usize, object: ObjectIndex, to: usize) {
        self.wakes[peer] = self.now;
        let (now, to) = (self.now, self.id(to));
        self.peers[peer].hand_over(object, to, now).expect("an own object");
    }

    pub(crate) fn delete(&mut self, peer: usize, object: ObjectIndex) {
        self.wakes[peer] = self.now;
        let now = self.now;
        self.peers[peer].delete(object, now).expect("an own object");
    }

    pub(crate) fn owned(&self, peer: usize, path: &str) -> Option<ObjectIndex> {
        self.peers[peer].owned().find(path)
    }

    /// Returns the owner of a path and its paint, as a participant knows them.
    pub(crate) fn known(&self, peer: usize, path: &str) -> Option<(PeerId, Option<FieldValue>)> {
        if let Some(object) = self.owned(peer, path) {
            let object = self.peers[peer].owned().get(object)?;
            return Some((self.id(peer), object.value("paint").cloned()));
        }
        let replica = self.peers[peer].replicas().get(path)?;
        Some((replica.owner(), replica.value("paint").cloned()))
    }

    /// Panics unless everybody knows the owner and the paint of a path.
    pub(crate) fn check(&self, path: &str, owner: usize, paint: &str) {
        for peer in 0..self.peers.len() {
            let known = self.known(peer, path);
            let wanted = Some((self.id(owner), Some(paint.into())));
            assert_eq!(known, wanted, "{path} at {peer}");
        }
    }

    /// Returns whether a participant saw a replica of a path end or change its owner.
    pub(crate) fn saw_end(&self, peer: usize, path: &str) -> bool {
        let ended = |event: &WorldEvent| {
            if let WorldEvent::Replica(
                ReplicaEvent::Deleted(it)
                | ReplicaEvent::Lost(it)
                | ReplicaEvent::OwnerChanged(it, _),
            ) = event
            {
                return **it == *path;
            }
            matches!(event, WorldEvent::Yielded(_, claim) if claim.path == path)
        };
        self.events[peer].iter().any(ended)
    }
}

pub(crate) fn view(peer: PeerId, number: u32, claims: Vec<Claim>) -> ObserverView {
    ObserverView {
        peer,
        number,
        motion: None,
        direction: None,
        parts: paceline_objects::contract::DelayParts::default(),
        acks: Vec::new(),
        claims,
        leaving: false,
    }
}

pub(crate) fn about(peer: PeerId, revision: u32, schemas: Vec<Schema>) -> PeerDescription {
    PeerDescription {
        peer,
        name: "intruder".to_owned(),
        revision,
        schemas,
        sizes: paceline_objects::contract::UpdateSizes {
            groups: 2,
            largest_group: 64,
            fragment_bytes: 1_200,
        },
        interest: None,
        workers: None,
    }
}

/// Returns an update that introduces an object with a paint.
pub(crate) fn introduction(object: u32, path: &str, ownership: Ownership) -> UpdateRecord {
    let schema = car();
    let mut values = vec![None; 3];
    values[2] = Some("stolen".into());
    let introduction =
        Introduction { path: path.to_owned(), schema: schema.fingerprint(), ownership };
    UpdateRecord {
        object: ObjectIndex(object),
        introduction: Some(introduction),
        fate: None,
        age: 0,
        groups: vec![(1, schema.encode_group(1, &values))],
    }
}

/// Returns an update that ends an object.
pub(crate) fn end(object: u32, fate: Fate) -> UpdateRecord {
    UpdateRecord {
        object: ObjectIndex(object),
        introduction: None,
        fate: Some(fate),
        age: 0,
        groups: Vec::new(),
    }
}

/// A small generator of numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).expect("small")
    }
}
