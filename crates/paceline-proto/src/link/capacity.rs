//! Another capacity for a link that carries streams already.

use super::{Carrier, FRAME_BYTES_MIN, FRAME_TIME, Link, index_of};
use paceline_sched::{Capacity, Duration, Instant, Policy, Scheduler};

/// What a frame on a link of this capacity may hold.
pub(super) fn frame_bytes(capacity: Option<Capacity>, carrier: Carrier) -> u64 {
    let most = carrier.frame_bytes_max();
    capacity.map_or(most, |capacity| capacity.bytes_in(FRAME_TIME).clamp(FRAME_BYTES_MIN, most))
}

impl Link {
    /// Gives the link another capacity from `now` on. What waits stays, and so do contracts and
    /// windows; what shares by curves gets those that admission counts with now. False, and nothing has changed, for a link without a capacity: its hops know no pace.
    pub fn set_capacity(&mut self, now: Instant, capacity: Capacity) -> bool {
        if self.spec.capacity.is_none() {
            return false;
        }
        let blocked = self.blocked();
        self.spec.capacity = Some(capacity);
        self.frame_bytes = frame_bytes(Some(capacity), self.spec.carrier);
        self.pacer.set_capacity(now, capacity, self.frame_bytes);
        // Each head needs another time of the link now.
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

    /// Gives streams in HFSC the curves of a link where a packet of others takes as long as it does now, and not
    /// `before`.
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
