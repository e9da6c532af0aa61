//! Close notifications, kept until the receiver has acknowledged them.
//!
//! A close carries the number of samples that the stream has begun, so the receiver counts those that it
//! never saw. A close that was in flight when the hop went down is sent again when the hop is up, even if the
//! neighbour was forgotten in between.

use super::{Link, Neighbour, Notice};
use crate::ids::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// The maximum number of removed neighbours whose closes are kept.
const PARTED_MAX: usize = 64;
/// The maximum number of closes kept per neighbour: the number of streams of a link.
const CLOSES_MAX: usize = crate::wire::STREAMS_MAX as usize;

/// The closes for removed neighbours, in the order of removal.
#[derive(Debug, Default)]
pub(super) struct Parted {
    closes: BTreeMap<NodeId, VecDeque<Notice>>,
    left: VecDeque<NodeId>,
}

impl Parted {
    /// Keeps a close for a removed neighbour.
    fn keep(&mut self, node: NodeId, notice: Notice) {
        let closes = self.closes.entry(node).or_insert_with(|| {
            self.left.push_back(node);
            VecDeque::new()
        });
        push_bounded(closes, notice);
        if self.left.len() > PARTED_MAX
            && let Some(oldest) = self.left.pop_front()
        {
            self.closes.remove(&oldest);
        }
    }

    /// Takes the closes for a neighbour that has returned.
    pub(super) fn take(&mut self, node: NodeId) -> VecDeque<Notice> {
        let closes = self.closes.remove(&node);
        if closes.is_some() {
            self.left.retain(|left| *left != node);
        }
        closes.unwrap_or_default()
    }
}

fn push_bounded(closes: &mut VecDeque<Notice>, notice: Notice) {
    if closes.len() >= CLOSES_MAX {
        closes.pop_front();
    }
    closes.push_back(notice);
}

impl Neighbour {
    /// Keeps the closes that the other end may not have received, when the hop goes down. Aborts are dropped:
    /// the number of the next sample shows that the aborted one never arrived.
    pub(super) fn keep_closes(&mut self) {
        let waiting = core::mem::take(&mut self.notices);
        let sent = core::mem::take(&mut self.closes).into_iter().map(|(_, notice)| notice);
        let closes = sent.chain(waiting).filter(|notice| matches!(notice, Notice::Close(..)));
        closes.for_each(|notice| push_bounded(&mut self.notices, notice));
    }
}

impl Link {
    /// Notifies the other end of a closed stream, at once or when the neighbour returns.
    pub(super) fn notify_close(&mut self, node: NodeId, close: Notice) {
        match self.neighbours.get_mut(&node) {
            Some(neighbour) if neighbour.hop.is_up() => neighbour.notices.push_back(close),
            Some(neighbour) => push_bounded(&mut neighbour.notices, close),
            None => self.parted.keep(node, close),
        }
    }

    /// Records a close in the frame that is being filled.
    pub(super) fn note_close(&mut self, node: NodeId, close: Notice) {
        let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
        let hop = &neighbour.hop;
        while neighbour.closes.front().is_some_and(|(seq, _)| hop.has_settled(*seq)) {
            neighbour.closes.pop_front();
        }
        neighbour.closes.push_back((hop.next_seq(), close));
    }

    /// Sends again the closes that the other end may not have received.
    pub(super) fn repeat_closes(&mut self, node: NodeId) {
        let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
        let closes = core::mem::take(&mut neighbour.closes);
        neighbour.notices.extend(closes.into_iter().map(|(_, close)| close));
    }

    /// Removes a neighbour, except for the closes that it may not have received.
    pub(super) fn part(&mut self, node: NodeId) {
        let Some(mut neighbour) = self.neighbours.remove(&node) else { return };
        neighbour.keep_closes();
        neighbour.notices.into_iter().for_each(|close| self.parted.keep(node, close));
    }
}
