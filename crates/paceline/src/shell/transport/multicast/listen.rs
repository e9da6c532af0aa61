//! The groups of other nodes that this one has joined.

use super::super::Inbound;
use super::super::peer::Peer;
use super::datagram::{KEY_BYTES, Key, Opened, Opener};
use super::message::Message;
use crate::shell::clock;
use nix::sys::socket::sockopt::ReuseAddr;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket};
use paceline_proto::NodeId;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;
use tokio::task::coop::consume_budget;

/// The limit of groups that this node joins for one peer. Each needs a file descriptor; further streams stay unicast.
const GROUPS_MAX: usize = 64;
/// The longest datagram.
const DATAGRAM_BYTES_MAX: usize = 2_048;
/// The shortest time between two answers to probes.
const ANSWERS_APART: Duration = Duration::from_millis(100);

/// A peer that sends to groups.
struct Source {
    peer: Arc<Peer>,
    /// This node's number on the peer's link, and the key of its parts.
    receiver: (u16, [u8; KEY_BYTES]),
    groups: BTreeMap<u32, AbortHandle>,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.groups.values().for_each(AbortHandle::abort);
    }
}

/// The peers that send to groups.
#[derive(Default)]
pub(super) struct Sources(BTreeMap<NodeId, Source>);

impl Sources {
    /// Handles the greeting of a peer. Its newest connection counts.
    pub(super) fn greet(&mut self, node: NodeId, peer: &Arc<Peer>, (number, key): (u16, Key)) {
        let receiver = (number, *key.bytes());
        self.0.insert(node, Source { peer: peer.clone(), receiver, groups: BTreeMap::new() });
    }

    /// Returns true if a peer has sent its greeting over its present connection.
    pub(super) fn is_greeted(&self, node: NodeId) -> bool {
        self.0.contains_key(&node)
    }

    /// Leaves the groups of a peer whose connection has ended.
    pub(super) fn part(&mut self, node: NodeId, peer: &Arc<Peer>) {
        if self.0.get(&node).is_some_and(|source| Arc::ptr_eq(&source.peer, peer)) {
            self.0.remove(&node);
        }
    }

    /// Joins a group of a peer, at the interface with the address `local`.
    pub(super) fn join(
        &mut self,
        (node, peer): (NodeId, &Arc<Peer>),
        (id, key, place): (u32, Key, u16),
        (group, local): (SocketAddrV4, Ipv4Addr),
        inbound: &Arc<dyn Inbound>,
    ) -> io::Result<()> {
        let source = self.0.get_mut(&node).filter(|source| Arc::ptr_eq(&source.peer, peer));
        let source = source.ok_or_else(|| io::Error::other("the peer has not proposed groups"))?;
        if source.groups.len() >= GROUPS_MAX {
            return Err(io::Error::other("this node is in the maximum of groups"));
        }
        let (number, own) = source.receiver;
        let own = Key::of(own).ok_or_else(|| io::Error::other("the key is invalid"))?;
        let opener = Opener::new(id, key, (number, own), place == 0);
        let socket = open(group, local)?;
        let listening = listen(socket, opener, (node, peer.clone()), inbound.clone());
        let before = source.groups.insert(id, tokio::spawn(listening).abort_handle());
        before.iter().for_each(AbortHandle::abort);
        Ok(())
    }

    /// Leaves a group. Datagrams that are under way are repaired by unicast.
    pub(super) fn leave(&mut self, node: NodeId, peer: &Arc<Peer>, id: u32) {
        let source = self.0.get_mut(&node).filter(|source| Arc::ptr_eq(&source.peer, peer));
        let group = source.and_then(|source| source.groups.remove(&id));
        group.iter().for_each(AbortHandle::abort);
    }
}

/// Opens a socket that receives only the datagrams of a group, and shares its port with other processes.
fn open(group: SocketAddrV4, local: Ipv4Addr) -> io::Result<UdpSocket> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let opened = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
    setsockopt(&opened, ReuseAddr, &true)?;
    bind(opened.as_raw_fd(), &SockaddrIn::from(group))?;
    let socket = UdpSocket::from_std(opened.into())?;
    socket.join_multicast_v4(*group.ip(), local)?;
    Ok(socket)
}

/// Receives the datagrams of a group until the task is aborted.
async fn listen(
    socket: UdpSocket,
    mut opener: Opener,
    (node, peer): (NodeId, Arc<Peer>),
    inbound: Arc<dyn Inbound>,
) {
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    let mut answered = Instant::ZERO;
    loop {
        let length = match socket.recv(&mut buffer).await {
            Ok(length) => length,
            Err(error) => {
                tracing::warn!("a multicast group from {} has ended: {error}", peer.from);
                return;
            }
        };
        match buffer.get_mut(..length).and_then(|datagram| opener.open(datagram)) {
            Some(Opened::Frame(frame)) => inbound.frame(node, frame),
            Some(Opened::Probe) if clock::now().since(answered) >= ANSWERS_APART => {
                answered = clock::now();
                peer.outbox.put_message(&Message::Heard.encode());
            }
            Some(Opened::Probe) => {}
            None => {}
        }
        // The other tasks of this thread have their turn, however much a stranger sends.
        consume_budget().await;
    }
}
