//! The epochs of objects that have ended, and the paths of owners that are silent.

use crate::ids::PeerId;
use crate::shares::Shares;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The greatest number of ended objects that are remembered, and of reserved paths.
const PATHS_MAX: usize = 65_536;

/// The epochs of objects that have ended. Without room, the node with the most of them loses its oldest one.
#[derive(Clone, Debug)]
pub(super) struct PastEpochs {
    epochs: BTreeMap<Arc<str>, Past>,
    /// The paths of each node in the order of their first end.
    order: BTreeMap<u64, VecDeque<Arc<str>>>,
    /// The nodes by the number of their paths.
    sizes: BTreeSet<(usize, u64)>,
}

/// The end of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    pub(super) epoch: u32,
    /// Whether this participant has owned it.
    pub(super) own: bool,
}

impl PastEpochs {
    pub(super) const fn new() -> Self {
        Self { epochs: BTreeMap::new(), order: BTreeMap::new(), sizes: BTreeSet::new() }
    }

    pub(super) fn get(&self, path: &str) -> Option<Past> {
        self.epochs.get(path).copied()
    }

    /// Remembers the end of an object of a node.
    pub(super) fn insert(&mut self, path: &Arc<str>, past: Past, node: u64) {
        if let Some(known) = self.epochs.get_mut(path) {
            *known = past;
            return;
        }
        if self.epochs.len() >= PATHS_MAX {
            let Some((_, heaviest)) = self.sizes.last().copied() else { return };
            if let Some(oldest) = self.resize(heaviest, VecDeque::pop_front) {
                self.epochs.remove(&oldest);
            }
        }
        self.epochs.insert(Arc::clone(path), past);
        self.resize(node, |order| order.push_back(Arc::clone(path)));
    }

    /// Changes the paths of a node.
    fn resize<T>(&mut self, node: u64, change: impl FnOnce(&mut VecDeque<Arc<str>>) -> T) -> T {
        let order = self.order.entry(node).or_default();
        self.sizes.remove(&(order.len(), node));
        let result = change(order);
        if order.is_empty() {
            self.order.remove(&node);
        } else {
            self.sizes.insert((order.len(), node));
        }
        result
    }
}

/// The paths of objects that do not yield and whose owner is silent, or has not introduced them yet: nobody else can own
/// them when it returns.
#[derive(Clone, Debug)]
pub(super) struct Reservations {
    reserved: BTreeMap<Arc<str>, Reservation>,
    paths: BTreeMap<PeerId, BTreeSet<Arc<str>>>,
    ends: BTreeSet<(Instant, Arc<str>)>,
    shares: Shares,
}

#[derive(Clone, Copy, Debug)]
struct Reservation {
    owner: PeerId,
    /// The node that has caused it.
    cause: u64,
    /// When it ends; `None` for one of an owner that has introduced the object.
    until: Option<Instant>,
}

impl Reservations {
    /// How long a path is reserved for a new owner.
    const MOVED: Duration = Duration::from_secs(600);

    pub(super) const fn new() -> Self {
        Self {
            reserved: BTreeMap::new(),
            paths: BTreeMap::new(),
            ends: BTreeSet::new(),
            shares: Shares::new(PATHS_MAX),
        }
    }

    pub(super) fn get(&self, path: &str) -> Option<PeerId> {
        self.reserved.get(path).map(|reservation| reservation.owner)
    }

    /// Reserves a path for an owner that is silent, unless it is reserved for another one.
    pub(super) fn keep(&mut self, path: &Arc<str>, owner: PeerId) {
        self.insert(path, Reservation { owner, cause: owner.node(), until: None });
    }

    /// Reserves a path that its owner hands over, unless it is reserved for another one.
    pub(super) fn hand_over(&mut self, path: &Arc<str>, from: PeerId, to: PeerId, now: Instant) {
        let until = Some(now + Self::MOVED);
        self.insert(path, Reservation { owner: to, cause: from.node(), until });
    }

    fn insert(&mut self, path: &Arc<str>, reservation: Reservation) {
        if !self.reserved.contains_key(path) && self.shares.take(reservation.cause, 1) {
            self.reserved.insert(Arc::clone(path), reservation);
            self.paths.entry(reservation.owner).or_default().insert(Arc::clone(path));
            if let Some(until) = reservation.until {
                self.ends.insert((until, Arc::clone(path)));
            }
        }
    }

    /// Ends the reservation of a path by its owner.
    pub(super) fn remove(&mut self, path: &Arc<str>, owner: PeerId) {
        if self.get(path) != Some(owner) {
            return;
        }
        let Some(reservation) = self.reserved.remove(path) else { return };
        self.shares.free_of(reservation.cause, 1);
        if let Some(until) = reservation.until {
            self.ends.remove(&(until, Arc::clone(path)));
        }
        if let Some(paths) = self.paths.get_mut(&owner) {
            paths.remove(path);
            if paths.is_empty() {
                self.paths.remove(&owner);
            }
        }
    }

    /// Ends the reservation of a path for an owner that has never introduced it: another one has introduced it first.
    pub(super) fn pass(&mut self, path: &Arc<str>, first: PeerId) {
        let passed = self.reserved.get(path).copied();
        let passed = passed.filter(|it| it.until.is_some() && it.owner != first);
        if let Some(Reservation { owner, .. }) = passed {
            self.remove(path, owner);
        }
    }

    /// Ends the reservations whose time has passed.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((_, path)) = self.ends.first().filter(|(until, _)| now >= *until).cloned() {
            let Some(owner) = self.get(&path) else { return };
            self.remove(&path, owner);
        }
    }

    /// Ends all reservations of an owner.
    pub(super) fn forget(&mut self, owner: PeerId) {
        for path in self.paths.get(&owner).cloned().unwrap_or_default() {
            self.remove(&path, owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_nodes_that_are_gone_make_room_for_those_of_others() {
        let mut past = PastEpochs::new();
        let end = Past { epoch: 7, own: false };
        for node in 0..40_u64 {
            for number in 0..4_000 {
                past.insert(&format!("{node}/{number}").into(), end, node);
            }
        }
        past.insert(&"new/1".into(), end, 77);
        assert!(past.get("new/1").is_some());
        assert_eq!(past.epochs.len(), PATHS_MAX);
        let least = past.sizes.iter().find(|(_, node)| *node == 3).map(|(size, _)| *size);
        assert!(least.is_some_and(|size| size > 1_500), "{least:?} of 65,536 paths of 40 nodes");
    }

    #[test]
    fn a_reservation_counts_for_its_cause_and_ends() {
        let mut reserved = Reservations::new();
        let (hostile, victim, other) =
            (PeerId::of_node(1, 1), PeerId::of_node(2, 1), PeerId::of_node(3, 1));
        let now = Instant::from_millis(1);
        for number in 0..100_000 {
            reserved.hand_over(&format!("many/{number}").into(), hostile, victim, now);
        }
        let path: Arc<str> = "car/1".into();
        reserved.keep(&path, victim);
        assert_eq!(reserved.get("car/1"), Some(victim));
        reserved.pass(&path, other);
        assert_eq!(reserved.get("car/1"), Some(victim), "it owns the path");
        reserved.pass(&"many/1".into(), other);
        assert_eq!(reserved.get("many/1"), None);
        reserved.expire(now + Duration::from_secs(600));
        assert_eq!((reserved.reserved.len(), reserved.shares.used()), (1, 1));
        reserved.forget(victim);
        assert_eq!((reserved.paths.len(), reserved.shares.used()), (0, 0));
    }
}
