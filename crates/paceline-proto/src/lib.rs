//! The pure parts of Paceline and the wire between them.
//!
//! Three values, each `&mut self` with `now` as an argument, inputs in, outputs and the next wake-up
//! out. They know no clock, socket or thread; the shell joins them by rings and threads, the
//! simulator (`paceline-sim`) by plain queues in virtual time, and both run the same tests.
//!
//! * [`ingress::Ingress`]: one source's samples, picked for each stream by its rate.
//! * [`link::Link`]: one directed way out of a node: queues, schedule, segments, credit.
//! * [`control::Control`]: who publishes and who wants what, and the streams that follow.
//!
//! [`pull`] is what holders of past samples keep, and how they are found.
//!
//! [`receive::Receiver`] is the other end of a link; [`wire`] is what passes between the two.

pub mod control;
pub mod form;
pub mod guard;
pub mod ids;
pub mod ingress;
pub mod link;
pub mod pull;
pub mod reason;
pub mod receive;
pub mod retransmit;
pub mod sample;
pub mod tag;
pub mod temporal;
pub mod text;
pub mod video;
pub mod wire;

pub use form::{Form, Proxy, Rate, Size};
pub use ids::{NodeId, PublisherId, SubscriptionId};
pub use reason::{DropReason, Drops, Excess, StreamAges, StreamCounters};
pub use retransmit::Retransmit;
pub use sample::{ATTACHMENT_BYTES_MAX, Encoding, Kind, Sample, Timestamp};
pub use tag::{Pattern, Tag, TagError};
pub use temporal::TemporalScaler;
pub use video::{DecodeGate, Thinned, Thinner};
