//! Hierarchical fair service curves for streams: each stream is a leaf below the root, with its own
//! curves.
//!
//! The tree ([`crate::hfsc`]) selects the next stream; this module reports the streams' events to it. A
//! segment is charged only when the following head is known, so that a backlogged stream does not count
//! as idle between two samples. A stream that waits for its upper limit is not picked.
//! [`super::Scheduler::pick`] may then return `None` although heads wait, and
//! [`super::Scheduler::next_change`] returns when to ask again.

use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use super::{StreamIndex, Terms};
use crate::curve::Curve;
use crate::hfsc::{ClassIndex, Criterion, Curves, Hfsc, Pick};
use crate::time::Instant;
use crate::tournament::{Key, Tournament};
use alloc::vec::Vec;

/// A rank that never wins: the tree has not chosen the stream.
const HELD: u128 = Key::ABSENT;
const CHOSEN: u128 = owed(0);

/// The tree and the stream chosen last.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    tree: Hfsc,
    /// The stream of each class.
    streams: Vec<StreamIndex>,
    now: Instant,
    /// The class and arrival of the head announced last; `None` after a pick.
    arrived: Option<(ClassIndex, Instant)>,
    chosen: Option<(Pick, StreamIndex)>,
    /// The last sent segment, not charged yet because the stream may become idle.
    unpaid: Option<(Pick, u32)>,
}

impl Rules {
    fn pick_of(&self, class: ClassIndex) -> Pick {
        let chosen = self.chosen.map(|(pick, _)| pick).filter(|pick| pick.class == class);
        // A stream that was served without having been chosen is charged to its share.
        chosen.unwrap_or(Pick { class, criterion: Criterion::LinkShare })
    }

    /// Charges the uncharged segment of `class`. Returns false if there is none.
    fn settle(&mut self, class: ClassIndex, next: Option<u32>) -> bool {
        let Some((pick, bytes)) = self.unpaid.filter(|(pick, _)| pick.class == class) else {
            return false;
        };
        self.unpaid = None;
        self.tree.charge(self.now, pick, u64::from(bytes), next.map(u64::from));
        true
    }
}

/// Returns the curves of the terms, or a linear link-sharing curve at the rate if there are none.
fn curves(terms: &Terms) -> Curves {
    let share = || Curves {
        link_share: Curve::linear(terms.share().saturating_mul(8)).ok(),
        ..Curves::default()
    };
    terms.curves.unwrap_or_else(share)
}

impl CoreRules for Rules {
    /// The stream's class; `None` for a stream in the round robin of best effort.
    type Own = Option<ClassIndex>;

    fn open(&mut self, terms: &Terms) -> Option<ClassIndex> {
        let class = terms.ranks().then(|| self.tree.add(ClassIndex::ROOT, curves(terms)).ok());
        let class = class.flatten()?;
        let classes = class.0 as usize + 1;
        if self.streams.len() < classes {
            self.streams.resize(classes, StreamIndex(u32::MAX));
        }
        Some(class)
    }

    fn announced(&mut self, stream: &mut Stream<Self::Own>, arrival: Arrival) {
        let Some(class) = stream.own else { return };
        self.now = self.now.max(arrival.arrived);
        self.arrived = Some((class, arrival.arrived));
        if let Some(known) = self.streams.get_mut(class.0 as usize) {
            *known = arrival.index;
        }
        // A suspended stream is not backlogged; it becomes active again when it is resumed.
        self.settle(class, (!stream.suspended).then_some(stream.segment));
    }

    fn rank(&mut self, stream: &mut Stream<Self::Own>) -> Option<u128> {
        let class = stream.own?;
        let announced = self.arrived.take().filter(|(it, _)| *it == class);
        if !stream.suspended {
            // Heads of other streams that arrived later may have been announced before this one.
            let from = announced.map_or(self.now, |(_, at)| at);
            self.tree.set_active(from, class, u64::from(stream.segment));
        }
        Some(HELD)
    }

    fn sent(&mut self, stream: &mut Stream<Self::Own>, bytes: u32) -> Option<u128> {
        let class = stream.own?;
        let pick = self.pick_of(class);
        if stream.has_head() {
            let next = (!stream.suspended).then_some(u64::from(stream.segment));
            self.tree.charge(self.now, pick, u64::from(bytes), next);
            return Some(HELD);
        }
        self.unpaid = Some((pick, bytes));
        None
    }

    fn emptied(&mut self, stream: &mut Stream<Self::Own>) {
        let Some(class) = stream.own else { return };
        if !self.settle(class, None) {
            self.tree.set_passive(self.now, class);
        }
    }

    fn suspended(&mut self, stream: &mut Stream<Self::Own>) {
        if let Some(class) = stream.own {
            self.tree.set_passive(self.now, class);
        }
    }

    fn closed(&mut self, stream: &mut Stream<Self::Own>) {
        let Some(class) = stream.own else { return };
        self.tree.set_passive(self.now, class);
        let _ = self.tree.remove(class);
        self.chosen = self.chosen.filter(|(pick, _)| pick.class != class);
    }

    fn prepare(
        &mut self,
        now: Instant,
        _: &mut [Option<Stream<Self::Own>>],
        ranks: &mut Tournament<u128>,
    ) {
        self.now = self.now.max(now);
        self.arrived = None;
        let pick = self.tree.pick(self.now);
        let index = |pick: Pick| self.streams.get(pick.class.0 as usize).copied();
        let chosen = pick.and_then(|pick| Some((pick, index(pick)?)));
        if let Some((_, before)) = self.chosen
            && ranks.best() == (CHOSEN, before.0)
        {
            ranks.set(before.0, HELD);
        }
        if let Some((_, index)) = chosen {
            ranks.set(index.0, CHOSEN);
        }
        self.chosen = chosen;
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        self.tree.next_change(now)
    }
}
