//! The copies of other participants' objects.

mod describing;
mod introducing;
mod past;
mod refused;
mod rivals;

use crate::budget::{Budget, Charge};
use crate::ids::{ObjectIndex, PeerId};
use crate::packet::{Claim, Fate, Fragment, UpdateRecord, is_newer};
use crate::replica::{KnownSchema, Made, Replica};
use crate::schema::GroupMask;
use paceline_sched::{Duration, Instant};
use past::{Past, PastEpochs, Reservations};
use refused::Refused;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A change of a replica.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReplicaEvent {
    /// An object is known now.
    Created(Arc<str>),
    /// Groups of an object have new values.
    Changed(Arc<str>, GroupMask),
    /// Its owner deleted an object.
    Deleted(Arc<str>),
    /// An object is out of this participant's interest; its replica ends.
    Withdrawn(Arc<str>),
    /// An object has a new owner.
    OwnerChanged(Arc<str>, PeerId),
    /// The owner of an object is gone, and nobody else owns it.
    Lost(Arc<str>),
}

/// Counts of what could not be applied.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReplicaCounts {
    /// Groups that were older than those of the replica.
    pub old: u64,
    /// Groups that do not match the schema of their object.
    pub wrong: u64,
    /// Updates of objects that were not introduced, or have ended.
    pub unknown: u64,
    /// Objects beyond the greatest number of replicas of an owner.
    pub too_many: u64,
    /// Objects, groups and schemas beyond the share of their node in the memory for others' objects.
    pub over_share: u64,
}

/// The copies of other participants' objects.
#[derive(Clone, Debug)]
pub struct Replicas {
    replicas: BTreeMap<Arc<str>, Replica>,
    owners: BTreeMap<PeerId, OwnerTable>,
    /// Objects that were moved to an owner which has not introduced them yet, and until when it may.
    moving: BTreeMap<Arc<str>, Instant>,
    claims: Vec<Claim>,
    /// Copies of objects whose path belongs to an owner of higher rank. They count when that object ends.
    rivals: BTreeMap<Arc<str>, BTreeMap<(PeerId, ObjectIndex), Replica>>,
    /// Paths of ended objects that have rivals.
    promoted: Vec<Arc<str>>,
    /// The epochs of objects that have ended.
    past: PastEpochs,
    /// The paths of owners that are silent.
    reserved: Reservations,
    events: Vec<ReplicaEvent>,
    counts: ReplicaCounts,
    limit: usize,
    /// Owners of which something was refused.
    refused: BTreeMap<PeerId, Refused>,
    /// The memory of replicas and schemas.
    budget: Budget,
}

/// The objects of one owner.
#[derive(Clone, Debug)]
struct OwnerTable {
    objects: BTreeMap<ObjectIndex, Arc<str>>,
    ended: BTreeSet<ObjectIndex>,
    /// Objects of no interest, and the time stamp of the message that stated it: older ones must not bring them back.
    withdrawn: BTreeMap<ObjectIndex, u64>,
    schemas: BTreeMap<u64, KnownSchema>,
    /// The schemas of its objects whose schema was not known.
    unknown: BTreeMap<ObjectIndex, u64>,
    /// Whether some of its schemas had no room.
    lacks_schemas: bool,
    /// The memory of the ends of objects.
    charge: Charge,
}

impl OwnerTable {
    /// The bytes of an entry about the end of an object.
    const END_BYTES: usize = 32;

    const fn new(charge: Charge) -> Self {
        Self {
            objects: BTreeMap::new(),
            ended: BTreeSet::new(),
            withdrawn: BTreeMap::new(),
            schemas: BTreeMap::new(),
            unknown: BTreeMap::new(),
            lacks_schemas: false,
            charge,
        }
    }

