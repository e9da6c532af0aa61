//! The multicast groups of a link: one datagram for several peers on the same network segment.
//!
//! Peers that both use the groups of the same range test with probes whether datagrams arrive. Each stream for several
//! such peers has a group of its own. Its key is sent over the connections of its members, which are authenticated, and
//! replaced when a member leaves. A frame for a peer that has not joined its group goes over the connection.

mod datagram;
mod listen;
mod message;
mod replace;

use super::lock;
use super::peer::Peer;
use super::peers::Peers;
use super::{Inbound, Sent};
use crate::multicast::MulticastRange;
use crate::shell::clock;
use datagram::{Key, Part, seal};
use listen::Sources;
use message::Message;
use paceline_proto::link::GroupMembers;
use paceline_proto::wire::frame::{FrameBuf, GroupFrame};
use paceline_proto::{Form, NodeId, PublisherId};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The interval of probes until all peers have answered, and afterwards in units of this interval.
pub(super) const PROBE_EVERY: std::time::Duration = std::time::Duration::from_millis(200);
const PROBES_APART: u64 = 5;
/// The number of unanswered probes after which a peer is tested only once per [`PROBES_APART`].
const PROBES_SOON: u64 = 10;
/// A peer that has answered no probe for so long receives no datagrams of groups.
const HEARD_FOR: Duration = Duration::from_millis(3_500);
/// A peer that lost too many datagrams in a row is left out for so long.
const LEFT_OUT_FOR: Duration = Duration::from_secs(10);

/// A peer that uses the same groups.
struct Member {
    peer: Arc<Peer>,
    /// This end's address on the way to it.
    local: Ipv4Addr,
    number: u16,
    key: Key,
    /// It has sent its own [`Message::Hello`].
    takes_part: bool,
    heard: Option<Instant>,
    /// The number of probes since it was heard.
    unanswered: u64,
    left_out_until: Instant,
}

/// The group of a stream, or of the probes.
struct Group {
    id: u32,
    place: u16,
    key: Key,
    /// The number of the next datagram.
    next: u64,
    /// Its members; true for those that have joined it.
    members: BTreeMap<NodeId, bool>,
    /// The connection of a member has ended, which still has the key.
    is_left: bool,
}

impl Group {
    fn join(&self) -> Message {
        Message::Join { id: self.id, place: self.place, key: *self.key.bytes() }
    }
}

/// A group that a member has left.
struct Former {
    /// The group with the members that remain.
    group: Group,
    /// The tick at which it ends.
    ends: u64,
}

/// A group of this node, for status.
#[derive(Clone, Debug)]
pub(crate) struct GroupView {
    pub(crate) stream: (PublisherId, Form),
    pub(crate) address: SocketAddrV4,
    /// The neighbours that have joined it.
    pub(crate) members: Vec<NodeId>,
}

#[derive(Default)]
struct State {
    /// The socket that sends, on the segment of this address.
    socket: Option<(Ipv4Addr, UdpSocket)>,
    members: BTreeMap<NodeId, Member>,
    groups: BTreeMap<(PublisherId, Form), Group>,
    /// The groups that members have left, until the others have joined the new ones.
    former: BTreeMap<(PublisherId, Form), Former>,
    probes: Option<Group>,
    next_id: u32,
    next_number: u16,
    /// A random number, from which the place of the first group follows.
    first_place: u16,
    ticks: u64,
    /// The peers that received datagrams at the last look.
    able: BTreeSet<NodeId>,
    sources: Sources,
}

/// The multicast groups of a link.
pub(crate) struct Multicast {
    range: MulticastRange,
    /// The name of the link, for messages.
    link: String,
    inbound: Arc<dyn Inbound>,
    state: Mutex<State>,
    /// The number of changes that the link has to follow.
    version: AtomicU64,
}

impl Multicast {
    pub(super) fn new(range: MulticastRange, link: &str, inbound: Arc<dyn Inbound>) -> Self {
        let first_place =
            u16::try_from(getrandom::u32().unwrap_or_default() >> 17).unwrap_or_default();
        let state = Mutex::new(State { first_place, ..State::default() });
        Self { range, link: link.to_owned(), inbound, state, version: AtomicU64::new(0) }
    }

