//! A copy of an object that another participant owns.

use crate::ids::{ObjectIndex, PeerId};
use crate::motion::Motion;
use crate::packet::Introduction;
use crate::schema::{FieldValue, GroupMask, Schema};
use bytes::Bytes;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;

/// A copy of an object that another participant owns.
#[derive(Clone, Debug)]
pub struct Replica {
    path: Arc<str>,
    owner: PeerId,
    /// Its index there; `None` until a new owner has introduced it.
    object: Option<ObjectIndex>,
    epoch: u32,
    fingerprint: u64,
    schema: Option<Arc<Schema>>,
    values: Vec<Option<FieldValue>>,
    groups: Vec<ReplicaGroup>,
    motion: Option<Motion>,
    /// When the owner last stated that this was the state.
    current: Instant,
    updates: u64,
}

/// A group of a replica.
#[derive(Clone, Debug, Default)]
struct ReplicaGroup {
    /// The time stamp of the message that brought it, 0 before the first.
    version: u64,
    /// The encoding, kept while the schema is not known.
    waiting: Option<Bytes>,
}

/// When a message was made: by the clock of its owner, and here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    /// In nanoseconds of UTC, strictly increasing for an owner.
    pub(crate) stamp: u64,
    /// The same instant on the clock of this host.
    pub(crate) here: Instant,
}

impl Replica {
    pub(crate) fn new(
        owner: PeerId,
        object: ObjectIndex,
        introduction: &Introduction,
        schema: Option<&Arc<Schema>>,
        made: Made,
    ) -> Self {
        let mut replica = Self {
            path: introduction.path.as_str().into(),
            owner,
            object: Some(object),
            epoch: introduction.epoch,
            fingerprint: introduction.schema,
            schema: None,
            values: Vec::new(),
            groups: Vec::new(),
            motion: None,
            current: made.here,
            updates: 0,
        };
        if let Some(schema) = schema {
            replica.learn(schema);
        }
        replica
    }

    /// Returns its path in the world.
    #[must_use]
    pub const fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// Returns its owner.
    #[must_use]
    pub const fn owner(&self) -> PeerId {
        self.owner
    }

    pub(crate) const fn object(&self) -> Option<ObjectIndex> {
        self.object
    }

    /// Returns the number of changes of its ownership.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns its schema; `None` until its owner's description has arrived.
    #[must_use]
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_deref()
    }

    /// Returns its schema without a copy.
    #[must_use]
    pub fn shared_schema(&self) -> Option<Arc<Schema>> {
        self.schema.clone()
    }

    /// Returns the fingerprint of its schema.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the value of a field; `None` if its group has not arrived.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<&FieldValue> {
        let index = self.schema.as_ref()?.field(field)?;
        self.values.get(index).and_then(Option::as_ref)
    }

    /// Returns all values, in the order of the schema.
    #[must_use]
    pub fn values(&self) -> &[Option<FieldValue>] {
        &self.values
    }

    /// Returns its last known position and velocity; `None` for an object without a position.
    #[must_use]
    pub const fn motion(&self) -> Option<Motion> {
        self.motion
    }

    /// Returns how old its state is at most: the time since the owner last stated it.
    #[must_use]
    pub const fn age(&self, now: Instant) -> Duration {
        now.since(self.current)
    }

    /// Returns the number of updates that it received.
    #[must_use]
    pub const fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns the groups that have arrived.
    #[must_use]
    pub fn arrived(&self) -> GroupMask {
        let arrived = self.groups.iter().enumerate().filter(|(_, group)| group.version > 0);
        arrived.fold(GroupMask::default(), |mask, (group, _)| mask.with(GroupMask::of(group)))
    }

    /// Takes the schema, and decodes the groups that waited for it.
    pub(crate) fn learn(&mut self, schema: &Arc<Schema>) -> GroupMask {
        self.schema = Some(Arc::clone(schema));
        self.values.resize(schema.fields().len(), None);
        let mut mask = GroupMask::default();
        for group in 0..self.groups.len() {
            let waiting = self.groups.get_mut(group).and_then(|slot| slot.waiting.take());
            if let Some(bytes) = waiting
                && schema
                    .decode_group(group, &bytes, &mut self.values)
                    .is_ok_and(|changed| changed > 0)
            {
                mask = mask.with(GroupMask::of(group));
            }
        }
        if !mask.is_empty() {
            self.follow(self.current);
        }
        mask
    }

    /// Changes the owner. The state stays until the new owner's arrives.
    pub(crate) fn belong(&mut self, owner: PeerId, object: Option<ObjectIndex>, epoch: u32) {
        (self.owner, self.object, self.epoch) = (owner, object, epoch);
        for group in &mut self.groups {
            // The new owner's clock decides from now on.
            group.version = group.version.min(1);
        }
    }

    /// Applies an update, and returns the groups whose values changed. Of each group the newest message counts.
    pub(crate) fn apply(
        &mut self,
        groups: &[(usize, Bytes)],
        age: Duration,
        made: Made,
    ) -> Applied {
        let mut applied = Applied::default();
        self.updates += 1;
        self.current = self.current.max(made.here);
        for (group, bytes) in groups {
            if self.groups.len() <= *group {
                self.groups.resize(*group + 1, ReplicaGroup::default());
            }
            let Some(slot) = self.groups.get_mut(*group) else { continue };
            if slot.version > made.stamp {
                applied.old += 1;
                continue;
            }
            match &self.schema {
                None => slot.waiting = Some(bytes.clone()),
                Some(schema) => match schema.decode_group(*group, bytes, &mut self.values) {
                    Ok(0) => {}
                    Ok(_) => applied.changed = applied.changed.with(GroupMask::of(*group)),
                    Err(_) => {
                        applied.wrong += 1;
                        continue;
                    }
                },
            }
            slot.version = made.stamp.max(1);
        }
        if !applied.changed.is_empty() {
            self.follow(Instant::from_nanos(made.here.as_nanos().saturating_sub(age.as_nanos())));
        }
        applied
    }

    fn follow(&mut self, at: Instant) {
        self.motion = self.schema.as_ref().and_then(|schema| schema.motion(&self.values, at));
    }
}

/// The result of an update.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Applied {
    /// The groups whose values changed.
    pub(crate) changed: GroupMask,
    /// Groups that were older than those of the replica.
    pub(crate) old: u64,
    /// Groups that do not match the schema.
    pub(crate) wrong: u64,
}
