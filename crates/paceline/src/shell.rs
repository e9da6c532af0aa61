//! The I/O shell around the deterministic core: threads, rings, sockets and clocks.
//!
//! ```text
//! Publisher::put ── Ingress ─┬─ ring ──► egress thread (one per link): Link ──► transport
//! transport ── Receiver ── Ingress ─┤
//!                                   ├─ scaling pool ── ring / sink
//!                                   └─ sink: a subscriber's queue or callback
//! engine thread (one per node): Control, which installs all of the above
//! ```

pub(crate) mod clock;
pub(crate) mod clockwork;
pub(crate) mod command;
pub(crate) mod depth;
pub(crate) mod drops;
pub(crate) mod egress;
pub(crate) mod engine;
pub(crate) mod epochs;
pub(crate) mod events;
pub(crate) mod gate;
pub(crate) mod guards;
pub(crate) mod handle;
pub(crate) mod held;
pub(crate) mod host;
mod latch;
pub(crate) mod mailbox;
mod measured;
pub(crate) mod opening;
pub(crate) mod pacer;
mod passages;
pub(crate) mod port;
pub(crate) mod pull;
pub(crate) mod realtime;
pub(crate) mod rx;
pub(crate) mod sink;
pub(crate) mod source;
mod stalls;
pub(crate) mod transport;
pub(crate) mod vitals;
mod waits;
pub(crate) mod wake;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex and ignores poisoning: the protected values are consistent after every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
