//! Change of a link's capacity while it carries streams.

use super::Link;
use paceline_sched::{Capacity, Duration, Instant, Policy, Scheduler};

impl Link {
    /// Changes the capacity of the link from `now` on. Queued samples, contracts and loss windows stay.
    /// Streams that share by curves get the curves that admission now assumes. Returns `false` without any
    /// change for a link without a capacity, since its hops are not paced.
    pub fn set_capacity(&mut self, now: Instant, capacity: Capacity) -> bool {
        if !self.pacer.wire.is_paced() {
            return false;
        }
        let blocked = self.pacer.wire.blocked(self.policy);
        self.pacer.set_capacity(now, capacity);
        // The service time of each head changes.
        for index in self.streams.indexes() {
            let Some(stream) = self.streams.get(index).filter(|stream| stream.head().is_some())
            else {
                continue;
            };
            let left = self.pacer.wire.left(stream.head_left());
            self.discipline.handle_left(index, left);
        }
        self.curve_anew(now, blocked);
        true
    }

    /// Updates the curves of HFSC streams to the new blocking time of a packet; `before` is the old one.
    fn curve_anew(&mut self, now: Instant, before: Duration) {
        let blocked = self.pacer.wire.blocked(self.policy);
        for index in self.streams.indexes() {
            let other = self.streams.get(index).is_some_and(|stream| {
                self.policy_of(stream.home) == Policy::Hfsc
                    && stream.spec.terms(before) != stream.spec.terms(blocked)
            });
            if other {
                self.join_anew(now, index);
            }
        }
    }
}
