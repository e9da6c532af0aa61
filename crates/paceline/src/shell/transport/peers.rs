//! The connected peers of a link, and the places for them.
//!
//! Anybody who reaches a listener can connect. So the places from one origin are limited, and a part of all places is kept
//! for nodes that were there before. If places are taken, the oldest connection whose hop has never been up makes room.

use super::lock;
use super::origin::Origin;
use super::peer::Peer;
use paceline_proto::{NodeId, ProbeInterval};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The limit of connections per link, and of those to one peer. Two are normal for a while: a peer has lost the
/// older one, or both ends connect to each other.
pub(super) const PEERS_MAX: usize = 1_024;
const SAME_MAX: usize = 4;
/// The connections that only nodes and certificates which were there before may have.
const KEPT: usize = PEERS_MAX / 8;
/// The connections that are closed at once although there are places. On a link of 2 Mbit/s, eight per second take 0.5 % of it.
const CLOSED_AT_ONCE: usize = 2;
/// The most remembered nodes and certificates.
const KNOWN_MAX: usize = 4_096;

/// The connections to each peer, by the id that it has proven. Frames go to the newest one.
#[derive(Default)]
pub(super) struct Peers(Mutex<Table>);

#[derive(Default)]
struct Table {
    connections: BTreeMap<NodeId, Vec<Arc<Peer>>>,
    /// The nodes whose hops were up, and their certificates.
    known: BTreeSet<NodeId>,
    known_origins: BTreeSet<Origin>,
    is_closed: bool,
}

impl Table {
    fn all(&self) -> impl Iterator<Item = (NodeId, &Arc<Peer>)> {
        self.connections.iter().flat_map(|(node, all)| all.iter().map(|peer| (*node, peer)))
    }

    /// Returns true if the node, or one with its certificate, was there before.
    fn is_known(&self, node: NodeId, origin: Option<&Origin>) -> bool {
        self.known.contains(&node) || origin.is_some_and(|it| self.known_origins.contains(it))
    }

    /// Closes the oldest connection whose hop has never been up, among those that `may` go. Returns false if there is none.
    fn make_room(&mut self, may: impl Fn(&Peer) -> bool, reason: &str) -> bool {
        let unproven = self.all().filter(|(_, peer)| !peer.liveness.is_proven() && may(peer));
        let oldest = unproven.min_by_key(|(_, peer)| peer.liveness.begun());
        let Some((node, peer)) = oldest.map(|(node, peer)| (node, peer.clone())) else {
            return false;
        };
        peer.close(reason);
        self.remove(node, &peer);
        true
    }

    fn remove(&mut self, node: NodeId, peer: &Arc<Peer>) {
        if let Some(same) = self.connections.get_mut(&node) {
            same.retain(|it| !Arc::ptr_eq(it, peer));
            if same.is_empty() {
                self.connections.remove(&node);
            }
        }
    }

    /// Makes room for one more node from an origin.
    fn admit_from(&mut self, node: NodeId, origin: &Origin) -> Result<(), String> {
        let most = origin.nodes_max();
        if most == usize::MAX || self.connections.contains_key(&node) {
            return Ok(());
        }
        let from = |all: &Vec<Arc<Peer>>| all.iter().any(|it| it.origin.as_ref() == Some(origin));
        let nodes = self.connections.values().filter(|all| from(all)).count();
        let same = |peer: &Peer| peer.origin.as_ref() == Some(origin);
        let reason = format!("newer connections from {origin}; one link accepts {most} nodes");
        if nodes < most || self.make_room(same, &reason) {
            return Ok(());
        }
        Err(format!(
            "the link has the maximum of {most} nodes from {origin}; close some, or use another link"
        ))
    }

    /// Makes room for one more connection.
    fn admit_one(&mut self, node: NodeId, origin: Option<&Origin>) -> Result<(), String> {
        let known = origin.is_none() || self.is_known(node, origin);
        let most = if known { PEERS_MAX } else { PEERS_MAX - KEPT };
        if self.all().count() < most || self.make_room(|_| true, "newer connections need its place")
        {
            return Ok(());
        }
        let kept =
            if known { "" } else { "; the others are kept for nodes that were there before" };
        Err(format!("the link has the maximum of {most} connections{kept}"))
    }

