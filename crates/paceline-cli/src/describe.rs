//! Parsers shared by the JSON of a schedule and the classes of a configuration.

pub(crate) mod curves;
pub(crate) mod fields;
pub(crate) mod json;
