//! Encoding of samples as JPEG.

use jpeg_encoder::{ColorType, Encoder, EncodingError, ImageBuffer, JpegColorType, SamplingFactor};

use super::Samples;
use super::short::shorten;
use crate::error::MediaError;
use crate::exif::Orientation;
use crate::markers::{APP1, EXIF};
use crate::picture::Picture;
use crate::pixel::PixelFormat;
use crate::size::Size;

/// Encodes an uncompressed picture as baseline JPEG, 4:2:0.
///
/// `quality` is 1 (smallest) to 100 (best); 80 is usual. Samples are full-range.
///
/// # Errors
/// [`MediaError::Quality`] for a quality out of range.
pub fn encode(picture: &Picture<'_>, quality: u8) -> Result<Vec<u8>, MediaError> {
    let size = picture.size();
    match (picture.format(), picture.planes()) {
        (PixelFormat::I420, Some(planes)) => {
            let image = PlanarImage { size: sides(size)?, planes };
            with_encoder(size, quality, |encoder| encoder.encode_image(image))
        }
        (PixelFormat::I420 | PixelFormat::Rgb8, _) => {
            encode_samples(size, Samples::Rgb, picture.bytes(), (quality, Tables::Standard))
        }
    }
}

/// Encodes interleaved samples.
pub(crate) fn encode_samples(
    size: Size,
    kind: Samples,
    samples: &[u8],
    (quality, tables): (u8, Tables),
) -> Result<Vec<u8>, MediaError> {
    let colour = match kind {
        Samples::Grey => ColorType::Luma,
        Samples::Ycbcr => ColorType::Ycbcr,
        Samples::Rgb => ColorType::Rgb,
    };
    let (width, height) = sides(size)?;
    let coded =
        with_encoder(size, quality, |encoder| encoder.encode(samples, width, height, colour))?;
    Ok(match tables {
        Tables::Standard => coded,
        Tables::Short => shorten(coded),
    })
}

/// The code tables of a JPEG picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// Those of the standard: 420 bytes.
    Standard,
    /// Those of the standard, up to the last used code word. That costs an additional pass.
    Short,
}

/// Checks a JPEG quality.
pub(crate) fn check_quality(quality: u8) -> Result<(), MediaError> {
    if (1..=100).contains(&quality) { Ok(()) } else { Err(MediaError::Quality { quality }) }
}

fn with_encoder(
    size: Size,
    quality: u8,
    encode: impl FnOnce(Encoder<&mut Vec<u8>>) -> Result<(), EncodingError>,
) -> Result<Vec<u8>, MediaError> {
    check_quality(quality)?;
    // About one bit per pixel at quality 80; this estimate avoids most reallocations.
    let mut out = Vec::with_capacity(usize::try_from(size.pixels() / 7).unwrap_or(0) + 1024);
    let mut encoder = Encoder::new(&mut out, quality);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encode(encoder).map_err(|error| MediaError::JpegEncode { size, reason: error.to_string() })?;
    Ok(out)
}

/// Returns both sides in the type that JPEG stores.
fn sides(size: Size) -> Result<(u16, u16), MediaError> {
    size.check()?;
    let side = |field, value: u32| {
        u16::try_from(value).map_err(|_| MediaError::Side { field, value: value.to_string() })
    };
    Ok((side("width", size.width)?, side("height", size.height)?))
}

/// I420 planes in the form of the encoder: each row with a chroma sample per pixel.
///
/// With 4:2:0 the encoder keeps every other sample of every other row, so chroma passes through
/// unchanged.
struct PlanarImage<'a> {
    size: (u16, u16),
    planes: [&'a [u8]; 3],
}

impl ImageBuffer for PlanarImage<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        JpegColorType::Ycbcr
    }

    fn width(&self) -> u16 {
        self.size.0
    }

    fn height(&self) -> u16 {
        self.size.1
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let (width, row) = (usize::from(self.size.0), usize::from(y));
        let chroma_width = width.div_ceil(2);
        let [luma, cb, cr] = self.planes;
        let [luma_out, cb_out, cr_out, _] = buffers;
        luma_out.extend_from_slice(line(luma, row, width));
        for (plane, out) in [(cb, cb_out), (cr, cr_out)] {
            let begin = out.len();
            out.resize(begin + width, 0);
            let pairs = out.get_mut(begin..).unwrap_or_default().chunks_mut(2);
            for (pair, sample) in pairs.zip(line(plane, row / 2, chroma_width)) {
                pair.fill(*sample);
            }
        }
    }
}

/// Returns row `row` of a plane that is `width` wide.
fn line(plane: &[u8], row: usize, width: usize) -> &[u8] {
    plane.get(row * width..(row + 1) * width).unwrap_or_default()
}

/// The bytes that [`insert_orientation`] adds.
pub(crate) const ORIENTATION_BYTES: usize = 2 + 2 + EXIF.len() + 26;

/// Adds the orientation to an encoded picture, as Exif metadata.
pub(crate) fn insert_orientation(picture: &mut Vec<u8>, orientation: Orientation) {
    let tiff = orientation.tiff();
    let len = u16::try_from(2 + EXIF.len() + tiff.len()).unwrap_or(u16::MAX).to_be_bytes();
    let segment = [&[0xff, APP1][..], &len, EXIF, &tiff].concat();
    // Behind the start of the image and the segment of JFIF, which must come first.
    let jfif = match picture.get(2..6) {
        Some(&[0xff, 0xe0, high, low]) => 2 + usize::from(u16::from_be_bytes([high, low])),
        _ => 0,
    };
    let at = (2 + jfif).min(picture.len());
    picture.splice(at..at, segment);
}
