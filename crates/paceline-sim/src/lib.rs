//! A simulator of whole networks of Paceline nodes in virtual time: the pure parts, connected by plain
//! queues.
//!
//! A [`World`] has a clock, nodes, and wires between them. Time jumps from one wake-up to the next, so a
//! minute of traffic takes milliseconds, and the same seed gives the same run. Each node connects control,
//! links, receivers, ingress and sinks as the driver shell does. It has queues instead of rings and threads,
//! and a toy instead of the picture scaler.
//!
//! After each run the world checks that the sums agree. Every sample is delivered or has exactly one drop
//! reason, and nothing grows without a bound. [`Net`] is the interface that [`scenarios`] need from a
//! network, so that they run on both a world and live nodes.

mod ages;
mod arrivals;
pub mod ask;
mod check;
mod clock;
pub mod cuts;
mod destination;
mod drive;
mod driver;
mod fault;
mod handle;
pub mod impair;
mod install;
mod ledger;
mod look;
mod lookup;
mod net;
mod node;
mod outlet;
mod pool;
pub mod promises;
mod queue;
mod random;
mod rings;
pub mod scale;
mod scaling;
pub mod scenario;
pub mod scenarios;
mod sink;
pub mod storm;
mod used;
mod video;
mod wire;
mod world;

pub use ages::AgeHistogram;
pub use clock::ClockSpec;
pub use driver::Times;
pub use handle::{LinkPlan, NodeIx, Payload, Pub, Sub};
pub use net::Net;
pub use random::Random;
pub use sink::{Counted, Delivered};
pub use wire::{WireCounters, WireSpec};
pub use world::{LinkIx, World};
