//! Samples of contracted streams that are more than their class may send (`else demote`).
//!
//! They wait behind the others of their stream, whose samples leave in order, and take their turns among best
//! effort: they leave if nothing that was promised wants the link, and cost nobody anything. When the next
//! sample comes that conforms, those that still wait are given up, so that what was promised never waits for
//! what was not. Their deadlines are those of the contract, and they are judged as all others are.
//!
//! Best effort stays what it is. Of video nothing is demoted but dropped: what comes next would need it.

use super::gate::Entry;
use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use paceline_sched::Scheduler;

impl Stream {
    /// What becomes of a sample that is more than its class may send, where that demotes.
    pub(super) const fn may_be_demoted(&self) -> Entry {
        match self.spec.contract {
            None => Entry::Conforms,
            Some(_) if self.spec.kind.is_video() => Entry::Dropped,
            Some(_) => Entry::Demoted,
        }
    }

    /// Only what was demoted waits.
    pub(super) fn head_is_demoted(&self) -> bool {
        self.demoted > 0 && self.demoted >= self.queue.len()
    }
}

impl Link {
    /// What waits of a stream and was demoted makes way for a sample that conforms.
    pub(super) fn give_up_demoted(&mut self, index: StreamIndex) {
        let Some(stream) = self.stream_mut(index).filter(|stream| stream.demoted > 0) else {
            return;
        };
        let is_head = stream.head_is_demoted();
        let behind = stream.demoted - usize::from(is_head);
        for _ in 0..behind {
            stream.drop_last(DropReason::Policed);
        }
        stream.demoted = 0;
        let head =
            is_head.then(|| (stream.drop_head(DropReason::Policed), stream.spec.hop, stream.id));
        if let Some((begun, hop, id)) = head {
            self.abort(index, hop, id, begun);
            let violated = self.discipline.remove_head(index);
            if let Some(stream) = self.stream_mut(index) {
                stream.count_violation(violated);
            }
        }
        self.judge_skipped(index, behind);
    }
}
