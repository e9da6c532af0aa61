//! Decoding and encoding of one JPEG picture.
//!
//! Decodes 8-bit baseline and progressive pictures. Grey, YCbCr and RGB may have chroma subsampled by 1,
//! 2 or 4 in each direction; CMYK and YCCK must not be subsampled. Encodes baseline YCbCr 4:2:0 with
//! full-range BT.601, as JFIF requires.

mod decode;
mod encode;
mod short;

pub use decode::{decode, dimensions, is_decodable};
pub use encode::encode;

pub(crate) use decode::{Samples, decode_samples, to_i420, to_ycbcr};
pub(crate) use encode::{
    ORIENTATION_BYTES, Tables, check_quality, encode_samples, insert_orientation,
};

#[cfg(test)]
mod tests;
