//! The objects that a participant owns.

use super::settings::ExchangeError;
use crate::contract::ObjectContract;
use crate::grid::PositionGrid;
use crate::ids::{ObjectIndex, PeerId};
use crate::motion::Motion;
use crate::schema::{GroupMask, Schema};
use crate::table::ObjectTable;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeSet;
use std::ops::Bound;

/// The motion and sizes of an object; its content stays with the owner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectFacts<'a> {
    /// Its position and velocity. None for an object without a position: it is in range of everybody.
    pub motion: Option<Motion>,
    /// The groups that carry its position and velocity.
    pub motion_groups: GroupMask,
    /// The bytes of each group as encoded.
    pub group_bytes: &'a [u32],
}

/// The state of an object.
#[derive(Clone, Debug)]
pub(super) struct ObjectState {
    pub(super) motion: Option<Motion>,
    pub(super) motion_groups: GroupMask,
    pub(super) group_bytes: Vec<u32>,
    /// The observers with interest, in ascending order.
    pub(super) peers: Vec<PeerId>,
}

impl ObjectState {
    /// Returns all its groups.
    pub(super) fn groups(&self) -> GroupMask {
        GroupMask::first(self.group_bytes.len())
    }

    pub(super) fn bytes_of(&self, groups: GroupMask) -> u64 {
        let sizes = self.group_bytes.iter().enumerate();
        sizes.filter(|(group, _)| groups.has(*group)).map(|(_, bytes)| u64::from(*bytes)).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.group_bytes.iter().map(|bytes| u64::from(*bytes)).sum()
    }

    pub(super) fn add_peer(&mut self, peer: PeerId) {
        if let Err(place) = self.peers.binary_search(&peer) {
            self.peers.insert(place, peer);
        }
    }

    pub(super) fn remove_peer(&mut self, peer: PeerId) {
        if let Ok(place) = self.peers.binary_search(&peer) {
            self.peers.remove(place);
        }
    }
}

/// The objects and where they are.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    states: ObjectTable<ObjectState>,
    grid: PositionGrid,
    /// All objects, in ascending order.
    order: BTreeSet<ObjectIndex>,
    /// The objects without a position.
    unplaced: BTreeSet<ObjectIndex>,
    /// When the last extrapolation of all objects began.
    extrapolated: Instant,
    /// How many it has reached, and when it continues; `None` once it has reached all.
    reached: Option<(usize, Instant)>,
}

