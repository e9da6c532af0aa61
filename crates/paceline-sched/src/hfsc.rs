//! Hierarchical fair service curves (HFSC): a tree of classes that shares a link, with guarantees for its
//! leaves.
//!
//! Paper: Stoica, Zhang & Ng, "A Hierarchical Fair Service Curve Algorithm for Link-Sharing, Real-Time
//! and Priority Services", SIGCOMM 1997; the upper limit is the addition of ALTQ and Linux.
//!
//! A class has up to three [service curves](crate::curve):
//! * *real-time* (leaves only): what it is guaranteed, whatever the others do. If the real-time curves of
//!   all leaves [fit](crate::curve::fits) the link, each packet is served by its *deadline*, at most as
//!   much later as the longest packet takes on the link.
//! * *link-sharing*: its share, beside its siblings, of what the parent has. Only the proportions count.
//! * *upper limit*: how much link-sharing may give it, counted from when the class became active. A class
//!   that was held back by its siblings may catch up with what its limit gave it in the last
//!   [`CATCH_UP`], not with more. What the real-time curve guarantees is counted, but not limited.
//!
//! At each decision the *real-time criterion* comes first: of the leaves whose *eligible time* has come
//! the one with the earliest deadline. If there is none, the *link-sharing criterion* goes down from the
//! root, at each level to the child with the least *virtual time* of those whose upper limits let them go.
//! Service by link-sharing does not count against the guarantee.
//!
//! The caller keeps the packets. It says when a leaf has one waiting ([`Hfsc::set_active`]), asks whose
//! turn it is ([`Hfsc::pick`]) and says what was served ([`Hfsc::charge`]). Each of them costs
//! O(depth · log classes) and allocates nothing.
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

/// How many classes a tree can have, without the root.
pub const CLASSES_MAX: u32 = 1 << 20;
/// How far below the root a class can be.
pub const DEPTH_MAX: u8 = 16;

/// How long a class keeps what it did not use of its upper limit while it waits: enough for its packets to
/// wait for those of its siblings without losing any of it, too little for a burst that would be noticed.
pub const CATCH_UP: Duration = Duration::from_millis(100);

const ROOT: u32 = 0;

/// A class of one [`Hfsc`]. The index of a removed class is given to a later one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClassIndex(pub u32);

impl ClassIndex {
    /// The root: there from the start, without curves.
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
    /// What a leaf is guaranteed. Without it there is no guarantee.
    pub real_time: Option<Curve>,
    /// The share beside the siblings. Without it a leaf gets its guarantee and nothing else.
    pub link_share: Option<Curve>,
    /// The most that link-sharing may give, from when the class became active. Only with `link_share`.
    pub upper_limit: Option<Curve>,
}

/// By which criterion a leaf was chosen.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Criterion {
    /// Its guarantee is due.
    RealTime,
    /// It is its turn among its siblings, and its parent's among theirs.
    LinkShare,
}

/// Whose turn it is. Give it back to [`Hfsc::charge`] when the packet is served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pick {
    /// The leaf.
    pub class: ClassIndex,
    /// Why it is its turn.
    pub criterion: Criterion,
}

/// What a class was served since it was added, with all classes below it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Service {
    /// Bytes by both criteria; stays at [`u64::MAX`].
    pub total: u64,
    /// Bytes by the real-time criterion.
    pub by_real_time: u64,
}

/// A tree of classes over one link: see the [module](self).
///
/// `now` never goes back: an instant before the latest one seen counts as that one, but for packets that
/// come between two picks: several leaves may be told of in any order. A class that is not there, or is not
/// a leaf where a leaf is needed, is ignored by what runs at every packet.
#[derive(Clone, Debug)]
pub struct Hfsc {
    classes: Vec<Option<Class>>,
    vacant: Vec<u32>,
    /// What is kept of classes as parents; the root's is the first.
    inners: Vec<Inner>,
    vacant_inners: Vec<u32>,
    now: Instant,
    /// The last pick.
    picked: Instant,
    /// Waiting leaves with a real-time curve by eligible time, each with its deadline.
    eligible: Forest<u64>,
    eligible_root: u32,
    /// Below each class its active children by virtual time, each with the time from which it fits.
    shares: Forest<Wide>,
}

impl Default for Hfsc {
    fn default() -> Self {
        Self::new()
    }
}

impl Hfsc {
    /// A tree with nothing but its root.
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

