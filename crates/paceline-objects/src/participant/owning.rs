//! The objects of a participant, and who owns them.

use super::peer::Peer;
use super::{Participant, WorldEvent};
use crate::exchange::{ExchangeError, UpdateConstraints};
use crate::ids::{ObjectIndex, PeerId};
use crate::owned::{ObjectError, OwnedObject};
use crate::packet::{Claim, Fate, Hand, PeerDescription};
use crate::replicas::outranks;
use crate::schema::{FieldValue, GroupMask, Schema};
use paceline_sched::Instant;
use std::sync::Arc;

/// The steps in which the size of the largest group is published, in bytes.
const GROUP_STEP: u32 = 32;

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
        if let Some(replica) = self.replicas.get(path) {
            let owner = replica.owner();
            let name = self.peers.get(&owner).map(Peer::name).filter(|name| !name.is_empty());
            let owner = name.map_or_else(|| owner.to_string(), str::to_owned);
            return Err(ObjectError::Owned { path: path.to_owned(), owner });
        }
        let schema = self.schema(schema)?;
        let object =
            self.owned.create(path, &schema, self.replicas.next_epoch(path), fields, now)?;
        self.begin(object, now)
    }

    /// Returns the shared copy of a schema, and publishes it if it is new.
    fn schema(&mut self, schema: &Schema) -> Result<Arc<Schema>, ObjectError> {
        if let Some(known) = self.schemas.get(&schema.fingerprint()) {
            return Ok(Arc::clone(known));
        }
        let same = |known: &Arc<Schema>| {
            known.name() == schema.name() && known.version() == schema.version()
        };
        if self.schemas.values().any(same) {
            return Err(ObjectError::SchemaDiffers(format!(
                "{}/{}",
                schema.name(),
                schema.version()
            )));
        }
        if self.schemas.len() >= PeerDescription::SCHEMAS_MAX
            || schema.to_string().len() > PeerDescription::SCHEMA_BYTES_MAX
        {
            return Err(ObjectError::Schemas(format!("{}/{}", schema.name(), schema.version())));
        }
        let known = Arc::new(schema.clone());
        self.schemas.insert(schema.fingerprint(), Arc::clone(&known));
        let groups = u32::try_from(schema.groups().len()).unwrap_or(u32::MAX);
        if groups > self.own.sizes.groups {
            self.own.sizes.groups = groups;
            self.interest_changes += 1;
        }
        self.describe();
        Ok(known)
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
        self.note_groups(&bytes);
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
            epoch: object.epoch().saturating_add(1),
            groups,
        };
        self.hand_overs.begin(index, to, hand, now);
        Ok(())
    }

    /// Takes an object that was handed over.
    pub(super) fn take_hand(&mut self, hand: &Hand, now: Instant) {
        let claim = Claim { path: hand.path.clone(), owner: self.id, epoch: hand.epoch };
        if let Some(known) = self.owned.find(&hand.path) {
            if self.owned.get(known).is_some_and(|object| object.epoch() >= hand.epoch) {
                self.claim(claim, now);
            }
            return;
        }
        if self.replicas.next_epoch(&hand.path) > hand.epoch {
            // It was adopted before, and has ended here: the answer was lost.
            self.claim(claim, now);
            return;
        }
        if let Some(replica) = self.replicas.get(&hand.path) {
            let known = (replica.owner(), replica.epoch());
            if known.0 != hand.from && outranks(known, (self.id, hand.epoch)) {
                self.claim(Claim { path: hand.path.clone(), owner: known.0, epoch: known.1 }, now);
                return;
            }
        }
        let own = self.schemas.get(&hand.schema).cloned();
        let Some(schema) = own.or_else(|| self.replicas.schema(hand.from, hand.schema)) else {
            return;
        };
        let Ok(schema) = self.schema(&schema) else { return };
        let adopted = self.owned.adopt(&hand.path, &schema, hand.epoch, &hand.groups, now);
        if let Ok(index) = adopted.and_then(|index| self.begin(index, now)) {
            self.replicas.adopt(&hand.path);
            self.claim(claim, now);
            self.events.push_back(WorldEvent::Adopted(index, hand.path.clone()));
        }
    }

    /// Ends the own object of a path that another participant owns.
    pub(super) fn yield_to(&mut self, index: ObjectIndex, claim: Claim, now: Instant) {
        self.hand_overs.end(index);
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
        self.replicas.release(object.path(), object.epoch());
        self.fates.insert(index, fate);
        self.exchanges.delete(index, now)?;
        Ok(object)
    }
}
