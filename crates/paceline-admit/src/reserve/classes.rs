//! Classes of links: each class is a link of its own, and a reservation moves when its class changes.

use super::legs::{Here, Place, borne, holder};
use super::message::{Key, Name, NodeIndex, Reason, Wanted};
use super::state::{Entry, Leg, Version};
use super::{LinkId, Reservations};
use crate::link::{Admission, LinkParameters};
use paceline_sched::{Duration, Instant};

/// A version whose forward leg changes its class.
struct Move {
    name: Name,
    installed: bool,
    leg: Leg,
    to: LinkId,
    next: NodeIndex,
    wanted: Wanted,
    spent: Duration,
}

impl Reservations {
    /// Changes links and their classes. `links` are the new and the changed ones. `place` returns the
    /// link or class of the stream with a label to a next node; `None` leaves it where it is.
    ///
    /// Reservations that stay are tested in order of `rank`, a function of their labels. Those that move are tested in their
    /// new class after them, in order of their keys, installed before tentative ones. A reservation that does not fit ends with the exceeded
    /// limit, and both sides are notified.
    pub fn change_classes<R: Ord>(
        &mut self,
        now: Instant,
        links: &[(LinkId, LinkParameters)],
        place: impl Fn(&[u8], NodeIndex) -> Option<LinkId>,
        rank: impl Fn(&[u8]) -> Option<R>,
    ) {
        self.advance(now);
        for (link, spec) in links {
            self.add_link(*link, Admission::new(spec.clone()));
        }
        let moves = self.moves(place);
        for Move { name, leg, .. } in &moves {
            if let Some(admission) = self.links.get_mut(&leg.link) {
                admission.release(leg.trunk, holder(*name));
            }
        }
        for (link, spec) in links {
            if self.links.get(link).is_some_and(|before| before.spec() != spec) {
                self.change_link(now, *link, spec.clone(), &rank);
            }
        }
        for moved in moves {
            self.enter(&moved);
        }
        self.share_host();
    }

    /// Returns the versions whose forward leg belongs to another class, installed ones first.
    fn moves(&self, place: impl Fn(&[u8], NodeIndex) -> Option<LinkId>) -> Vec<Move> {
        let moved = |version: &Version, installed| {
            let (leg, next) = (version.forward?, version.next()?);
            let to = place(&version.ask.label, next).filter(|to| *to != leg.link)?;
            let wanted = borne(&version.ask, version.ask.forward?, version.at);
            let (name, spent) = (version.ask.name, version.ask.spent);
            Some(Move { name, installed, leg, to, next, wanted, spent })
        };
        let entries = || self.entries.values();
        let installed = entries().filter_map(|entry| moved(entry.installed.as_ref()?, true));
        let tentative = entries().filter_map(|entry| moved(entry.tentative.as_ref()?, false));
        installed.chain(tentative).collect()
    }

    /// Reserves a released leg in its new class, or ends its reservation.
    fn enter(&mut self, moved: &Move) {
        let Move { name, installed, leg, to, next, wanted, spent } = moved;
        if self.version_mut(name.key, *installed).is_none() {
            return;
        }
        let (here, spent) =
            (Here { link: Some(*to), work: leg.demand.work(), delivered: None }, *spent);
        let place = Place { name: *name, to: *next, forward: true, here, spent };
        match self.leg(place, wanted, leg.bound) {
            Ok(entered) => {
                if let Some(version) = self.version_mut(name.key, *installed) {
                    version.forward = Some(entered);
                }
                if *installed {
                    self.commit_leg(&entered, *name);
                }
            }
            Err(reason) => self.end_version(name.key, *installed, reason),
        }
        self.update_policer(leg.link, leg.trunk);
    }

    fn commit_leg(&mut self, leg: &Leg, name: Name) {
        if let Some(admission) = self.links.get_mut(&leg.link) {
            admission.commit(leg.trunk, holder(name), None);
        }
        self.update_policer(leg.link, leg.trunk);
    }

    /// Ends an installed or a tentative version for `reason`.
    pub(super) fn end_version(&mut self, key: Key, installed: bool, reason: Reason) {
        if installed {
            self.end(key, reason, None, self.me);
        } else {
            self.give_up(key, reason, None);
        }
        self.rearm(key);
    }

    fn version_mut(&mut self, key: Key, installed: bool) -> Option<&mut Version> {
        let Entry { installed: lasting, tentative, .. } = self.entries.get_mut(&key)?;
        if installed { lasting.as_mut() } else { tentative.as_mut() }
    }
}
