//! The order of samples when subscriptions move to another stream.
//!
//! A subscription with a contract may move from one stream of a publisher to another one to the same hop, for instance
//! when its rate becomes part of a stream of all samples, or no longer is. Samples queued on the old stream are its samples,
//! too, but the disciplines order streams independently. A newer sample on the new stream would arrive first, and the
//! older ones would then be dropped as duplicates.
//!
//! So if the discipline picks a sample of the new stream, an older one of the old stream is sent in its place, unless it
//! would already be late on the new stream. Then the new stream sends no more than if it had carried the older samples, too,
//! for which its contract is granted.

use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::ids::SubscriptionId;
use paceline_sched::Instant;
use std::collections::VecDeque;
use std::sync::Arc;

/// The samples of the old stream that precede newer ones of the new stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Covers {
    /// All, because the stream closes.
    Closing,
    /// All, because the stream takes only samples before the first one of its successor.
    Ending,
    /// Those that are queued when the owner has passed all samples published before the change.
    Queue,
    /// Those up to this sequence number. The stream continues for other subscriptions.
    UpTo(u64),
}

/// The subscriptions that have left a stream.
#[derive(Clone, Debug)]
struct Departure {
    stream: StreamIndex,
    subscriptions: Arc<[SubscriptionId]>,
    covers: Covers,
}

impl Departure {
    /// Returns true if the head of `old`, the stream that was left, precedes the head of `new` at `now`.
    fn precedes(&self, now: Instant, old: &Stream, new: &Stream) -> bool {
        let (Some(first), Some(next)) = (old.head(), new.head()) else { return false };
        let covered = match self.covers {
            Covers::Closing | Covers::Ending | Covers::Queue => true,
            Covers::UpTo(last) => first.seq <= last,
        };
        let within =
            new.spec.contract.map(|contract| new.spec.upstream.saturating_add(contract.deadline));
        let late = within.is_none_or(|within| first.published_at + within < now);
        let joins = |id: &SubscriptionId| new.spec.subscriptions.binary_search(id).is_ok();
        let place = |stream: &Stream| (stream.spec.publisher, stream.spec.hop);
        covered
            && !late
            && place(old) == place(new)
            && !old.held
            && !old.suspended
            && first.seq < next.seq
            && self.subscriptions.iter().any(joins)
    }
}

/// The streams of a link that subscriptions with contracts have left, the first one first.
#[derive(Debug, Default)]
pub(super) struct Successions {
    departures: VecDeque<Departure>,
}

impl Successions {
    /// The greatest number of departures whose samples are not sent yet. The first ones are removed, so that their samples
    /// may be overtaken.
    const MAX: usize = 4_096;

    /// Removes a stream that closes.
    pub(super) fn remove(&mut self, index: StreamIndex) {
        self.departures.retain(|left| left.stream != index);
    }

    /// Removes the entries of a stream that cover the same samples as `covers`.
    fn remove_same(&mut self, index: StreamIndex, covers: Covers) {
        self.departures.retain(|left| left.stream != index || left.covers != covers);
    }
}

impl Link {
    /// Lets the samples of a replaced stream precede newer ones of the streams to which its subscriptions move. The caller
    /// closes it as soon as it [is settled](Self::is_settled), but no later than [`Self::hand_over_max`] after this call.
    pub fn hand_over(&mut self, index: StreamIndex) {
        let Some(stream) = self.streams.get(index) else { return };
        let subscriptions = Arc::clone(&stream.spec.subscriptions);
        self.note_departure(index, subscriptions, Covers::Closing);
    }

    /// Records the subscriptions that have left a stream, which had `before`.
    pub(super) fn note_moved(&mut self, index: StreamIndex, before: &Arc<[SubscriptionId]>) {
        let Some(stream) = self.streams.get(index) else { return };
        let spec = &stream.spec;
        let stays = |id: &SubscriptionId| spec.subscriptions.binary_search(id).is_ok();
        let gone: Vec<_> = before.iter().filter(|id| !stays(id)).copied().collect();
        let (ends, subscriptions) = (spec.ends, Arc::clone(&spec.subscriptions));
        self.successions.remove_same(index, Covers::Ending);
        if ends {
            self.note_departure(index, subscriptions, Covers::Ending);
        }
        self.note_departure(index, gone.into(), Covers::Queue);
    }

    fn note_departure(
        &mut self,
        stream: StreamIndex,
        subscriptions: Arc<[SubscriptionId]>,
        covers: Covers,
    ) {
        if subscriptions.is_empty() {
            return;
        }
        let departures = &mut self.successions.departures;
        if departures.len() >= Successions::MAX {
            departures.pop_front();
        }
        departures.push_back(Departure { stream, subscriptions, covers });
    }

    /// Determines which samples precede others, when the owner has passed all samples that were published before a change.
    pub(super) fn settle_successions(&mut self) {
        let streams = &self.streams;
        self.successions.departures.retain_mut(|left| {
            let Some(stream) = streams.get(left.stream) else { return false };
            if left.covers == Covers::Queue {
                left.covers = Covers::UpTo(stream.newest().unwrap_or_default());
            }
            match left.covers {
                Covers::UpTo(last) => stream.head().is_some_and(|head| head.seq <= last),
                Covers::Closing | Covers::Ending | Covers::Queue => true,
            }
        });
    }

    /// Returns the stream of the sample that must be sent before the head of `index`, or `index` itself.
    pub(super) fn oldest(&self, now: Instant, mut index: StreamIndex) -> StreamIndex {
        while let Some(older) = self.predecessor(now, index) {
            index = older;
        }
        index
    }

    fn predecessor(&self, now: Instant, index: StreamIndex) -> Option<StreamIndex> {
        let departures = &self.successions.departures;
        if departures.is_empty() {
            return None;
        }
        let new = self.streams.get(index).filter(|new| !new.head_begun)?;
        let precedes = |left: &&Departure| {
            let old = self.streams.get(left.stream).filter(|_| left.stream != index);
            old.is_some_and(|old| left.precedes(now, old, new))
                && self.expiry(now, left.stream).is_none()
                && !self.is_hopeless(now, left.stream)
        };
        departures.iter().find(precedes).map(|left| left.stream)
    }
}