    /// Charges the memory of its entries; without room for the newest one, the oldest ones are forgotten.
    fn settle(&mut self) {
        while self.ended.len() > ENDED_MAX {
            self.ended.pop_first();
        }
        while self.withdrawn.len() > ENDED_MAX {
            self.withdrawn.pop_first();
        }
        loop {
            let ends = self.ended.len() + self.withdrawn.len();
            if self.charge.resize(ends * Self::END_BYTES) {
                return;
            }
            if self.ended.pop_first().is_none() {
                self.withdrawn.pop_first();
            }
        }
    }
}

/// Returns the table of an owner.
fn table_of<'a>(
    owners: &'a mut BTreeMap<PeerId, OwnerTable>,
    budget: &mut Budget,
    owner: PeerId,
) -> &'a mut OwnerTable {
    owners.entry(owner).or_insert_with(|| OwnerTable::new(budget.open(owner.node())))
}

/// How long the new owner of an object may take to introduce it.
const MOVE_LIMIT: Duration = Duration::from_secs(5);
/// The greatest number of ended objects that are remembered for an owner.
const ENDED_MAX: usize = 65_536;

impl Replicas {
    /// Returns no replicas, of which there may be up to `limit` for each owner, and which use up to `bytes_max`.
    #[must_use]
    pub fn new(limit: usize, bytes_max: usize) -> Self {
        Self {
            replicas: BTreeMap::new(),
            owners: BTreeMap::new(),
            moving: BTreeMap::new(),
            claims: Vec::new(),
            rivals: BTreeMap::new(),
            promoted: Vec::new(),
            past: PastEpochs::new(),
            reserved: Reservations::new(),
            events: Vec::new(),
            counts: ReplicaCounts { old: 0, wrong: 0, unknown: 0, too_many: 0, over_share: 0 },
            limit,
            refused: BTreeMap::new(),
            budget: Budget::new(bytes_max),
        }
    }

