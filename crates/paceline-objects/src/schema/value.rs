//! Values of fields.

use bytes::Bytes;
use std::fmt;

/// The type of a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldKind {
    /// True or false.
    Bool,
    /// A signed integer of 64 bits.
    Int,
    /// A finite number of 64 bits.
    Float,
    /// Three finite numbers of 64 bits, sent as 32 bits each.
    Vector,
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Bytes,
}

impl FieldKind {
    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Vector => "vector",
            Self::Text => "text",
            Self::Bytes => "bytes",
        }
    }

    /// Returns the type of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Bool, Self::Int, Self::Float, Self::Vector, Self::Text, Self::Bytes]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// True or false.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// Three numbers.
    Vector([f64; 3]),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Bytes),
}

impl FieldValue {
    /// Returns its type.
    #[must_use]
    pub const fn kind(&self) -> FieldKind {
        match self {
            Self::Bool(_) => FieldKind::Bool,
            Self::Int(_) => FieldKind::Int,
            Self::Float(_) => FieldKind::Float,
            Self::Vector(_) => FieldKind::Vector,
            Self::Text(_) => FieldKind::Text,
            Self::Bytes(_) => FieldKind::Bytes,
        }
    }

    /// Returns whether all its numbers are finite.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Float(value) => value.is_finite(),
            Self::Vector(values) => values.iter().all(|value| value.is_finite()),
            Self::Bool(_) | Self::Int(_) | Self::Text(_) | Self::Bytes(_) => true,
        }
    }
}

impl From<bool> for FieldValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for FieldValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for FieldValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<[f64; 3]> for FieldValue {
    fn from(value: [f64; 3]) -> Self {
        Self::Vector(value)
    }
}

impl From<&str> for FieldValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}
