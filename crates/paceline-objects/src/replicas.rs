//! The copies of other participants' objects.

mod rivals;

pub(crate) use rivals::outranks;

use crate::ids::{ObjectIndex, PeerId};
use crate::packet::{Claim, Fate, Fragment, Introduction, UpdateRecord};
use crate::replica::{Made, Replica};
use crate::schema::{GroupMask, Schema};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    events: Vec<ReplicaEvent>,
    counts: ReplicaCounts,
    limit: usize,
}

/// The objects of one owner.
#[derive(Clone, Debug, Default)]
struct OwnerTable {
    objects: BTreeMap<ObjectIndex, Arc<str>>,
    ended: BTreeSet<ObjectIndex>,
    /// Objects of no interest, and the time stamp of the message that stated it: older ones must not bring them back.
    withdrawn: BTreeMap<ObjectIndex, u64>,
    schemas: BTreeMap<u64, Arc<Schema>>,
}

/// The epochs of objects that have ended, the newest ones.
#[derive(Clone, Debug, Default)]
struct PastEpochs {
    epochs: BTreeMap<Arc<str>, u32>,
    order: VecDeque<Arc<str>>,
}

impl PastEpochs {
    fn insert(&mut self, path: &Arc<str>, epoch: u32) {
        if self.epochs.insert(Arc::clone(path), epoch).is_none() {
            self.order.push_back(Arc::clone(path));
        }
        if self.order.len() > ENDED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.epochs.remove(&oldest);
        }
    }
}

/// How long the new owner of an object may take to introduce it.
const MOVE_LIMIT: Duration = Duration::from_secs(5);
/// The greatest number of ended objects that are remembered for an owner.
const ENDED_MAX: usize = 65_536;

