//! The objects of a participant.

use crate::codec::PacketError;
use crate::exchange::{ExchangeError, ObjectFacts};
use crate::ids::ObjectIndex;
use crate::motion::Motion;
use crate::packet::{Introduction, Ownership, is_path};
use crate::schema::{FieldValue, FieldValues, GroupMask, Schema, SchemaError};
use bytes::Bytes;
use paceline_sched::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// An object of this participant.
#[derive(Clone, Debug)]
pub struct OwnedObject {
    path: Arc<str>,
    schema: Arc<Schema>,
    ownership: Ownership,
    values: Arc<FieldValues>,
    groups: Vec<OwnedGroup>,
    motion: Option<Motion>,
}

/// A group of an owned object, encoded.
#[derive(Clone, Debug)]
struct OwnedGroup {
    bytes: Bytes,
    changed: Instant,
}

impl OwnedObject {
    fn new(path: Arc<str>, schema: Arc<Schema>, ownership: Ownership, now: Instant) -> Self {
        let values = vec![None; schema.fields().len()];
        let groups = (0..schema.groups().len())
            .map(|group| OwnedGroup { bytes: schema.encode_group(group, &values), changed: now })
            .collect();
        Self { path, schema, ownership, values: values.into(), groups, motion: None }
    }

    /// Returns its path in the world.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns its schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns its schema without a copy.
    #[must_use]
    pub fn shared_schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }

    /// Returns the right of this participant to it.
    #[must_use]
    pub const fn ownership(&self) -> Ownership {
        self.ownership
    }

    /// Returns the value of a field; `None` if it was never set or does not exist.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<&FieldValue> {
        self.schema.field(field).and_then(|index| self.values.get(index)).and_then(Option::as_ref)
    }

    /// Returns all values, in the order of the schema.
    #[must_use]
    pub fn values(&self) -> &[Option<FieldValue>] {
        &self.values
    }

    /// Returns the names and values of the fields that have one.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &FieldValue)> {
        let named = self.schema().fields().iter().zip(self.values());
        named.filter_map(|(field, value)| Some((field.name.as_str(), value.as_ref()?)))
    }

    /// Returns its position and velocity; `None` for an object without a position.
    #[must_use]
    pub const fn motion(&self) -> Option<Motion> {
        self.motion
    }

    /// Returns the encoded bytes of a group.
    #[must_use]
    pub fn group(&self, group: usize) -> Option<&Bytes> {
        self.groups.get(group).map(|group| &group.bytes)
    }

    /// Returns the encoded bytes of all groups.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.bytes.len()).sum()
    }

    /// Returns the number of bytes of each group.
    pub fn group_bytes(&self) -> impl Iterator<Item = u32> {
        self.groups.iter().map(|group| u32::try_from(group.bytes.len()).unwrap_or(u32::MAX))
    }

    /// Returns its motion and sizes for the exchange list.
    pub(crate) fn facts<'a>(&self, group_bytes: &'a [u32]) -> ObjectFacts<'a> {
        let moving = [Schema::POSITION, Schema::VELOCITY];
        let fields =
            self.schema.fields().iter().filter(|field| moving.contains(&field.name.as_str()));
        let motion_groups = fields
            .map(|field| GroupMask::of(field.group))
            .fold(GroupMask::default(), GroupMask::with);
        ObjectFacts { motion: self.motion, motion_groups, group_bytes }
    }

    /// Returns when a group of `mask` last changed.
    #[must_use]
    pub fn changed(&self, mask: GroupMask) -> Option<Instant> {
        mask.iter().filter_map(|group| self.groups.get(group)).map(|group| group.changed).max()
    }

    /// Returns what replicas must know of it first.
    #[must_use]
    pub fn introduction(&self) -> Introduction {
        Introduction {
            path: self.path.to_string(),
            schema: self.schema.fingerprint(),
            ownership: self.ownership,
        }
    }

    /// Sets fields and returns the groups that changed. After an error nothing is changed.
    fn set(
        &mut self,
        fields: &[(&str, FieldValue)],
        group_limit: usize,
        now: Instant,
    ) -> Result<GroupMask, SchemaError> {
        let mut values = self.values.to_vec();
        let mut mask = GroupMask::default();
        for (field, value) in fields {
            let index = self.schema.check_value(field, value)?;
            if let (Some(slot), Some(field)) =
                (values.get_mut(index), self.schema.fields().get(index))
                && slot.as_ref() != Some(value)
            {
                *slot = Some(value.clone());
                mask = mask.with(GroupMask::of(field.group));
            }
        }
        let encoded: Vec<_> =
            mask.iter().map(|group| (group, self.schema.encode_group(group, &values))).collect();
        if let Some((group, bytes)) = encoded.iter().find(|(_, bytes)| bytes.len() > group_limit) {
            return Err(SchemaError::GroupTooLarge {
                group: self.schema.groups().get(*group).cloned().unwrap_or_default(),
                bytes: bytes.len(),
                limit: group_limit,
            });
        }
        for (group, bytes) in encoded {
            if let Some(slot) = self.groups.get_mut(group) {
                *slot = OwnedGroup { bytes, changed: now };
            }
        }
        self.values = values.into();
        if !mask.is_empty() {
            self.move_to(now);
        }
        Ok(mask)
    }

    fn move_to(&mut self, now: Instant) {
        self.motion = self.schema.motion(&self.values, now);
    }
}

