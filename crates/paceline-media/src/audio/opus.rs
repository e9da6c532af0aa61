//! Opus (RFC 6716): the format of coded sound, its encoder and its decoder.

#[cfg(feature = "opus")]
mod codec;
#[cfg(not(feature = "opus"))]
#[path = "opus/no_codec.rs"]
mod codec;
mod decode;
mod encode;
mod format;
mod packet;

pub use decode::OpusDecoder;
pub use encode::OpusEncoder;
pub use format::{OPUS_BITS_MAX, OPUS_BITS_MIN, OPUS_RATES, OpusFormat};
pub use packet::opus_micros;

/// The delay of the encoder in microseconds, in addition to the duration of a packet.
pub const OPUS_LOOK_AHEAD_US: u32 = 6_500;

#[cfg(test)]
#[cfg(feature = "opus")]
mod tests;
