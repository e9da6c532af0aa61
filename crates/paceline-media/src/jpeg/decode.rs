//! Decoding of JPEG to samples.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jpeg_encoder::rgb_to_ycbcr;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::error::{MediaError, excerpt};
use crate::markers::{frame_header, picture_end, scans};
use crate::picture::{PictureBuf, area};
use crate::pixel::PixelFormat;
use crate::size::Size;

/// The largest number of scans of a progressive picture; more would be a denial-of-service attack.
const SCANS_MAX: usize = 64;

/// The meaning of the interleaved samples of a decoded picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    /// One byte: grey.
    Grey,
    /// Three bytes: luma, Cb, Cr at full size.
    Ycbcr,
    /// Three bytes: red, green, blue.
    Rgb,
}

impl Samples {
    /// Returns the bytes per pixel.
    pub(crate) fn per_pixel(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Ycbcr | Self::Rgb => 3,
        }
    }
}

/// Returns the size of a JPEG picture from its headers.
///
/// Reads up to the frame header, at most the first MiB, and does not allocate. The rest of the picture
/// may still be missing or corrupt.
///
/// # Errors
/// [`MediaError::NotJpeg`], [`MediaError::JpegTruncated`], [`MediaError::JpegCorrupt`],
/// [`MediaError::JpegUnsupported`], or the errors of [`Size::new`] for a size out of range.
pub fn dimensions(payload: &[u8]) -> Result<Size, MediaError> {
    frame_header(payload, 0).map(|header| header.size)
}

/// Returns false if a picture is valid and yet of a kind that is not decoded and so not scaled here; `None` if its
/// headers cannot be read.
///
/// Not decoded: arithmetic and lossless coding, other than 8 bits, 2 components, unusual subsampling, and more than
/// 64 scans.
#[must_use]
pub fn is_decodable(payload: &[u8]) -> Option<bool> {
    let header = frame_header(payload, 0).ok()?;
    let scans = || scans(payload, SCANS_MAX + 1).is_ok_and(|scans| scans > SCANS_MAX);
    Some(header.obstacle.is_none() && !(header.progressive && scans()))
}

/// Decodes a JPEG picture to I420 or RGB.
///
/// Samples stay full-range (0 to 255), as JPEG stores them. Bytes behind the end marker are ignored.
/// Nothing is allocated before the size has been checked against [`crate::SIDE_MAX`],
/// [`crate::PIXELS_MAX`] and the length of the payload.
///
/// # Errors
/// The errors of [`dimensions`]; [`MediaError::JpegTruncated`] if the end marker is missing;
/// [`MediaError::JpegCorrupt`] if the decoder detects damage. JPEG has no checksum, so other damage
/// gives wrong pixels without an error.
pub fn decode(payload: &[u8], format: PixelFormat) -> Result<PictureBuf, MediaError> {
    let mut samples = Vec::new();
    match format {
        PixelFormat::Rgb8 => {
            let (size, _) = decode_as(payload, &mut samples, |_| (ColorSpace::RGB, Samples::Rgb))?;
            PictureBuf::new(format, size, samples)
        }
        PixelFormat::I420 => {
            let (size, kind) = decode_samples(payload, &mut samples)?;
            to_i420(size, kind, &mut samples)
        }
    }
}

/// Decodes into `out`, which is reused, with as little colour conversion as possible.
pub(crate) fn decode_samples(
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(Size, Samples), MediaError> {
    decode_as(payload, out, |stored| match stored {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, Samples::Grey),
        Some(ColorSpace::YCbCr) => (ColorSpace::YCbCr, Samples::Ycbcr),
        // RGB, CMYK and YCCK: the decoder converts each of them to RGB.
        _ => (ColorSpace::RGB, Samples::Rgb),
    })
}

fn decode_as(
    payload: &[u8],
    out: &mut Vec<u8>,
    choose: impl Fn(Option<ColorSpace>) -> (ColorSpace, Samples),
) -> Result<(Size, Samples), MediaError> {
    let header = frame_header(payload, 0)?;
    if let Some(what) = header.obstacle {
        return Err(MediaError::JpegUnsupported { what });
    }
    let end = picture_end(payload, 0)?;
    // Each block takes at least one bit, so a short payload cannot reserve much memory.
    if (end as u64).saturating_mul(8) < header.blocks {
        return Err(damaged(&format!("{end} bytes cannot hold a picture of {}", header.size)));
    }
    let bytes = payload.get(..end).unwrap_or_default();
    // The decoder is third-party code with input from the network. If a crafted picture triggers a panic
    // in it, that picture must fail and not the process.
    catch_unwind(AssertUnwindSafe(|| {
        decode_checked(bytes, (header.size, header.components), out, choose)
    }))
    .unwrap_or_else(|_| Err(damaged("the decoder gave up")))
}

