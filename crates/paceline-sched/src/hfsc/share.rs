//! Link-sharing: active children, virtual times and upper limits.

use super::class::Inner;
use super::forest::{Forest, NONE};
use super::{Hfsc, ROOT};
use crate::wide::Wide;

/// Bytes that were served at a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    pub(super) bytes: u64,
    pub(super) by_real_time: bool,
    /// The leaf has no packet any more.
    pub(super) leaving: bool,
}

impl Hfsc {
    /// Activates a leaf among its siblings, and every ancestor that thereby gets its first active child
    /// ("init_vf").
    pub(super) fn join(&mut self, leaf: u32) {
        let mut at = leaf;
        while let Some(parent) = self.parent_of(at) {
            let first = self.shares_of(parent) == NONE;
            self.enter(at, parent);
            at = parent;
            if !first {
                break;
            }
        }
        self.refit(at);
    }

    /// Charges bytes to a leaf and its ancestors; each class without active children becomes passive
    /// ("update_vf").
    ///
    /// A separate counter of active children could be decremented twice; their tree is always right.
    pub(super) fn spend(&mut self, leaf: u32, spent: Spent) {
        let shared = self.class(leaf).is_some_and(|class| class.curves.link_share.is_some());
        let mut leaving = spent.leaving;
        let mut at = leaf;
        while let Some(parent) = self.parent_of(at) {
            if let Some(class) = self.class_mut(at) {
                class.count(spent.bytes, spent.by_real_time);
            }
            leaving = self.spend_at(at, parent, (leaving, shared));
            at = parent;
        }
        if let Some(root) = self.class_mut(ROOT) {
            root.count(spent.bytes, spent.by_real_time);
        }
    }

    /// Propagates changed fit times up the tree, until one does not change.
    pub(super) fn refit(&mut self, from: u32) {
        let mut at = from;
        while let Some(parent) = self.parent_of(at) {
            let Some(class) = self.class(at).filter(|class| class.sharing) else { return };
            let (vt, fit) = (class.vt, class.my_fit.max(self.least_fit(at)));
            if self.shares.value(at) == Some(fit) {
                return;
            }
            self.place(at, parent, (vt, fit));
            at = parent;
        }
    }

    /// Returns the leaf that link-sharing serves next: at each level the child with the lowest virtual
    /// time of those that fit.
    pub(super) fn share_pick(&mut self) -> Option<u32> {
        let limit = self.now.as_nanos();
        let mut at = ROOT;
        loop {
            let child = self.shares.first_within(self.shares_of(at), limit)?;
            let vt = self.class(child)?.vt;
            let above = self.inner_mut(at)?;
            above.vt_min = above.vt_min.max(vt);
            if self.class(child)?.is_leaf() {
                return Some(child);
            }
            at = child;
        }
    }

    /// Returns the earliest fit time of the active children of `at`; 0 without any.
    fn least_fit(&self, at: u32) -> u64 {
        self.shares.least(self.shares_of(at)).unwrap_or(0)
    }

    fn enter(&mut self, at: u32, parent: u32) {
        let now = u128::from(self.now.as_nanos());
        let Some(above) = self.inner_mut(parent) else { return };
        if above.shares == NONE {
            above.period = above.period.wrapping_add(1);
            above.vt_min = 0;
        }
        let (period, vt_min, past, siblings) =
            (above.period, above.vt_min, above.vt_past, above.shares);
        let last = self.shares.last_key(siblings).map(Wide::get);
        let Some(class) = self.class_mut(at) else { return };
        class.vt = match last {
            None => past,
            Some(last) => {
                let middle = if vt_min == 0 { last } else { vt_min.midpoint(last) };
                // Leaving and joining again within one period gains nothing.
                let held = if class.joined == period { class.vt } else { 0 };
                middle.max(held)
            }
        };
        (class.vt_adjust, class.joined, class.sharing) = (0, period, true);
        if let Some(curve) = &class.curves.link_share {
            class.virtual_time.min_with(curve, class.vt, class.total);
        }
        class.limit();
        if let Some(curve) = &class.curves.upper_limit {
            class.limit.min_with(curve, now, class.total);
        }
        class.limit();
        let (vt, my_fit) = (class.vt, class.my_fit);
        let fit = my_fit.max(self.least_fit(at));
        if let Some((shares, above)) = self.shares_below(parent) {
            shares.insert(&mut above.shares, at, Wide::new(vt), fit);
        }
    }

    /// Performs one level of [`Hfsc::spend`]. Returns true if the class became passive.
    fn spend_at(&mut self, at: u32, parent: u32, (leaving, shared): (bool, bool)) -> bool {
        let now = self.now;
        let vt_min = self.inner(parent).map_or(0, |above| above.vt_min);
        let leaving = leaving && self.shares_of(at) == NONE;
        let Some(class) = self.class_mut(at) else { return false };
        if class.sharing || shared {
            class.advance(vt_min);
        }
        if class.sharing && !leaving {
            class.forget_unused(now);
            class.limit();
            let (vt, my_fit) = (class.vt, class.my_fit);
            self.place(at, parent, (vt, my_fit.max(self.least_fit(at))));
            return false;
        }
        let (left, vt) = (class.sharing, class.vt);
        class.sharing = false;
        // This also covers a class that dropped its last packet during its service. It is passive before
        // the bytes are counted, and must still pay for them before it returns.
        if left || shared {
            self.part(at, parent, (left, vt));
        }
        left
    }

    fn part(&mut self, at: u32, parent: u32, (left, vt): (bool, u128)) {
        let Some((shares, above)) = self.shares_below(parent) else { return };
        above.vt_past = above.vt_past.max(vt);
        if left {
            shares.remove(&mut above.shares, at);
        }
    }

    fn place(&mut self, at: u32, parent: u32, (vt, fit): (u128, u64)) {
        if let Some((shares, above)) = self.shares_below(parent) {
            shares.update(&mut above.shares, at, Wide::new(vt), fit);
        }
    }

    /// Returns all trees of active children, and the state of `parent`.
    fn shares_below(&mut self, parent: u32) -> Option<(&mut Forest<Wide>, &mut Inner)> {
        let inner = self.class(parent)?.inner;
        Some((&mut self.shares, self.inners.get_mut(inner as usize)?))
    }
}
