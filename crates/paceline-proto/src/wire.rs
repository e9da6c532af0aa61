//! What passes over a link: wire format version 1 (docs/wire.md).
//!
//! Every parser here is strict and bounded: what it does not understand is an error that names the
//! field, and no length from the wire is trusted before the bytes behind it have been seen.

pub mod codec;
pub mod frame;
pub mod segment;

pub use codec::{Reader, WireError, Writer};

/// The version of the wire format that this node speaks; the first byte of every frame.
pub const VERSION: u8 = 2;

/// The highest number that a counter on the wire may have: of a frame, a sample or a control message. It is half the range
/// of 64 bits, so adding to a number that was read cannot overflow.
pub const NUMBER_MAX: u64 = u64::MAX / 2;

/// How far a sample's number may be ahead of the next one that is expected on its stream. A window of frames holds fewer
/// samples, so a larger step is an error of the sender and not that many lost samples.
pub const NUMBER_STEP_MAX: u64 = 1 << 20;

/// The largest sample that a node reassembles, in bytes.
pub const SAMPLE_BYTES_MAX: usize = 64 << 20;
