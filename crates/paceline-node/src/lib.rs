//! The pure parts of a node above its links, and a whole node as one value.
//!
//! The central value is [`Node`]: a node without threads, sockets and clocks, which a program steps in its own loop. The simulator runs
//! networks of them, and [`testkit`] does so for the tests of programs. A live node has the same parts on threads of their own:
//!
//! - [`ArrivingStreams`](arrive::ArrivingStreams) decides from whom samples are accepted, and which of them wait.
//! - [`Installer`](install::Installer) decides which streams, subscriptions and scalers take them.
//! - [`Delivery`](deliver::Delivery), the end of one subscription, decides on the order, the lateness, the release by time and the
//!   drops of samples. It takes the present time as an argument, and returns the samples that are due.
//!
//! A program that receives samples by other means can step a delivery by itself:
//!
//! ```
//! use paceline_node::deliver::{Delivery, DeliveryFate, Origin};
//! use paceline_proto::control::SubscriptionSpec;
//! use paceline_proto::{NodeId, Pattern, PublisherId, RawSample, Tag};
//! use paceline_sched::{Duration, Instant, Late};
//!
//! let (tag, publisher) = (Tag::new("robot/pose").unwrap(), PublisherId { node: NodeId(1), index: 0 });
//! let mut spec = SubscriptionSpec::all_of(Pattern::new("robot/*").unwrap());
//! spec.within = Some(Duration::from_millis(20));
//! let mut delivery = Delivery::queued(&spec, 8);
//!
//! let published_at = Instant::from_millis(1_000);
//! let sample = RawSample { published_at, ..RawSample::default() };
//! let from = Origin { tag: &tag, publisher, late: Late::Send };
//! let arrives = Instant::from_millis(1_004);
//! assert!(matches!(delivery.handle_sample(arrives, &from, sample), DeliveryFate::Queued));
//!
//! // The application takes it 30 ms after publish: it was in time at its arrival, and is late all the same.
//! let read = delivery.read(Instant::from_millis(1_030)).unwrap();
//! assert!(read.sample.late);
//! assert_eq!((delivery.counts().late, delivery.counts().overdue), (0, 1));
//! ```
//!
//! Invariant: a sample that was handled is delivered, waits, is counted with one [`DropReason`](paceline_proto::DropReason), or
//! is a copy of one of these.

pub mod arrive;
pub mod capacity;
pub mod deliver;
pub mod install;
mod messages;
mod node;
mod sample;
pub mod status;
pub mod testkit;

pub use messages::MessageQueue;
pub use node::{
    ArrivalAccount, ClosedStream, InlineScaler, InlineScalers, NewSample, Node, NodeAccounts,
    NodeLink, NodeOutput, STREAM_QUEUE_MAX, ScaleJob, StreamQueue, SubscriptionAccount, WakeReason,
    Wakeup,
};
pub use sample::{Actuation, Sample};
