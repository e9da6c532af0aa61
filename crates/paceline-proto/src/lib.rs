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
//! These three do not depend on each other. They share [`plan`], the streams of a node, and the budget and the
//! classes of a link, which admission promises and the link keeps.
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
pub use ids::{NodeId, PublisherId, SubscriptionId};
pub use probes::ProbeInterval;
pub use reason::{DropReason, Drops, Excess, StreamAges, StreamCounters};
pub use retransmit::Retransmit;
pub use sample::{ATTACHMENT_BYTES_MAX, Encoding, Kind, RawSample, Timestamp};
pub use tag::{Pattern, Tag, TagError};
pub use temporal::TemporalScaler;
pub use video::{DecodeGate, Thinned, Thinner};
