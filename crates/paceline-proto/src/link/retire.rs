//! Streams whose place others take.
//!
//! Who asks for something else is served by another stream from then on. What waits in the one of before was
//! published before that, and without it there would be a gap: it is still sent. As best effort, since what its
//! contract held may have been granted to others by now; and never after something newer.

use super::{Link, StreamIndex};
use crate::reason::DropReason;
use paceline_sched::{Duration, Instant, Scheduler};

/// How long the owner of a link lets a stream whose place another takes send what waits.
pub const RETIRE_MAX: Duration = Duration::from_millis(500);

impl Link {
    /// Another stream of its publisher to its hop takes the place of this one: what waits, and what still comes of
    /// before, is sent as best effort until a sample that is not older has left to the hop; then it is dropped, and
    /// nothing of it is sent again.
    ///
    /// The caller closes it: as soon as it [is settled](Self::is_settled) and nothing more can come, and after
    /// [`RETIRE_MAX`] in any case.
    pub fn retire_stream(&mut self, now: Instant, index: StreamIndex) {
        let Some(stream) = self.stream(index) else { return };
        let mut spec = stream.spec.clone();
        (spec.contract, spec.demand) = (None, None);
        if !self.retiring.contains(&index) {
            self.retiring.push(index);
        }
        self.update_stream(now, index, spec);
    }

    /// The number of a stream's head, if its leaving may overtake what waits in others.
    pub(super) fn overtaking(&self, index: StreamIndex) -> Option<u64> {
        if self.retiring.is_empty() {
            return None;
        }
        self.stream(index)?.head().map(|head| head.seq)
    }

    /// A stream's sample of this number has left: nothing that is not newer follows it of those whose place it takes.
    pub(super) fn overtake(&mut self, index: StreamIndex, seq: u64) {
        let Some(spec) = self.stream(index).map(|stream| &stream.spec) else { return };
        let (publisher, hop) = (spec.publisher, spec.hop);
        for place in 0..self.retiring.len() {
            let Some(&old) = self.retiring.get(place).filter(|old| **old != index) else {
                continue;
            };
            let Some(stream) = self.stream_mut(old) else { continue };
            let same = (stream.spec.publisher, stream.spec.hop) == (publisher, hop);
            if !same || stream.head().is_some_and(|head| head.seq > seq) {
                continue;
            }
            let (id, begun) = (stream.id, stream.head_begun.then_some(stream.number));
            let dropped = stream.drop_all(DropReason::Superseded);
            self.backlog.free_later(dropped);
            self.abort(old, hop, id, begun);
            self.repairs.forget(|key| key.stream == old);
            self.discipline.remove_head(old);
        }
    }
}
