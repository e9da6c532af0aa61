//! The assignment of a link's streams to its classes.

use super::classes::{ClassView, Home, discipline};
use super::windows::Counted;
use super::{Link, StreamIndex};
use crate::capacity::TRAIN_LONGEST;
use crate::classes::ClassTree;
use crate::plan::StreamNames;
use crate::reason::StreamCounters;
use paceline_sched::discipline::Discipline;
use paceline_sched::{Duration, Instant, Policy, Scheduler};
use std::sync::Arc;

impl Link {
    /// Replaces the classes of the link from `now` on; `None` removes them. Queued samples stay, and loss windows
    /// continue. Policers and the counters of classes start again.
    pub fn set_classes(&mut self, now: Instant, classes: Option<Arc<ClassTree>>) {
        let indexes = self.streams.indexes();
        let counted: Vec<_> = indexes.map(|index| (index, self.counted(index))).collect();
        (self.discipline, self.class_streams) = discipline(self.policy, classes.as_ref());
        for (index, counted) in counted {
            let Some(stream) = self.streams.get_mut(index) else { continue };
            (stream.home, stream.suspended, stream.passed, stream.held) =
                (None, false, false, false);
            let up = stream.up;
            self.seat(index);
            if up {
                self.join(index);
                self.count_anew(index, counted);
                self.announce_head(now, index);
            }
        }
    }

    /// Returns the longest time for which other traffic can delay a stream of a home.
    pub(super) fn blocked(&self, home: Option<Home>) -> Duration {
        let wire = &self.pacer.wire;
        let class = self.class_streams.as_ref().zip(home).and_then(|(class_streams, home)| {
            class_streams.blocked(home, self.policy, (wire.capacity, wire.carrier))
        });
        // A train of probes that has begun.
        let train = if self.follows() { TRAIN_LONGEST } else { Duration::ZERO };
        class.unwrap_or_else(|| wire.blocked(self.policy)).saturating_add(train)
    }

    /// Lets a stream join the discipline, after [`Self::seat`].
    pub(super) fn join(&mut self, index: StreamIndex) {
        let Some(stream) = self.streams.get(index) else { return };
        let terms = stream.spec.terms(self.blocked(stream.home), &self.pacer.wire);
        self.discipline.join(index, terms);
    }

    /// Returns the discipline within a home, or that of a link without classes.
    pub(super) fn policy_of(&self, home: Option<Home>) -> Policy {
        let class = self
            .class_streams
            .as_ref()
            .zip(home)
            .and_then(|(class_streams, home)| class_streams.policy_of(home));
        class.unwrap_or(self.policy)
    }

    /// Lets a stream join the discipline again on new terms; queued samples stay.
    /// `counted` is its window before the change.
    pub(super) fn join_anew(&mut self, now: Instant, index: StreamIndex, counted: Option<Counted>) {
        self.discipline.leave(index);
        self.seat(index);
        let Some(stream) = self.streams.get_mut(index).filter(|stream| stream.up) else { return };
        (stream.suspended, stream.held) = (false, false);
        self.join(index);
        self.count_anew(index, counted);
        self.announce_head(now, index);
    }

    /// Assigns a stream to the class that matches it. The caller then joins it to the discipline.
    pub(super) fn seat(&mut self, index: StreamIndex) {
        let policy = self.policy;
        let (Some(class_streams), Discipline::Hierarchy(tree)) =
            (&mut self.class_streams, &mut self.discipline)
        else {
            return;
        };
        let Some(stream) = self.streams.get_mut(index) else {
            return;
        };
        let spec = &stream.spec;
        let nameless = StreamNames::default();
        let names = spec.names.as_deref().unwrap_or(&nameless);
        let wanted = (!spec.background)
            .then(|| class_streams.home_of(names, spec.contract.is_some(), spec.hop));
        let old = core::mem::replace(&mut stream.home, wanted);
        class_streams.seat(tree, index, (old, wanted), policy);
    }

    /// Removes a closed stream from its class, which keeps the sum of its counters.
    pub(super) fn unseat(&mut self, home: Option<Home>, counters: &StreamCounters) {
        let (Some(class_streams), Some(home)) = (&mut self.class_streams, home) else { return };
        class_streams.unseat(home, counters);
    }

    /// Returns the classes in matching order, each followed by the subclasses of its peers. Empty for a link
    /// without classes.
    #[must_use]
    pub fn classes(&self) -> Vec<ClassView> {
        let (Some(class_streams), Discipline::Hierarchy(tree)) =
            (&self.class_streams, &self.discipline)
        else {
            return Vec::new();
        };
        let homes = self.streams.iter();
        class_streams
            .views(tree, homes.filter_map(|(_, stream)| Some((stream.home?, &stream.counters))))
    }
}
