//! Recordings in MCAP: samples to file and back, due times for a replay, and checks of a recorded
//! run.
//!
//! The central values are [`Recording`], which writes a file, and [`McapReader`], which reads one:
//!
//! ```
//! use paceline_record::{About, Compression, McapReader, RecordedSample, Recording};
//!
//! let mut recording = Recording::new(Compression::Lz4, "my program");
//! for seq in 0..3 {
//!     let sample = RecordedSample {
//!         tag: "robot/pose",
//!         publisher: "1/0",
//!         seq,
//!         encoding: "application/json",
//!         captured_ns: 1_000_000_000 + seq,
//!         came_ns: 1_000_500_000 + seq,
//!         payload: b"{\"x\":1}",
//!         attachment: None,
//!     };
//!     recording.sample(&sample, About::default)?;
//! }
//! let file = recording.finish(); // `take` returns the bytes so far, for a file that grows
//!
//! let mut reader = McapReader::new(file.as_slice())?;
//! let mut read = Vec::new();
//! while let Some(message) = reader.next_message()? {
//!     read.push((message.sequence, message.data));
//! }
//! assert_eq!(read.len(), 3);
//! assert_eq!(read[2], (2, b"{\"x\":1}".to_vec()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariant: a payload that a recording contains is read back byte for byte. Any bytes may be read as
//! a recording; invalid ones return a [`ReadError`] with their position. This crate converts bytes to
//! bytes. It reads no clock, opens no file and starts no thread.
//!
//! | item | purpose |
//! |---|---|
//! | [`Body`] | the conversion from payload to message: Foxglove's schemas, JSON, or the bytes unchanged |
//! | [`Recording`] | writes a file from samples and events, chunk by chunk |
//! | [`McapReader`] | reads the messages of a file one by one, up to the last complete record |
//! | [`Survey`] | summarizes a file in one pass |
//! | [`ReplayTimeline`], [`Order`] | the release times of messages, from times that may be wrong |
//! | [`Ordered`], [`ReplaySpan`] | the messages in order of release, and the due time of each |
//! | [`Declared`] | the declaration of a publisher in the metadata of its channel |
//! | [`Attachments`] | the attachments that plain programs added to samples |
//! | [`RecordedEvent`] | the events on `qos/events` |
//! | [`Judgement`] | the check of a run: requested, granted and delivered |
//! | [`RecordedRun`] | the load and the paths of a run, to repeat it under other conditions |

mod attached;
mod body;
mod chunk;
mod declared;
mod event;
mod format;
mod judge;
mod order;
mod protobuf;
mod reader;
mod recording;
mod ros;
mod run;
mod schema;
mod span;
mod survey;
mod timeline;

pub use attached::Attachments;
pub use body::{Body, BodyError, Described, JSON_SCHEMA};
pub use chunk::Compression;
pub use declared::Declared;
pub use event::{
    AgeQuantiles, Asked, DecisionCounts, DeliveryStatistics, EVENTS_SCHEMA, EVENTS_TOPIC,
    RecordedEvent, RecordedHop, RecordedOffer,
};
pub use judge::{DecisionJudgement, Judgement, StreamJudgement, Verdict};
pub use order::Ordered;
pub use reader::{Channel, Declarations, McapReader, Message, ReadError};
pub use recording::{About, RecordError, RecordedSample, Recording, ending};
pub use run::{RecordedRun, RecordedStream};
pub use span::{ReplaySpan, SpanError};
pub use survey::{Lane, Survey};
pub use timeline::{Jump, Jumps, MessageTimes, Order, ReplayTimeline};
