//! Parsers shared by the JSON of a schedule and the classes of a configuration.

pub mod curves;
pub mod fields;
pub mod json;