    /// Returns a number that changes whenever the link must call [`Self::want`] and [`Self::joined`] again.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn note_change(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Proposes groups to a peer that has connected from `remote`. Only IPv4 has groups here.
    pub(super) fn greet(&self, node: NodeId, peer: &Arc<Peer>, remote: SocketAddr) {
        let Some(local) = local_towards(remote) else { return };
        let Some(key) = Key::random() else { return };
        let mut state = lock(&self.state);
        state.next_number = state.next_number.wrapping_add(1);
        let number = state.next_number;
        let hello = Message::Hello { range: self.range, receiver: number, key: *key.bytes() };
        peer.outbox.put_message(&hello.encode());
        let peer = peer.clone();
        let (heard, unanswered) = (None, 0);
        let (takes_part, left_out_until) = (false, Instant::ZERO);
        let member =
            Member { peer, local, number, key, takes_part, heard, unanswered, left_out_until };
        state.members.insert(node, member);
        state.forget_joined(node);
        drop(state);
        self.note_change();
    }

    /// Forgets a connection that has ended.
    pub(super) fn part(&self, node: NodeId, peer: &Arc<Peer>) {
        let mut state = lock(&self.state);
        state.sources.part(node, peer);
        if state.members.get(&node).is_some_and(|member| Arc::ptr_eq(&member.peer, peer)) {
            state.members.remove(&node);
            state.forget_joined(node);
            state.follow_address();
            drop(state);
            self.note_change();
        }
    }

    /// Handles a message of a peer.
    pub(super) fn handle(&self, node: NodeId, peer: &Arc<Peer>, message: &[u8]) {
        let Some(message) = Message::decode(message) else {
            crate::warn_limited!("link '{}': an invalid message about multicast groups", self.link);
            return;
        };
        let mut state = lock(&self.state);
        match message {
            Message::Hello { range, .. } if range != self.range => {
                crate::warn_limited!(
                    "link '{}': the peer at {} uses the multicast groups {range}, this node {}; its streams stay \
                     unicast",
                    self.link,
                    peer.from,
                    self.range
                );
            }
            Message::Hello { receiver, key, .. } => {
                let Some(key) = Key::of(key) else { return };
                state.sources.greet(node, peer, (receiver, key));
                if let Err(local) = state.begin_probes(node) {
                    crate::warn_limited!(
                        "link '{}': multicast groups are sent from {local}, and the peer at {} is reached from another \
                         address; its streams stay unicast",
                        self.link,
                        peer.from
                    );
                }
            }
            Message::Join { id, place, key } => {
                let local = state.members.get(&node).map(|member| member.local);
                let (Some(group), Some(local), Some(key)) =
                    (self.range.group(place), local, Key::of(key))
                else {
                    return;
                };
                match state.sources.join(
                    (node, peer),
                    (id, key, place),
                    (group, local),
                    &self.inbound,
                ) {
                    Ok(()) => _ = peer.outbox.put_message(&Message::Joined(id).encode()),
                    Err(error) => crate::warn_limited!(
                        "link '{}': cannot join the multicast group {group} at {local}: {error}; its stream stays \
                         unicast",
                        self.link
                    ),
                }
            }
            Message::Leave(id) => state.sources.leave(node, peer, id),
            Message::Joined(id) => {
                let group = state.groups.values_mut().find(|group| group.id == id);
                if let Some(joined) = group.and_then(|group| group.members.get_mut(&node)) {
                    *joined = true;
                    state.end_former();
                    self.note_change();
                }
            }
            Message::Heard => {
                let now = clock::now();
                if let Some(member) = state.members.get_mut(&node) {
                    (member.heard, member.unanswered) = (Some(now), 0);
                }
                if state.look(now) {
                    self.note_change();
                }
            }
        }
    }

    /// Sends a probe if one is due, and notices peers that do not answer. Called once per [`PROBE_EVERY`].
    pub(super) fn tick(&self) {
        let now = clock::now();
        let mut state = lock(&self.state);
        state.ticks += 1;
        let all = state.members.values().filter(|member| member.takes_part);
        let is_new = |member: &Member| member.heard.is_none() && member.unanswered < PROBES_SOON;
        let is_due =
            all.clone().any(is_new) || state.ticks.is_multiple_of(PROBES_APART) && all.count() > 0;
        if is_due {
            state.send_probe(self.range);
        }
        if state.ticks.is_multiple_of(PROBES_APART) {
            state.invite_again();
        }
        let ended = state.end_former();
        if state.look(now) || ended {
            drop(state);
            self.note_change();
        }
    }

    /// Returns the peers that receive datagrams of groups.
    pub(crate) fn able(&self) -> BTreeSet<NodeId> {
        lock(&self.state).able.clone()
    }

    /// Leaves out a peer that lost too many datagrams in a row.
    pub(crate) fn leave_out(&self, node: NodeId) {
        let now = clock::now();
        let mut state = lock(&self.state);
        if let Some(member) = state.members.get_mut(&node) {
            (member.heard, member.left_out_until) = (None, now + LEFT_OUT_FOR);
        }
        if state.look(now) {
            drop(state);
            self.note_change();
        }
    }