    /// Returns the replica of a path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Replica> {
        self.replicas.get(path)
    }

    /// Returns all replicas, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.values()
    }

    /// Returns the number of replicas.
    #[must_use]
    pub fn len(&self) -> usize {
        self.replicas.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }

    /// Returns what could not be applied.
    #[must_use]
    pub const fn counts(&self) -> ReplicaCounts {
        self.counts
    }

    /// Takes the events since the last call.
    pub fn events(&mut self) -> Vec<ReplicaEvent> {
        self.promote();
        std::mem::take(&mut self.events)
    }

    /// Returns the epoch of a new object of this path: it outranks one that has ended.
    pub(crate) fn next_epoch(&self, path: &str) -> u32 {
        self.past.get(path).map_or(0, |past| past.epoch.wrapping_add(1))
    }

    /// Returns whether this participant has owned an object of this epoch or a newer one, which has ended.
    pub(crate) fn has_owned(&self, path: &str, epoch: u32) -> bool {
        self.past.get(path).is_some_and(|past| past.own && !is_newer(epoch, past.epoch))
    }

    /// Takes what owners must know about the ownership of objects.
    pub(crate) fn claims(&mut self) -> Vec<Claim> {
        std::mem::take(&mut self.claims)
    }

    /// Applies a fragment that was made at `here`, on the clock of this host.
    pub(crate) fn apply(&mut self, fragment: &Fragment, here: Instant) {
        let made = Made { stamp: fragment.sent, here };
        for update in &fragment.updates {
            self.update(fragment.owner, update, made);
        }
        self.promote();
    }

    fn update(&mut self, owner: PeerId, update: &UpdateRecord, made: Made) {
        let table = table_of(&mut self.owners, &mut self.budget, owner);
        let withdrawn =
            table.withdrawn.get(&update.object).is_some_and(|stamp| made.stamp <= *stamp);
        if withdrawn || table.ended.contains(&update.object) {
            self.counts.unknown += 1;
            return;
        }
        if let Some(introduction) = &update.introduction
            && !table.objects.contains_key(&update.object)
        {
            self.introduce(owner, update.object, introduction, made);
        }
        let age = Duration::from_nanos(update.age.saturating_mul(1_000));
        let path =
            self.owners.get(&owner).and_then(|table| table.objects.get(&update.object)).cloned();
        if let Some(path) = &path
            && let Some(rivals) = self.rivals.get_mut(path)
            && let Some(rival) = rivals.get_mut(&(owner, update.object))
        {
            let refused = rival.apply(&update.groups, age, made).over_share > 0;
            if update.fate.is_some() {
                rivals.remove(&(owner, update.object));
                if rivals.is_empty() {
                    self.rivals.remove(path);
                }
                self.end(owner, update.object);
            }
            if refused {
                self.refuse(owner);
            }
            return;
        }
        // Only the owner of an object changes or ends it.
        let its = |replica: &&mut Replica| {
            (replica.owner(), replica.object()) == (owner, Some(update.object))
        };
        let replica = path.as_ref().and_then(|path| self.replicas.get_mut(path)).filter(its);
        let (Some(path), Some(replica)) = (path, replica) else {
            self.counts.unknown += 1;
            return;
        };
        let schemas = self.owners.get(&owner).map(|table| &table.schemas);
        let known = schemas.and_then(|schemas| schemas.get(&replica.fingerprint()));
        if let Some(known) = known.filter(|_| replica.schema().is_none()) {
            replica.learn(known);
        }
        let refused = known.is_some() && replica.schema().is_none();
        let applied = replica.apply(&update.groups, age, made);
        self.counts.old += applied.old;
        self.counts.wrong += applied.wrong;
        if !applied.changed.is_empty() {
            self.events.push(ReplicaEvent::Changed(Arc::clone(&path), applied.changed));
        }
        if refused || applied.over_share > 0 {
            self.refuse(owner);
        }
        if let Some(fate) = update.fate {
            self.finish(owner, update.object, path, fate, made);
        }
    }

    /// Ends the object of an owner.
    fn finish(
        &mut self,
        owner: PeerId,
        object: ObjectIndex,
        path: Arc<str>,
        fate: Fate,
        made: Made,
    ) {
        match fate {
            Fate::Deleted => {
                self.end(owner, object);
                self.remove(&path);
                self.events.push(ReplicaEvent::Deleted(path));
            }
            Fate::Withdrawn => {
                if let Some(table) = self.owners.get_mut(&owner) {
                    table.objects.remove(&object);
                    table.unknown.remove(&object);
                    table.withdrawn.insert(object, made.stamp);
                    table.settle();
                }
                self.remove(&path);
                self.events.push(ReplicaEvent::Withdrawn(path));
            }
            Fate::Moved(to) => {
                self.end(owner, object);
                let Some(replica) = self.replicas.get_mut(&path) else { return };
                let ownership = replica.ownership();
                if self.past.get(&path).is_some_and(|past| is_newer(past.epoch, ownership.epoch)) {
                    // Its next ownership has ended already.
                    self.remove(&path);
                    self.events.push(ReplicaEvent::Deleted(path));
                    return;
                }
                replica.belong(to, None, ownership);
                if !ownership.yields {
                    self.reserved.hand_over(&path, owner, to, made.here);
                }
                if self.succeed(&path, to) {
                    return;
                }
                self.moving.insert(path, made.here + MOVE_LIMIT);
            }
        }
    }

    fn end(&mut self, owner: PeerId, object: ObjectIndex) {
        let table = table_of(&mut self.owners, &mut self.budget, owner);
        table.objects.remove(&object);
        table.unknown.remove(&object);
        table.ended.insert(object);
        table.settle();
    }

    /// Removes the replicas of an owner that is gone. If it may return, nobody else can own its paths then that do not
    /// yield, and its schemas stay until it is forgotten.
    pub(crate) fn leave(&mut self, owner: PeerId, returns: bool) {
        self.refused.remove(&owner);
        let Some(table) = self.owners.get_mut(&owner) else { return };
        let objects = std::mem::take(&mut table.objects);
        table.unknown.clear();
        table.ended.clear();
        table.withdrawn.clear();
        table.settle();
        if !returns {
            self.owners.remove(&owner);
        }
        for (object, path) in &objects {
            if let Some(rivals) = self.rivals.get_mut(path) {
                rivals.remove(&(owner, *object));
                if rivals.is_empty() {
                    self.rivals.remove(path);
                }
            }
        }
        for path in objects.into_values() {
            let replica = self.replicas.get(&path).filter(|replica| replica.owner() == owner);
            let Some(yields) = replica.map(|replica| replica.ownership().yields) else { continue };
            if returns && !yields {
                self.reserved.keep(&path, owner);
            }
            self.lose(path);
        }
    }

    /// Reserves a path for an owner that will introduce its object.
    pub(crate) fn reserve(&mut self, path: &str, owner: PeerId, by: PeerId, now: Instant) {
        let known = self.get(path).is_some_and(|replica| replica.owner() == owner);
        if !known {
            self.reserved.hand_over(&path.into(), by, owner, now);
        }
    }

    /// Ends the reservations of an owner that is not remembered any more.
    pub(crate) fn forget(&mut self, owner: PeerId) {
        self.reserved.forget(owner);
        self.owners.remove(&owner);
    }

    /// Returns the memory of something else that a participant causes; `None` without room.
    pub(crate) fn charge(&mut self, peer: PeerId, bytes: usize) -> Option<Charge> {
        self.budget.charge(peer.node(), bytes)
    }

    /// Returns the bytes that replicas and schemas use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.budget.used()
    }

    /// Removes the replicas of an owner that introduces all its objects anew.
    pub(crate) fn restart(&mut self, owner: PeerId) {
        self.leave(owner, true);
    }

    /// Removes all replicas, which are of no interest any more.
    pub(crate) fn withdraw(&mut self) {
        self.rivals.clear();
        self.moving.clear();
        for table in self.owners.values_mut() {
            table.objects.clear();
            table.unknown.clear();
        }
        for path in std::mem::take(&mut self.replicas).into_keys() {
            self.events.push(ReplicaEvent::Withdrawn(path));
        }
    }

    /// Replaces the replica of a path that this participant owns now.
    pub(crate) fn adopt(&mut self, path: &str) {
        self.moving.remove(path);
        if let Some(replica) = self.replicas.remove(path) {
            self.rival(replica);
        }
    }

    /// Lets the replicas of a path count that this participant does not own any more.
    pub(crate) fn release(&mut self, path: &str, epoch: u32, by: PeerId) {
        let path: Arc<str> = path.into();
        self.past.insert(&path, Past { epoch, own: true }, by.node());
        if self.rivals.contains_key(&path) {
            self.promoted.push(path);
        }
    }

    /// Removes objects whose new owner has not introduced them in time.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.reserved.expire(now);
        let late: Vec<_> = self
            .moving
            .iter()
            .filter(|(_, until)| now >= **until)
            .map(|(path, _)| Arc::clone(path))
            .collect();
        for path in late {
            self.moving.remove(&path);
            self.lose(path);
        }
    }

    fn lose(&mut self, path: Arc<str>) {
        if self.remove(&path).is_some() {
            self.events.push(ReplicaEvent::Lost(path));
        }
    }

    /// Removes a replica. Others may have the path now.
    fn remove(&mut self, path: &Arc<str>) -> Option<Replica> {
        let replica = self.replicas.remove(path)?;
        let past = Past { epoch: replica.ownership().epoch, own: false };
        self.past.insert(path, past, replica.owner().node());
        self.claims.retain(|claim| *claim.path != **path);
        if self.rivals.contains_key(path) {
            self.promoted.push(Arc::clone(path));
        }
        Some(replica)
    }
}

#[cfg(test)]
mod tests;
