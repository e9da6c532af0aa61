//! The fields of an object, and their values.

mod encode;
mod value;

pub use encode::FieldValues;
pub use value::{FieldKind, FieldValue};

use crate::codec::fnv;
use std::fmt;
use thiserror::Error;

/// A set of groups of a [`Schema`]: bit `n` is its group `n`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct GroupMask(pub u32);

impl GroupMask {
    /// Returns the first `groups` groups.
    #[must_use]
    pub const fn first(groups: usize) -> Self {
        Self(if groups >= 32 { u32::MAX } else { (1 << groups) - 1 })
    }

    /// Returns a set of one group, and an empty one if there is no such group.
    #[must_use]
    pub const fn of(group: usize) -> Self {
        Self(if group < 32 { 1 << group } else { 0 })
    }

    /// Returns whether the set contains `group`.
    #[must_use]
    pub const fn has(self, group: usize) -> bool {
        self.0 & Self::of(group).0 != 0
    }

    /// Returns the groups that are in one of the two sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the groups that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of groups.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns the groups in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |group| self.has(*group))
    }
}

/// A field of a [`Schema`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SchemaField {
    /// Its name, unique in the schema.
    pub name: String,
    /// The type of its value.
    pub kind: FieldKind,
    /// Its group.
    pub group: usize,
}

/// The fields of a kind of objects, in groups.
///
/// A packet carries or loses a group as a whole: each is encoded by itself, so the loss of one leaves the
/// others readable.
///
/// ```
/// use paceline_objects::{FieldKind, Schema};
///
/// let car = Schema::new("car", 1)
///     .group("motion").field("position", FieldKind::Vector).field("velocity", FieldKind::Vector)
///     .group("look").field("paint", FieldKind::Text)
///     .finish()?;
/// assert_eq!(car.groups().len(), 2);
/// # Ok::<(), paceline_objects::SchemaError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Schema {
    name: String,
    version: u32,
    groups: Vec<String>,
    fields: Vec<SchemaField>,
}

impl Schema {
    /// The greatest number of groups.
    pub const GROUPS_MAX: usize = 32;
    /// The greatest number of fields.
    pub const FIELDS_MAX: usize = 255;
    /// The name of the field that holds an object's position, a vector.
    pub const POSITION: &'static str = "position";
    /// The name of the field that holds an object's velocity, a vector.
    pub const VELOCITY: &'static str = "velocity";

