//! Objects on their way to another owner.

use crate::ids::{ObjectIndex, PeerId};
use crate::packet::{Claim, Hand};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// Objects on their way to another owner. Each is repeated until the new owner claims it, or it is kept.
#[derive(Debug, Default)]
pub(super) struct HandOvers {
    under_way: BTreeMap<ObjectIndex, HandOver>,
}

/// An object on its way to another owner.
#[derive(Debug)]
pub(super) struct HandOver {
    pub(super) to: PeerId,
    pub(super) hand: Hand,
    next: Instant,
    until: Instant,
}

impl HandOvers {
    const REPEAT: Duration = Duration::from_millis(200);
    /// How long it is repeated.
    const LIMIT: Duration = Duration::from_secs(5);

    pub(super) fn begin(&mut self, object: ObjectIndex, to: PeerId, hand: Hand, now: Instant) {
        self.under_way.insert(object, HandOver { to, hand, next: now, until: now + Self::LIMIT });
    }

    /// Returns whether an object is on its way.
    pub(super) fn has(&self, object: ObjectIndex) -> bool {
        self.under_way.contains_key(&object)
    }

    /// Returns whether a claim is the answer to the hand-over of an object.
    pub(super) fn goes_to(&self, object: ObjectIndex, claim: &Claim) -> bool {
        self.under_way.get(&object).is_some_and(|hand_over| {
            hand_over.to == claim.owner && hand_over.hand.epoch <= claim.epoch
        })
    }

    /// Ends the hand-over of an object and returns it.
    pub(super) fn end(&mut self, object: ObjectIndex) -> Option<HandOver> {
        self.under_way.remove(&object)
    }

    /// Calls `send` with each packet that is due, and returns the objects whose new owner did not answer.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        mut send: impl FnMut(PeerId, &Hand),
    ) -> Vec<(ObjectIndex, PeerId)> {
        let late = self.under_way.iter().filter(|(_, hand_over)| now >= hand_over.until);
        let late: Vec<_> = late.map(|(object, hand_over)| (*object, hand_over.to)).collect();
        for hand_over in self.under_way.values_mut().filter(|hand_over| now >= hand_over.next) {
            send(hand_over.to, &hand_over.hand);
            hand_over.next = now + Self::REPEAT;
        }
        for (object, _) in &late {
            self.under_way.remove(object);
        }
        late
    }

    /// Ends the hand-overs to a participant that is gone, and returns the objects.
    pub(super) fn abandon(&mut self, to: PeerId) -> Vec<ObjectIndex> {
        let gone = self.under_way.iter().filter(|(_, hand_over)| hand_over.to == to);
        let gone: Vec<_> = gone.map(|(object, _)| *object).collect();
        for object in &gone {
            self.under_way.remove(object);
        }
        gone
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.under_way.values().map(|hand_over| hand_over.next.min(hand_over.until)).min()
    }
}
