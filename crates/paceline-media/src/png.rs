//! One PNG picture: its size, its pixels, and back.
//!
//! Decodes every kind of PNG: grey, RGB and palette, 1 to 16 bits per sample, with and without
//! alpha, interlaced or not; of an animated one the default picture. [`decode`] gives 8 bits and
//! composites alpha over black, since neither of its formats has an alpha channel.
//!
//! [`crate::Scaler`] keeps what the picture is made of: 16 bits stay 16 bits, grey stays grey and
//! an alpha channel stays one, weighting its colours while they are averaged; fewer than 8 bits
//! become 8, and a palette becomes the colours it stands for. Text, colour profiles and
//! animations are left out.
//!
//! A picture is refused before memory is reserved if its size is out of range, if its pixels
//! would take more than 256 MiB, or if the payload is too short to hold it even at the best
//! ratio of its compression (1032 to 1).

mod decode;
mod encode;
mod header;

pub use decode::{decode, dimensions};
pub use encode::encode;

pub(crate) use decode::decode_samples;
pub(crate) use encode::encode_samples;

/// What the samples of a decoded picture are; those of 16 bits have the high byte first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Samples {
    /// How many samples a pixel has, and what they mean.
    pub(crate) colour: Colour,
    /// Whether each has 16 bits instead of 8.
    pub(crate) wide: bool,
}

impl Samples {
    /// Bytes per pixel: 1 to 8.
    pub(crate) fn per_pixel(self) -> usize {
        self.colour.channels() * if self.wide { 2 } else { 1 }
    }
}

/// The channels of a decoded picture: a palette has been replaced by its colours.
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
    /// Samples per pixel.
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
