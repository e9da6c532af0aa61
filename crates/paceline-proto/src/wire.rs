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

/// The largest sample that a node reassembles, in bytes.
pub const SAMPLE_BYTES_MAX: usize = 64 << 20;
