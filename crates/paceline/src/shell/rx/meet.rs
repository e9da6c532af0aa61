//! Acceptance of nodes as neighbours.

use super::super::lock;
use super::{Arriving, HOPS_MAX, HopShared, LinkRx, Neighbour};
use paceline_node::arrive::FrameReader;
use paceline_proto::NodeId;
use paceline_proto::receive::Receiver;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

impl LinkRx {
    /// Adds a connected peer as a neighbour; returns `None` if the link has too many.
    pub(super) fn join(&self, node: NodeId) -> Option<Arc<Neighbour>> {
        if self.proves {
            self.sources.proven.add(node);
        }
        let mut neighbours = self.neighbours.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(neighbour) = neighbours.get(&node) {
            return Some(neighbour.clone());
        }
        if neighbours.len() >= HOPS_MAX || self.joined.push(node).is_err() {
            drop(neighbours);
            if self.refused.fetch_add(1, Ordering::Relaxed).is_power_of_two() {
                tracing::warn!(
                    "link {}: node {node} is refused as a neighbour: the link already has the \
                     maximum of {HOPS_MAX}",
                    self.link
                );
            }
            return None;
        }
        let epoch = self.epochs.next();
        let neighbour = self.take_parted(node).unwrap_or_else(|| self.new_neighbour(node, epoch));
        neighbour.shared.epoch.store(epoch, Ordering::Release);
        neighbours.insert(node, neighbour.clone());
        Some(neighbour)
    }

    fn new_neighbour(&self, node: NodeId, epoch: u32) -> Arc<Neighbour> {
        let shared = Arc::new(HopShared { epoch: AtomicU32::new(epoch), ..Default::default() });
        let (link, guard, share) = (self.link, self.guards.of(node), self.sources.memory.share());
        let reader = FrameReader::new(Receiver::within(&share));
        let state = Mutex::new(Arriving { reader, ..Arriving::default() });
        let neighbour = Arc::new(Neighbour { node, link, shared, share, state, guard });
        self.sources.add_holder(&neighbour);
        neighbour
    }

    /// Returns the state of a former neighbour that has returned, so that its streams continue.
    fn take_parted(&self, node: NodeId) -> Option<Arc<Neighbour>> {
        let mut parted = lock(&self.parted);
        let place = parted.iter().position(|(other, _)| *other == node)?;
        parted.remove(place).map(|(_, neighbour)| neighbour)
    }
}
