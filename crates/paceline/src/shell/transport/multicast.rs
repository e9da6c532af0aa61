//! The multicast groups of a link: one datagram for several peers on the same network segment.
//!
//! Peers that both use the groups of the same range test with probes whether datagrams arrive. Each stream for several
//! such peers has a group of its own. Its key is sent over the connections of its members, which are authenticated, and
//! replaced when a member leaves. A frame for a peer that has not joined its group goes over the connection.

mod datagram;
mod listen;
mod message;
mod replace;
mod state;

use super::lock;
use super::peer::Peer;
use super::peers::Peers;
use super::{Inbound, Sent};
use crate::multicast::MulticastRange;
use crate::shell::clock;
use datagram::Key;
use message::Message;
use paceline_proto::link::GroupMembers;
use paceline_proto::wire::frame::{FrameBuf, GroupFrame};
use paceline_proto::{Form, NodeId, ProbeInterval, PublisherId};
use paceline_sched::{Duration, Instant};
use state::{Member, State};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The interval of probes until all peers have answered, and afterwards in units of this interval.
pub(super) const PROBE_EVERY: std::time::Duration = std::time::Duration::from_millis(200);
const PROBES_APART: u64 = 5;
/// The number of unanswered probes after which a peer is tested only once per [`PROBES_APART`].
const PROBES_SOON: u64 = 10;
/// A peer that lost too many datagrams in a row is left out for so long.
const LEFT_OUT_FOR: Duration = Duration::from_secs(10);

/// A group of this node, for status.
#[derive(Clone, Debug)]
pub(crate) struct GroupView {
    pub(crate) stream: (PublisherId, Form),
    pub(crate) address: SocketAddrV4,
    /// The neighbours that have joined it.
    pub(crate) members: Vec<NodeId>,
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
    /// Returns a link without groups. `probes` is the interval of its idle hops, which the probes of groups follow.
    pub(super) fn new(
        range: MulticastRange,
        link: &str,
        probes: ProbeInterval,
        inbound: Arc<dyn Inbound>,
    ) -> Self {
        let first_place =
            u16::try_from(getrandom::u32().unwrap_or_default() >> 17).unwrap_or_default();
        let stretch = probes.tenths() / ProbeInterval::SHORTEST.tenths();
        let state = Mutex::new(State { first_place, stretch, ..State::default() });
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
        let is_time = state.ticks.is_multiple_of(PROBES_APART * state.stretch.max(1));
        let all = state.members.values().filter(|member| member.takes_part);
        let is_new = |member: &Member| member.heard.is_none() && member.unanswered < PROBES_SOON;
        let is_due = all.clone().any(is_new) || is_time && all.count() > 0;
        if is_due {
            state.send_probe(self.range);
        }
        if is_time {
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

#[cfg(test)]
mod tests;
