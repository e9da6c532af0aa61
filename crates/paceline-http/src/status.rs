//! The JSON form of the status of nodes, as `paceline ls --json` prints it and the API returns it. The fields are
//! described in docs/reference/json.md.
//!
//! ```
//! use paceline::Node;
//! use paceline_http::status::StatusReader;
//! use std::time::Duration;
//!
//! let node = Node::builder().isolated().open()?;
//! let camera = node.publisher("robot/camera").declare()?;
//! let status = StatusReader::new(Duration::from_millis(100)).read(&node);
//! assert_eq!(status.nodes[0].publishers[0].tag, "robot/camera");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod document;
mod neighbour;
mod reader;
mod reservation;
mod timed;

#[cfg(test)]
pub(crate) use document::tests::example::status as test_status;
pub use document::{
    AgesJson, BufferJson, ClassJson, ClosedJson, ContractJson, FormJson, LinkJson, MutedJson,
    NodeJson, PublisherJson, RepairedJson, StalledJson, StatusJson, StreamJson, SubscriptionJson,
    UnreadJson, bits_per_s,
};
pub use neighbour::{MemoryJson, NeighbourJson};
pub use reader::StatusReader;
pub use reservation::{HopJson, ProcessorJson, QueueJson, ReservationJson};
pub use timed::{ClockJson, TimedJson};
