//! Decoding of PNG to samples.

use std::io::{Cursor, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ::png::{
    BitDepth, ColorType, DecodeOptions, Decoder, DecodingError, Limits, Reader, Transformations,
};

use super::header::{Header, corrupt};
use super::{BYTES_MAX, Colour, Samples};
use crate::error::MediaError;
use crate::jpeg::{self, to_i420};
use crate::picture::PictureBuf;
use crate::pixel::PixelFormat;
use crate::size::Size;

/// The largest memory of the decoder in bytes for chunks other than pixels, and for one row.
const CHUNKS_MAX: usize = 4 * 1024 * 1024;

/// Returns the size of a PNG picture from its header.
///
/// Reads 29 bytes and does not allocate. The rest of the picture may still be missing or corrupt.
///
/// # Errors
/// [`MediaError::NotPng`], [`MediaError::PngTruncated`], [`MediaError::PngCorrupt`], or the errors of
/// [`Size::new`] for a size out of range.
pub fn dimensions(payload: &[u8]) -> Result<Size, MediaError> {
    Header::read(payload).map(|header| header.size)
}

/// Decodes a PNG picture to I420 or RGB.
///
/// 16 bits per sample are cut to 8, and alpha is composited over black. I420 is full-range, as in JPEG;
/// a grey picture becomes its luma. Bytes behind the end chunk are ignored. Nothing is allocated before
/// size and payload have been checked; then at most 256 MiB for the pixels, and the result.
///
/// # Errors
/// The errors of [`dimensions`]; [`MediaError::PngTruncated`] if any part is missing;
/// [`MediaError::PngCorrupt`] for damage, which PNG's checksums detect; [`MediaError::PngBytes`] for
/// more than 256 MiB of samples.
pub fn decode(payload: &[u8], format: PixelFormat) -> Result<PictureBuf, MediaError> {
    let mut samples = Vec::new();
    let narrow = Transformations::EXPAND | Transformations::STRIP_16;
    let (size, kind) = decode_guarded(payload, narrow, &mut samples)?;
    let grey = match kind.colour {
        Colour::Grey => true,
        Colour::GreyAlpha => {
            samples = over_black::<2, 1>(&samples);
            true
        }
        Colour::Rgb => false,
        Colour::Rgba => {
            samples = over_black::<4, 3>(&samples);
            false
        }
    };
    match (format, grey) {
        (PixelFormat::I420, true) => to_i420(size, jpeg::Samples::Grey, &mut samples),
        (PixelFormat::I420, false) => to_i420(size, jpeg::Samples::Rgb, &mut samples),
        (PixelFormat::Rgb8, true) => {
            let rgb = samples.iter().flat_map(|&grey| [grey; 3]).collect();
            PictureBuf::new(format, size, rgb)
        }
        (PixelFormat::Rgb8, false) => PictureBuf::new(format, size, samples),
    }
}

/// Decodes into `out`, which is reused, with 8 or 16 bits per sample as stored.
pub(crate) fn decode_samples(
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(Size, Samples), MediaError> {
    decode_guarded(payload, Transformations::EXPAND, out)
}

fn decode_guarded(
    payload: &[u8],
    transform: Transformations,
    out: &mut Vec<u8>,
) -> Result<(Size, Samples), MediaError> {
    let header = Header::read(payload)?;
    header.check_payload(payload.len())?;
    // The decoder is third-party code with input from the network. If a crafted picture triggers a panic
    // in it, that picture must fail and not the process.
    catch_unwind(AssertUnwindSafe(|| decode_checked(payload, header.size, transform, out)))
        .unwrap_or_else(|_| Err(corrupt("the decoder gave up")))
}

/// Decodes a payload whose header has been checked.
fn decode_checked(
    payload: &[u8],
    size: Size,
    transform: Transformations,
    out: &mut Vec<u8>,
) -> Result<(Size, Samples), MediaError> {
    let failed = |error| refused(error, payload.len());
    let mut options = DecodeOptions::default();
    options.set_ignore_adler32(false);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = Decoder::new_with_options(Cursor::new(payload), options);
    decoder.set_limits(Limits { bytes: CHUNKS_MAX });
    decoder.set_transformations(transform);
    let mut reader = decoder.read_info().map_err(failed)?;
    let kind = samples(&reader)?;
    let bytes = size.pixels().saturating_mul(kind.per_pixel() as u64);
    let len = reader.output_buffer_size().filter(|&len| len as u64 == bytes);
    let (Some(len), true) = (len, bytes <= BYTES_MAX) else {
        return Err(MediaError::PngBytes { size, bytes, max: BYTES_MAX });
    };
    // Filled each time, so that damage never reveals samples of an earlier picture.
    out.clear();
    out.resize(len, 0);
    let frame = reader.next_frame(out).map_err(failed)?;
    if (frame.width, frame.height) != (size.width, size.height) {
        return Err(corrupt("its first frame does not cover it"));
    }
    reader.finish().map_err(failed)?;
    Ok((size, kind))
}

/// Returns the kind of samples that the decoder will produce.
fn samples(reader: &Reader<Cursor<&[u8]>>) -> Result<Samples, MediaError> {
    let (colour, depth) = reader.output_color_type();
    let colour = match colour {
        ColorType::Grayscale => Colour::Grey,
        ColorType::GrayscaleAlpha => Colour::GreyAlpha,
        ColorType::Rgb => Colour::Rgb,
        ColorType::Rgba => Colour::Rgba,
        ColorType::Indexed => return Err(corrupt("it has no palette")),
    };
    match depth {
        BitDepth::Eight => Ok(Samples { colour, wide: false }),
        BitDepth::Sixteen => Ok(Samples { colour, wide: true }),
        BitDepth::One | BitDepth::Two | BitDepth::Four => Err(corrupt("its depth is unknown")),
    }
}

fn refused(error: DecodingError, len: usize) -> MediaError {
    match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            MediaError::PngTruncated { len }
        }
        DecodingError::LimitsExceeded => corrupt("a chunk other than the pixels is above 4 MiB"),
        error @ (DecodingError::IoError(_)
        | DecodingError::Format(_)
        | DecodingError::Parameter(_)) => corrupt(&error.to_string()),
    }
}

/// Multiplies each pixel's `TO` colours by the alpha that follows them; `FROM` is `TO` + 1.
fn over_black<const FROM: usize, const TO: usize>(samples: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(samples.len() / FROM * TO);
    for pixel in samples.as_chunks::<FROM>().0 {
        let alpha = u32::from(pixel.last().copied().unwrap_or(u8::MAX));
        out.extend(pixel.iter().take(TO).map(|&colour| {
            let weighted = (u32::from(colour) * alpha + 127) / 255;
            u8::try_from(weighted).unwrap_or(u8::MAX)
        }));
    }
    out
}
