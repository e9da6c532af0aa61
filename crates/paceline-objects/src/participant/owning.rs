//! The objects of a participant, and who owns them.

use super::peer::Peer;
use super::{Participant, WorldEvent};
use crate::exchange::{ExchangeError, UpdateConstraints};
use crate::ids::{ObjectIndex, PeerId};
use crate::owned::{ObjectError, OwnedObject};
use crate::packet::{Claim, Fate, Hand, Ownership, PeerDescription, is_newer};
use crate::schema::{FieldValue, GroupMask, Schema};
use paceline_sched::Instant;
use std::sync::Arc;

/// The steps in which the size of the largest group is published, in bytes.
const GROUP_STEP: u32 = 32;

/// The greatest distance of the epoch of a hand-over from the last known one.
const EPOCHS_MAX: u32 = 1 << 20;

impl Participant {
    /// Creates an object.
    ///
    /// # Errors
    /// A path that is not well-formed or in use, a value that does not match the schema, or too many objects.
    pub fn create(
        &mut self,
        path: &str,
        schema: &Schema,
        fields: &[(&str, FieldValue)],
        now: Instant,
    ) -> Result<ObjectIndex, ObjectError> {
        self.replicas.promote();
        if let Some(replica) = self.replicas.get(path) {
            let owner = replica.owner();
            let name = self.peers.get(&owner).map(Peer::name).filter(|name| !name.is_empty());
            let owner = name.map_or_else(|| owner.to_string(), str::to_owned);
            return Err(ObjectError::Owned { path: path.to_owned(), owner });
        }
        let schema = self.schema(schema, PeerDescription::SCHEMAS_MAX)?;
        let epoch = self.replicas.next_epoch(path);
        let ownership = Ownership { epoch, yields: self.settings.yields };
        let object = self.owned.create(path, &schema, ownership, fields, now)?;
        self.begin(object, now)
    }

    /// Returns the shared copy of a schema, which is new if no object has it. Only the schemas of own objects count.
    fn schema(&mut self, schema: &Schema, limit: usize) -> Result<Arc<Schema>, ObjectError> {
        if let Some(known) = self.schemas.get(&schema.fingerprint()) {
            return Ok(Arc::clone(known));
        }
        let is_used = |known: &Arc<Schema>| Arc::strong_count(known) > 1;
        let same = |known: &Arc<Schema>| {
            known.name() == schema.name() && known.version() == schema.version()
        };
        let text = || format!("{}/{}", schema.name(), schema.version());
        if self.schemas.values().any(|known| same(known) && is_used(known)) {
            return Err(ObjectError::SchemaDiffers(text()));
        }
        self.schemas.retain(|_, known| is_used(known) || !same(known));
        if self.schemas.len() >= limit {
            self.schemas.retain(|_, known| is_used(known));
        }
        if self.schemas.len() >= limit
            || schema.to_string().len() > PeerDescription::SCHEMA_BYTES_MAX
        {
            return Err(ObjectError::Schemas(text()));
        }
        Ok(Arc::new(schema.clone()))
    }

    /// Publishes the schema of a new object if it is new.
    fn publish_schema(&mut self, schema: &Arc<Schema>) {
        let fingerprint = schema.fingerprint();
        if self.schemas.contains_key(&fingerprint) {
            return;
        }
        self.schemas.insert(fingerprint, Arc::clone(schema));
        let groups = u32::try_from(schema.groups().len()).unwrap_or(u32::MAX);
        if groups > self.own.sizes.groups {
            self.own.sizes.groups = groups;
            self.interest_changes += 1;
        }
        self.describe();
    }

    /// Publishes a larger greatest group, of which the traffic of contracts with less than the whole state depends.
    fn note_groups(&mut self, group_bytes: &[u32]) {
        let largest = group_bytes.iter().max().copied().unwrap_or(0);
        if largest > self.own.sizes.largest_group {
            // In steps, so that a growing group does not need a new reservation with each byte.
            self.own.sizes.largest_group = largest.next_multiple_of(GROUP_STEP);
            self.interest_changes += 1;
            self.describe();
        }
    }

    /// Begins to exchange an object.
    fn begin(&mut self, index: ObjectIndex, now: Instant) -> Result<ObjectIndex, ObjectError> {
        let object = self.owned.get(index).ok_or(ObjectError::NotOwned)?;
        let bytes: Vec<_> = object.group_bytes().collect();
        if let Err(error) = self.exchanges.create(index, &object.facts(&bytes), now) {
            self.owned.remove(index);
            return Err(error.into());
        }
        let schema = object.shared_schema();
        self.note_groups(&bytes);
        self.publish_schema(&schema);
        Ok(index)
    }

    /// Sets fields of an object, and returns the groups that changed.
    ///
    /// # Errors
    /// No such object, an object that is on its way to another owner, or a value that does not match the schema.
    /// After an error nothing is changed.
    pub fn set(
        &mut self,
        index: ObjectIndex,
        fields: &[(&str, FieldValue)],
        now: Instant,
    ) -> Result<GroupMask, ObjectError> {
        self.set_with(index, fields, UpdateConstraints::default(), now)
    }

