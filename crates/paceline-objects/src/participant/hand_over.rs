//! Objects on their way to another owner.

use crate::ids::{ObjectIndex, PeerId};
use crate::packet::{Claim, Hand, is_newer};
use crate::shares::Shares;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Objects on their way to another owner. Each is repeated until the new owner claims it, or it is kept.
#[derive(Debug, Default)]
pub(super) struct HandOvers {
    under_way: BTreeMap<ObjectIndex, HandOver>,
    /// When each is sent next.
    due: BTreeSet<(PeerId, Instant, ObjectIndex)>,
    /// When those that were sent are kept.
    ends: BTreeSet<(Instant, ObjectIndex)>,
    /// When the next ones may be sent to each participant.
    free: BTreeMap<PeerId, Instant>,
}

/// Objects that were handed over to this participant, with their former owners, whose nodes share the places.
#[derive(Debug)]
pub(super) struct Adopted {
    owners: BTreeMap<ObjectIndex, PeerId>,
    shares: Shares,
}

impl Adopted {
    pub(super) const fn new(objects_max: usize) -> Self {
        Self { owners: BTreeMap::new(), shares: Shares::new(objects_max) }
    }

    /// Returns whether a node may hand over another object.
    pub(super) fn has_room(&self, from: PeerId) -> bool {
        self.shares.has_room(from.node())
    }

    pub(super) fn add(&mut self, object: ObjectIndex, from: PeerId) {
        if self.shares.take(from.node(), 1) {
            self.owners.insert(object, from);
        }
    }

    pub(super) fn remove(&mut self, object: ObjectIndex) {
        if let Some(from) = self.owners.remove(&object) {
            self.shares.free_of(from.node(), 1);
        }
    }

    /// Returns whether the former owner of an object claims it by its former right, which did not yield.
    pub(super) fn is_past(&self, object: ObjectIndex, claim: &Claim, own: &Claim) -> bool {
        self.owners.get(&object) == Some(&claim.owner)
            && !claim.ownership.yields
            && is_newer(own.ownership.epoch, claim.ownership.epoch)
    }
}

/// An object on its way to another owner.
#[derive(Debug)]
pub(super) struct HandOver {
    pub(super) to: PeerId,
    pub(super) hand: Hand,
    next: Instant,
    /// When it is kept; `None` before it was sent.
    until: Option<Instant>,
}

impl HandOvers {
    const REPEAT: Duration = Duration::from_millis(200);
    /// The greatest number of packets to a participant at once and the time until the next ones, so that the views of the new owner have
    /// room for its answers.
    const AT_ONCE: usize = 32;
    const PAUSE: Duration = Duration::from_millis(20);
    /// How long it is repeated.
    const LIMIT: Duration = Duration::from_secs(5);

    pub(super) fn begin(&mut self, object: ObjectIndex, to: PeerId, hand: Hand, now: Instant) {
        self.due.insert((to, now, object));
        self.under_way.insert(object, HandOver { to, hand, next: now, until: None });
    }

    /// Returns whether an object is on its way.
    pub(super) fn has(&self, object: ObjectIndex) -> bool {
        self.under_way.contains_key(&object)
    }

    /// Returns whether a claim is the answer to the hand-over of an object.
    pub(super) fn goes_to(&self, object: ObjectIndex, claim: &Claim) -> bool {
        self.under_way.get(&object).is_some_and(|hand_over| {
            hand_over.to == claim.owner && !is_newer(hand_over.hand.epoch, claim.ownership.epoch)
        })
    }

    pub(super) fn end(&mut self, object: ObjectIndex) -> Option<HandOver> {
        let hand_over = self.under_way.remove(&object)?;
        self.due.remove(&(hand_over.to, hand_over.next, object));
        if let Some(until) = hand_over.until {
            self.ends.remove(&(until, object));
        }
        if self.first(hand_over.to).is_none() {
            self.free.remove(&hand_over.to);
        }
        Some(hand_over)
    }

    /// Returns the next object for a participant, and when it is due.
    fn first(&self, to: PeerId) -> Option<(Instant, ObjectIndex)> {
        let its = self.due.range((to, Instant::default(), ObjectIndex(0))..).next();
        its.filter(|due| due.0 == to).map(|(_, next, object)| (*next, *object))
    }

    /// Returns the participants that objects are on their way to.
    fn receivers(&self) -> Vec<PeerId> {
        let mut receivers = Vec::new();
        let mut next = self.due.first();
        while let Some((to, ..)) = next {
            receivers.push(*to);
            let last = (*to, Instant::from_nanos(u64::MAX), ObjectIndex(u32::MAX));
            next = self.due.range((Bound::Excluded(last), Bound::Unbounded)).next();
        }
        receivers
    }

    /// Calls `send` with each packet that is due, and returns the objects whose new owner did not answer. Each new owner
    /// receives those first that have waited longest.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        mut send: impl FnMut(PeerId, &Hand),
    ) -> Vec<(ObjectIndex, PeerId)> {
        let mut late = Vec::new();
        while let Some((_, object)) = self.ends.first().copied().filter(|(until, _)| now >= *until)
        {
            let Some(hand_over) = self.end(object) else { break };
            late.push((object, hand_over.to));
        }
        for to in self.receivers() {
            if self.free.get(&to).is_some_and(|free| now < *free) {
                continue;
            }
            for _ in 0..Self::AT_ONCE {
                let Some((next, object)) = self.first(to).filter(|(next, _)| now >= *next) else {
                    break;
                };
                self.due.remove(&(to, next, object));
                let Some(hand_over) = self.under_way.get_mut(&object) else { continue };
                send(to, &hand_over.hand);
                hand_over.next = now + Self::REPEAT;
                let until = *hand_over.until.get_or_insert(now + Self::LIMIT);
                self.due.insert((to, hand_over.next, object));
                self.ends.insert((until, object));
                self.free.insert(to, now + Self::PAUSE);
            }
        }
        late
    }

    /// Ends the hand-overs to a participant that is gone, and returns the objects.
    pub(super) fn abandon(&mut self, to: PeerId) -> Vec<ObjectIndex> {
        let gone = self.under_way.iter().filter(|(_, hand_over)| hand_over.to == to);
        let gone: Vec<_> = gone.map(|(object, _)| *object).collect();
        for object in &gone {
            self.end(*object);
        }
        gone
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        let sends = self.receivers().into_iter().filter_map(|to| {
            let (next, _) = self.first(to)?;
            Some(self.free.get(&to).map_or(next, |free| next.max(*free)))
        });
        sends.chain(self.ends.first().map(|(until, _)| *until)).min()
    }
}
