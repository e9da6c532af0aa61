//! Time with a bound on its error.
//!
//! [`Node::clock`](crate::Node::clock) returns the clock of a node. It follows the NTP servers that
//! [`NodeBuilder::clock`](crate::NodeBuilder::clock) names, else the clock of this host's node, and is unsynchronised
//! without either. Samples carry its time and its bound as their [`Timestamp`](crate::Timestamp).
//!
//! ```no_run
//! use paceline::time::{ClockConfig, definitely_before};
//! use std::time::Duration;
//!
//! let servers = ClockConfig::new().server("ntp1.example:123").server("ntp2.example:123");
//! let node = paceline::Node::builder().clock(servers).open()?;
//! let clock = node.clock();
//! let reading = clock.now();
//! println!("{} to {}, {}", reading.bounds.earliest, reading.bounds.latest, reading.status);
//!
//! // Strictly increasing.
//! let (first, second) = (clock.stamp(), clock.stamp());
//! assert!(first.nanos < second.nanos);
//!
//! // Commit-wait: continue only when every clock has passed this time.
//! let is_past = clock.wait_until_past(second.bounds.latest, Duration::from_millis(500));
//! println!("{is_past}, {}", definitely_before(first.bounds, clock.now().bounds));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod config;
pub(crate) mod handle;
pub(crate) mod host;

pub use config::ClockConfig;
pub use handle::{Clock, bounds, definitely_before};
pub use paceline_node::status::{ClockReport, SourceKind, SourceReport, TimeService};
#[doc(inline)]
pub use paceline_time::clock::page::{ClockReading, ClockStatus};
#[doc(inline)]
pub use paceline_time::clock::service::SourcePart;
#[doc(inline)]
pub use paceline_time::{TimeBounds, TimeOrder};