    /// As [`Self::set`], with constraints of this change.
    ///
    /// # Errors
    /// As [`Self::set`], and constraints that are out of range.
    pub fn set_with(
        &mut self,
        index: ObjectIndex,
        fields: &[(&str, FieldValue)],
        constraints: UpdateConstraints,
        now: Instant,
    ) -> Result<GroupMask, ObjectError> {
        constraints.check().map_err(ExchangeError::from)?;
        if self.hand_overs.has(index) {
            return Err(ObjectError::NotOwned);
        }
        let changed = self.owned.set(index, fields, now)?;
        if !changed.is_empty()
            && let Some(object) = self.owned.get(index)
        {
            let bytes: Vec<_> = object.group_bytes().collect();
            let update = (changed, constraints);
            self.exchanges.change_with(index, &object.facts(&bytes), update, now)?;
            self.note_groups(&bytes);
        }
        Ok(changed)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// No such object.
    pub fn delete(&mut self, index: ObjectIndex, now: Instant) -> Result<(), ObjectError> {
        self.hand_overs.end(index);
        self.retire(index, Fate::Deleted, now).map(|_| ())
    }

    /// Hands an object over to another participant. Until that one has claimed it, the object keeps its last state.
    ///
    /// # Errors
    /// No such object, or no such participant.
    pub fn hand_over(
        &mut self,
        index: ObjectIndex,
        to: PeerId,
        now: Instant,
    ) -> Result<(), ObjectError> {
        let object = self.owned.get(index).ok_or(ObjectError::NotOwned)?;
        if self.hand_overs.has(index) {
            return Err(ObjectError::NotOwned);
        }
        if !self.peers.contains_key(&to) {
            return Err(ObjectError::NoPeer(to.to_string()));
        }
        let groups = (0..object.schema().groups().len())
            .filter_map(|group| object.group(group).map(|bytes| (group, bytes.clone())))
            .collect();
        let hand = Hand {
            from: self.id,
            path: object.path().to_owned(),
            schema: object.schema().fingerprint(),
            epoch: object.ownership().next_epoch(),
            groups,
        };
        self.hand_overs.begin(index, to, hand, now);
        Ok(())
    }

    /// Takes an object that was handed over. If the replica of it has another owner, nothing changes: only the owner hands
    /// an object over.
    pub(super) fn take_hand(&mut self, hand: &Hand, now: Instant) {
        let ownership = Ownership { epoch: hand.epoch, yields: self.settings.yields };
        let claim = Claim { path: hand.path.clone(), owner: self.id, ownership };
        if let Some((_, own)) = self.own_claim(&hand.path) {
            if !is_newer(hand.epoch, own.ownership.epoch) {
                self.claim(own, hand.from, now);
            }
            return;
        }
        if self.replicas.has_owned(&hand.path, hand.epoch) {
            // It was adopted before, and has ended here: the answer was lost. Its next owner may have it.
            let ownership = Ownership { yields: true, ..ownership };
            self.claim(Claim { ownership, ..claim }, hand.from, now);
            return;
        }
        let replica = self.replicas.get(&hand.path);
        if let Some(replica) = replica.filter(|replica| replica.owner() != hand.from) {
            let (owner, ownership) = replica.rank();
            self.claim(Claim { path: hand.path.clone(), owner, ownership }, hand.from, now);
            return;
        }
        // Without a replica, nothing shows that the other one owns it.
        let ownership = Ownership { yields: ownership.yields || replica.is_none(), ..ownership };
        if !self.is_near(&hand.path, hand.epoch) {
            return;
        }
        if !self.adopted.has_room(hand.from) {
            self.counts.hands_refused += 1;
            return;
        }
        let own = self.schemas.get(&hand.schema).cloned();
        let Some(schema) = own.or_else(|| self.replicas.schema(hand.from, hand.schema)) else {
            return;
        };
        // The other half is for objects that this participant creates.
        let Ok(schema) = self.schema(&schema, PeerDescription::SCHEMAS_MAX / 2) else {
            self.counts.hands_refused += 1;
            return;
        };
        let adopted = self.owned.adopt(&hand.path, &schema, ownership, &hand.groups, now);
        if let Ok(index) = adopted.and_then(|index| self.begin(index, now)) {
            self.adopted.add(index, hand.from);
            self.replicas.adopt(&hand.path);
            self.claim(Claim { ownership, ..claim }, hand.from, now);
            self.events.push_back(WorldEvent::Adopted(index, hand.path.clone()));
        }
    }

    /// Returns whether an epoch may follow those of a path: no forged one shall end the numbers that remain.
    fn is_near(&self, path: &str, epoch: u32) -> bool {
        let replica = self.replicas.get(path).map(|replica| replica.ownership().epoch);
        let known = replica.unwrap_or_else(|| self.replicas.next_epoch(path));
        epoch.wrapping_sub(known).cast_signed().unsigned_abs() <= EPOCHS_MAX
    }

    /// Ends the own object of a path that another participant owns.
    pub(super) fn yield_to(&mut self, index: ObjectIndex, claim: Claim, now: Instant) {
        if let Some(hand_over) = self.hand_overs.end(index)
            && hand_over.to == claim.owner
            && self.owned.get(index).is_some_and(|object| !object.ownership().yields)
            && self.own.interest.is_some()
        {
            self.replicas.reserve(&claim.path, claim.owner, self.id, now);
        }
        if self.retire(index, Fate::Moved(claim.owner), now).is_ok() {
            self.events.push_back(WorldEvent::Yielded(index, claim));
        }
    }

    fn retire(
        &mut self,
        index: ObjectIndex,
        fate: Fate,
        now: Instant,
    ) -> Result<OwnedObject, ObjectError> {
        let object = self.owned.remove(index).ok_or(ObjectError::NotOwned)?;
        self.adopted.remove(index);
        self.claims.withdraw(object.path(), self.id);
        self.replicas.release(object.path(), object.ownership().epoch, self.id);
        self.fates.insert(index, fate);
        self.exchanges.delete(index, now)?;
        Ok(object)
    }
}
