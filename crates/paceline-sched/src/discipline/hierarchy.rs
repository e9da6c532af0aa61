//! A hierarchy of tenants, their peers and the peers' streams: HFSC between the classes, and a
//! discipline of choice within each leaf.
//!
//! The tree selects the leaf that sends before the leaf selects one of its streams. A class that floods
//! therefore gets only the capacity that its siblings leave, and one peer's overload does not affect
//! others. The guarantees of a leaf's discipline apply within the service of the leaf's real-time curve.

mod specs;

pub use specs::BranchSpec;

use super::{
    Discipline, Earlier, Eligibility, Head, Left, Miss, Policy, Scheduler, Service, StreamIndex,
    Terms, WindowState,
};
use crate::hfsc::{ClassIndex, Criterion, Curves, Hfsc, HfscError, Pick};
use crate::time::{Duration, Instant};
use crate::tournament::{Key, Tournament};
use alloc::vec::Vec;

/// The parameters of a leaf of a [`Hierarchy`].
#[derive(Clone, Copy, Debug)]
pub struct LeafSpec {
    /// The curves of the leaf's class in the tree.
    pub curves: Curves,
    /// The discipline that orders its streams.
    pub policy: Policy,
    /// The rule that limits how often a contracted stream may use its rank.
    pub eligibility: Eligibility,
}

/// A leaf: its discipline has its own stream indices.
#[derive(Clone, Debug)]
struct Leaf {
    discipline: Discipline,
    /// The global index of each local stream; `None` for a vacant one.
    streams: Vec<Option<StreamIndex>>,
    vacant: Vec<StreamIndex>,
    /// The leaf is in the list of leaves to refresh.
    stale: bool,
    /// The earliest arrival that was not reported to the tree yet.
    since: Option<Instant>,
}

/// The leaf of a stream and its index there.
#[derive(Clone, Copy, Debug)]
struct Seat {
    leaf: ClassIndex,
    local: StreamIndex,
    /// The size of the head's next segment in bytes.
    segment: u32,
    has_head: bool,
}

/// A tree of classes with streams in its leaves, for one link.
///
/// A stream joins the leaf assigned by [`Hierarchy::seat`], and has one index on the whole link. Misses
/// are reported leaf by leaf, and within a leaf in the order of latest starts.
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    tree: Hfsc,
    /// The leaves by class.
    leaves: Vec<Option<Leaf>>,
    /// The streams' seats.
    seats: Vec<Option<Seat>>,
    /// By class: the instant at which time alone changes the leaf.
    events: Tournament<u64>,
    /// Leaves whose next head must be reported to the tree.
    stale: Vec<ClassIndex>,
    picked: Option<(Pick, StreamIndex)>,
    now: Instant,
}

impl Hierarchy {
    /// Returns a hierarchy with nothing but the root, [`ClassIndex::ROOT`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a class for other classes: a tenant.
    ///
    /// # Errors
    /// [`HfscError`] if the curves or the position in the tree are invalid.
    pub fn add(&mut self, parent: ClassIndex, curves: Curves) -> Result<ClassIndex, HfscError> {
        self.below(parent)?;
        self.tree.add(parent, curves)
    }

    /// Adds a class for streams: a peer.
    ///
    /// # Errors
    /// [`HfscError`] if the curves or the position in the tree are invalid.
    pub fn add_leaf(
        &mut self,
        parent: ClassIndex,
        spec: &LeafSpec,
    ) -> Result<ClassIndex, HfscError> {
        self.below(parent)?;
        let class = self.tree.add(parent, spec.curves)?;
        self.furnish(class, Discipline::new(spec.policy, spec.eligibility));
        Ok(class)
    }

    /// Makes the root a leaf as well, outside the tree, for background streams, which have no share.
    ///
    /// Its streams are picked in round robin when no class has a segment that it may send.
    pub fn add_background(&mut self) {
        let discipline = Discipline::new(Policy::Edf, Eligibility::OncePerPeriod);
        self.furnish(ClassIndex::ROOT, discipline);
    }

    /// Makes `class` a leaf with streams under `discipline`.
    fn furnish(&mut self, class: ClassIndex, discipline: Discipline) {
        let classes = class.0 as usize + 1;
        if self.leaves.len() < classes {
            self.leaves.resize_with(classes, || None);
        }
        self.events.grow(classes);
        if let Some(slot) = self.leaves.get_mut(class.0 as usize) {
            *slot = Some(Leaf {
                discipline,
                streams: Vec::new(),
                vacant: Vec::new(),
                stale: false,
                since: None,
            });
            self.stale.reserve(classes);
        }
    }

