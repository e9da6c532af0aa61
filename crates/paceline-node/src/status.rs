//! The status of a node: one set of structs for programs, the wire, JSON, TypeScript and metrics.
//!
//! The central value is [`NodeStatus`]. Its serde form is the document of `paceline ls --json` and of the HTTP API, and
//! compressed it is the answer of a node to another one ([`NodeStatus::to_wire`]). A field has a name and a unit in Rust and in
//! JSON, and its definition is its documentation. Times are in microseconds in JSON; ids, tags and named choices are texts.
//!
//! ```
//! use paceline_node::status::NodeStatus;
//! use paceline_proto::NodeId;
//!
//! let status = NodeStatus { name: "robot".to_owned(), ..NodeStatus::new(NodeId(0xb0b)) };
//! let bytes = status.to_wire();
//! assert_eq!(NodeStatus::from_wire(&bytes), Ok(status));
//! ```
//!
//! Invariant: a status from another node contains [plain text](paceline_proto::text) only, so a program may print it.

mod buffer;
pub mod by_reason;
mod class;
mod clock;
mod counters;
mod form;
mod health;
mod host;
mod link;
mod node;
mod players;
mod publisher;
mod queue;
mod reservation;
mod service;
mod stream;
mod subscription;
mod timed;
mod units;
mod usage;
mod wire;

pub use buffer::BufferStatus;
pub use class::ClassStatus;
pub use clock::{ClockReport, SourceKind, SourceReport, TimeService};
pub use counters::LinkCounters;
pub use form::RequestedForm;
pub use health::{HealthReading, HealthRequest, HealthState, HealthWindow, SubscriptionHealth};
pub use host::ProcessorWait;
pub use link::{LinkStatus, MeasuredCapacity, MediumStatus, MutedStatus, NeighbourStatus, Repairs};
pub use node::{MemoryStatus, NodeStatus, ProcessorStatus, StalledThread, UnreadStatus};
pub use players::PlayersStatus;
pub use publisher::PublisherStatus;
pub use queue::QueueStatus;
pub use reservation::{Reservation, ReservedHop};
pub use service::{NetworkHealth, explain};
pub use stream::{StreamContract, StreamStatus, SummedAges};
pub use subscription::{ElasticStatus, SubscriptionStatus};
pub use timed::{TimedMethod, TimedStatus};
pub use usage::{LinkReading, LinkUse};
pub use wire::StatusError;
