//! Descriptions: what the JSON of a schedule and the classes of a configuration have in common.

pub(crate) mod curves;
pub(crate) mod fields;
pub(crate) mod json;