    /// Changes the curves of a class from `now` on; its backlog stays.
    ///
    /// # Errors
    /// [`HfscError`] if the curves are invalid.
    pub fn update(
        &mut self,
        now: Instant,
        class: ClassIndex,
        curves: Curves,
    ) -> Result<(), HfscError> {
        self.tree.update(now, class, curves)
    }

    /// Assigns a stream to a leaf, where it joins with its next [`Scheduler::join`]. It leaves its
    /// previous leaf.
    ///
    /// Returns false and changes nothing if `leaf` is not a leaf of streams.
    pub fn seat(&mut self, stream: StreamIndex, leaf: ClassIndex) -> bool {
        if self.leaf(leaf).is_none() {
            return false;
        }
        self.unseat(stream);
        let streams = stream.0 as usize + 1;
        if self.seats.len() < streams {
            self.seats.resize(streams, None);
        }
        let Some(home) = self.leaf(leaf) else { return false };
        let local = home.vacant.pop().unwrap_or_else(|| {
            home.streams.push(None);
            StreamIndex(u32::try_from(home.streams.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(slot) = home.streams.get_mut(local.0 as usize) {
            *slot = Some(stream);
        }
        if let Some(seat) = self.seats.get_mut(stream.0 as usize) {
            *seat = Some(Seat { leaf, local, segment: 0, has_head: false });
        }
        true
    }

    /// Returns the service that a class has received.
    #[must_use]
    pub fn service(&self, class: ClassIndex) -> Option<crate::hfsc::ServedBytes> {
        self.tree.service(class)
    }

    /// Rejects a parent that has streams.
    fn below(&mut self, parent: ClassIndex) -> Result<(), HfscError> {
        if parent != ClassIndex::ROOT && self.leaf(parent).is_some() {
            return Err(HfscError::ParentActive(parent));
        }
        Ok(())
    }

    fn unseat(&mut self, stream: StreamIndex) {
        self.leave(stream);
        let Some(seat) = self.seats.get_mut(stream.0 as usize).and_then(Option::take) else {
            return;
        };
        let Some(leaf) = self.leaf(seat.leaf) else { return };
        if let Some(slot) = leaf.streams.get_mut(seat.local.0 as usize) {
            *slot = None;
        }
        leaf.vacant.push(seat.local);
    }

    fn leaf(&mut self, class: ClassIndex) -> Option<&mut Leaf> {
        self.leaves.get_mut(class.0 as usize)?.as_mut()
    }

    fn seat_of(&self, stream: StreamIndex) -> Option<Seat> {
        *self.seats.get(stream.0 as usize)?
    }

    fn seat_mut(&mut self, stream: StreamIndex) -> Option<&mut Seat> {
        self.seats.get_mut(stream.0 as usize)?.as_mut()
    }

    /// Runs `call` on the leaf of `stream` and marks the leaf for a refresh.
    fn within<T>(
        &mut self,
        stream: StreamIndex,
        call: impl FnOnce(&mut Discipline, StreamIndex) -> T,
    ) -> Option<T> {
        let Seat { leaf, local, .. } = self.seat_of(stream)?;
        let answer = call(&mut self.leaf(leaf)?.discipline, local);
        self.mark(leaf);
        Some(answer)
    }

    fn mark(&mut self, leaf: ClassIndex) {
        let Some(home) = self.leaf(leaf) else { return };
        if !core::mem::replace(&mut home.stale, true) {
            self.stale.push(leaf);
        }
    }

    /// Reports to the tree every leaf whose next segment may have changed.
    fn refresh(&mut self) {
        while let Some(class) = self.stale.pop() {
            let now = self.now;
            let Some(leaf) = self.leaf(class) else { continue };
            leaf.stale = false;
            let since = leaf.since.take().unwrap_or(now);
            let next = leaf.discipline.pick(now);
            let event = leaf.discipline.next_change(now).map_or(Key::ABSENT, Instant::as_nanos);
            // An event in the next nanosecond may be due now; the next poll checks it.
            let event =
                if event == now.as_nanos().saturating_add(1) { now.as_nanos() } else { event };
            let global = next.and_then(|local| *leaf.streams.get(local.0 as usize)?);
            self.events.set(class.0, event);
            if class == ClassIndex::ROOT {
                continue; // the background has no class in the tree
            }
            match global.and_then(|stream| self.seat_of(stream)) {
                Some(seat) => self.tree.set_active(since, class, u64::from(seat.segment)),
                None => self.tree.set_passive(now, class),
            }
        }
    }

    /// Returns the first change after `now`: at `at`, unless that is [`Key::ABSENT`], or an instant from
    /// the tree.
    fn first_change(&self, now: Instant, at: u64) -> Option<Instant> {
        let soonest = Instant::from_nanos(now.as_nanos().saturating_add(1));
        if !self.stale.is_empty() {
            return Some(soonest);
        }
        let at = (at < Key::ABSENT).then(|| Instant::from_nanos(at).max(soonest));
        at.into_iter().chain(self.tree.next_change(now)).min()
    }

    /// Returns a leaf with an event that is due.
    fn due(&self) -> Option<ClassIndex> {
        let (at, class) = self.events.best();
        (at <= self.now.as_nanos() && at < Key::ABSENT).then_some(ClassIndex(class))
    }

    /// Returns the pick to charge: the last one if it is of `leaf`, otherwise one by link-sharing.
    fn pick_of(&self, leaf: ClassIndex) -> Pick {
        let picked = self.picked.map(|(pick, _)| pick).filter(|pick| pick.class == leaf);
        picked.unwrap_or(Pick { class: leaf, criterion: Criterion::LinkShare })
    }

    /// Records a head of a stream and passes it to the leaf by `take`.
    fn take_head(
        &mut self,
        stream: StreamIndex,
        head: Head,
        take: impl FnOnce(&mut Discipline, StreamIndex, Head),
    ) {
        let Some(seat) = self.seat_mut(stream).filter(|seat| !seat.has_head) else { return };
        (seat.segment, seat.has_head) = (head.left.segment, true);
        let class = seat.leaf;
        self.now = self.now.max(head.arrived);
        if let Some(leaf) = self.leaf(class) {
            // The tree's guarantee counts from the arrival, not from the next refresh.
            leaf.since = Some(leaf.since.map_or(head.arrived, |since| since.min(head.arrived)));
        }
        self.within(stream, |leaf, local| take(leaf, local, head));
    }

    /// Charges `bytes` to the leaf.
    ///
    /// The charge assumes that the leaf stays backlogged; the next refresh corrects this. Asking its
    /// discipline now would be a pick before the next head is announced.
    fn charge(&mut self, leaf: ClassIndex, bytes: u32) {
        if leaf == ClassIndex::ROOT {
            return self.mark(leaf);
        }
        let pick = self.pick_of(leaf);
        self.tree.charge(self.now, pick, u64::from(bytes), Some(u64::from(bytes.max(1))));
        self.mark(leaf);
    }
}

impl Scheduler for Hierarchy {
    fn reserve(&mut self, streams: usize) {
        if self.seats.len() < streams {
            self.seats.resize(streams, None);
        }
    }

    /// Adds a stream to its leaf. Streams without a seat are ignored.
    fn join(&mut self, stream: StreamIndex, terms: impl Into<Terms>) {
        let terms = terms.into();
        if let Some(seat) = self.seat_mut(stream) {
            seat.has_head = false;
        }
        self.within(stream, |leaf, local| leaf.join(local, terms));
    }

    fn leave(&mut self, stream: StreamIndex) {
        if let Some(seat) = self.seat_mut(stream) {
            seat.has_head = false;
        }
        self.within(stream, |leaf, local| leaf.leave(local));
    }

    fn handle_head(&mut self, stream: StreamIndex, head: Head) {
        self.take_head(stream, head, Discipline::handle_head);
    }

    fn handle_demoted(&mut self, stream: StreamIndex, head: Head) {
        self.take_head(stream, head, Discipline::handle_demoted);
    }

    fn handle_long(&mut self, stream: StreamIndex, over: Duration) {
        self.within(stream, |leaf, local| leaf.handle_long(local, over));
    }

    fn suspend(&mut self, stream: StreamIndex) {
        self.within(stream, |leaf, local| leaf.suspend(local));
    }

    fn resume(&mut self, stream: StreamIndex) {
        self.within(stream, |leaf, local| leaf.resume(local));
    }

    fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        self.now = self.now.max(now);
        // Heads whose period has begun have a new rank.
        while let Some(class) = self.due() {
            self.events.set(class.0, Key::ABSENT);
            self.mark(class);
        }
        self.refresh();
        let pick = self.tree.pick(self.now);
        let now = self.now;
        let leaf = self.leaf(pick.map_or(ClassIndex::ROOT, |pick| pick.class))?;
        let local = leaf.discipline.pick(now)?;
        let stream = (*leaf.streams.get(local.0 as usize)?)?;
        self.picked = pick.map(|pick| (pick, stream));
        Some(stream)
    }

    fn handle_segment(&mut self, stream: StreamIndex, bytes: u32, left: Left) {
        let Some(seat) = self.seat_mut(stream).filter(|seat| seat.has_head) else { return };
        seat.segment = left.segment;
        let leaf = seat.leaf;
        self.within(stream, |leaf, local| leaf.handle_segment(local, bytes, left));
        self.charge(leaf, bytes);
    }

    fn handle_served(&mut self, stream: StreamIndex, bytes: u32, finish: Instant) -> Service {
        let nothing = Service { on_time: true, violated: false };
        let Some(seat) = self.seat_mut(stream).filter(|seat| seat.has_head) else { return nothing };
        seat.has_head = false;
        let leaf = seat.leaf;
        let served = self.within(stream, |leaf, local| leaf.handle_served(local, bytes, finish));
        self.charge(leaf, bytes);
        served.unwrap_or(nothing)
    }

    fn handle_left(&mut self, stream: StreamIndex, left: Left) {
        let Some(seat) = self.seat_mut(stream).filter(|seat| seat.has_head) else { return };
        seat.segment = left.segment;
        self.within(stream, |leaf, local| leaf.handle_left(local, left));
    }

    fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        self.now = self.now.max(now);
        self.refresh();
        while let Some(class) = self.due() {
            let leaf = self.leaf(class)?;
            if let Some(miss) = leaf.discipline.poll_missed(now) {
                let stream = leaf.streams.get(miss.stream.0 as usize).copied().flatten()?;
                if let Some(seat) = self.seat_mut(stream) {
                    seat.has_head &= !miss.dropped;
                }
                self.mark(class);
                return Some(Miss { stream, ..miss });
            }
            let event = leaf.discipline.next_change(now).map_or(Key::ABSENT, Instant::as_nanos);
            self.events.set(class.0, event.max(self.now.as_nanos().saturating_add(1)));
            self.mark(class);
        }
        None
    }

    fn remove_head(&mut self, stream: StreamIndex) -> bool {
        if let Some(seat) = self.seat_mut(stream) {
            seat.has_head = false;
        }
        self.within(stream, |leaf, local| leaf.remove_head(local)).unwrap_or_default()
    }

    fn handle_skipped(&mut self, stream: StreamIndex) -> bool {
        self.within(stream, |leaf, local| leaf.handle_skipped(local)).unwrap_or_default()
    }

    fn handle_earlier(&mut self, stream: StreamIndex, earlier: Earlier) {
        self.within(stream, |leaf, local| leaf.handle_earlier(local, earlier));
    }

    fn earlier(&self, stream: StreamIndex) -> Option<Earlier> {
        let Seat { leaf, local, .. } = self.seat_of(stream)?;
        self.leaves.get(leaf.0 as usize)?.as_ref()?.discipline.earlier(local)
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        self.first_change(now, self.events.best().0)
    }

    fn next_wake(&self, now: Instant) -> Option<Instant> {
        let at = self.events.least_where(|class, at| {
            let leaf = self.leaves.get(class as usize).and_then(Option::as_ref);
            let Some(leaf) = leaf else { return at };
            leaf.discipline.next_wake(now).map_or(Key::ABSENT, Instant::as_nanos).max(at)
        });
        self.first_change(now, at)
    }

    fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        let Seat { leaf, local, .. } = self.seat_of(stream)?;
        self.leaves.get(leaf.0 as usize)?.as_ref()?.discipline.window(local)
    }

    fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        let Seat { leaf, local, .. } = self.seat_of(stream)?;
        self.leaves.get(leaf.0 as usize)?.as_ref()?.discipline.deadline(local)
    }

    fn virtual_deadline(&self, stream: StreamIndex) -> Option<Instant> {
        let Seat { leaf, local, .. } = self.seat_of(stream)?;
        self.leaves.get(leaf.0 as usize)?.as_ref()?.discipline.virtual_deadline(local)
    }
}

#[cfg(test)]
mod tests;
