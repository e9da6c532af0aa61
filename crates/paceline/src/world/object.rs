//! Objects of a world.

use super::state::{Shared, State};
use crate::shell::clock;
use paceline_objects::exchange::UpdateConstraints;
use paceline_objects::owned::{ObjectError, OwnedObject};
use paceline_objects::replica::Replica;
use paceline_objects::{FieldValue, GroupMask, ObjectIndex, PeerId, Schema};
use paceline_sched::Instant;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An object of this participant. Dropping it does not delete the object.
#[derive(Clone)]
pub struct SharedObject {
    shared: Arc<Shared>,
    index: ObjectIndex,
    path: Arc<str>,
}

impl SharedObject {
    pub(super) const fn new(shared: Arc<Shared>, index: ObjectIndex, path: Arc<str>) -> Self {
        Self { shared, index, path }
    }

    /// Returns its path in the world.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns its index among the objects of this participant, as events name it.
    #[must_use]
    pub const fn index(&self) -> ObjectIndex {
        self.index
    }

    /// Changes the object, unless its participant has left the world.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut State) -> Result<T, ObjectError>,
    ) -> Result<T, ObjectError> {
        self.shared
            .change(|state| if state.ended { Err(ObjectError::NotOwned) } else { change(state) })
    }

    /// Sets fields, and returns the groups that changed. Observers receive them when their interest demands it.
    ///
    /// # Errors
    /// The object was deleted or handed over, or a value does not match the schema. After an error nothing is changed.
    pub fn set(&self, fields: &[(&str, FieldValue)]) -> Result<GroupMask, ObjectError> {
        self.change(|state| state.participant.set(self.index, fields, clock::now()))
    }

    /// As [`Self::set`], with constraints of this change, such as a time after which it is not sent any more.
    ///
    /// # Errors
    /// As [`Self::set`], and constraints that are out of range.
    pub fn set_with(
        &self,
        fields: &[(&str, FieldValue)],
        constraints: UpdateConstraints,
    ) -> Result<GroupMask, ObjectError> {
        self.change(|state| {
            state.participant.set_with(self.index, fields, constraints, clock::now())
        })
    }

    /// Deletes the object; its replicas end.
    ///
    /// # Errors
    /// It was deleted or handed over before.
    pub fn delete(&self) -> Result<(), ObjectError> {
        self.change(|state| state.participant.delete(self.index, clock::now()))
    }

    /// Hands the object over to another participant. Until that one has claimed it, the object keeps its last state
    /// and cannot be set; [`WorldEvent::Yielded`](super::WorldEvent::Yielded) or, after 5 s,
    /// [`WorldEvent::Kept`](super::WorldEvent::Kept) reports the end.
    ///
    /// # Errors
    /// It was deleted or handed over before, or there is no such participant.
    pub fn hand_over(&self, to: PeerId) -> Result<(), ObjectError> {
        self.change(|state| state.participant.hand_over(self.index, to, clock::now()))
    }
}

impl fmt::Debug for SharedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedObject")
            .field("path", &self.path)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

/// The state of an object at one time: of this participant, or a replica.
#[derive(Clone, Debug)]
pub struct ObjectView {
    /// Its path in the world.
    pub path: String,
    /// The name of its owner, or its number as text while the name is not known.
    pub owner: String,
    /// The number of its owner.
    pub owner_id: PeerId,
    /// Whether this participant owns it.
    pub owned: bool,
    /// Its schema; `None` until the description of the owner has arrived.
    pub schema: Option<Arc<Schema>>,
    /// The values of its fields, in the order of the schema; `None` for those that have not arrived.
    pub values: Vec<Option<FieldValue>>,
    /// Its position, extrapolated with its last velocity.
    pub position: Option<[f64; 3]>,
    /// The maximum age of the state: the time since its owner stated it. Zero for an own object.
    pub age: Duration,
    /// The number of updates that were received.
    pub updates: u64,
}

impl ObjectView {
    pub(super) fn replica(replica: &Replica, owner: String, now: Instant) -> Self {
        Self {
            path: replica.path().to_string(),
            owner,
            owner_id: replica.owner(),
            owned: false,
            schema: replica.shared_schema(),
            values: replica.values().to_vec(),
            position: replica.motion().map(|motion| motion.position_at(now)),
            age: replica.age(now).into(),
            updates: replica.updates(),
        }
    }

    pub(super) fn owned(
        object: &OwnedObject,
        owner: String,
        owner_id: PeerId,
        now: Instant,
    ) -> Self {
        Self {
            path: object.path().to_owned(),
            owner,
            owner_id,
            owned: true,
            schema: Some(object.shared_schema()),
            values: object.values().to_vec(),
            position: object.motion().map(|motion| motion.position_at(now)),
            age: Duration::ZERO,
            updates: 0,
        }
    }

    /// Returns the value of a field; `None` if it has not arrived or does not exist.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<&FieldValue> {
        let index = self.schema.as_ref()?.field(field)?;
        self.values.get(index).and_then(Option::as_ref)
    }

    /// Returns the names and values of the fields that have arrived.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &FieldValue)> {
        let fields = self.schema.iter().flat_map(|schema| schema.fields());
        fields
            .zip(&self.values)
            .filter_map(|(field, value)| Some((field.name.as_str(), value.as_ref()?)))
    }
}