/// The objects of a participant, by path and by index.
#[derive(Clone, Debug)]
pub struct OwnedObjects {
    objects: BTreeMap<ObjectIndex, OwnedObject>,
    paths: BTreeMap<Arc<str>, ObjectIndex>,
    next: u32,
    limit: usize,
    group_limit: usize,
}

impl OwnedObjects {
    /// Returns no objects, of which there may be up to `limit`, with groups of up to `group_limit` encoded bytes.
    #[must_use]
    pub const fn new(limit: usize, group_limit: usize) -> Self {
        Self { objects: BTreeMap::new(), paths: BTreeMap::new(), next: 0, limit, group_limit }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// A path that is not well-formed or in use, a value that does not match the schema, or too many objects.
    pub fn create(
        &mut self,
        path: &str,
        schema: &Arc<Schema>,
        ownership: Ownership,
        fields: &[(&str, FieldValue)],
        now: Instant,
    ) -> Result<ObjectIndex, ObjectError> {
        if !is_path(path) {
            return Err(ObjectError::Path(path.chars().take(80).collect()));
        }
        if self.paths.contains_key(path) {
            return Err(ObjectError::Exists(path.to_owned()));
        }
        if self.objects.len() >= self.limit {
            return Err(ObjectError::TooMany(self.limit));
        }
        let path: Arc<str> = path.into();
        let mut object = OwnedObject::new(Arc::clone(&path), Arc::clone(schema), ownership, now);
        object.set(fields, self.group_limit, now)?;
        let index = ObjectIndex(self.next);
        self.next = self.next.checked_add(1).ok_or(ObjectError::TooMany(self.limit))?;
        self.objects.insert(index, object);
        self.paths.insert(path, index);
        Ok(index)
    }

    /// Creates an object from encoded groups.
    ///
    /// # Errors
    /// As [`Self::create`], and groups that do not match the schema.
    pub fn adopt(
        &mut self,
        path: &str,
        schema: &Arc<Schema>,
        ownership: Ownership,
        groups: &[(usize, Bytes)],
        now: Instant,
    ) -> Result<ObjectIndex, ObjectError> {
        let mut values = vec![None; schema.fields().len()];
        for (group, bytes) in groups {
            schema.decode_group(*group, bytes, &mut values)?;
        }
        let fields: Vec<_> = schema
            .fields()
            .iter()
            .zip(values)
            .filter_map(|(field, value)| Some((field.name.as_str(), value?)))
            .collect();
        self.create(path, schema, ownership, &fields, now)
    }

    /// Sets fields of an object and returns the groups that changed. After an error nothing is changed.
    ///
    /// # Errors
    /// No such object, or a value that does not match the schema.
    pub fn set(
        &mut self,
        index: ObjectIndex,
        fields: &[(&str, FieldValue)],
        now: Instant,
    ) -> Result<GroupMask, ObjectError> {
        let limit = self.group_limit;
        let object = self.objects.get_mut(&index).ok_or(ObjectError::NotOwned)?;
        Ok(object.set(fields, limit, now)?)
    }

    /// Notes that an object stays although it was handed over. If the other participant has adopted it without an answer, that
    /// one learns by the newer epoch that the right of an owner that does not yield is not the former one.
    pub(crate) fn keep(&mut self, index: ObjectIndex) {
        if let Some(object) = self.objects.get_mut(&index).filter(|it| !it.ownership.yields) {
            object.ownership.epoch = object.ownership.epoch.wrapping_add(2);
        }
    }

    /// Removes an object.
    pub fn remove(&mut self, index: ObjectIndex) -> Option<OwnedObject> {
        let object = self.objects.remove(&index)?;
        self.paths.remove(&object.path);
        Some(object)
    }

    /// Returns an object.
    #[must_use]
    pub fn get(&self, index: ObjectIndex) -> Option<&OwnedObject> {
        self.objects.get(&index)
    }

    /// Returns the index of a path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<ObjectIndex> {
        self.paths.get(path).copied()
    }

