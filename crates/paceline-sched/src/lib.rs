//! Real-time packet scheduling as pure functions of time.
//!
//! Nothing in this crate reads a clock, starts a thread or opens a file. Every input carries the instant
//! at which it happens, and every answer states when the caller must ask again. All arithmetic is on
//! integers, so equal inputs give equal outputs, byte for byte.
//!
//! * [`time`]: instants and durations in nanoseconds.
//! * [`units`]: durations, sizes and rates as text with a unit.
//! * [`capacity`]: the rate of a link, and the transmission time of a frame on it.
//! * [`contract`]: the contract of a stream on a link: period, deadline, loss tolerance.
//! * [`curve`]: service curves and the test whether a link can keep them.
//! * [`hfsc`]: a hierarchy of classes that share a link by service curves.
//! * [`discipline`]: the packet scheduling disciplines, behind one trait and one enum.
//! * [`police`]: policers: leaky bucket, jumping window, moving window, dual bucket.
//! * [`turns`]: the rate of scheduler iterations and the work limit of each.
//! * [`load`]: a load for measuring disciplines.
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
pub mod units;
mod wide;

pub use capacity::Capacity;
pub use contract::{Contract, ContractError, Late, LossTolerance};
pub use curve::Curve;
pub use discipline::{Discipline, Policy, Scheduler};
pub use hfsc::Hfsc;
pub use time::{Duration, Instant};
