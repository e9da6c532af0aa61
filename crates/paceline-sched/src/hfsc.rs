//! Hierarchical fair service curves (HFSC): a tree of classes that share a link, with guarantees for its
//! leaves.
//!
//! Paper: Stoica, Zhang & Ng, "A Hierarchical Fair Service Curve Algorithm for Link-Sharing, Real-Time
//! and Priority Services", SIGCOMM 1997; the upper limit is an addition of ALTQ and Linux.
//!
//! A class has up to three [service curves](crate::curve):
//! * *real-time* (leaves only): the guaranteed service, independent of other classes. If the real-time
//!   curves of all leaves [fit](crate::curve::fits) the link, each packet is served by its *deadline*,
//!   at most one longest packet's transmission time late.
//! * *link-sharing*: the share of the parent's service among its siblings. Only the proportions count.
//! * *upper limit*: the largest service by link-sharing since the class became active. A class that its
//!   siblings delayed may catch up with the last [`CATCH_UP`] of its limit, but not with more. Service
//!   by the real-time curve is counted but not limited.
//!
//! Each decision applies the *real-time criterion* first: of the leaves whose *eligible time* has
//! passed, it selects the one with the earliest deadline. If there is none, the *link-sharing criterion*
//! descends from the root. At each level it selects the child with the lowest *virtual time* among those
//! within their upper limits. Service by link-sharing does not count against the guarantee.
//!
//! The caller stores the packets. It reports a leaf with a queued packet ([`Hfsc::set_active`]), asks
//! for the next leaf ([`Hfsc::pick`]) and reports the service ([`Hfsc::charge`]). Each call costs
//! O(depth · log classes) and does not allocate.
//!
//! ```
//! use paceline_sched::curve::Curve;
//! use paceline_sched::hfsc::{ClassIndex, Criterion, Curves, Hfsc};
//! use paceline_sched::time::{Duration, Instant};
//!
//! let mut tree = Hfsc::new();
//! let voice = Curves {
//!     // 160 bytes within 5 ms, 64 kbit/s in the long run.
//!     real_time: Some(Curve::burst(160, Duration::from_millis(5), 64_000)?),
//!     ..Curves::default()
//! };
//! let files = Curves { link_share: Some(Curve::linear(1_000_000)?), ..Curves::default() };
//! let voice = tree.add(ClassIndex::ROOT, voice)?;
//! let files = tree.add(ClassIndex::ROOT, files)?;
//!
//! let now = Instant::from_millis(7);
//! tree.set_active(now, files, 1_500);
//! tree.set_active(now, voice, 160);
//! let pick = tree.pick(now).ok_or("nobody waits")?;
//! assert_eq!((pick.class, pick.criterion), (voice, Criterion::RealTime));
//! assert_eq!(tree.deadline(voice), Some(Instant::from_millis(12)));
//! tree.charge(now, pick, 160, None);
//! assert_eq!(tree.pick(now).map(|pick| pick.class), Some(files));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::curve::{Curve, RuntimeCurve};
use crate::time::{Duration, Instant};
use crate::wide::Wide;
use alloc::vec::Vec;
use class::{Class, Inner};
use core::fmt;
use forest::{Forest, NONE, grow};
use share::Spent;

mod class;
mod error;
mod forest;
mod share;
mod specs;
mod tree;

pub use error::{HfscError, SpecError};
pub use specs::ClassSpec;

/// The largest number of classes in a tree, without the root.
pub const CLASSES_MAX: u32 = 1 << 20;
/// The largest depth of a class below the root.
pub const DEPTH_MAX: u8 = 16;

/// The part of an unused upper limit that a waiting class keeps.
///
/// It is long enough for packets to wait for those of siblings without losing capacity, and too short
/// for a noticeable burst.
pub const CATCH_UP: Duration = Duration::from_millis(100);

const ROOT: u32 = 0;

/// The index of a class in an [`Hfsc`]. The index of a removed class is reused.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClassIndex(pub u32);

impl ClassIndex {
    /// The root, which always exists and has no curves.
    pub const ROOT: Self = Self(ROOT);
}

impl fmt::Display for ClassIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "class {}", self.0)
    }
}

/// The service curves of a class; at least one of the first two.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Curves {
    /// The guaranteed service of a leaf. `None`: no guarantee.
    pub real_time: Option<Curve>,
    /// The share among the siblings. `None`: a leaf gets only its guarantee.
    pub link_share: Option<Curve>,
    /// The upper limit of service by link-sharing since the class became active. Requires `link_share`.
    pub upper_limit: Option<Curve>,
}

/// The criterion by which a leaf was chosen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Criterion {
    /// The guarantee is due.
    RealTime,
    /// The leaf and its ancestors have the lowest virtual times among their siblings.
    LinkShare,
}

