//! Close notifications, kept until the receiver has acknowledged them.
//!
//! A close carries the number of samples that the stream has begun, so the receiver counts those that it
//! never saw. A close that was in flight when the hop went down is sent again when the hop is up, even if the
//! neighbour was forgotten in between.

use crate::ids::NodeId;
use crate::link::contents::Notice;
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
    pub(super) fn keep(&mut self, node: NodeId, notice: Notice) {
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

/// Adds a close; beyond the bound the oldest is dropped.
pub(super) fn push_bounded(closes: &mut VecDeque<Notice>, notice: Notice) {
    if closes.len() >= CLOSES_MAX {
        closes.pop_front();
    }
    closes.push_back(notice);
}
