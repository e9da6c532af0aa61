//! Real-time publish/subscribe: each subscriber receives every stream at the rate, size and
//! deadline that it requests.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = paceline::Node::open()?; // joins this host's node, or becomes it
//! let mut camera = node.publisher("robot/camera").hz(30.0).declare()?;
//! let mut pictures =
//!     node.subscriber("robot/**").max_hz(10.0).within(Duration::from_millis(200)).declare()?;
//! camera.put(vec![0; 1_000])?;
//! let sample = pictures.recv()?;
//! println!("{} {} {:?}", sample.tag, sample.seq, sample.age);
//! # Ok(())
//! # }
//! ```
//!
//! The central values are [`Publisher`], [`SubscriberBuilder`], [`Sample`] and [`SubscriberEvent`]. A [`Node`]
//! is one Paceline engine, embedded in a process or run as a daemon. A [`Publisher`] does not know its
//! subscribers. Each [`Subscriber`] requests its own rate, size, delay bound and
//! loss tolerance; the links on the path schedule samples by these requests.
//!
//! # Overview
//!
//! - [`Node`] opens the engine and its links; [`NodeBuilder`] and [`LinkConfig`] configure it.
//! - [`Node::publisher`] and [`Node::subscriber`] declare the two ends of a tag.
//! - [`Subscriber::change`] changes a running subscription.
//! - [`Publisher::feedback`] and [`Publisher::watch`] report delivery to the publisher.
//! - [`Node::buffer`] and [`Node::pull`] store past samples and fetch them on demand.
//! - [`Node::status`] reads the counters of every reachable node.
//!
//! The modules hold the types of these calls: [`contract`] requests, grants and refusals, [`status`]
//! counters and identifiers, [`network`] the topology, [`class`] the sharing of links, [`pull`] past samples, and [`delivery`] delivery by time.
//! [`world`] shares objects instead of samples.
//!
//! Invariant: a contract is in force only after every node of its path has granted it. Every queue is bounded,
//! and every sample is delivered or counted with exactly one [drop reason](status::DropReason).
//!
//! Builders take plain values and check all of them at the end, in `declare`, `open` or `run`. The
//! error names the first wrong value and its allowed range.
//!
//! Calls with the suffix `_async` are asynchronous and work on any runtime. An [`Arrival`] adds a
//! publisher or subscriber to another event loop.

mod access;
mod address;
mod arrival;
pub mod attach;
mod buffer;
mod change;
mod check;
pub mod class;
mod config;
pub mod contract;
pub mod delivery;
mod error;
mod event;
mod feedback;
mod history;
mod identity;
mod kept;
mod label;
mod limit;
mod limits;
mod multicast;
pub mod network;
mod node;
mod passages;
mod proxy;
mod publisher;
pub mod pull;
mod put;
mod shell;
pub mod status;
mod subscriber;
mod summary;
pub mod time;
mod view;
pub mod world;

#[doc(hidden)]
pub use access::{PolicySummary, check_policy};
#[doc(hidden)]
pub use address::resolve_address;
pub use arrival::Arrival;
pub use config::{LinkConfig, NodeBuilder, is_local_endpoint};
pub use error::{ChangeError, OpenError, PublishError, RecvError, SubscribeError};
pub use event::{PublisherEvent, SubscriberEvent};
pub use feedback::FeedbackWatch;
#[doc(hidden)]
pub use identity::certificate_end;
#[doc(hidden)]
pub use limit::{LogLimit, Suppressed};
pub use multicast::MulticastRange;
pub use node::Node;
pub use paceline_node::Sample;
#[doc(inline)]
pub use paceline_proto::capacity::{CapacityState, LinkCapacity, LinkCapacityError};
pub use paceline_proto::medium::Medium;
#[doc(hidden)]
pub use paceline_proto::text;
#[doc(inline)]
pub use paceline_proto::{Encoding, Kind, Pattern, Size, Tag, TagError, Timestamp};
pub use paceline_sched::{Capacity, Late, LossTolerance};
pub use publisher::{Publisher, PublisherBuilder};
pub use put::{PutOptions, PutReport};
#[doc(hidden)]
pub use subscriber::{Subscriber, SubscriberBuilder, Subscription};
pub use view::View;
