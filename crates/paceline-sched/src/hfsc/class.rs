//! What is kept of a class.

use super::forest::NONE;
use super::{CATCH_UP, Curves, Service};
use crate::curve::{RuntimeCurve, saturate};
use crate::time::Instant;

/// A class of the tree: a leaf while it has no children. The names in quotes are those of the paper and of
/// its implementations.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) parent: u32,
    /// How far below the root; 0 for the root alone.
    pub(super) depth: u8,
    /// A leaf with a packet waiting.
    pub(super) waiting: bool,
    /// In the parent's tree of shares: active under link-sharing.
    pub(super) sharing: bool,
    pub(super) curves: Curves,
    /// "total": bytes served here and below, by both criteria.
    pub(super) total: u64,
    /// "cumul": those by the real-time criterion.
    pub(super) by_real_time: u64,
    /// The length of the waiting packet.
    pub(super) next_len: u64,
    /// "D": bytes due by real time.
    pub(super) deadline: RuntimeCurve,
    /// "V": bytes by virtual time.
    pub(super) virtual_time: RuntimeCurve,
    /// "U": the bytes that the upper limit allows by real time.
    pub(super) limit: RuntimeCurve,
    /// "vt": 128 bits, since shares are proportions and may be far below the rate at which a class is
    /// served: of 1 bit/s on a fast link, 64 bits would last for a second.
    pub(super) vt: u128,
    /// "vtadj": added to V⁻¹ after the class was passed over because it did not fit.
    pub(super) vt_adjust: u128,
    /// "myf": when the own upper limit lets the next packet go, in nanoseconds.
    pub(super) my_fit: u64,
    /// "parentperiod": the parent's period in which the class joined last.
    pub(super) joined: u64,

    /// How many children there are, active or not.
    pub(super) children: u32,
    /// What is kept of it as a parent, among all of these; [`NONE`] until it first has a child.
    pub(super) inner: u32,
}

/// What is kept of a class that has children, or had: most are leaves and always were.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    /// The root of the tree of active children, by virtual time.
    pub(super) shares: u32,
    /// "vtperiod": counts how often the first child became active.
    pub(super) period: u64,
    /// "cvtmin": the greatest virtual time at which a child was chosen in this period; 0 before that.
    pub(super) vt_min: u128,
    /// "cvtoff": the greatest virtual time at which a child became passive.
    pub(super) vt_past: u128,
}

impl Inner {
    pub(super) const fn new() -> Self {
        Self { shares: NONE, period: 0, vt_min: 0, vt_past: 0 }
    }
}

impl Class {
    pub(super) const fn new(parent: u32, depth: u8, curves: Curves) -> Self {
        Self {
            parent,
            depth,
            waiting: false,
            sharing: false,
            curves,
            total: 0,
            by_real_time: 0,
            next_len: 0,
            deadline: RuntimeCurve::UNBOUNDED,
            virtual_time: RuntimeCurve::UNBOUNDED,
            limit: RuntimeCurve::UNBOUNDED,
            vt: 0,
            vt_adjust: 0,
            my_fit: 0,
            joined: 0,
            children: 0,
            inner: NONE,
        }
    }

    pub(super) const fn is_leaf(&self) -> bool {
        self.children == 0 && self.depth > 0
    }

    pub(super) const fn service(&self) -> Service {
        Service { total: self.total, by_real_time: self.by_real_time }
    }

    /// Counts what was served.
    pub(super) const fn count(&mut self, bytes: u64, by_real_time: bool) {
        self.total = self.total.saturating_add(bytes);
        if by_real_time {
            self.by_real_time = self.by_real_time.saturating_add(bytes);
        }
    }

    /// "e" and "d" of the waiting packet, in nanoseconds: when the class may be served by real time next,
    /// and by when it must have been.
    pub(super) fn eligible_and_deadline(&self) -> Option<(u64, u64)> {
        let curve = self.curves.real_time.as_ref()?;
        let eligible = if curve.is_concave() {
            self.deadline.time_of(curve, self.by_real_time)
        } else {
            self.deadline.time_on_line(curve, self.by_real_time)
        };
        let end = self.by_real_time.saturating_add(self.next_len);
        Some((saturate(eligible), saturate(self.deadline.time_of(curve, end))))
    }

    /// "vt" from the total, not below `vt_min` of the parent.
    pub(super) fn advance(&mut self, vt_min: u128) {
        let Some(curve) = &self.curves.link_share else { return };
        let vt = self.virtual_time.time_of(curve, self.total).saturating_add(self.vt_adjust);
        self.vt_adjust = self.vt_adjust.saturating_add(vt_min.saturating_sub(vt));
        self.vt = vt.max(vt_min);
    }

    /// Takes from the upper limit what the class did not use of it, but for the last [`CATCH_UP`]: a class that
    /// its siblings held back for an hour must not have an hour's worth of it afterwards.
    pub(super) fn forget_unused(&mut self, now: Instant) {
        if let Some(curve) = &self.curves.upper_limit {
            let least = u128::from((now - CATCH_UP).as_nanos());
            self.limit.delay(curve, self.total, least);
        }
    }

    /// "myf" from the total. It never comes down while the limit stays: a class that left and comes back is
    /// still held back by what it had.
    pub(super) fn limit(&mut self) {
        if let Some(curve) = &self.curves.upper_limit {
            self.my_fit = self.my_fit.max(saturate(self.limit.time_of(curve, self.total)));
        }
    }
}
