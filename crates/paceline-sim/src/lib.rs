//! A simulator of whole networks of Paceline nodes in virtual time: the pure parts, connected by plain
//! queues.
//!
//! The central value is [`World`]: a clock, nodes, and wires between them. Time jumps from one wake-up to the next, so a
//! minute of traffic takes milliseconds, and the same seed gives the same run:
//!
//! ```
//! use paceline_sched::{Capacity, Duration};
//! use paceline_sim::ask::{Ask as _, Declare as _, all, data, payloads};
//! use paceline_sim::{LinkPlan, Net as _, World};
//!
//! let mut world = World::new(1); // the seed
//! let (robot, operator) = (world.add_node("robot"), world.add_node("operator"));
//! let radio = LinkPlan { capacity: Capacity::from_bits_per_s(1_000_000).ok() };
//! world.connect(robot, operator, radio);
//! let mut steer = data("robot/steer").hertz(50);
//! steer.bytes_max = Some(200);
//! let steer = world.publish(robot, steer);
//! let commands = world.subscribe(operator, all("robot/steer").within_ms(20));
//! world.run_for(Duration::from_secs(2)); // the link comes up, and the path grants the contract
//!
//! world.every(steer, Duration::from_millis(20), 500, payloads(200));
//! world.run_for(Duration::from_secs(11));
//! let delivered = world.delivered(commands);
//! assert_eq!(delivered.len(), 500);
//! assert!(delivered.iter().all(|sample| !sample.late));
//! ```
//!
//! Each node is a [`Node`](paceline_node::Node): the parts of a live node without its threads. The world adds clocks, wires
//! and applications, and models instead of the picture scaler.
//!
//! Invariant: after each run the sums agree. Every sample is delivered or has exactly one drop reason, and nothing
//! grows without a bound. [`Net`] is the interface that [`scenarios`] need from a network, so that they run on both a
//! world and live nodes. [`scenario`] reads a network, its load and its faults from a file.

mod ages;
pub mod ask;
mod check;
mod clock;
pub mod cuts;
mod drive;
mod driver;
mod fault;
mod handle;
pub mod impair;
mod ledger;
mod look;
mod net;
mod node;
mod pool;
pub mod promises;
mod queue;
mod random;
pub mod scale;
pub mod scenario;
pub mod scenarios;
mod sink;
pub mod storm;
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