impl Replicas {
    /// Returns no replicas, of which there may be up to `limit` for each owner.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            replicas: BTreeMap::new(),
            owners: BTreeMap::new(),
            moving: BTreeMap::new(),
            claims: Vec::new(),
            rivals: BTreeMap::new(),
            promoted: Vec::new(),
            past: PastEpochs { epochs: BTreeMap::new(), order: VecDeque::new() },
            events: Vec::new(),
            counts: ReplicaCounts { old: 0, wrong: 0, unknown: 0, too_many: 0 },
            limit,
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
        self.past.epochs.get(path).map_or(0, |epoch| epoch.saturating_add(1))
    }

    /// Takes what owners must know about the ownership of objects.
    pub(crate) fn claims(&mut self) -> Vec<Claim> {
        std::mem::take(&mut self.claims)
    }

    /// Returns a schema of an owner.
    pub(crate) fn schema(&self, owner: PeerId, fingerprint: u64) -> Option<Arc<Schema>> {
        self.owners.get(&owner)?.schemas.get(&fingerprint).cloned()
    }

    /// Takes the schemas of an owner.
    pub(crate) fn describe(&mut self, owner: PeerId, schemas: &[Schema]) {
        let table = self.owners.entry(owner).or_default();
        let known = schemas.iter().map(|schema| (schema.fingerprint(), Arc::new(schema.clone())));
        table.schemas = known.collect();
        for (object, path) in &table.objects {
            let rivals = self.rivals.get_mut(path);
            let rival = rivals.and_then(|rivals| rivals.get_mut(&(owner, *object)));
            let is_rival = rival.is_some();
            let replica = rival.or_else(|| self.replicas.get_mut(path));
            let Some(replica) = replica.filter(|replica| replica.schema().is_none()) else {
                continue;
            };
            let Some(schema) = table.schemas.get(&replica.fingerprint()) else { continue };
            let mask = replica.learn(schema);
            if !is_rival && !mask.is_empty() {
                self.events.push(ReplicaEvent::Changed(Arc::clone(path), mask));
            }
        }
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
        let table = self.owners.entry(owner).or_default();
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
            rival.apply(&update.groups, age, made);
            if update.fate.is_some() {
                rivals.remove(&(owner, update.object));
                if rivals.is_empty() {
                    self.rivals.remove(path);
                }
                self.end(owner, update.object);
            }
            return;
        }
        let replica = path.as_ref().and_then(|path| self.replicas.get_mut(path));
        let (Some(path), Some(replica)) = (path, replica) else {
            self.counts.unknown += 1;
            return;
        };
        let applied = replica.apply(&update.groups, age, made);
        self.counts.old += applied.old;
        self.counts.wrong += applied.wrong;
        if !applied.changed.is_empty() {
            self.events.push(ReplicaEvent::Changed(Arc::clone(&path), applied.changed));
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
                    table.withdrawn.insert(object, made.stamp);
                    while table.withdrawn.len() > ENDED_MAX {
                        table.withdrawn.pop_first();
                    }
                }
                self.remove(&path);
                self.events.push(ReplicaEvent::Withdrawn(path));
            }
            Fate::Moved(to) => {
                self.end(owner, object);
                let epoch = self.replicas.get(&path).map_or(0, Replica::epoch);
                if self.next_epoch(&path) > epoch.saturating_add(1) {
                    // Its next ownership has ended already.
                    self.remove(&path);
                    self.events.push(ReplicaEvent::Deleted(path));
                    return;
                }
                if let Some(replica) = self.replicas.get_mut(&path) {
                    replica.belong(to, None, epoch);
                }
                self.moving.insert(path, made.here + MOVE_LIMIT);
            }
        }
    }

    /// Takes the introduction of an object. Of two owners the one with the higher epoch counts, then the one with the
    /// lower number; the other one is to be informed.
    fn introduce(
        &mut self,
        owner: PeerId,
        object: ObjectIndex,
        introduction: &Introduction,
        made: Made,
    ) {
        let path: Arc<str> = introduction.path.as_str().into();
        if let Some(replica) = self.replicas.get(&path).filter(|replica| replica.owner() != owner) {
            let claim = |owner, epoch| Claim { path: introduction.path.clone(), owner, epoch };
            let known = (replica.owner(), replica.epoch());
            if !outranks((owner, introduction.epoch), known) {
                self.claims.push(claim(known.0, known.1));
                self.introduce_rival(owner, object, introduction, made);
                return;
            }
            if !self.moving.contains_key(&path) {
                self.claims.push(claim(owner, introduction.epoch));
            }
        }
        let moving = self.moving.contains_key(&path);
        if let Some(replica) =
            self.replicas.get(&path).filter(|replica| replica.owner() == owner && !moving)
        {
            if replica.epoch() >= introduction.epoch {
                self.end(owner, object);
                return;
            }
            // It was deleted and created again; the deletion is on its way.
            if let Some(before) = replica.object() {
                self.end(owner, before);
            }
            self.replicas.remove(&path);
            self.events.push(ReplicaEvent::Deleted(Arc::clone(&path)));
        }
        let table = self.owners.entry(owner).or_default();
        if table.objects.len() >= self.limit {
            self.counts.too_many += 1;
            return;
        }
        table.objects.insert(object, Arc::clone(&path));
        self.moving.remove(&path);
        let known = self.replicas.remove(&path);
        // Both remain: one of them is a rival.
        let outranked = known.as_ref().filter(|known| known.owner() != owner).cloned();
        match known.filter(|known| known.fingerprint() == introduction.schema) {
            Some(mut replica) => {
                replica.belong(owner, Some(object), introduction.epoch);
                self.replicas.insert(Arc::clone(&path), replica);
                self.events.push(ReplicaEvent::OwnerChanged(Arc::clone(&path), owner));
            }
            None => {
                if outranked.is_some() {
                    self.events.push(ReplicaEvent::Deleted(Arc::clone(&path)));
                }
                let schema = table.schemas.get(&introduction.schema);
                let replica = Replica::new(owner, object, introduction, schema, made);
                self.replicas.insert(Arc::clone(&path), replica);
                self.events.push(ReplicaEvent::Created(path));
            }
        }
        if let Some(outranked) = outranked {
            self.rival(outranked);
        }
    }

    fn end(&mut self, owner: PeerId, object: ObjectIndex) {
        let table = self.owners.entry(owner).or_default();
        table.objects.remove(&object);
        table.ended.insert(object);
        while table.ended.len() > ENDED_MAX {
            table.ended.pop_first();
        }
    }

    /// Removes the replicas of an owner that is gone.
    pub(crate) fn leave(&mut self, owner: PeerId) {
        self.rivals.retain(|_, rivals| {
            rivals.retain(|(rival, _), _| *rival != owner);
            !rivals.is_empty()
        });
        let table = self.owners.remove(&owner).unwrap_or_default();
        for path in table.objects.into_values() {
            if self.replicas.get(&path).is_some_and(|replica| replica.owner() == owner) {
                self.lose(path);
            }
        }
    }

    /// Removes the replicas of an owner that introduces all its objects anew.
    pub(crate) fn restart(&mut self, owner: PeerId) {
        let schemas = self.owners.get(&owner).map(|table| table.schemas.clone());
        self.leave(owner);
        if let Some(schemas) = schemas {
            self.owners.insert(owner, OwnerTable { schemas, ..OwnerTable::default() });
        }
    }

    /// Removes all replicas, which are of no interest any more.
    pub(crate) fn withdraw(&mut self) {
        self.rivals.clear();
        self.moving.clear();
        for table in self.owners.values_mut() {
            table.objects.clear();
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
    pub(crate) fn release(&mut self, path: &str, epoch: u32) {
        let path: Arc<str> = path.into();
        self.past.insert(&path, epoch);
        if self.rivals.contains_key(&path) {
            self.promoted.push(path);
        }
    }

    /// Removes objects whose new owner has not introduced them in time.
    pub(crate) fn expire(&mut self, now: Instant) {
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
        self.past.insert(path, replica.epoch());
        self.claims.retain(|claim| *claim.path != **path);
        if self.rivals.contains_key(path) {
            self.promoted.push(Arc::clone(path));
        }
        Some(replica)
    }
}

#[cfg(test)]
mod tests;