    /// The leaf has a packet waiting, of `next_len` bytes, that came at `arrived`. If it had one before,
    /// only the length is new, so this may be called for every packet that arrives.
    ///
    /// What is guaranteed counts from `arrived`, or from the last pick if that was later: what was decided
    /// then knew nothing of the packet. It does not matter whether another leaf's packet that came later
    /// was told of before.
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

    /// The leaf has no packet waiting any more, and none was served: it was emptied otherwise. May be
    /// called at any time, also between [`Hfsc::pick`] and [`Hfsc::charge`], and any number of times.
    pub fn set_passive(&mut self, now: Instant, class: ClassIndex) {
        self.now = self.now.max(now);
        self.rest(class.0, Spent { bytes: 0, by_real_time: false, leaving: true });
    }

    /// The first packet of a leaf has another length: it was replaced, cut or dropped. Nothing happens if
    /// the leaf has none waiting.
    pub fn set_next(&mut self, class: ClassIndex, next_len: u64) {
        let Some(leaf) = self.leaf_mut(class).filter(|leaf| leaf.waiting) else { return };
        if core::mem::replace(&mut leaf.next_len, next_len) != next_len {
            self.retime(class.0);
        }
    }

    /// Whose packet goes next; `None` if nobody waits or nobody is allowed to go yet
    /// ([`Hfsc::next_change`] says when to ask again).
    ///
    /// It may be asked again before the packet is served. The deadline decides between eligible leaves,
    /// then the eligible time; between siblings the virtual time; then the lower index.
    pub fn pick(&mut self, now: Instant) -> Option<Pick> {
        self.now = self.now.max(now);
        self.picked = self.now;
        if let Some(leaf) = self.eligible.least_until(self.eligible_root, self.now.as_nanos()) {
            return Some(Pick { class: ClassIndex(leaf), criterion: Criterion::RealTime });
        }
        let leaf = self.share_pick()?;
        Some(Pick { class: ClassIndex(leaf), criterion: Criterion::LinkShare })
    }

    /// `bytes` of what was picked were served, and the leaf's next packet has `next` bytes; `None` if
    /// there is none. Called when the packet goes to the link, before the next pick.
    ///
    /// The leaf may have changed meanwhile: one that became passive is charged all the same, and becomes
    /// active if there is a next packet. A packet that was dropped instead of served has 0 bytes.
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

    /// The first instant after `now` at which [`Hfsc::pick`] may answer otherwise although nothing else
    /// is called: a leaf becomes eligible, or nobody fits now and somebody will. `None` if there is none.
    #[must_use]
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let now = self.now.max(now).as_nanos();
        let eligible = self.eligible.key_after(self.eligible_root, now);
        let fits = self.shares.least(self.shares_of(ROOT)).filter(|&fit| fit > now);
        let first = eligible.into_iter().chain(fits).min()?;
        Some(Instant::from_nanos(first))
    }

    /// What the class was served; `None` if there is no such class.
    #[must_use]
    pub fn service(&self, class: ClassIndex) -> Option<Service> {
        self.class(class.0).map(Class::service)
    }

    /// By when the waiting packet of a leaf must be served; `None` without one or without a guarantee.
    #[must_use]
    pub fn deadline(&self, class: ClassIndex) -> Option<Instant> {
        let leaf = self.class(class.0).filter(|leaf| leaf.waiting)?;
        leaf.eligible_and_deadline().map(|(_, deadline)| Instant::from_nanos(deadline))
    }

    /// True while the class, or a leaf below it, has a packet waiting that may be served.
    #[must_use]
    pub fn is_active(&self, class: ClassIndex) -> bool {
        if class == ClassIndex::ROOT {
            let sharing = self.shares_of(ROOT) != NONE;
            return sharing || self.eligible_root != NONE;
        }
        self.class(class.0).is_some_and(|class| class.waiting || class.sharing)
    }

    /// Charges a leaf and takes its packet from it.
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

    /// Puts a waiting leaf where its eligible time and deadline of now belong.
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

    /// The root of the tree of active children.
    fn shares_of(&self, at: u32) -> u32 {
        self.inner(at).map_or(NONE, |inner| inner.shares)
    }

    /// The parent of a class; `None` for the root.
    fn parent_of(&self, at: u32) -> Option<u32> {
        self.class(at).map(|class| class.parent).filter(|&parent| parent != NONE)
    }
}

#[cfg(test)]
mod tests;
