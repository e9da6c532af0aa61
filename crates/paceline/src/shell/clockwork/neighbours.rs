//! The neighbours of a node as servers of its clock.
//!
//! Requests and answers are questions between the engines of the nodes, and travel in the control messages of links. The
//! engine notes the instants at which a request leaves and its answer arrives. The time that either waits for a link counts
//! as round trip, so the bound includes it.

use super::clock;
use crate::shell::command::{Command, Commands};
use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_proto::control::Topic;
use paceline_time::clock::service::ClockService;
use paceline_time::ntp::packet::PACKET_BYTES;
use paceline_time::ntp::source::PollRange;
use std::collections::BTreeSet;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest number of neighbours that a clock follows.
const FOLLOWED_MAX: usize = 16;
/// The largest number of nodes between a clock and its server: with their servers, 15 strata.
const LINEAGE_MAX: usize = 15;
/// The node, the two instants, the packet and the lineage.
const BYTES_MAX: usize = 3 * 8 + PACKET_BYTES + LINEAGE_MAX * 8;

/// The neighbours, with the ranges of the intervals between requests to them.
type Known = Arc<Mutex<Vec<(NodeId, String, PollRange)>>>;

/// The engine's end.
#[derive(Debug)]
pub(crate) struct NeighbourPort {
    socket: UnixDatagram,
    known: Known,
    /// The numbers of the links whose neighbours the clock follows.
    links: BTreeSet<usize>,
}

impl NeighbourPort {
    /// Returns the links whose neighbours the clock follows.
    pub(crate) fn links(&self) -> impl Iterator<Item = usize> {
        self.links.iter().copied()
    }

    /// Replaces the neighbours.
    pub(crate) fn set(&self, neighbours: Vec<(NodeId, String, PollRange)>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = neighbours;
    }

    /// Forwards the answer of `node` to a request that left at `sent`, an instant of the raw clock.
    pub(crate) fn answered(&self, node: NodeId, sent: u64, body: &[u8]) {
        let head = [node.0, sent, clock::raw()].map(u64::to_be_bytes);
        let bytes: Vec<u8> = head.into_iter().flatten().chain(body.iter().copied()).collect();
        if bytes.len() <= BYTES_MAX {
            let _ = self.socket.send(&bytes);
        }
    }
}

/// A neighbour that the clock follows.
#[derive(Debug)]
struct Followed {
    id: NodeId,
    name: String,
    range: PollRange,
    /// The nodes from which it has its time.
    lineage: Vec<NodeId>,
}

/// The clock's end.
pub(super) struct Neighbours {
    socket: UnixDatagram,
    commands: Commands,
    known: Known,
    followed: Vec<Followed>,
    /// The number of the clock's other servers, which come first.
    first: usize,
}

/// Opens both ends, for the neighbours of `links`. The clock has `first` other servers.
pub(super) fn open(
    links: BTreeSet<usize>,
    first: usize,
    commands: Commands,
) -> std::io::Result<(NeighbourPort, Neighbours)> {
    let (socket, ours) = UnixDatagram::pair()?;
    socket.set_nonblocking(true)?;
    ours.set_nonblocking(true)?;
    let known = Known::default();
    let port = NeighbourPort { socket, known: known.clone(), links };
    Ok((port, Neighbours { socket: ours, commands, known, followed: Vec::new(), first }))
}

impl Neighbours {
    /// Returns the socket at which answers arrive.
    pub(super) const fn socket(&self) -> &UnixDatagram {
        &self.socket
    }

    /// Returns the names of the neighbours, in the order of their numbers.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.followed.iter().map(|one| one.name.as_str())
    }

    /// Follows neighbours that have come, and no longer those that have left. One whose link has become slower or faster
    /// begins anew.
    pub(super) fn update(&mut self, service: &mut ClockService) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_known = |one: &Followed| {
            known.iter().any(|(id, _, range)| (*id, *range) == (one.id, one.range))
        };
        while let Some(gone) = self.followed.iter().position(|one| !is_known(one)) {
            self.followed.remove(gone);
            service.remove_server(self.first + gone, clock::raw());
        }
        for (id, name, range) in known {
            let is_new = self.followed.iter().all(|one| one.id != id);
            if is_new && self.followed.len() < FOLLOWED_MAX {
                self.followed.push(Followed { id, name, range, lineage: Vec::new() });
                service.add_server(range, clock::raw());
            }
        }
    }

    /// Sends a request to server number `server` of the clock, if that is a neighbour.
    pub(super) fn send(&self, server: usize, request: &[u8]) {
        let followed = server.checked_sub(self.first).and_then(|at| self.followed.get(at));
        if let Some(one) = followed {
            let body = [&[Topic::Time.code()], request].concat();
            self.commands.offer(Command::AskTime(one.id, Bytes::from(body)));
        }
    }

    /// Takes the answers that have arrived.
    pub(super) fn receive(&mut self, service: &mut ClockService) -> usize {
        let (mut buffer, mut taken) = ([0; BYTES_MAX], 0);
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let bytes = buffer.get(..length).unwrap_or_default();
            taken += usize::from(self.take(bytes, service).is_some());
        }
        taken
    }

    fn take(&mut self, bytes: &[u8], service: &mut ClockService) -> Option<()> {
        let (head, body) = bytes.split_at_checked(3 * 8)?;
        let mut words = words(head);
        let (node, sent, raw) = (NodeId(words.next()?), words.next()?, words.next()?);
        let at = self.followed.iter().position(|one| one.id == node)?;
        let followed = self.followed.get_mut(at)?;
        let (packet, lineage) = body.split_at_checked(PACKET_BYTES)?;
        service.sent(self.first + at, sent);
        match service.receive(self.first + at, packet, raw, clock::wall()) {
            Ok(()) => followed.lineage = self::words(lineage).map(NodeId).collect(),
            Err(cause) => {
                tracing::debug!("clock: an answer of node {} is not used: {cause}", followed.name);
            }
        }
        Some(())
    }

    /// Returns the nodes from which the time of these servers comes, each once.
    pub(super) fn lineage(&self, servers: &[usize]) -> Vec<NodeId> {
        let at = |server: &usize| server.checked_sub(self.first);
        let followed = servers.iter().filter_map(at).filter_map(|at| self.followed.get(at));
        let nodes = followed.flat_map(|one| [&[one.id], one.lineage.as_slice()].concat());
        nodes.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_be_bytes(*word))
}
