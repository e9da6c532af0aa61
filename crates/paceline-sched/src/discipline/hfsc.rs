//! Hierarchical fair service curves for streams: each is a leaf below the root, with curves of its own.
//!
//! The tree ([`crate::hfsc`]) knows who is next; here it learns what the streams do. A segment is paid
//! for when it is known what follows it, so that a backlogged stream does not count as idle between two
//! samples. What has to wait for its upper limit is not picked: [`super::Scheduler::pick`] may then say
//! nobody although heads wait, and [`super::Scheduler::next_change`] when to ask again.

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

/// The tree, and who was chosen last.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    tree: Hfsc,
    /// The stream of each class.
    streams: Vec<StreamIndex>,
    now: Instant,
    /// Who was announced last, and when it came; nobody once somebody was picked.
    arrived: Option<(ClassIndex, Instant)>,
    chosen: Option<(Pick, StreamIndex)>,
    /// Sent, and not yet charged because it may be the stream's last.
    unpaid: Option<(Pick, u32)>,
}

impl Rules {
    fn pick_of(&self, class: ClassIndex) -> Pick {
        let chosen = self.chosen.map(|(pick, _)| pick).filter(|pick| pick.class == class);
        // Whoever was served without having been chosen pays as if by its share.
        chosen.unwrap_or(Pick { class, criterion: Criterion::LinkShare })
    }

    /// Charges what `class` owes; false if it owes nothing.
    fn settle(&mut self, class: ClassIndex, next: Option<u32>) -> bool {
        let Some((pick, bytes)) = self.unpaid.filter(|(pick, _)| pick.class == class) else {
            return false;
        };
        self.unpaid = None;
        self.tree.charge(self.now, pick, u64::from(bytes), next.map(u64::from));
        true
    }
}

/// The curves of a stream that gave none: its rate is its share.
fn curves(terms: &Terms) -> Curves {
    let share = || Curves {
        link_share: Curve::linear(terms.share().saturating_mul(8)).ok(),
        ..Curves::default()
    };
    terms.curves.unwrap_or_else(share)
}

impl CoreRules for Rules {
    /// The stream's class; `None` if it has none, and takes its turn among best effort.
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
        // A suspended stream does not wait; it is active again when it is resumed.
        self.settle(class, (!stream.suspended).then_some(stream.segment));
    }

    fn rank(&mut self, stream: &mut Stream<Self::Own>) -> Option<u128> {
        let class = stream.own?;
        let announced = self.arrived.take().filter(|(it, _)| *it == class);
        if !stream.suspended {
            // Heads of others that came later may have been announced before.
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
