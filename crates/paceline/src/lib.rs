//! Real-time publish/subscribe: each subscriber receives every stream at the rate, size and
//! deadline that it requests.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = paceline::Node::open()?; // joins this host's node, or becomes it
//! let mut camera = node.publisher("robot/camera")?.hz(30.0)?.declare()?;
//! let mut pictures =
//!     node.subscriber("robot/**")?.max_hz(10.0)?.within(Duration::from_millis(200))?.declare()?;
//! camera.put(vec![0; 1_000])?;
//! let sample = pictures.recv()?;
//! println!("{} {} {:?}", sample.tag, sample.seq, sample.age);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Node`] is one Paceline engine, embedded in a process or run as a daemon. A [`Publisher`]
//! does not know its subscribers. Each [`Subscriber`] requests its own rate, size, delay bound and
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
//! Calls with the suffix `_async` are asynchronous and work on any runtime. An [`Arrival`] adds a
//! publisher or subscriber to another event loop.

mod arrival;
mod buffer;
mod change;
mod check;
mod config;
mod error;
mod feedback;
mod limit;
mod node;
mod passages;
mod prospect;
mod publisher;
mod pull;
mod shell;
mod source;
mod status;
mod subscriber;
mod view;

pub use arrival::Arrival;
pub use buffer::{Buffer, BufferBuilder, History};
pub use change::SubscriptionView;
pub use config::{LinkConfig, NodeBuilder};
pub use error::{
    CapacityError, ChangeError, ClassesError, Contradiction, OpenError, PublishError, RecvError,
    SubscribeError,
};
pub use feedback::{Feedback, FeedbackWatch, Measured, PublisherEvent};
#[doc(hidden)]
pub use limit::{LogLimit, Suppressed};
pub use node::{LINKS_MAX, Node};
pub use paceline_proto::control::{
    ChangeOutcome, Grant, GrantedHop, ProcessorUse, Refusal, RefusalReason, Unpromised,
};
pub use paceline_proto::control::{CpuBudget, CpuCost, CpuPoint, CpuTable, CpuTableError};
pub use paceline_proto::form::Audio;
pub use paceline_proto::guard::Flood;
pub use paceline_proto::link::{
    ClassError, ClassPolice, ClassTree, ClassView as ClassStatus, LinkClass, Match, MendCounters,
    PASSAGES_MAX, Passage,
};
pub use paceline_proto::pull::{Limits, LimitsError, SelectionError};
pub use paceline_proto::text;
pub use paceline_proto::wire::SAMPLE_BYTES_MAX;
pub use paceline_proto::{
    ATTACHMENT_BYTES_MAX, DropReason, Drops, Encoding, Excess, Form, Kind, NodeId, Pattern, Proxy,
    PublisherId, Rate, Retransmit, Size, StreamAges, StreamCounters, SubscriptionId, Tag, TagError,
    Timestamp,
};
pub use paceline_sched::curve::{Curve, CurveError};
pub use paceline_sched::hfsc::Curves;
pub use paceline_sched::{Capacity, Late, LossTolerance, Policy};
pub use passages::{NodePassages, StreamPassages};
pub use prospect::Prospect;
pub use publisher::{Beside, Publisher, PublisherBuilder, Put};
pub use pull::{Missing, MissingReason, PullBuilder, PullError, PullNode, PullSummary, Pulled};
pub use shell::host::default_dir as default_runtime_dir;
pub use source::{HopView, SourceView, Taken};
pub use status::{
    BufferStatus, LinkStatus, MutedStatus, NodeStatus, PublisherStatus, SentTo, StalledThread,
    StreamContract, StreamStatus, SubscriptionStatus,
};
pub use subscriber::{Delivery, Subscriber, SubscriberBuilder, SubscriberEvent, Subscription};
pub use view::View;
