//! Change of a link's capacity while it carries streams.

use super::stream::Stream;
use super::{Link, StreamIndex};
use paceline_sched::discipline::Terms;
use paceline_sched::{Capacity, Instant, Policy, Scheduler};

impl Link {
    /// Changes the capacity of the link from `now` on. Queued samples, contracts and loss windows stay.
    /// Streams that share by curves get the curves that admission now assumes. Returns `false` without any
    /// change for a link without a capacity, since its hops are not paced.
    pub fn set_capacity(&mut self, now: Instant, capacity: Capacity) -> bool {
        if !self.pacer.wire.is_paced() {
            return false;
        }
        if self.stated.is_some() {
            self.state(now, capacity);
        } else {
            self.set_rate(now, capacity);
        }
        true
    }

    /// Changes the rate of a paced link.
    pub(super) fn set_rate(&mut self, now: Instant, capacity: Capacity) {
        let before = self.contracted();
        self.pacer.set_capacity(now, capacity);
        self.hops.set_answers_within(self.pacer.wire.answers_within());
        self.hops.share_probes(now, &self.pacer.wire);
        // The service time of each head changes.
        for index in self.streams.indexes() {
            let Some(stream) = self.streams.get(index).filter(|stream| stream.head().is_some())
            else {
                continue;
            };
            let left = self.pacer.wire.left(stream.head_left());
            self.discipline.handle_left(index, left);
        }
        self.join_changed(now, before);
    }

    /// Returns the terms of streams with contracts under the present capacity.
    pub(super) fn contracted(&self) -> Vec<(StreamIndex, Terms)> {
        let promised = self.streams.iter().filter(|(_, stream)| stream.spec.contract.is_some());
        promised.map(|(index, stream)| (index, self.terms_of(stream))).collect()
    }

    fn terms_of(&self, stream: &Stream) -> Terms {
        stream.spec.terms(self.blocked(stream.home), &self.pacer.wire)
    }

    /// Updates the terms of streams that depend on the capacity; `before` has the old ones.
    pub(super) fn join_changed(&mut self, now: Instant, before: Vec<(StreamIndex, Terms)>) {
        for (index, before) in before {
            let other = self.streams.get(index).is_some_and(|stream| {
                let now = self.terms_of(stream);
                let policy = self.policy_of(stream.home);
                let timed = matches!(policy, Policy::Hfsc | Policy::Wf2qPlus) && now != before;
                timed || now.begins_early != before.begins_early
            });
            if other {
                let counted = self.counted(index);
                self.join_anew(now, index, counted);
            }
        }
    }
}
