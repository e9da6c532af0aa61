//! The neighbours of a link: their frames and the limits of their traffic.

use crate::arrive::FrameReader;
use paceline_proto::NodeId;
use paceline_proto::guard::Guard;
use paceline_sched::Instant;
use std::collections::{BTreeMap, VecDeque};

/// The most neighbours of a link, and the most nodes whose traffic is limited each on its own.
const NEIGHBOURS_MAX: usize = 1_280;
/// The most former neighbours whose streams are kept.
const PARTED_MAX: usize = 64;

/// The receiving end of a hop.
#[derive(Debug, Default)]
pub(super) struct Neighbour {
    pub(super) reader: FrameReader,
    pub(super) guard: Guard,
}

/// The neighbours of a link.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    hops: BTreeMap<NodeId, Neighbour>,
    /// Those that have left, oldest first. Their streams continue after a reconnection, and their unfinished samples count as lost
    /// then.
    parted: VecDeque<(NodeId, FrameReader)>,
    /// The limits of nodes that have left. All others share one.
    guards: BTreeMap<NodeId, Guard>,
    other_guard: Guard,
}

impl Neighbours {
    /// Adds a neighbour. Returns false if it is known, or if there are too many.
    pub(super) fn join(&mut self, node: NodeId) -> bool {
        if self.hops.contains_key(&node) || self.hops.len() >= NEIGHBOURS_MAX {
            return false;
        }
        let place = self.parted.iter().position(|(other, _)| *other == node);
        let parted = place.and_then(|place| self.parted.remove(place));
        let reader = parted.map(|(_, reader)| reader).unwrap_or_default();
        let is_full = self.guards.len() >= NEIGHBOURS_MAX;
        let new = if is_full { self.other_guard } else { Guard::default() };
        let guard = self.guards.remove(&node).unwrap_or(new);
        self.hops.insert(node, Neighbour { reader, guard });
        true
    }

    pub(super) fn get_mut(&mut self, node: NodeId) -> Option<&mut Neighbour> {
        self.hops.get_mut(&node)
    }

    /// Returns the first instant at which [`Self::overdue`] is not empty.
    pub(super) fn next_overdue(&self) -> Instant {
        let all = self.hops.values().map(|neighbour| neighbour.reader.receiver().poll_timeout());
        all.fold(Instant::FAR, Instant::min)
    }

    /// Returns the neighbours whose samples have waited too long for missing ones before them.
    pub(super) fn overdue(&self, now: Instant) -> Vec<NodeId> {
        let due = self.hops.iter().filter(|(_, it)| it.reader.receiver().poll_timeout() <= now);
        due.map(|(node, _)| *node).collect()
    }

    /// Removes the neighbours that have `left`.
    pub(super) fn part(&mut self, left: impl Fn(NodeId) -> bool) {
        let departed: Vec<_> = self.hops.keys().copied().filter(|node| left(*node)).collect();
        for node in departed {
            let Some(Neighbour { reader, guard }) = self.hops.remove(&node) else { continue };
            if self.guards.len() < NEIGHBOURS_MAX {
                self.guards.insert(node, guard);
            } else {
                self.other_guard = guard;
            }
            if !reader.receiver().is_unused() {
                self.parted.push_back((node, reader));
            }
        }
        while self.parted.len() > PARTED_MAX {
            self.parted.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::guard::{Flood, Hearing};

    #[test]
    fn limits_survive_reconnections_and_neighbours_are_bounded() {
        let (mut all, now) = (Neighbours::default(), Instant::from_millis(5_000));
        assert!(all.join(NodeId(7)) && !all.join(NodeId(7)));
        let guard = &mut all.get_mut(NodeId(7)).unwrap().guard;
        while guard.take(Flood::Control, now, 0) == Hearing::Heard {}
        all.part(|node| node == NodeId(7));
        assert!(all.get_mut(NodeId(7)).is_none() && all.join(NodeId(7)));
        assert!(all.get_mut(NodeId(7)).unwrap().guard.is_muted(Flood::Control, now));
        let joined = (100..9_000).filter(|node| all.join(NodeId(*node))).count();
        assert_eq!(joined, NEIGHBOURS_MAX - 1);
        all.part(|_| true);
        assert!(all.guards.len() <= NEIGHBOURS_MAX && all.parted.is_empty());
    }
}