/// Decodes bytes whose markers and size have been checked.
fn decode_checked(
    bytes: &[u8],
    (size, components): (Size, u8),
    out: &mut Vec<u8>,
    choose: impl Fn(Option<ColorSpace>) -> (ColorSpace, Samples),
) -> Result<(Size, Samples), MediaError> {
    let (width, height) = size.usizes();
    let options = DecoderOptions::new_fast()
        .set_strict_mode(true)
        .set_max_width(width)
        .set_max_height(height)
        .jpeg_set_max_scans(SCANS_MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(corrupt)?;
    let found = decoder.info().map(|info| (info.width, info.height, info.components));
    if found.map(|(w, h, n)| (usize::from(w), usize::from(h), n))
        != Some((width, height, components))
    {
        return Err(damaged("two frame headers disagree"));
    }
    let (colour, kind) = choose(decoder.input_colorspace());
    decoder.set_options(options.jpeg_set_out_colorspace(colour));
    // Filled each time, so that damage never reveals samples of an earlier picture.
    out.clear();
    out.resize(area(size) * kind.per_pixel(), 128);
    decoder.decode_into(out).map_err(corrupt)?;
    Ok((size, kind))
}

fn corrupt(error: DecodeErrors) -> MediaError {
    damaged(format!("{error:?}").trim().trim_matches('"'))
}

fn damaged(reason: &str) -> MediaError {
    MediaError::JpegCorrupt { at: 0, reason: excerpt(reason) }
}

/// Separates interleaved samples into planes, and halves chroma by averaging.
pub(crate) fn to_i420(
    size: Size,
    kind: Samples,
    samples: &mut [u8],
) -> Result<PictureBuf, MediaError> {
    let mut out = PictureBuf::grey(PixelFormat::I420, size)?;
    let Some([luma, cb, cr]) = out.planes_mut() else { return Ok(out) };
    match kind {
        Samples::Grey => {
            luma.copy_from_slice(samples);
            return Ok(out);
        }
        Samples::Ycbcr => {}
        Samples::Rgb => to_ycbcr(samples),
    }
    let (pixels, _) = samples.as_chunks::<3>();
    for (out, [luma, _, _]) in luma.iter_mut().zip(pixels) {
        *out = *luma;
    }
    let (width, _) = size.usizes();
    let chroma_width = width.div_ceil(2);
    let planes = cb.chunks_exact_mut(chroma_width).zip(cr.chunks_exact_mut(chroma_width));
    for (rows, (cb, cr)) in samples.chunks(width * 6).zip(planes) {
        let (upper, lower) = rows.split_at_checked(width * 3).unwrap_or((rows, &[]));
        // With an odd height, the last row is repeated.
        let lower = if lower.is_empty() { upper } else { lower };
        halve_chroma(upper, lower, cb, cr);
    }
    Ok(out)
}

/// Halves the chroma of two rows: each output sample is the mean of two by two.
fn halve_chroma(upper: &[u8], lower: &[u8], cb: &mut [u8], cr: &mut [u8]) {
    let mean = |samples: [u8; 4]| {
        let sum: u16 = samples.into_iter().map(u16::from).sum();
        u8::try_from((sum + 2) / 4).unwrap_or(u8::MAX)
    };
    let ((upper, upper_end), (lower, lower_end)) = (upper.as_chunks(), lower.as_chunks());
    for ((upper, lower), (cb, cr)) in upper.iter().zip(lower).zip(cb.iter_mut().zip(&mut *cr)) {
        let ([_, b0, r0, _, b1, r1], [_, b2, r2, _, b3, r3]) = (*upper, *lower);
        *cb = mean([b0, b1, b2, b3]);
        *cr = mean([r0, r1, r2, r3]);
    }
    // With an odd width, the last pixel is repeated.
    if let ([_, b0, r0], [_, b2, r2], Some(cb), Some(cr)) =
        (upper_end, lower_end, cb.last_mut(), cr.last_mut())
    {
        *cb = mean([*b0, *b0, *b2, *b2]);
        *cr = mean([*r0, *r0, *r2, *r2]);
    }
}

/// Converts interleaved RGB samples to luma, Cb and Cr.
pub(crate) fn to_ycbcr(samples: &mut [u8]) {
    for pixel in samples.chunks_exact_mut(3) {
        if let [a, b, c] = pixel {
            (*a, *b, *c) = rgb_to_ycbcr(*a, *b, *c);
        }
    }
}