    /// Begins a schema. Objects of different versions of a name are not compatible.
    #[expect(clippy::new_ret_no_self, reason = "a schema begins as its builder")]
    #[must_use]
    pub fn new(name: &str, version: u32) -> SchemaBuilder {
        SchemaBuilder {
            schema: Self { name: name.to_owned(), version, groups: Vec::new(), fields: Vec::new() },
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version.
    #[must_use]
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Returns the names of the groups.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Returns the fields, ordered by group.
    #[must_use]
    pub fn fields(&self) -> &[SchemaField] {
        &self.fields
    }

    /// Returns the index of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Returns a number that differs for schemas that differ in anything (FNV-1a of the textual form).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        fnv(self.to_string().bytes())
    }

    /// Returns the bytes of memory that it uses.
    pub(crate) fn memory_bytes(&self) -> usize {
        // A text has a pointer, a length and a capacity, and its own allocation.
        let text = |name: &String| name.len() + 40;
        let fields = self.fields.iter().map(|field| text(&field.name) + 16);
        256 + fields.chain(self.groups.iter().map(text)).sum::<usize>()
    }

    fn check(&self) -> Result<(), SchemaError> {
        let named = |name: &str| {
            !name.is_empty()
                && name.len() <= 64
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let names = [&self.name]
            .into_iter()
            .chain(&self.groups)
            .chain(self.fields.iter().map(|field| &field.name));
        if let Some(name) = names.into_iter().find(|name| !named(name)) {
            return Err(SchemaError::Name(name.clone()));
        }
        if self.groups.is_empty() || self.groups.len() > Self::GROUPS_MAX {
            return Err(SchemaError::Groups(self.groups.len()));
        }
        if self.fields.len() > Self::FIELDS_MAX {
            return Err(SchemaError::Fields(self.fields.len()));
        }
        for (index, group) in self.groups.iter().enumerate() {
            if self.groups.iter().skip(index + 1).any(|other| other == group) {
                return Err(SchemaError::Twice(group.clone()));
            }
            if !self.fields.iter().any(|field| field.group == index) {
                return Err(SchemaError::Empty(group.clone()));
            }
        }
        for (index, field) in self.fields.iter().enumerate() {
            if self.fields.iter().skip(index + 1).any(|other| other.name == field.name) {
                return Err(SchemaError::Twice(field.name.clone()));
            }
            if [Self::POSITION, Self::VELOCITY].contains(&field.name.as_str())
                && field.kind != FieldKind::Vector
            {
                return Err(SchemaError::NotVector(field.name.clone(), field.kind));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Schema {
    /// Writes the form `car/1 motion{position:vector velocity:vector} look{paint:text}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.version)?;
        for (index, group) in self.groups.iter().enumerate() {
            write!(f, " {group}{{")?;
            let fields = self.fields.iter().filter(|field| field.group == index);
            for (number, field) in fields.enumerate() {
                write!(f, "{}{}:{}", if number == 0 { "" } else { " " }, field.name, field.kind)?;
            }
            write!(f, "}}")?;
        }
        Ok(())
    }
}

/// Builds a [`Schema`].
#[derive(Clone, Debug)]
pub struct SchemaBuilder {
    schema: Schema,
}

impl SchemaBuilder {
    /// Begins a group; the next fields belong to it.
    #[must_use]
    pub fn group(mut self, name: &str) -> Self {
        self.schema.groups.push(name.to_owned());
        self
    }

    /// Adds a field to the group. A field before the first group begins a group `state`.
    #[must_use]
    pub fn field(mut self, name: &str, kind: FieldKind) -> Self {
        if self.schema.groups.is_empty() {
            self = self.group("state");
        }
        let group = self.schema.groups.len() - 1;
        self.schema.fields.push(SchemaField { name: name.to_owned(), kind, group });
        self
    }

    /// Checks the schema and returns it.
    ///
    /// # Errors
    /// The first wrong name, number or type.
    pub fn finish(self) -> Result<Schema, SchemaError> {
        self.schema.check()?;
        Ok(self.schema)
    }
}

/// The error of a [`Schema`], or of a value that does not match it.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SchemaError {
    /// A name of a schema, group or field.
    #[error("name {0:?}: must have 1 to 64 ASCII letters, digits or underscores, such as position")]
    Name(String),
    /// Text that is no schema.
    #[error(
        "schema {0:?}: must have the form NAME/VERSION GROUP{{FIELD:TYPE ...}} ..., such as car/1 motion{{position:vector}}"
    )]
    Form(String),
    /// The number of groups.
    #[error("{0} groups: must be from 1 to 32; merge groups that change together")]
    Groups(usize),
    /// The number of fields.
    #[error("{0} fields: at most 255; use a vector or bytes for several values")]
    Fields(usize),
    /// Two groups or two fields have the same name.
    #[error("name {0:?} is used twice; give each group and each field its own name")]
    Twice(String),
    /// A group without fields.
    #[error("group {0:?} has no field; add one or remove the group")]
    Empty(String),
    /// A field with the name of a position or velocity that is no vector.
    #[error("field {0:?} is of type {1}: must be a vector, or have another name")]
    NotVector(String, FieldKind),
    /// A field that the schema does not have.
    #[error("field {field:?} is not in the schema {schema}")]
    NoField {
        /// The name.
        field: String,
        /// The schema in its textual form.
        schema: String,
    },
    /// A value of another type.
    #[error("field {field:?}: a value of type {value}, but the schema has {kind}")]
    Kind {
        /// The name.
        field: String,
        /// The type of the value.
        value: FieldKind,
        /// The type of the field.
        kind: FieldKind,
    },
    /// A number that is not finite, in a vector or number.
    #[error("field {0:?}: must be finite, not NaN or infinite")]
    NotFinite(String),
    /// A group whose encoded fields exceed a packet.
    #[error(
        "group {group:?} has {bytes} bytes: at most {limit}; split it into groups or use larger packets"
    )]
    GroupTooLarge {
        /// The name of the group.
        group: String,
        /// Its size, encoded.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
}
