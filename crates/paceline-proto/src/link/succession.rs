//! The order of samples when subscriptions move to another stream.
//!
//! A subscription with a contract may move from one stream of a publisher to another one to the same hop, for instance
//! when its rate becomes part of a stream of all samples, or no longer is. Samples queued on the old stream are its samples,
//! too, but the disciplines order streams independently. A newer sample on the new stream would arrive first, and the
//! late ones would be dropped as duplicates. So when the discipline picks a sample of the new stream, an older one of
//! the old stream is sent in its place. Together both are at most the source's samples, for which the new contract
//! is granted.

use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use std::sync::Arc;

/// The samples of the old stream that precede newer ones of the new stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Covers {
    /// All: the stream ends, or it takes only samples before the first one of its successor.
    All,
    /// Those that are queued at the end of this turn.
    Queue,
    /// Those up to this sequence number. The stream goes on for other subscriptions.
    UpTo(u64),
}

/// A stream that subscriptions have left.
#[derive(Clone, Debug)]
struct Left {
    stream: StreamIndex,
    publisher: PublisherId,
    hop: NodeId,
    subscriptions: Arc<[SubscriptionId]>,
    covers: Covers,
}

impl Left {
    /// Returns true if a sample on `old`, the stream that was left, precedes the head of `new`.
    fn precedes(&self, old: &Stream, new: &Stream) -> bool {
        let (Some(first), Some(next)) = (old.head(), new.head()) else { return false };
        let covered = match self.covers {
            Covers::All | Covers::Queue => true,
            Covers::UpTo(last) => first.seq <= last,
        };
        let joins = |id: &SubscriptionId| new.spec.subscriptions.binary_search(id).is_ok();
        covered && !old.held && first.seq < next.seq && self.subscriptions.iter().any(joins)
    }
}

/// The streams of a link that subscriptions with contracts have left.
#[derive(Debug, Default)]
pub(super) struct Successions {
    left: Vec<Left>,
}

impl Successions {
    /// Removes a stream that closes.
    pub(super) fn remove(&mut self, index: StreamIndex) {
        self.left.retain(|left| left.stream != index);
    }
}

impl Link {
    /// Lets the samples of a replaced stream precede newer ones of the streams to which its subscriptions move. The caller
    /// closes it as soon as it [is settled](Self::is_settled), but no later than [`Self::hand_over_max`] after this call.
    pub fn hand_over(&mut self, index: StreamIndex) {
        let Some(stream) = self.streams.get(index) else { return };
        let subscriptions = Arc::clone(&stream.spec.subscriptions);
        self.note_left(index, subscriptions, Covers::All);
    }

    /// Records the subscriptions that have left a stream, which had `before`.
    pub(super) fn note_moved(&mut self, index: StreamIndex, before: &Arc<[SubscriptionId]>) {
        let Some(stream) = self.streams.get(index) else { return };
        let spec = &stream.spec;
        if spec.ends {
            let subscriptions = Arc::clone(&spec.subscriptions);
            return self.note_left(index, subscriptions, Covers::All);
        }
        self.successions.left.retain(|left| left.stream != index || left.covers != Covers::All);
        let stays = |id: &SubscriptionId| spec.subscriptions.binary_search(id).is_ok();
        let gone: Vec<_> = before.iter().filter(|id| !stays(id)).copied().collect();
        self.note_left(index, gone.into(), Covers::Queue);
    }

    fn note_left(
        &mut self,
        index: StreamIndex,
        subscriptions: Arc<[SubscriptionId]>,
        covers: Covers,
    ) {
        let Some(stream) = self.streams.get(index) else { return };
        let (publisher, hop) = (stream.spec.publisher, stream.spec.hop);
        if covers == Covers::All {
            self.successions.remove(index);
        }
        if !subscriptions.is_empty() {
            let left = Left { stream: index, publisher, hop, subscriptions, covers };
            self.successions.left.push(left);
        }
    }

    /// Ends a turn, in which the owner has passed all samples that were published before a change.
    pub(super) fn settle_successions(&mut self) {
        let streams = &self.streams;
        self.successions.left.retain_mut(|left| {
            let Some(stream) = streams.get(left.stream) else { return false };
            if left.covers == Covers::Queue {
                left.covers = stream.newest().map_or(Covers::UpTo(0), Covers::UpTo);
            }
            match left.covers {
                Covers::UpTo(last) => stream.head().is_some_and(|head| head.seq <= last),
                Covers::All | Covers::Queue => true,
            }
        });
    }

    /// Returns the stream of a sample that must be sent before the head of `index`, if there is one.
    pub(super) fn predecessor(&self, index: StreamIndex) -> Option<StreamIndex> {
        if self.successions.left.is_empty() {
            return None;
        }
        let new = self.streams.get(index).filter(|new| !new.head_begun)?;
        let its = self.successions.left.iter().filter(|left| {
            left.stream != index && (left.publisher, left.hop) == (new.spec.publisher, new.spec.hop)
        });
        its.map(|left| (left, self.streams.get(left.stream)))
            .find(|(left, old)| old.is_some_and(|old| left.precedes(old, new)))
            .map(|(left, _)| left.stream)
    }
}
