//! Decoding and encoding of one PNG picture.
//!
//! Decodes every kind of PNG: grey, RGB and palette, 1 to 16 bits per sample, with and without alpha,
//! interlaced or not. Of an animated one it decodes the default picture. [`decode`] returns 8 bits and
//! composites alpha over black, since neither of its formats has an alpha channel.
//!
//! [`crate::Scaler`] preserves the kind of picture: 16 bits stay 16 bits, grey stays grey and an alpha
//! channel is kept. Averaging weights colours by alpha. Fewer than 8 bits become 8, and a palette is
//! replaced by its colours. Text, colour profiles and animations are dropped.
//!
//! A picture is rejected before memory is reserved if its size is out of range, or if its pixels would
//! take more than 256 MiB. It is also rejected if the payload is too short even at the best compression
//! ratio (1032 to 1).

mod decode;
mod encode;
mod header;

/// The largest size of decoded samples in bytes: the largest picture in RGBA of 8 bits.
const BYTES_MAX: u64 = 4 * crate::size::PIXELS_MAX;

pub use decode::{decode, dimensions};
pub use encode::encode;

pub(crate) use decode::decode_samples;
pub(crate) use encode::{Effort, encode_samples};
pub use header::is_decodable;
pub(crate) use header::{SIGNATURE, exif};

/// The kind of samples of a decoded picture. Samples of 16 bits are big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Samples {
    /// The channels of a pixel.
    pub(crate) colour: Colour,
    /// True for samples of 16 bits, false for 8 bits.
    pub(crate) wide: bool,
}

impl Samples {
    /// Returns the bytes per pixel: 1 to 8.
    pub(crate) fn per_pixel(self) -> usize {
        self.colour.channels() * if self.wide { 2 } else { 1 }
    }

    /// Converts samples to numbers of 16 bits. Both ranges are full: 255 becomes 65,535.
    pub(crate) fn widen(self, bytes: &[u8], numbers: &mut [u16]) {
        if self.wide {
            for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                *number = u16::from_be_bytes(*bytes);
            }
        } else {
            for (number, byte) in numbers.iter_mut().zip(bytes) {
                *number = u16::from_be_bytes([*byte, *byte]);
            }
        }
    }

    /// Converts numbers of 16 bits to samples, rounding to the nearest: the reverse of `widen`.
    pub(crate) fn narrow(self, numbers: &[u16], bytes: &mut [u8]) {
        if self.wide {
            for (bytes, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
                *bytes = number.to_be_bytes();
            }
        } else {
            for (byte, number) in bytes.iter_mut().zip(numbers) {
                *byte = u8::try_from((u32::from(*number) + 128) / 257).unwrap_or(u8::MAX);
            }
        }
    }
}

/// The channels of a decoded picture. A palette is replaced by its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Grey.
    Grey,
    /// Grey, alpha.
    GreyAlpha,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue, alpha.
    Rgba,
}

impl Colour {
    /// Returns the samples per pixel.
    pub(crate) fn channels(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::GreyAlpha => 2,
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod widths {
    use super::{Colour, Samples};

    #[test]
    fn every_sample_survives_16_bits() {
        for wide in [false, true] {
            let samples = Samples { colour: Colour::GreyAlpha, wide };
            let bytes: Vec<u8> = (0..=u8::MAX).collect();
            let mut numbers = vec![0; bytes.len() / if wide { 2 } else { 1 }];
            samples.widen(&bytes, &mut numbers);
            let mut back = vec![0; bytes.len()];
            samples.narrow(&numbers, &mut back);
            assert_eq!(back, bytes);
        }
    }
}