    /// Returns all objects, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectIndex, &OwnedObject)> {
        self.objects.iter().map(|(index, object)| (*index, object))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// The error of a call for an object.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ObjectError {
    /// A path that is not well-formed.
    #[error(
        "path {0:?}: must have 1 to 255 bytes, chunks of letters, digits, _, - and . separated by /, such as car/7"
    )]
    Path(String),
    /// Another object of this participant has the path.
    #[error("an object with the path {0:?} exists; set its fields or choose another path")]
    Exists(String),
    /// Another participant owns an object of this path.
    #[error(
        "object {path:?} belongs to {owner}; ask that participant to hand it over, or choose another path"
    )]
    Owned {
        /// The path.
        path: String,
        /// The name of its owner.
        owner: String,
    },
    /// There are as many objects as permitted.
    #[error("a participant can own at most {0} objects; delete some, or raise the limit")]
    TooMany(usize),
    /// The object was deleted, or belongs to another participant now.
    #[error("the object was deleted or handed over; create it again, or ask its owner")]
    NotOwned,
    /// A participant that is not in the world.
    #[error("participant {0} is not in this world")]
    NoPeer(String),
    /// Another schema of the same name and version.
    #[error("a different schema {0:?} is in use; raise its version")]
    SchemaDiffers(String),
    /// The participant uses as many schemas as permitted, or the schema is too long.
    #[error(
        "schema {0:?}: a participant can use 64 schemas of at most 8192 bytes each in their textual form; use fewer or shorter names"
    )]
    Schemas(String),
    /// A value that does not match the schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A limit of the exchange list.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// Encoded groups that do not match the schema.
    #[error(transparent)]
    Packet(#[from] PacketError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motion::distance;

    fn objects() -> (OwnedObjects, Arc<Schema>) {
        let schema =
            Schema::parse("car/1 motion{position:vector velocity:vector} look{paint:text}")
                .expect("valid");
        (OwnedObjects::new(2, 100), Arc::new(schema))
    }

    #[test]
    fn only_changed_groups_are_reported() {
        let (mut objects, schema) = objects();
        let now = Instant::from_millis(1);
        let car = objects
            .create(
                "car/7",
                &schema,
                Ownership::default(),
                &[("position", [1.0, 2.0, 3.0].into())],
                now,
            )
            .expect("new");
        assert_eq!(objects.set(car, &[("paint", "red".into())], now), Ok(GroupMask::of(1)));
        assert_eq!(objects.set(car, &[("paint", "red".into())], now), Ok(GroupMask::default()));
        let later = Instant::from_millis(500);
        let both = [("paint", "blue".into()), ("velocity", [2.0, 0.0, 0.0].into())];
        assert_eq!(objects.set(car, &both, later), Ok(GroupMask::first(2)));
        let motion = objects.get(car).and_then(OwnedObject::motion).expect("it has a position");
        assert!(distance(motion.position_at(Instant::from_millis(1_500)), [3.0, 2.0, 3.0]) < 1e-9);
    }

    #[test]
    fn wrong_calls_are_named_and_change_nothing() {
        let (mut objects, schema) = objects();
        let now = Instant::from_millis(1);
        let car = objects
            .create("car/7", &schema, Ownership::default(), &[("paint", "red".into())], now)
            .expect("new");
        let wrong = [("paint", "blue".into()), ("speed", 1.0.into())];
        assert!(matches!(
            objects.set(car, &wrong, now),
            Err(ObjectError::Schema(SchemaError::NoField { .. }))
        ));
        let long = "x".repeat(200);
        assert_eq!(
            objects
                .set(car, &[("paint", long.as_str().into())], now)
                .expect_err("too long")
                .to_string(),
            "group \"look\" has 202 bytes: at most 100; split it into groups or use larger packets"
        );
        assert_eq!(objects.get(car).and_then(|car| car.value("paint")), Some(&"red".into()));
        assert_eq!(
            objects.create("car/7", &schema, Ownership::default(), &[], now),
            Err(ObjectError::Exists("car/7".into()))
        );
        for path in ["", "/car", "car//7", "car/*", "ä"] {
            assert_eq!(
                objects.create(path, &schema, Ownership::default(), &[], now),
                Err(ObjectError::Path(path.into()))
            );
        }
        objects.create("car/8", &schema, Ownership::default(), &[], now).expect("the second");
        assert_eq!(
            objects.create("car/9", &schema, Ownership::default(), &[], now),
            Err(ObjectError::TooMany(2))
        );
        assert!(objects.remove(car).is_some());
        assert_eq!(objects.set(car, &[], now), Err(ObjectError::NotOwned));
        assert_ne!(
            objects.create("car/9", &schema, Ownership::default(), &[], now),
            Ok(car),
            "an index is never used twice"
        );
    }
}