    /// Remembers a node whose hop is up.
    fn note_known(&mut self, node: NodeId) {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(node);
        let origins = self.connections.get(&node).into_iter().flatten();
        let certified = |it: &Origin| matches!(it, Origin::Certificate(_));
        let origins: Vec<_> = origins.filter_map(|it| it.origin).filter(certified).collect();
        if self.known_origins.len() >= KNOWN_MAX {
            self.known_origins.clear();
        }
        self.known_origins.extend(origins);
    }
}

impl Peers {
    /// Adds a connection. A peer with too many loses the oldest.
    ///
    /// # Errors
    /// Returns the reason if the link accepts no more connections, or none from this origin.
    pub(super) fn admit(&self, node: NodeId, peer: &Arc<Peer>) -> Result<(), String> {
        let mut table = lock(&self.0);
        if table.is_closed {
            return Err("the link is closed".to_owned());
        }
        if let Some(origin) = &peer.origin {
            table.admit_from(node, origin)?;
        }
        table.admit_one(node, peer.origin.as_ref())?;
        let same = table.connections.entry(node).or_default();
        if same.len() >= SAME_MAX {
            same.remove(0).close("too many connections to one node");
        }
        same.push(peer.clone());
        Ok(())
    }

    /// Removes a connection.
    pub(super) fn dismiss(&self, node: NodeId, peer: &Arc<Peer>) {
        lock(&self.0).remove(node, peer);
    }

    /// Notes that the hop to a node is up.
    pub(super) fn prove(&self, node: NodeId) {
        let mut table = lock(&self.0);
        let all = table.connections.get(&node).into_iter().flatten();
        let new = all.filter(|it| !it.liveness.is_proven()).inspect(|it| it.liveness.prove());
        if new.count() > 0 || !table.known.contains(&node) {
            table.note_known(node);
        }
    }

    /// Closes incoming connections whose hop has not been up for so long: only a few at once, because each is notified.
    pub(super) fn close_unproven(&self, after: Duration) {
        let mut table = lock(&self.0);
        let late = |peer: &Peer| peer.liveness.begun().elapsed() >= after;
        for _ in 0..CLOSED_AT_ONCE {
            table.make_room(late, "none of this node's frames was answered");
        }
    }

    /// Returns the newest connection to a peer.
    pub(super) fn get(&self, node: NodeId) -> Option<Arc<Peer>> {
        lock(&self.0).connections.get(&node)?.last().cloned()
    }

    /// Sets the interval of the probes of the hop to a peer for all connections to it.
    pub(super) fn set_interval(&self, node: NodeId, probes: ProbeInterval) {
        let table = lock(&self.0);
        let all = table.connections.get(&node).into_iter().flatten();
        all.for_each(|peer| peer.liveness.set_interval(probes));
    }

    pub(super) fn nodes(&self) -> Vec<NodeId> {
        lock(&self.0).connections.keys().copied().collect()
    }

