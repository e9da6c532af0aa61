//! The connected peers of a link.

use super::lock;
use super::peer::Peer;
use paceline_proto::{NodeId, ProbeInterval};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The limit of connections per link, and of those to one peer. Two are normal for a while: a peer has lost the
/// older one, or both ends connect to each other.
pub(super) const PEERS_MAX: usize = 1_024;
const SAME_MAX: usize = 4;

/// The connections to each peer, by the id that it has proven. Frames go to the newest one.
#[derive(Default)]
pub(super) struct Peers(Mutex<Table>);

#[derive(Default)]
struct Table {
    connections: BTreeMap<NodeId, Vec<Arc<Peer>>>,
    is_closed: bool,
}

impl Peers {
    /// Adds a connection. A peer with too many loses the oldest.
    ///
    /// # Errors
    /// Returns the reason if the link accepts no more connections.
    pub(super) fn admit(&self, node: NodeId, peer: &Arc<Peer>) -> Result<(), String> {
        let mut table = lock(&self.0);
        if table.is_closed {
            return Err("the link is closed".to_owned());
        }
        let all: usize = table.connections.values().map(Vec::len).sum();
        if all >= PEERS_MAX {
            return Err("the link has the maximum of peers".to_owned());
        }
        let same = table.connections.entry(node).or_default();
        if same.len() >= SAME_MAX {
            same.remove(0).close("too many connections to one node");
        }
        same.push(peer.clone());
        Ok(())
    }

    /// Removes a connection.
    pub(super) fn dismiss(&self, node: NodeId, peer: &Arc<Peer>) {
        let mut table = lock(&self.0);
        if let Some(same) = table.connections.get_mut(&node) {
            same.retain(|it| !Arc::ptr_eq(it, peer));
            if same.is_empty() {
                table.connections.remove(&node);
            }
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

    fn peer() -> Arc<Peer> {
        Arc::new(Peer::new(
            String::new(),
            Proof::Nothing,
            None,
            ProbeInterval::SHORTEST,
            Duration::ZERO,
        ))
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
