//! A bridge for plain Zenoh programs, including ROS 2 programs over rmw_zenoh. The programs need no
//! change, and their data crosses links scheduled, throttled and scaled.
//!
//! ```no_run
//! use paceline_plain::{ImportRule, KeyPattern, Plain, PlainConfig, Rules, Template};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = paceline::Node::open()?;
//! let key = KeyPattern::new("robot/**")?;
//! let tag = Template::new("lab/{key}", "key", &key)?;
//! let rules = Rules { imports: vec![ImportRule::new(key, tag)], ..Rules::default() };
//! let plain = Plain::open(&node, &PlainConfig::default(), &rules)?; // until it is dropped
//! # Ok(())
//! # }
//! ```
//!
//! A [`Plain`] is a separate Zenoh session in router mode, apart from the sessions of links.
//! Programs connect to it as to any Zenoh router. An [`ImportRule`] publishes samples that arrive
//! on matching keys. An [`ExportRule`] subscribes and puts the samples on keys. A [`QueryRule`]
//! lets programs of one node query those of another.

mod answer;
mod convert;
mod export;
mod gate;
mod history;
mod import;
mod key;
mod loops;
mod mark;
mod plain;
mod query;
mod ros;
mod rule;
mod selector;
mod session;
mod tokens;

pub use key::{KeyError, KeyPattern, Template};
pub use loops::{RuleConflict, check};
pub use plain::{Plain, PlainError};
pub use rule::{
    ExportRule, FreshRule, ImportRule, KEYS_DEFAULT, KEYS_MAX, QUERIES_DEFAULT, QUERIES_MAX,
    QUERY_BYTES_DEFAULT, QUERY_PATIENCE_DEFAULT, QUERY_TAG_DEFAULT, QueryRule, RULES_MAX, Rules,
};
pub use session::{EndpointError, MESSAGE_BYTES_MAX, PlainConfig, open_session};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, poisoned or not. No state in this crate is inconsistent after a panic, because no
/// change takes two steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
