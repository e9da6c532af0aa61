//! Change of a link's capacity while it carries streams.

use super::{Link, index_of};
use paceline_sched::{Capacity, Duration, Instant, Policy, Scheduler};

impl Link {
    /// Changes the capacity of the link from `now` on. Queued samples, contracts and loss windows stay.
    /// Streams that share by curves get the curves that admission now assumes. Returns `false` without any
    /// change for a link without a capacity, since its hops are not paced.
    pub fn set_capacity(&mut self, now: Instant, capacity: Capacity) -> bool {
        if self.spec.capacity.is_none() {
            return false;
        }
        let blocked = self.blocked();
        self.spec.capacity = Some(capacity);
        self.frame_bytes = self.spec.carrier.frame_bytes(Some(capacity));
        self.pacer.set_capacity(now, capacity, self.frame_bytes);
        // The service time of each head changes.
        for place in 0..self.streams.len() {
            let index = index_of(place);
            let Some(stream) = self.stream(index).filter(|stream| stream.head().is_some()) else {
                continue;
            };
            let left = self.left(stream.head_left());
            self.discipline.handle_left(index, left);
        }
        self.curve_anew(now, blocked);
        true
    }

    /// Updates the curves of HFSC streams to the new blocking time of a packet; `before` is the old one.
    fn curve_anew(&mut self, now: Instant, before: Duration) {
        let blocked = self.blocked();
        for place in 0..self.streams.len() {
            let index = index_of(place);
            let other = self.stream(index).is_some_and(|stream| {
                self.policy_of(stream.home) == Policy::Hfsc
                    && stream.spec.terms(before) != stream.spec.terms(blocked)
            });
            if other {
                self.join_anew(now, index);
            }
        }
    }
}