/// The result of a pick. Pass it to [`Hfsc::charge`] when the packet is served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pick {
    /// The leaf.
    pub class: ClassIndex,
    /// The criterion that chose the leaf.
    pub criterion: Criterion,
}

/// The service of a class and its descendants since it was added.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServedBytes {
    /// Bytes served by both criteria, saturating at [`u64::MAX`].
    pub total: u64,
    /// Bytes served by the real-time criterion.
    pub by_real_time: u64,
}

/// A tree of classes over one link: see the [module](self).
///
/// `now` must not decrease; an instant before the latest one counts as that one. Arrivals between two
/// picks are an exception: leaves may report them in any order. The per-packet methods ignore an unknown
/// class, and a class that is not a leaf.
#[derive(Clone, Debug)]
pub struct Hfsc {
    classes: Vec<Option<Class>>,
    vacant: Vec<u32>,
    /// The state of classes as parents; the root's is the first.
    inners: Vec<Inner>,
    vacant_inners: Vec<u32>,
    now: Instant,
    /// The instant of the last pick.
    picked: Instant,
    /// Waiting leaves with a real-time curve by eligible time, each with its deadline.
    eligible: Forest<u64>,
    eligible_root: u32,
    /// For each class its active children by virtual time, each with the time from which it fits its
    /// limit.
    shares: Forest<Wide>,
}

impl Default for Hfsc {
    fn default() -> Self {
        Self::new()
    }
}

impl Hfsc {
    /// Returns a tree with nothing but its root.
    #[must_use]
    pub fn new() -> Self {
        let root = Class { inner: 0, ..Class::new(NONE, 0, Curves::default()) };
        Self {
            classes: [Some(root)].into(),
            vacant: Vec::new(),
            inners: [Inner::new()].into(),
            vacant_inners: Vec::new(),
            now: Instant::ZERO,
            picked: Instant::ZERO,
            eligible: Forest::new(),
            eligible_root: NONE,
            shares: Forest::new(),
        }
    }

    /// Reports that the leaf has a packet of `next_len` bytes, which arrived at `arrived`.
    ///
    /// If the leaf had one before, only the length changes, so this may be called for every arrival.
    ///
    /// The guarantee counts from `arrived`, or from the last pick if that was later, since that decision
    /// could not consider the packet. Later arrivals at other leaves may be reported first.
    pub fn set_active(&mut self, arrived: Instant, class: ClassIndex, next_len: u64) {
        self.now = self.now.max(arrived);
        let nanos = u128::from(arrived.max(self.picked).as_nanos());
        let Some(leaf) = self.leaf_mut(class) else { return };
        if leaf.waiting {
            return self.set_next(class, next_len);
        }
        (leaf.waiting, leaf.next_len) = (true, next_len);
        let shares = leaf.curves.link_share.is_some();
        if let Some(curve) = &leaf.curves.real_time {
            let from = nanos.max(leaf.deadline.since());
            leaf.deadline.min_with(curve, from, leaf.by_real_time);
        }
        if let Some((eligible, deadline)) = leaf.eligible_and_deadline() {
            self.eligible.insert(&mut self.eligible_root, class.0, eligible, deadline);
        }
        if shares {
            self.join(class.0);
        }
    }

    /// Reports that the leaf has no packet any more, without service: its queue was emptied otherwise.
    ///
    /// May be called at any time, also between [`Hfsc::pick`] and [`Hfsc::charge`]. Idempotent.
    pub fn set_passive(&mut self, now: Instant, class: ClassIndex) {
        self.now = self.now.max(now);
        self.rest(class.0, Spent { bytes: 0, by_real_time: false, leaving: true });
    }

    /// Changes the length of the first packet of a leaf, because it was replaced, cut or dropped.
    ///
    /// Does nothing if the leaf has no packet.
    pub fn set_next(&mut self, class: ClassIndex, next_len: u64) {
        let Some(leaf) = self.leaf_mut(class).filter(|leaf| leaf.waiting) else { return };
        if core::mem::replace(&mut leaf.next_len, next_len) != next_len {
            self.retime(class.0);
        }
    }

    /// Returns the leaf whose packet is sent next.
    ///
    /// Returns `None` if no leaf has a packet, or if upper limits delay all of them.
    /// [`Hfsc::next_change`] then returns when to ask again. Repeated calls before the service are
    /// allowed. Eligible leaves are ordered by deadline, then by eligible time; siblings by virtual
    /// time; ties by the lower index.
    pub fn pick(&mut self, now: Instant) -> Option<Pick> {
        self.now = self.now.max(now);
        self.picked = self.now;
        if let Some(leaf) = self.eligible.least_until(self.eligible_root, self.now.as_nanos()) {
            return Some(Pick { class: ClassIndex(leaf), criterion: Criterion::RealTime });
        }
        let leaf = self.share_pick()?;
        Some(Pick { class: ClassIndex(leaf), criterion: Criterion::LinkShare })
    }

