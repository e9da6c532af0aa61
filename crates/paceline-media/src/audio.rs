//! Sound: its formats, WAV files, G.711, Opus, and scaling of rate and channels.
//!
//! A block of sound is a whole number of frames; a frame has one sample per channel, interleaved.
//! [`read_wav`] and [`wav_header`] read and write WAV files. [`AudioScaler`] changes the rate and the
//! channels of a stream of blocks. [`g711`] implements the two codings of telephony, and [`OpusEncoder`] codes
//! blocks to a bit rate.

mod aac;
mod format;
pub mod g711;
mod mix;
mod ogg;
mod opus;
mod resample;
mod samples;
mod scale;
mod wav;

pub use aac::AacFormat;
pub use format::{AudioFormat, CHANNELS_MAX, Coding, RATE_MAX, RATE_MIN};
pub use ogg::OggOpus;
pub use opus::{
    OPUS_BITS_MAX, OPUS_BITS_MIN, OPUS_LOOK_AHEAD_US, OPUS_RATES, OpusDecoder, OpusEncoder,
    OpusFormat, opus_micros,
};
pub use scale::{AudioScaler, BLOCK_MAX};
pub(crate) use wav::{Layout, Lengths, read_format, refuse as wav_error};
pub use wav::{Wav, read_wav, wav_header};

#[cfg(test)]
mod tests;
