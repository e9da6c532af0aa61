//! Encoding of samples as PNG.

use ::png::chunk::ChunkType;
use ::png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

use super::header::EXIF;
use super::{Colour, Samples};
use crate::error::MediaError;
use crate::exif::Orientation;
use crate::picture::Picture;
use crate::size::Size;

/// Encodes an uncompressed picture as PNG with 8 bits per sample, RGB.
///
/// Lossless for RGB; I420 is converted with full-range BT.601, as in JPEG. Compression is tuned for
/// speed, so a picture may be larger than with slower compression.
///
/// # Errors
/// [`MediaError::PngEncode`] if the encoder rejects the picture, which no picture is known to cause.
pub fn encode(picture: &Picture<'_>) -> Result<Vec<u8>, MediaError> {
    let rgb = picture.to_rgb8();
    let kind = Samples { colour: Colour::Rgb, wide: false };
    encode_samples(picture.size(), kind, rgb.bytes(), (Effort::Fast, None))
}

/// The time that compression may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As little as possible.
    Fast,
    /// Several times that, for fewer bytes.
    Best,
}

/// Encodes interleaved samples.
pub(crate) fn encode_samples(
    size: Size,
    kind: Samples,
    samples: &[u8],
    (effort, orientation): (Effort, Option<Orientation>),
) -> Result<Vec<u8>, MediaError> {
    let refused = |error: EncodingError| MediaError::PngEncode { size, reason: error.to_string() };
    // About half of the samples; this estimate avoids most reallocations.
    let mut out = Vec::with_capacity(samples.len() / 2 + 1024);
    let mut encoder = Encoder::new(&mut out, size.width, size.height);
    encoder.set_color(match kind.colour {
        Colour::Grey => ColorType::Grayscale,
        Colour::GreyAlpha => ColorType::GrayscaleAlpha,
        Colour::Rgb => ColorType::Rgb,
        Colour::Rgba => ColorType::Rgba,
    });
    encoder.set_depth(if kind.wide { BitDepth::Sixteen } else { BitDepth::Eight });
    encoder.set_compression(match effort {
        Effort::Fast => Compression::Fast,
        Effort::Best => Compression::Balanced,
    });
    let mut writer = encoder.write_header().map_err(refused)?;
    if let Some(orientation) = orientation {
        writer.write_chunk(ChunkType(EXIF), &orientation.tiff()).map_err(refused)?;
    }
    writer.write_image_data(samples).map_err(refused)?;
    writer.finish().map_err(refused)?;
    Ok(out)
}
