//! The state of a class.

use super::forest::NONE;
use super::{CATCH_UP, Curves, ServedBytes};
use crate::curve::{RuntimeCurve, saturate};
use crate::time::Instant;

/// A class of the tree: a leaf while it has no children. The names in quotes are those of the paper and
/// of its implementations.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) parent: u32,
    /// The depth below the root; 0 only for the root.
    pub(super) depth: u8,
    /// True for a leaf with a packet.
    pub(super) waiting: bool,
    /// True for a class that is active under link-sharing, in the parent's tree of shares.
    pub(super) sharing: bool,
    pub(super) curves: Curves,
    /// "total": bytes served in this class and below, by both criteria.
    pub(super) total: u64,
    /// "cumul": bytes served by the real-time criterion.
    pub(super) by_real_time: u64,
    /// The length of the waiting packet in bytes.
    pub(super) next_len: u64,
    /// "D": bytes due over real time.
    pub(super) deadline: RuntimeCurve,
    /// "V": bytes over virtual time.
    pub(super) virtual_time: RuntimeCurve,
    /// "U": bytes allowed by the upper limit over real time.
    pub(super) limit: RuntimeCurve,
    /// "vt": the virtual time. It has 128 bits, because shares are proportions and may be far below the
    /// rate of service. With a share of 1 bit/s on a fast link, 64 bits would last for a second.
    pub(super) vt: u128,
    /// "vtadj": the offset added to V⁻¹ after the class was passed over because of its upper limit.
    pub(super) vt_adjust: u128,
    /// "myf": the instant from which the class's own limit allows the next packet, in nanoseconds.
    pub(super) my_fit: u64,
    /// "parentperiod": the parent's period in which the class joined last.
    pub(super) joined: u64,

    /// The number of children, active or not.
    pub(super) children: u32,
    /// The index of its state as a parent; [`NONE`] until it first has a child.
    pub(super) inner: u32,
}

/// The state of a class as a parent. Stored apart, because most classes are leaves.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    /// The root of the tree of active children, by virtual time.
    pub(super) shares: u32,
    /// "vtperiod": the number of times that a first child became active.
    pub(super) period: u64,
    /// "cvtmin": the highest virtual time at which a child was chosen in this period; 0 before that.
    pub(super) vt_min: u128,
    /// "cvtoff": the highest virtual time at which a child became passive.
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

    pub(super) const fn service(&self) -> ServedBytes {
        ServedBytes { total: self.total, by_real_time: self.by_real_time }
    }

    /// Counts `bytes` of service.
    pub(super) const fn count(&mut self, bytes: u64, by_real_time: bool) {
        self.total = self.total.saturating_add(bytes);
        if by_real_time {
            self.by_real_time = self.by_real_time.saturating_add(bytes);
        }
    }

    /// Returns "e" and "d" of the waiting packet in nanoseconds: its eligible time and its deadline.
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

    /// Computes "vt" from the total, at least `vt_min` of the parent.
    pub(super) fn advance(&mut self, vt_min: u128) {
        let Some(curve) = &self.curves.link_share else { return };
        let vt = self.virtual_time.time_of(curve, self.total).saturating_add(self.vt_adjust);
        self.vt_adjust = self.vt_adjust.saturating_add(vt_min.saturating_sub(vt));
        self.vt = vt.max(vt_min);
    }

    /// Limits the unused part of the upper limit to the last [`CATCH_UP`].
    ///
    /// Otherwise a class that its siblings delayed for an hour could use an hour's worth of its limit
    /// afterwards.
    pub(super) fn forget_unused(&mut self, now: Instant) {
        if let Some(curve) = &self.curves.upper_limit {
            let least = u128::from((now - CATCH_UP).as_nanos());
            self.limit.delay(curve, self.total, least);
        }
    }

    /// Computes "myf" from the total. It never decreases while the limit stays, so a class that leaves
    /// and returns cannot reset its limit.
    pub(super) fn limit(&mut self) {
        if let Some(curve) = &self.curves.upper_limit {
            self.my_fit = self.my_fit.max(saturate(self.limit.time_of(curve, self.total)));
        }
    }
}