    /// Returns all connections.
    pub(super) fn all(&self) -> Vec<Arc<Peer>> {
        lock(&self.0).connections.values().flatten().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).connections.is_empty()
    }

    /// Ends all connections, and accepts no others.
    pub(super) fn close(&self) {
        lock(&self.0).is_closed = true;
        self.all().iter().for_each(|peer| peer.close(""));
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::Proof;
    use super::*;
    use std::time::Duration;

    fn peer_from(origin: Option<Origin>) -> Arc<Peer> {
        let proof = (Proof::Nothing, origin);
        Arc::new(Peer::new(String::new(), proof, None, ProbeInterval::SHORTEST, Duration::ZERO))
    }

    fn peer() -> Arc<Peer> {
        peer_from(None)
    }

    /// Admits nodes from an origin whose hops come up, until the link refuses one. Returns their number, and the reason.
    fn fill(peers: &Peers, first: u64, origin: impl Fn(u64) -> Origin) -> (u64, String) {
        let admit = |id| {
            let admitted = peers.admit(NodeId(id), &peer_from(Some(origin(id))));
            admitted.inspect(|()| peers.prove(NodeId(id)))
        };
        let refused = (first..).find_map(|id| admit(id).err().map(|why| (id - first, why)));
        refused.unwrap()
    }

    fn address(id: u64) -> Origin {
        Origin::Address(
            std::net::Ipv4Addr::from_bits(u32::try_from(0x0a00_0000 + id).unwrap()).into(),
        )
    }

    #[test]
    fn an_origin_has_a_limited_number_of_nodes() {
        let peers = Peers::default();
        let one = |_| Origin::Certificate([7; 32]);
        let (taken, why) = fill(&peers, 0, one);
        assert_eq!(taken, 64);
        assert!(why.contains("the maximum of 64 nodes from this certificate"), "{why}");
        assert_eq!(peers.admit(NodeId(3), &peer_from(Some(one(3)))), Ok(()), "one of them");
        peers.prove(NodeId(3));
        let (taken, why) = fill(&peers, 100, |_| address(1));
        assert_eq!(taken, 64);
        assert!(why.contains("the address 10.0.0.1"), "{why}");
        assert_eq!(fill(&peers, 1_000, |_| Origin::Host).0, 1_024 - 128 - 65 - 64);
    }

    #[test]
    fn places_are_kept_for_nodes_that_were_there() {
        let peers = Peers::default();
        let member = peer_from(Some(address(9_999)));
        peers.admit(NodeId(9_999), &member).unwrap();
        peers.prove(NodeId(9_999));
        peers.dismiss(NodeId(9_999), &member);
        let (taken, why) = fill(&peers, 0, address);
        assert_eq!(taken, 1_024 - 128);
        assert!(why.contains("maximum of 896 connections; the others are kept"), "{why}");
        peers.admit(NodeId(9_999), &peer_from(Some(address(9_999)))).unwrap();
    }

    #[test]
    fn a_newcomer_takes_the_place_of_the_oldest_stranger() {
        let peers = Peers::default();
        let strangers: Vec<_> = (0..2_000).map(|id| peer_from(Some(address(id)))).collect();
        for (id, peer) in (0..).zip(&strangers) {
            peers.admit(NodeId(id), peer).unwrap();
        }
        assert_eq!(peers.all().len(), 1_024 - 128);
        assert!(peers.get(NodeId(0)).is_none() && peers.get(NodeId(1_999)).is_some());
        peers.prove(NodeId(1_999));
        (0..1_000).for_each(|_| peers.close_unproven(Duration::ZERO));
        assert_eq!(peers.nodes(), [NodeId(1_999)]);
    }

    #[test]
    fn an_older_connection_takes_the_place_of_a_newer_one_that_ends() {
        let (peers, older, newer) = (Peers::default(), peer(), peer());
        let node = NodeId(1);
        peers.admit(node, &older).unwrap();
        peers.admit(node, &newer).unwrap();
        assert!(peers.get(node).is_some_and(|it| Arc::ptr_eq(&it, &newer)));
        assert_eq!((peers.all().len(), peers.nodes()), (2, vec![node]));
        peers.dismiss(node, &newer);
        assert!(peers.get(node).is_some_and(|it| Arc::ptr_eq(&it, &older)));
        peers.dismiss(node, &older);
        assert!(peers.is_empty());
    }

    #[test]
    fn connections_are_bounded_per_link_and_per_peer() {
        let peers = Peers::default();
        for _ in 0..2 * SAME_MAX {
            peers.admit(NodeId(0), &peer()).unwrap();
        }
        assert_eq!(peers.all().len(), SAME_MAX);
        let taken = (1..2_000).filter(|id| peers.admit(NodeId(*id), &peer()).is_ok()).count();
        assert_eq!(taken + SAME_MAX, PEERS_MAX);
        peers.close();
        assert_eq!(peers.admit(NodeId(0), &peer()), Err("the link is closed".to_owned()));
    }
}
