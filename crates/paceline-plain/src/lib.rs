//! Plain Zenoh programs, and with them ROS 2 programs over rmw_zenoh, served by a Paceline node: they change
//! nothing, and their data crosses links scheduled, throttled and scaled.
//!
//! A [`Plain`] is a Zenoh session of its own in router mode, apart from the sessions of links. Programs
//! connect to it as to any Zenoh router. An [`ImportRule`] makes what they put on matching keys a publication
//! of the node; an [`ExportRule`] is a subscription whose samples are put on keys for them; a [`QueryRule`] lets
//! programs of one node ask those of another.

mod answer;
mod convert;
mod export;
mod gate;
mod import;
mod key;
mod loops;
mod mark;
mod plain;
mod query;
mod rule;
mod selector;
mod session;
mod tokens;

pub use key::{KeyError, KeyPattern, Template};
pub use loops::{RuleConflict, check};
pub use plain::{Plain, PlainError};
pub use rule::{
    ExportRule, ImportRule, KEYS_DEFAULT, KEYS_MAX, QUERIES_DEFAULT, QUERIES_MAX,
    QUERY_BYTES_DEFAULT, QUERY_PATIENCE_DEFAULT, QUERY_TAG_DEFAULT, QueryRule, RULES_MAX, Rules,
};
pub use session::{EndpointError, MESSAGE_BYTES_MAX, PlainConfig};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a thread that panicked left is as whole as any other: nothing here is changed in two steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
