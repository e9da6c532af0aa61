//! Counts by drop reason as a JSON object, for `#[serde(with = "by_reason")]`.
//!
//! ```
//! use paceline_node::status::by_reason;
//! use paceline_proto::{DropReason, Drops};
//!
//! #[derive(serde::Serialize)]
//! struct Line {
//!     #[serde(serialize_with = "by_reason::serialize")]
//!     dropped: Drops,
//! }
//!
//! let mut dropped = Drops::default();
//! dropped.add(DropReason::QueueFull, 3);
//! assert_eq!(serde_json::to_string(&Line { dropped }).unwrap(), r#"{"dropped":{"queue_full":3}}"#);
//! ```

use paceline_proto::{DropReason, Drops};
use serde::{Deserialize as _, Deserializer, Serializer};
use std::collections::BTreeMap;

/// Writes the counts of each reason that has any.
///
/// # Errors
/// Returns the error of the serializer.
pub fn serialize<S: Serializer>(drops: &Drops, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(drops.iter().map(|(reason, count)| (reason.name(), count)))
}

/// Reads the counts. Reasons that this version does not know are left out.
///
/// # Errors
/// Returns the error of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Drops, D::Error> {
    let counts = BTreeMap::<String, u64>::deserialize(from)?;
    let mut drops = Drops::default();
    for reason in DropReason::ALL {
        drops.add(reason, counts.get(reason.name()).copied().unwrap_or_default());
    }
    Ok(drops)
}
