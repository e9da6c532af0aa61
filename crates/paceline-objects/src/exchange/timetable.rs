//! The exchange list itself: peers ordered by time.

use crate::ids::PeerId;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// Peers ordered by the time at which something is due, one time per peer. Every operation takes O(log n).
///
/// ```
/// use paceline_objects::exchange::PeerTimetable;
/// use paceline_objects::PeerId;
/// use paceline_sched::Instant;
///
/// let mut list = PeerTimetable::default();
/// list.set(PeerId(1), Some(Instant::from_millis(20)));
/// list.set(PeerId(2), Some(Instant::from_millis(10)));
/// assert_eq!(list.first(), Some((Instant::from_millis(10), PeerId(2))));
/// list.set(PeerId(2), None);
/// assert_eq!(list.first(), Some((Instant::from_millis(20), PeerId(1))));
/// ```
#[derive(Clone, Debug, Default)]
pub struct PeerTimetable {
    order: BTreeSet<(Instant, PeerId)>,
    times: BTreeMap<PeerId, Instant>,
}

impl PeerTimetable {
    /// Sets the time of a peer, and removes the peer without one.
    pub fn set(&mut self, peer: PeerId, at: Option<Instant>) {
        let before = self.times.get(&peer).copied();
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&(before, peer));
        }
        if let Some(at) = at {
            self.order.insert((at, peer));
            self.times.insert(peer, at);
        } else {
            self.times.remove(&peer);
        }
    }

    /// Sets the time of a peer if it has none or a later one.
    pub fn advance(&mut self, peer: PeerId, at: Instant) {
        if self.times.get(&peer).is_none_or(|known| at < *known) {
            self.set(peer, Some(at));
        }
    }

    /// Returns the earliest peer whose time has come.
    #[must_use]
    pub fn due(&self, now: Instant) -> Option<PeerId> {
        self.first().filter(|(at, _)| *at <= now).map(|(_, peer)| peer)
    }

    /// Returns the earliest time and its peer.
    #[must_use]
    pub fn first(&self) -> Option<(Instant, PeerId)> {
        self.order.first().copied()
    }
}
