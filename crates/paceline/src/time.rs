//! Time with a bound on its error.
//!
//! [`Node::clock`](crate::Node::clock) returns the clock of a node. It follows the NTP servers that
//! [`NodeBuilder::clock`](crate::NodeBuilder::clock) names, else the clock of this host's node, and is unsynchronised
//! without either. Samples carry its time and its bound as their [`Timestamp`](crate::Timestamp).
//!
//! ```no_run
//! use paceline::time::{ClockConfig, definitely_before};
//!
//! let servers = ClockConfig::new().server("ntp1.example:123").server("ntp2.example:123");
//! let node = paceline::Node::builder().clock(servers).open()?;
//! let reading = node.clock().now();
//! println!("{}: {} ns ± {} ns", reading.status, reading.nanos, reading.error());
//! let (first, second) = (node.clock().stamp(), node.clock().stamp());
//! assert!(!definitely_before(second.bounds, first.bounds));
//! # Ok::<(), paceline::OpenError>(())
//! ```

mod config;
mod handle;
pub(crate) mod host;
mod report;

pub use config::ClockConfig;
pub use handle::{Clock, bounds, definitely_before};
#[doc(inline)]
pub use paceline_time::clock::page::{ClockReading, ClockStatus};
#[doc(inline)]
pub use paceline_time::clock::service::SourcePart;
#[doc(inline)]
pub use paceline_time::{TimeBounds, TimeOrder};
pub use report::{ClockReport, SourceReport};
