//! Samples of contracted streams that exceed the rate of their class (`else demote`).
//!
//! They are queued behind the other samples of their stream, which are sent in order, and compete with best
//! effort. So they are sent only while no contracted sample needs the link, at no cost to others. When the
//! next conforming sample arrives, the demoted ones that are still queued are dropped. So conforming samples
//! never wait for demoted ones. Demoted samples keep the deadlines of the contract, and count as hits or
//! misses like all others.
//!
//! Samples that were queued as best effort before their stream got a contract are demoted, too: the next sample is
//! under the contract, and must not wait for them.
//!
//! Best-effort samples that exceed the rate stay best effort. Video is dropped instead of demoted, because
//! later pictures would need it.

use super::policing::Entry;
use super::stream::{Stream, on_wire};
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use paceline_sched::{Instant, Scheduler};

impl Stream {
    /// Returns the treatment of a sample that exceeds the rate of its class, where the class demotes.
    pub(super) const fn may_be_demoted(&self) -> Entry {
        match self.spec.contract {
            None => Entry::Conforms,
            Some(_) if self.spec.kind.is_video() => Entry::Dropped,
            Some(_) => Entry::Demoted,
        }
    }

    /// Demotes the queued samples of a stream that gets a contract.
    pub(super) fn demote_queue(&mut self, now: Instant) {
        if !self.spec.kind.is_video() {
            self.demoted = self.queue.len();
            (self.before_contract, self.contract_since) = (self.demoted, now);
        }
    }

    /// Returns `true` if a sample, which has been queued since `since`, precedes the contract.
    pub(super) fn precedes_contract(&self, since: Instant) -> bool {
        self.spec.contract.is_some() && since < self.contract_since
    }

    /// Returns `true` if the queue contains only samples from before the contract, which the next sample replaces.
    pub(super) fn gives_way(&self) -> bool {
        self.before_contract > 0 && self.before_contract == self.queue.len()
    }

    /// Returns the reason to drop the last demoted sample in favour of one under the contract.
    fn reason_to_give_way(&self) -> DropReason {
        if self.gives_way() { DropReason::Superseded } else { DropReason::Policed }
    }

    /// Returns the bytes on the wire of the queued samples that were not demoted.
    pub(super) fn promised_on_wire(&self) -> u64 {
        let demoted = self.queue.iter().rev().take(self.demoted).map(|queued| on_wire(queued));
        self.queue_on_wire.saturating_sub(demoted.sum())
    }

    /// Returns `true` if all queued samples are demoted.
    pub(super) fn head_is_demoted(&self) -> bool {
        self.demoted > 0 && self.demoted >= self.queue.len()
    }
}

impl Link {
    /// Drops the queued demoted samples of a stream in favour of a conforming one.
    pub(super) fn give_up_demoted(&mut self, index: StreamIndex) {
        let Some(stream) = self.streams.get_mut(index).filter(|stream| stream.demoted > 0) else {
            return;
        };
        let is_head = stream.head_is_demoted();
        let behind = stream.demoted - usize::from(is_head);
        for _ in 0..behind {
            stream.drop_last(stream.reason_to_give_way());
        }
        stream.demoted = 0;
        let reason = stream.reason_to_give_way();
        let head = is_head.then(|| (stream.drop_head(reason), stream.spec.hop, stream.id));
        if let Some((begun, hop, id)) = head {
            self.abort(index, hop, id, begun);
            let violated = self.discipline.remove_head(index);
            if let Some(stream) = self.streams.get_mut(index) {
                stream.count_violation(violated);
            }
        }
        self.judge_skipped(index, behind);
    }
}