    /// Makes a group for each of these streams and its peers, and ends all others.
    pub(crate) fn want(&self, wanted: GroupMembers) {
        lock(&self.state).want(wanted, self.range);
    }

    /// Returns the members of each group that have joined it.
    pub(crate) fn joined(&self) -> GroupMembers {
        lock(&self.state).joined()
    }

    /// Returns the groups with the members that have joined.
    pub(crate) fn views(&self) -> Vec<GroupView> {
        let state = lock(&self.state);
        let view = |(stream, members): ((PublisherId, Form), BTreeSet<NodeId>)| {
            let place = state.groups.get(&stream)?.place;
            let members = members.into_iter().collect();
            Some(GroupView { stream, address: self.range.group(place)?, members })
        };
        state.joined().into_iter().filter_map(view).collect()
    }

    /// Sends a frame to its group, or to each receiver if one of them has left. Never blocks.
    pub(super) fn send(
        &self,
        first: NodeId,
        frame: &FrameBuf,
        group: &GroupFrame,
        peers: &Peers,
    ) -> Sent {
        let whole = frame.to_bytes();
        let Some((own, common)) = whole.split_at_checked(whole.len().saturating_sub(group.common))
        else {
            return Sent::Down;
        };
        let others = group.others.iter().map(|(node, own)| (*node, &own[..]));
        let receivers: Vec<(NodeId, &[u8])> = std::iter::once((first, own)).chain(others).collect();
        if lock(&self.state).send(group.stream, &receivers, common, self.range).is_some() {
            return Sent::Taken;
        }
        let send = |(node, own): (NodeId, &[u8])| {
            let peer = peers.get(node)?;
            let sent = peer.send_pieces(own.len() + common.len(), [own, common].into_iter());
            (sent == Sent::Taken).then_some(())
        };
        let taken = receivers.into_iter().filter_map(send).count();
        if taken > 0 { Sent::Taken } else { Sent::Down }
    }
}

impl State {
    /// A peer takes part: it may join the group of the probes.
    ///
    /// # Errors
    /// The address from which groups are sent, if the peer is reached from another one.
    fn begin_probes(&mut self, node: NodeId) -> Result<(), Ipv4Addr> {
        if self.probes.is_none() {
            self.probes = self.new_group(0);
        }
        if self.is_unused() {
            self.socket = None;
        }
        let (Some(member), Some(probes)) = (self.members.get_mut(&node), &self.probes) else {
            return Ok(());
        };
        if self.socket.is_none() {
            self.socket = open(member.local).map(|socket| (member.local, socket));
        }
        match &self.socket {
            Some((local, _)) if *local == member.local => {
                member.takes_part = true;
                member.peer.outbox.put_message(&probes.join().encode());
                Ok(())
            }
            Some((local, _)) => Err(*local),
            None => Ok(()),
        }
    }

    /// Returns true if no peer takes part, so that the next one decides on the address from which groups are sent.
    fn is_unused(&self) -> bool {
        !self.members.values().any(|member| member.takes_part)
    }

    /// Lets peers that are reached from another address take part once no peer uses the present one.
    fn follow_address(&mut self) {
        let nodes = self.members.keys().copied().filter(|_| self.is_unused());
        let ready: Vec<NodeId> = nodes.filter(|node| self.sources.is_greeted(*node)).collect();
        for node in ready {
            // A peer that is reached from yet another address was reported when it connected.
            let _ = self.begin_probes(node);
        }
    }

    fn new_group(&mut self, place: u16) -> Option<Group> {
        self.next_id += 1;
        let (id, next, members) = (self.next_id, 0, BTreeMap::new());
        Some(Group { id, place, key: Key::random()?, next, members, is_left: false })
    }

    fn send_probe(&mut self, range: MulticastRange) {
        let (Some(probes), Some((_, socket))) = (&mut self.probes, &self.socket) else { return };
        let probe = seal((probes.id, probes.next), &probes.key, &[], b"");
        probes.next += 1;
        self.members.values_mut().for_each(|member| member.unanswered += 1);
        if let Some(address) = range.group(probes.place) {
            // A probe that is not sent is not answered.
            let _ = socket.send_to(&probe, address);
        }
    }

    /// Notices which peers receive datagrams; returns true if that changed.
    fn look(&mut self, now: Instant) -> bool {
        let hears = |member: &Member| {
            member.takes_part
                && member.left_out_until <= now
                && member.heard.is_some_and(|at| now.since(at) <= HEARD_FOR)
        };
        let able = self.members.iter().filter(|(_, member)| hears(member));
        let able: BTreeSet<NodeId> = able.map(|(node, _)| *node).collect();
        let changed = able != self.able;
        self.able = able;
        changed
    }

