//! The platform-independent protocol core of Paceline: pure state machines and their wire format.
//!
//! The three state machines take `&mut self` and the current time `now`. Each call takes inputs and returns
//! outputs and the next wake-up. None of them uses a clock, socket or thread. The shell connects them with
//! rings and threads; the simulator (`paceline-sim`) connects them with plain queues in virtual time. Both
//! run the same tests.
//!
//! * [`ingress::Ingress`]: selects one source's samples for each stream, by the stream's rate.
//! * [`link::Link`]: the sending end of a directed link: queues, schedule, segments, credit.
//! * [`control::Control`]: the publishers and subscriptions of the network, and the streams that result.
//!
//! [`Control`](control::Control) decides on the streams of a node. Two nodes that exchange its messages:
//!
//! ```
//! use paceline_proto::control::{Control, ControlOutput, HopInfo, PublisherSpec, SubscriptionSpec};
//! use paceline_proto::{NodeId, Pattern, Tag};
//! use paceline_sched::Instant;
//!
//! let (now, ids) = (Instant::from_millis(1), [NodeId(1), NodeId(2)]);
//! let mut nodes = [Control::new(ids[0], "robot"), Control::new(ids[1], "operator")];
//! for (node, other) in [(0, 1), (1, 0)] {
//!     nodes[node].handle_hop_up(now, ids[other], HopInfo::new("radio".to_owned(), None));
//! }
//! nodes[0].publish(now, PublisherSpec::new(Tag::new("robot/pose").unwrap()));
//! nodes[1].subscribe(now, SubscriptionSpec::all_of(Pattern::new("robot/**").unwrap()));
//!
//! let mut streams = 0;
//! loop {
//!     let before = streams;
//!     let mut sent = 0;
//!     for (node, other) in [(0, 1), (1, 0)] {
//!         while let Some(output) = nodes[node].poll_output() {
//!             match output {
//!                 ControlOutput::Send { message, .. } => {
//!                     nodes[other].handle_message(now, ids[node], message).unwrap();
//!                     sent += 1;
//!                 }
//!                 ControlOutput::Install { outputs, .. } => streams += outputs.len(),
//!                 _ => {} // events for publishers and subscribers
//!             }
//!         }
//!     }
//!     if sent == 0 && streams == before {
//!         break; // call handle_timeout when the instant of poll_timeout has passed
//!     }
//! }
//! assert!(streams >= 2); // to the neighbour on one node, to the subscription on the other
//! ```
//!
//! [`link`] has the run loop of a link.
//!
//! Invariant: every sample that is offered to a stream is sent, waits, or has exactly one [`DropReason`], and every
//! queue and table is bounded. The three state machines do not depend on each other. They share [`plan`], the streams
//! of a node, and the budget and the classes of a link, which admission promises and the link keeps.
//!
//! [`rights`] are the rules that a node checks before it carries a stream or answers a request.
//!
//! [`pull`] implements buffers of past samples and their discovery.
//!
//! [`receive::Receiver`] is the receiving end of a link, within the [`memory`] of its node; [`wire`] is the format of the data between both
//! ends.

pub mod address;
mod bits;
mod budget;
pub mod capacity;
mod capture;
mod carrier;
mod classes;
pub mod control;
pub mod entry;
mod envelope;
pub mod form;
pub mod guard;
pub mod ids;
pub mod ingress;
pub mod link;
pub mod medium;
pub mod memory;
pub mod plan;
mod probes;
pub mod pull;
mod rate;
pub mod reason;
pub mod receive;
pub mod retransmit;
pub mod rights;
pub mod sample;
mod spacing;
pub mod tag;
pub mod temporal;
pub mod text;
mod topic;
pub mod video;
pub mod wire;

pub use capture::CaptureGrid;
pub use carrier::Carrier;
pub use envelope::{Envelope, EnvelopeMeter};
pub use form::{Form, Proxy, Rate, Size, Unscalable};
pub use ids::{IdError, NodeId, PublisherId, SubscriptionId};
pub use probes::ProbeInterval;
pub use reason::{DropReason, Drops, Excess, StreamAges, StreamCounters};
pub use retransmit::Retransmit;
pub use sample::{ATTACHMENT_BYTES_MAX, Encoding, Kind, RawSample, Timestamp};
pub use tag::{Pattern, Tag, TagError};
pub use temporal::TemporalScaler;
pub use video::{DecodeGate, Thinned, Thinner};
