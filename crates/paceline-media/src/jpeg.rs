//! One JPEG picture: its size, its pixels, and back.
//!
//! Decodes 8-bit baseline and progressive pictures, grey, YCbCr and RGB with chroma
//! subsampled by 1, 2 or 4 each way, CMYK and YCCK without subsampling. Encodes baseline YCbCr 4:2:0 with full-range BT.601, as JFIF asks.

mod decode;
mod encode;

pub use decode::{decode, dimensions};
pub use encode::encode;

pub(crate) use decode::{Samples, decode_samples, to_i420};
pub(crate) use encode::{check_quality, encode_samples};

#[cfg(test)]
mod tests;