impl Objects {
    pub(super) fn new(cell: f64) -> Self {
        Self {
            states: ObjectTable::default(),
            grid: PositionGrid::new(cell),
            order: BTreeSet::new(),
            unplaced: BTreeSet::new(),
            extrapolated: Instant::ZERO,
            reached: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn get(&self, object: ObjectIndex) -> Option<&ObjectState> {
        self.states.get(object)
    }

    pub(super) fn get_mut(&mut self, object: ObjectIndex) -> Option<&mut ObjectState> {
        self.states.get_mut(object)
    }

    pub(super) fn create(
        &mut self,
        object: ObjectIndex,
        facts: &ObjectFacts<'_>,
        now: Instant,
    ) -> Result<(), ExchangeError> {
        if self.states.get(object).is_some() {
            return Err(ExchangeError::Exists(object));
        }
        check(object, facts, None)?;
        self.states.insert(
            object,
            ObjectState {
                motion: facts.motion,
                motion_groups: facts.motion_groups,
                group_bytes: facts.group_bytes.to_vec(),
                peers: Vec::new(),
            },
        );
        self.order.insert(object);
        self.place(object, facts.motion, now);
        Ok(())
    }

    pub(super) fn change(
        &mut self,
        object: ObjectIndex,
        facts: &ObjectFacts<'_>,
        now: Instant,
    ) -> Result<&ObjectState, ExchangeError> {
        let state = self.states.get_mut(object).ok_or(ExchangeError::NoObject(object))?;
        check(object, facts, Some(state.group_bytes.len()))?;
        state.motion = facts.motion;
        state.motion_groups = facts.motion_groups;
        state.group_bytes.clear();
        state.group_bytes.extend_from_slice(facts.group_bytes);
        self.place(object, facts.motion, now);
        self.states.get(object).ok_or(ExchangeError::NoObject(object))
    }

    pub(super) fn delete(&mut self, object: ObjectIndex) -> Result<ObjectState, ExchangeError> {
        let state = self.states.remove(object).ok_or(ExchangeError::NoObject(object))?;
        self.grid.remove(object);
        self.order.remove(&object);
        self.unplaced.remove(&object);
        Ok(state)
    }

    /// Begins to move moving objects in the index to where they are by now, unless that began less than `every` ago.
    pub(super) fn begin_extrapolation(&mut self, every: Duration, now: Instant) {
        if self.reached.is_none() && now.since(self.extrapolated) >= every {
            (self.reached, self.extrapolated) = (Some((0, now)), now);
        }
        self.extrapolate(now);
    }

    /// Moves the next objects, if it is time.
    pub(super) fn extrapolate(&mut self, now: Instant) {
        let Some((reached, _)) = self.reached.filter(|(_, at)| *at <= now) else { return };
        let part = self.states.part(reached, EXTRAPOLATED_MAX);
        let end = reached + part.len();
        self.reached = (end < self.states.len()).then_some((end, now + EXTRAPOLATED_APART));
        for (object, state) in part {
            if let Some(motion) = state.motion.filter(Motion::is_moving) {
                self.grid.place(*object, motion.position_at(now));
            }
        }
    }

    /// Returns when [`Self::extrapolate`] has something to do.
    pub(super) fn next_extrapolation(&self) -> Option<Instant> {
        self.reached.map(|(_, at)| at)
    }

    /// Returns up to `count` objects after `last` in ascending order, and whether there are more.
    pub(super) fn after(
        &self,
        last: Option<ObjectIndex>,
        count: usize,
    ) -> (Vec<ObjectIndex>, bool) {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut objects = self.order.range((from, Bound::Unbounded)).copied();
        (objects.by_ref().take(count).collect(), objects.next().is_some())
    }

    /// Returns the objects in range of a position, in ascending order.
    pub(super) fn in_range(
        &self,
        center: [f64; 3],
        range: f64,
        was_in: impl Fn(ObjectIndex) -> bool,
    ) -> Vec<ObjectIndex> {
        let leave = range * (1.0 + RANGE_HYSTERESIS);
        let mut objects = self.grid.within(center, range, leave, was_in);
        if !self.unplaced.is_empty() {
            objects.extend(&self.unplaced);
            objects.sort_unstable();
        }
        objects
    }

    fn place(&mut self, object: ObjectIndex, motion: Option<Motion>, now: Instant) {
        if let Some(motion) = motion {
            self.grid.place(object, motion.position_at(now));
            self.unplaced.remove(&object);
        } else {
            self.grid.remove(object);
            self.unplaced.insert(object);
        }
    }
}

/// How much farther than its range an observer keeps an object, as a share of the range.
const RANGE_HYSTERESIS: f64 = 0.1;
/// The greatest number of objects that one call extrapolates, so that it takes less than a millisecond.
const EXTRAPOLATED_MAX: usize = 4_096;
/// The time between two such calls.
const EXTRAPOLATED_APART: Duration = Duration::from_millis(1);

fn check(
    object: ObjectIndex,
    facts: &ObjectFacts<'_>,
    groups_before: Option<usize>,
) -> Result<(), ExchangeError> {
    let groups = facts.group_bytes.len();
    let bytes: u64 = facts.group_bytes.iter().map(|bytes| u64::from(*bytes)).sum();
    if facts.motion.is_some_and(|motion| !motion.is_finite()) {
        Err(ExchangeError::Motion(object))
    } else if groups == 0
        || groups > Schema::GROUPS_MAX
        || groups_before.is_some_and(|before| before != groups)
    {
        Err(ExchangeError::Groups { object, groups })
    } else if bytes == 0 || bytes > u64::from(ObjectContract::BYTES_MAX) {
        Err(ExchangeError::Size { object, bytes })
    } else {
        Ok(())
    }
}
