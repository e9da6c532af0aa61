//! Real-time packet scheduling in pure arithmetic on `now`.
//!
//! Nothing here reads a clock, allocates a thread or opens a file: every input takes the instant at
//! which it happens, and every answer says when to ask again. Integers only, so the same inputs give
//! the same outputs, byte for byte.
//!
//! * [`time`]: instants and durations in nanoseconds.
//! * [`capacity`]: what a link can carry, and how long a frame keeps it busy.
//! * [`contract`]: what a stream was promised: period, deadline, loss tolerance.
//! * [`curve`]: service curves, and whether a link can keep them.
//! * [`hfsc`]: a tree of classes that shares a link by such curves.
//! * [`discipline`]: which stream leaves next: every discipline behind one trait and one enum.
//! * [`police`]: what a stream may send: leaky bucket, jumping, moving window, dual bucket.
//! * [`turns`]: how often a scheduler runs, and how much it does each time.
//! * [`load`]: a load to measure disciplines under.
//! * [`timeline`]: a link in virtual time, decision by decision.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod capacity;
pub mod contract;
pub mod curve;
pub mod discipline;
mod fetch;
pub mod hfsc;
pub mod load;
pub mod police;
pub mod time;
pub mod timeline;
mod tournament;
pub mod turns;
mod wide;

pub use capacity::Capacity;
pub use contract::{Contract, ContractError, Late, LossTolerance};
pub use curve::Curve;
pub use discipline::{Discipline, Policy, Scheduler};
pub use hfsc::Hfsc;
pub use time::{Duration, Instant};
