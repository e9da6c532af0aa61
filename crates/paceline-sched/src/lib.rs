//! Real-time packet scheduling as pure functions of time.
//!
//! The central value is [`Discipline`], the scheduler of one link. Streams queue their samples elsewhere; the first
//! sample of each stream, its head, competes here. The owner announces heads, drains the misses, picks a stream, and
//! reports the service:
//!
//! ```
//! use paceline_sched::discipline::{Eligibility, Head, StreamIndex};
//! use paceline_sched::{Contract, Discipline, Duration, Instant, Policy, Scheduler};
//!
//! let (steer, camera) = (StreamIndex(0), StreamIndex(1));
//! let mut link = Discipline::new(Policy::Vds, Eligibility::OncePerPeriod);
//! link.join(steer, Some(Contract::every(Duration::from_millis(20)).unwrap()));
//! link.join(camera, None); // best effort
//!
//! let mut now = Instant::from_millis(1_000);
//! let transmission = Duration::from_millis(5);
//! link.handle_head(camera, Head::whole(now, transmission, 1_000));
//! link.handle_head(steer, Head::whole(now, transmission, 1_000));
//!
//! let mut order = Vec::new();
//! loop {
//!     while let Some(miss) = link.poll_missed(now) {
//!         unreachable!("{miss:?}"); // the owner drops the sample and announces the next head
//!     }
//!     let Some(stream) = link.pick(now) else { break };
//!     now = now + transmission; // the owner sends the head
//!     assert!(link.handle_served(stream, 1_000, now).on_time);
//!     order.push(stream);
//! }
//! assert_eq!(order, [steer, camera]); // the contract precedes best effort
//! ```
//!
//! Invariant: each sample under a contract is counted once, as in time or as missed, and equal inputs give equal
//! outputs. Nothing in this crate reads a clock, starts a thread or opens a file. Every input carries the instant at
//! which it happens, and every answer states when the caller must call again. The scheduling path uses integers only.
//!
//! * [`time`]: instants and durations in nanoseconds.
//! * [`units`]: durations, sizes and rates as text with a unit.
//! * [`capacity`]: the rate of a link, and the transmission time of a frame on it.
//! * [`contract`]: the contract of a stream on a link: period, deadline, loss tolerance.
//! * [`curve`]: service curves and the test whether a link can keep them.
//! * [`hfsc`]: a hierarchy of classes that share a link by service curves.
//! * [`discipline`]: the packet scheduling disciplines, behind one trait and one enum.
//! * [`police`]: policers: leaky bucket, jumping window, moving window, dual bucket.
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
pub mod units;
mod wide;

pub use capacity::Capacity;
pub use contract::{Contract, ContractError, Late, LossTolerance};
pub use curve::Curve;
pub use discipline::{Discipline, Policy, Scheduler};
pub use hfsc::Hfsc;
pub use time::{Duration, Instant};
