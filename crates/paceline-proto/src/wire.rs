//! The wire format of a link (docs/internals/wire.md).
//!
//! Every parser here is strict and bounded. An unknown value is an error that names the field, and no length
//! from the wire is trusted before its bytes have been seen.

pub mod ack;
pub mod codec;
pub mod frame;
pub(crate) mod record;
pub mod segment;

pub use codec::{Reader, WireError, Writer};

/// The version of the wire format that this node speaks; the first byte of every frame.
pub const VERSION: u8 = 7;

/// The maximum value of a counter on the wire, for frames, samples and control messages. It is half the range
/// of 64 bits, so additions to a received number cannot overflow.
pub const NUMBER_MAX: u64 = u64::MAX / 2;

/// The maximum distance of a sample's number from the next expected one on its stream. A window of frames
/// contains fewer samples, so a larger step is an error of the sender and not a loss of that many samples.
pub const NUMBER_STEP_MAX: u64 = 1 << 20;

/// The maximum number of streams on a link. Streams have numbers on the wire from their slots below it.
pub const STREAMS_MAX: u32 = 4_096;

/// The size of the largest sample that a node reassembles, in bytes.
pub const SAMPLE_BYTES_MAX: usize = 64 << 20;
