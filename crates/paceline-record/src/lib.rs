//! Recordings of Paceline in MCAP: what a sample becomes in a file and what a file's messages become again,
//! when they are due in a replay, and what a run is judged by.
//!
//! Bytes in, bytes out. Nothing here reads a clock, opens a file or starts a thread; any bytes may be read as
//! a recording, and what is wrong with them is a [`ReadError`] that names its place.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Body`] | how a payload becomes a message: Foxglove's schemas, JSON, or the bytes as they are |
//! | [`Recording`] | samples and events in, bytes of a file out, always up to a whole chunk |
//! | [`Reader`] | a file's messages one by one, up to where it is whole |
//! | [`Survey`] | what a file holds, by one pass over it |
//! | [`Order`], [`Span`] | messages by their times, and when each is due |
//! | [`Attachments`] | what plain programs attached to samples, beside them |
//! | [`Event`] | what is told on `qos/events` |
//! | [`Judgement`] | what was asked, granted and delivered, by a file alone |

mod attached;
mod body;
mod chunk;
mod event;
mod format;
mod judge;
mod order;
mod protobuf;
mod reader;
mod recording;
mod schema;
mod span;
mod survey;

pub use attached::Attachments;
pub use body::{Body, BodyError, JSON_SCHEMA};
pub use chunk::Compression;
pub use event::{Ages, Asked, Delivered, EVENTS_SCHEMA, EVENTS_TOPIC, Event, Hop, Offer};
pub use judge::{Judgement, StreamJudgement, Verdict};
pub use order::{Order, Ordered};
pub use reader::{Channel, Message, ReadError, Reader};
pub use recording::{About, RecordError, Recording, Sample, ending};
pub use span::{Span, SpanError};
pub use survey::{Lane, Survey};
