//! The members and groups of a link, and the messages and datagrams to them.

use super::datagram::{Key, Part, seal};
use super::listen::Sources;
use super::message::Message;
use crate::multicast::MulticastRange;
use crate::shell::transport::peer::Peer;
use paceline_proto::link::GroupMembers;
use paceline_proto::{Form, NodeId, PublisherId};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

/// A peer that has answered no probe for so long receives no datagrams of groups, or later on a slow link.
const HEARD_FOR: Duration = Duration::from_millis(3_500);

/// A peer that uses the same groups.
pub(super) struct Member {
    pub(super) peer: Arc<Peer>,
    /// This end's address on the way to it.
    pub(super) local: Ipv4Addr,
    pub(super) number: u16,
    pub(super) key: Key,
    /// It has sent its own [`Message::Hello`].
    pub(super) takes_part: bool,
    pub(super) heard: Option<Instant>,
    /// The number of probes since it was heard.
    pub(super) unanswered: u64,
    pub(super) left_out_until: Instant,
}

/// The group of a stream, or of the probes.
pub(super) struct Group {
    pub(super) id: u32,
    pub(super) place: u16,
    pub(super) key: Key,
    /// The number of the next datagram.
    pub(super) next: u64,
    /// Its members; true for those that have joined it.
    pub(super) members: BTreeMap<NodeId, bool>,
    /// The connection of a member has ended, which still has the key.
    pub(super) is_left: bool,
}

impl Group {
    pub(super) fn join(&self) -> Message {
        Message::Join { id: self.id, place: self.place, key: *self.key.bytes() }
    }
}

/// A group that a member has left.
pub(super) struct Former {
    /// The group with the members that remain.
    pub(super) group: Group,
    /// The tick at which it ends.
    pub(super) ends: u64,
}

#[derive(Default)]
pub(super) struct State {
    /// The factor of the interval of probes compared with a fast link.
    pub(super) stretch: u64,
    /// The socket that sends, on the segment of this address.
    pub(super) socket: Option<(Ipv4Addr, UdpSocket)>,
    pub(super) members: BTreeMap<NodeId, Member>,
    pub(super) groups: BTreeMap<(PublisherId, Form), Group>,
    /// The groups that members have left, until the others have joined the new ones.
    pub(super) former: BTreeMap<(PublisherId, Form), Former>,
    pub(super) probes: Option<Group>,
    pub(super) next_id: u32,
    pub(super) next_number: u16,
    /// A random number, from which the place of the first group follows.
    pub(super) first_place: u16,
    pub(super) ticks: u64,
    /// The peers that received datagrams at the last look.
    pub(super) able: BTreeSet<NodeId>,
    pub(super) sources: Sources,
}

impl State {
    /// A peer takes part: it may join the group of the probes.
    ///
    /// # Errors
    /// The address from which groups are sent, if the peer is reached from another one.
    pub(super) fn begin_probes(&mut self, node: NodeId) -> Result<(), Ipv4Addr> {
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
    pub(super) fn is_unused(&self) -> bool {
        !self.members.values().any(|member| member.takes_part)
    }

    /// Lets peers that are reached from another address take part once no peer uses the present one.
    pub(super) fn follow_address(&mut self) {
        let nodes = self.members.keys().copied().filter(|_| self.is_unused());
        let ready: Vec<NodeId> = nodes.filter(|node| self.sources.is_greeted(*node)).collect();
        for node in ready {
            // A peer that is reached from yet another address was reported when it connected.
            let _ = self.begin_probes(node);
        }
    }

    pub(super) fn new_group(&mut self, place: u16) -> Option<Group> {
        self.next_id += 1;
        let (id, next, members) = (self.next_id, 0, BTreeMap::new());
        Some(Group { id, place, key: Key::random()?, next, members, is_left: false })
    }

    pub(super) fn send_probe(&mut self, range: MulticastRange) {
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
    pub(super) fn look(&mut self, now: Instant) -> bool {
        let heard_for = HEARD_FOR.mul_div(self.stretch.max(1), 1);
        let hears = |member: &Member| {
            member.takes_part
                && member.left_out_until <= now
                && member.heard.is_some_and(|at| now.since(at) <= heard_for)
        };
        let able = self.members.iter().filter(|(_, member)| hears(member));
        let able: BTreeSet<NodeId> = able.map(|(node, _)| *node).collect();
        let changed = able != self.able;
        self.able = able;
        changed
    }

    /// A peer has a new connection, or none: it has to join its groups again.
    pub(super) fn forget_joined(&mut self, node: NodeId) {
        self.able.remove(&node);
        for group in self.groups.values_mut() {
            group.is_left |= group.members.remove(&node).is_some();
        }
        for former in self.former.values_mut() {
            former.group.members.remove(&node);
        }
    }

    pub(super) fn send_message(&self, node: NodeId, message: &Message) {
        if let Some(member) = self.members.get(&node) {
            member.peer.outbox.put_message(&message.encode());
        }
    }

    pub(super) fn want(&mut self, mut wanted: GroupMembers, range: MulticastRange) {
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

    pub(super) fn invite(&self, mut group: Group, nodes: BTreeSet<NodeId>) -> Group {
        for node in nodes {
            if !group.members.contains_key(&node) {
                self.send_message(node, &group.join());
                group.members.insert(node, false);
            }
        }
        group
    }

    /// Repeats the invitations of nodes that have not joined: one may have been in the maximum of groups, or its outbox full.
    pub(super) fn invite_again(&self) {
        self.invitations().for_each(|(node, message)| self.send_message(node, &message));
    }

    /// Returns the invitations of the nodes that have not joined.
    pub(super) fn invitations(&self) -> impl Iterator<Item = (NodeId, Message)> {
        let absent = |group: &'_ Group| {
            let members = group.members.iter().filter(|(_, joined)| !**joined);
            members.map(|(node, _)| (*node, group.join())).collect::<Vec<_>>()
        };
        self.groups.values().flat_map(absent)
    }

    /// Sends a datagram to a group; `None` if that is not possible.
    pub(super) fn send(
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

/// Opens a socket that sends on the segment of the address `local`. Linux selects the interface by the socket's address.
fn open(local: Ipv4Addr) -> Option<UdpSocket> {
    let socket = UdpSocket::bind((local, 0)).ok()?;
    socket.set_nonblocking(true).ok()?;
    // Datagrams stay on the segment.
    socket.set_multicast_ttl_v4(1).ok()?;
    Some(socket)
}