    /// Charges `bytes` of service to the picked leaf, whose next packet has `next` bytes; `None` if
    /// there is none.
    ///
    /// Call this when the packet is handed to the link, before the next pick. The leaf may have changed
    /// since the pick. A leaf that became passive is charged too, and becomes active if there is a next
    /// packet. A packet that was dropped instead of served has 0 bytes.
    pub fn charge(&mut self, now: Instant, pick: Pick, bytes: u64, next: Option<u64>) {
        self.now = self.now.max(now);
        let at = pick.class.0;
        let Some(leaf) = self.leaf_mut(pick.class) else { return };
        let by_real_time = pick.criterion == Criterion::RealTime;
        let spent = Spent { bytes, by_real_time, leaving: next.is_none() };
        let Some(next_len) = next else { return self.rest(at, spent) };
        let waiting = leaf.waiting;
        leaf.next_len = next_len;
        self.spend(at, spent);
        if waiting {
            self.retime(at);
        } else {
            self.set_active(now, pick.class, next_len);
        }
    }

    /// Returns the first instant after `now` at which [`Hfsc::pick`] may return something else without
    /// other calls.
    ///
    /// That is when a leaf becomes eligible, or when the first child fits its upper limit if none does
    /// now. Returns `None` if there is no such instant.
    #[must_use]
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let now = self.now.max(now).as_nanos();
        let eligible = self.eligible.key_after(self.eligible_root, now);
        let fits = self.shares.least(self.shares_of(ROOT)).filter(|&fit| fit > now);
        let first = eligible.into_iter().chain(fits).min()?;
        Some(Instant::from_nanos(first))
    }

    /// Returns the service of the class; `None` if there is no such class.
    #[must_use]
    pub fn service(&self, class: ClassIndex) -> Option<ServedBytes> {
        self.class(class.0).map(Class::service)
    }

    /// Returns the instant by which a leaf's packet must be served; `None` without a packet or a
    /// guarantee.
    #[must_use]
    pub fn deadline(&self, class: ClassIndex) -> Option<Instant> {
        let leaf = self.class(class.0).filter(|leaf| leaf.waiting)?;
        leaf.eligible_and_deadline().map(|(_, deadline)| Instant::from_nanos(deadline))
    }

    /// Returns true while the class, or a leaf below it, has a packet that may be served.
    #[must_use]
    pub fn is_active(&self, class: ClassIndex) -> bool {
        if class == ClassIndex::ROOT {
            let sharing = self.shares_of(ROOT) != NONE;
            return sharing || self.eligible_root != NONE;
        }
        self.class(class.0).is_some_and(|class| class.waiting || class.sharing)
    }

    /// Charges a leaf and marks it as empty.
    fn rest(&mut self, at: u32, spent: Spent) {
        let Some(leaf) = self.leaf_mut(ClassIndex(at)) else { return };
        let waited = core::mem::take(&mut leaf.waiting);
        if waited {
            self.eligible.remove(&mut self.eligible_root, at);
        }
        if waited || spent.bytes > 0 {
            self.spend(at, spent);
        }
    }

    /// Updates the eligible time and the deadline of a waiting leaf.
    fn retime(&mut self, at: u32) {
        let times = self.class(at).and_then(Class::eligible_and_deadline);
        if let Some((eligible, deadline)) = times {
            self.eligible.update(&mut self.eligible_root, at, eligible, deadline);
        }
    }

    fn class(&self, at: u32) -> Option<&Class> {
        self.classes.get(at as usize)?.as_ref()
    }

    fn class_mut(&mut self, at: u32) -> Option<&mut Class> {
        self.classes.get_mut(at as usize)?.as_mut()
    }

    fn leaf_mut(&mut self, class: ClassIndex) -> Option<&mut Class> {
        self.class_mut(class.0).filter(|class| class.is_leaf())
    }

    fn inner(&self, at: u32) -> Option<&Inner> {
        self.inners.get(self.class(at)?.inner as usize)
    }

    fn inner_mut(&mut self, at: u32) -> Option<&mut Inner> {
        let inner = self.class(at)?.inner;
        self.inners.get_mut(inner as usize)
    }

    /// Returns the root of the tree of active children.
    fn shares_of(&self, at: u32) -> u32 {
        self.inner(at).map_or(NONE, |inner| inner.shares)
    }

    /// Returns the parent of a class; `None` for the root.
    fn parent_of(&self, at: u32) -> Option<u32> {
        self.class(at).map(|class| class.parent).filter(|&parent| parent != NONE)
    }
}

#[cfg(test)]
mod tests;
