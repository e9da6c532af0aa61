//! Change of a link's capacity while it carries streams.

use super::stream::Stream;
use super::{Link, StreamIndex};
use paceline_sched::{Capacity, Duration, Instant, Policy, Scheduler};

impl Link {
    /// Changes the capacity of the link from `now` on. Queued samples, contracts and loss windows stay.
    /// Streams that share by curves get the curves that admission now assumes. Returns `false` without any
    /// change for a link without a capacity, since its hops are not paced.
    pub fn set_capacity(&mut self, now: Instant, capacity: Capacity) -> bool {
        if !self.pacer.wire.is_paced() {
            return false;
        }
        let before = self.curved();
        self.pacer.set_capacity(now, capacity);
        self.hops.set_answers_within(self.pacer.wire.answers_within());
        // The service time of each head changes.
        for index in self.streams.indexes() {
            let Some(stream) = self.streams.get(index).filter(|stream| stream.head().is_some())
            else {
                continue;
            };
            let left = self.pacer.wire.left(stream.head_left());
            self.discipline.handle_left(index, left);
        }
        self.curve_anew(now, before);
        true
    }

    /// Returns the streams that share by curves, with the blocking time of a packet.
    fn curved(&self) -> Vec<(StreamIndex, Duration)> {
        let curved = |(index, stream): (StreamIndex, &Stream)| {
            let hfsc = self.policy_of(stream.home) == Policy::Hfsc;
            hfsc.then(|| (index, self.blocked(stream.home)))
        };
        self.streams.iter().filter_map(curved).collect()
    }

    /// Updates the curves of streams to the new blocking time of a packet; `streams` has the old ones.
    fn curve_anew(&mut self, now: Instant, streams: Vec<(StreamIndex, Duration)>) {
        for (index, before) in streams {
            let other = self.streams.get(index).is_some_and(|stream| {
                stream.spec.terms(before) != stream.spec.terms(self.blocked(stream.home))
            });
            if other {
                self.join_anew(now, index);
            }
        }
    }
}
