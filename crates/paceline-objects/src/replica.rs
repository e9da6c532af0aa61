//! A copy of an object that another participant owns.

use crate::budget::Charge;
use crate::ids::{ObjectIndex, PeerId};
use crate::motion::Motion;
use crate::packet::{Introduction, Ownership};
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
    ownership: Ownership,
    fingerprint: u64,
    schema: Option<KnownSchema>,
    values: Vec<Option<FieldValue>>,
    groups: Vec<ReplicaGroup>,
    motion: Option<Motion>,
    /// When the owner last stated that this was the state.
    current: Instant,
    updates: u64,
    /// The memory that it uses.
    charge: Charge,
}

/// A group of a replica.
#[derive(Clone, Debug, Default)]
struct ReplicaGroup {
    /// The time stamp of the message that brought it, 0 before the first.
    version: u64,
    /// The number of encoded bytes.
    bytes: usize,
    /// The encoding, kept while the schema is not known.
    waiting: Option<Bytes>,
}

/// A schema of an owner, with its memory, which is in use as long as a replica has it.
#[derive(Clone, Debug)]
pub(crate) struct KnownSchema {
    pub(crate) schema: Arc<Schema>,
    _charge: Arc<Charge>,
}

impl KnownSchema {
    pub(crate) fn new(schema: Schema, charge: Charge) -> Self {
        Self { schema: Arc::new(schema), _charge: Arc::new(charge) }
    }
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
    /// The bytes of a replica without its path, fields and groups, with those of the tables that name it.
    const BYTES: usize = 512;

    /// Returns the bytes of a replica without fields and groups.
    pub(crate) const fn bytes_of(introduction: &Introduction) -> usize {
        Self::BYTES + introduction.path.len()
    }

    pub(crate) fn new(
        owner: PeerId,
        object: ObjectIndex,
        introduction: &Introduction,
        schema: Option<&KnownSchema>,
        (made, charge): (Made, Charge),
    ) -> Self {
        let mut replica = Self {
            path: introduction.path.as_str().into(),
            owner,
            object: Some(object),
            ownership: introduction.ownership,
            fingerprint: introduction.schema,
            schema: None,
            values: Vec::new(),
            groups: Vec::new(),
            motion: None,
            current: made.here,
            updates: 0,
            charge,
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

    /// Returns the right of its owner.
    #[must_use]
    pub const fn ownership(&self) -> Ownership {
        self.ownership
    }

    /// Counts its memory as that of another node.
    pub(crate) fn recharge(&mut self, charge: Charge) {
        self.charge = charge;
    }

    /// Returns its owner and the right of it.
    pub(crate) const fn rank(&self) -> (PeerId, Ownership) {
        (self.owner, self.ownership)
    }

    /// Returns its schema; `None` until its owner's description has arrived.
    #[must_use]
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref().map(|known| &*known.schema)
    }

    /// Returns its schema without a copy.
    #[must_use]
    pub fn shared_schema(&self) -> Option<Arc<Schema>> {
        self.schema.as_ref().map(|known| Arc::clone(&known.schema))
    }

    /// Returns the fingerprint of its schema.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the value of a field; `None` if its group has not arrived.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<&FieldValue> {
        let index = self.schema()?.field(field)?;
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
    /// Without room for its fields, it stays unknown.
    pub(crate) fn learn(&mut self, known: &KnownSchema) -> GroupMask {
        let schema = &known.schema;
        let mut mask = GroupMask::default();
        let fields = schema.fields().len();
        let size = size_of::<Option<FieldValue>>();
        if !self.charge.replace(self.values.len() * size, fields * size) {
            return mask;
        }
        self.schema = Some(known.clone());
        self.values.resize(fields, None);
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

    /// Takes the schema of a new owner. If it is another one of the same fingerprint, the state is not of it.
    pub(crate) fn follow_schema(&mut self, schema: &KnownSchema) {
        if self.schema().is_some_and(|known| *known != *schema.schema) {
            self.charge.resize(Self::BYTES + self.path.len());
            (self.values, self.groups, self.motion) = (Vec::new(), Vec::new(), None);
            self.schema = None;
        }
        self.learn(schema);
    }

    /// Changes the owner. The state stays until the new owner's arrives.
    pub(crate) fn belong(
        &mut self,
        owner: PeerId,
        object: Option<ObjectIndex>,
        ownership: Ownership,
    ) {
        (self.owner, self.object, self.ownership) = (owner, object, ownership);
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
            if !self.reserve(*group) {
                applied.over_share += 1;
                continue;
            }
            let Some(slot) = self.groups.get_mut(*group) else { continue };
            if slot.version > made.stamp {
                applied.old += 1;
                continue;
            }
            if slot.bytes != bytes.len() {
                if !self.charge.replace(slot.bytes, bytes.len()) {
                    applied.over_share += 1;
                    continue;
                }
                slot.bytes = bytes.len();
            }
            match &self.schema {
                None => slot.waiting = Some(bytes.clone()),
                Some(known) => match known.schema.decode_group(*group, bytes, &mut self.values) {
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

    /// Makes room for a group, and returns whether there is.
    fn reserve(&mut self, group: usize) -> bool {
        let (known, wanted) = (self.groups.len(), group + 1);
        let size = size_of::<ReplicaGroup>();
        let room = known >= wanted || self.charge.replace(known * size, wanted * size);
        if room && known < wanted {
            self.groups.resize(wanted, ReplicaGroup::default());
        }
        room
    }

    /// Returns the bytes that it uses.
    pub(crate) const fn bytes(&self) -> usize {
        self.charge.bytes()
    }

    fn follow(&mut self, at: Instant) {
        self.motion = self.schema().and_then(|schema| schema.motion(&self.values, at));
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
    /// Groups beyond the share of the owner's node.
    pub(crate) over_share: u64,
}