    /// A peer has a new connection, or none: it has to join its groups again.
    fn forget_joined(&mut self, node: NodeId) {
        self.able.remove(&node);
        for group in self.groups.values_mut() {
            group.is_left |= group.members.remove(&node).is_some();
        }
        for former in self.former.values_mut() {
            former.group.members.remove(&node);
        }
    }

    fn send_message(&self, node: NodeId, message: &Message) {
        if let Some(member) = self.members.get(&node) {
            member.peer.outbox.put_message(&message.encode());
        }
    }

    fn want(&mut self, mut wanted: GroupMembers, range: MulticastRange) {
        for (stream, group) in std::mem::take(&mut self.groups) {
            let Some(nodes) = wanted.remove(&stream) else {
                self.keep(group, &BTreeSet::new());
                continue;
            };
            let is_left = group.is_left || group.members.keys().any(|node| !nodes.contains(node));
            let group = match is_left {
                true => self.replace(stream, group, &nodes),
                false => Some(group),
            };
            if let Some(group) = group {
                let group = self.invite(group, nodes);
                self.groups.insert(stream, group);
            }
        }
        for (stream, nodes) in wanted {
            let used: BTreeSet<u16> = self.groups.values().map(|group| group.place).collect();
            // Other senders on the segment begin elsewhere, so a receiver rarely gets their groups too.
            let places = range.len() - 1;
            let nth = |more: u16| 1 + (self.first_place % places + more) % places;
            let place = (0..places).map(nth).find(|place| !used.contains(place));
            if let Some(group) = place.and_then(|place| self.new_group(place)) {
                let group = self.invite(group, nodes);
                self.groups.insert(stream, group);
            }
        }
        self.end_former();
    }

    fn invite(&self, mut group: Group, nodes: BTreeSet<NodeId>) -> Group {
        for node in nodes {
            if !group.members.contains_key(&node) {
                self.send_message(node, &group.join());
                group.members.insert(node, false);
            }
        }
        group
    }

    /// Repeats the invitations of nodes that have not joined: one may have been in the maximum of groups, or its outbox full.
    fn invite_again(&self) {
        self.invitations().for_each(|(node, message)| self.send_message(node, &message));
    }

    /// Returns the invitations of the nodes that have not joined.
    fn invitations(&self) -> impl Iterator<Item = (NodeId, Message)> {
        let absent = |group: &'_ Group| {
            let members = group.members.iter().filter(|(_, joined)| !**joined);
            members.map(|(node, _)| (*node, group.join())).collect::<Vec<_>>()
        };
        self.groups.values().flat_map(absent)
    }

    /// Sends a datagram to a group; `None` if that is not possible.
    fn send(
        &mut self,
        stream: (PublisherId, Form),
        receivers: &[(NodeId, &[u8])],
        common: &[u8],
        range: MulticastRange,
    ) -> Option<()> {
        let has_all = |group: &&mut Group| {
            receivers.iter().all(|(node, _)| group.members.get(node) == Some(&true))
        };
        let former = self.former.get_mut(&stream).map(|former| &mut former.group);
        let group = self.groups.get_mut(&stream).into_iter().chain(former).find(has_all)?;
        let (_, socket) = self.socket.as_ref()?;
        let mut parts = Vec::with_capacity(receivers.len());
        for (node, own) in receivers {
            let member = self.members.get(node)?;
            parts.push(Part { receiver: member.number, key: &member.key, own });
        }
        let datagram = seal((group.id, group.next), &group.key, &parts, common);
        group.next += 1;
        // A datagram that is not sent is one that is lost.
        let _ = socket.send_to(&datagram, range.group(group.place)?);
        Some(())
    }
}

/// Returns this host's address towards `remote`, if both are IPv4.
fn local_towards(remote: SocketAddr) -> Option<Ipv4Addr> {
    let SocketAddr::V4(remote) = SocketAddr::new(remote.ip().to_canonical(), remote.port()) else {
        return None;
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(remote).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(local) => Some(*local.ip()),
        SocketAddr::V6(_) => None,
    }
}

/// Opens a socket that sends on the segment of the address `local`. Linux selects the interface by the socket's address.
fn open(local: Ipv4Addr) -> Option<UdpSocket> {
    let socket = UdpSocket::bind((local, 0)).ok()?;
    socket.set_nonblocking(true).ok()?;
    // Datagrams stay on the segment.
    socket.set_multicast_ttl_v4(1).ok()?;
    Some(socket)
}

#[cfg(test)]
mod tests;
