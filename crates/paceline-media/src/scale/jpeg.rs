//! Scaling of JPEG payloads, and their quality.

use fast_image_resize::pixels::{U8, U8x3};

use super::Scaler;
use super::coarse::flatten;
use crate::error::MediaError;
use crate::exif::Orientation;
use crate::jpeg::{
    ORIENTATION_BYTES, Samples, Tables, decode_samples, encode_samples, insert_orientation,
    to_ycbcr,
};
use crate::markers::exif;
use crate::picture::area;
use crate::size::Size;

/// The default quality of scaled JPEG pictures.
pub(super) const QUALITY: u8 = 80;
/// The step between the qualities that are tried for a limit.
const QUALITY_STEP: u8 = 4;
/// The sides of the squares, of luma and of chroma, that become one colour if quality 1 exceeds a limit. Squares of one
/// sample keep all detail: shorter code tables may suffice for a small picture.
const COARSE: [(usize, usize); 4] = [(1, 1), (2, 4), (4, 8), (BLOCK, 2 * BLOCK)];
/// The side of a block of samples that JPEG codes together.
const BLOCK: usize = 8;

/// The greatest number of bytes of the headers of a scaled picture: 292 with the code tables of the coarsest one, and
/// room for segments with properties of the picture.
const HEADERS_MAX: u64 = 384;
/// The greatest number of bytes of 16 by 16 pixels whose blocks of samples each have one colour: four blocks of luma
/// with 7 bits for the difference to the block before and 4 for its end, and two of chroma with 8 and 2.
const COARSEST_BYTES: u64 = 8;

/// Returns the most bytes of a scaled JPEG picture of this size at the lowest setting, whatever it shows: the least
/// limit that [`Scaler::set_limit`] keeps.
///
/// At that setting each block of 8 by 8 samples has one colour, in 9 levels: at quality 1 all divisors are 255. No code
/// word or difference then contains 8 consecutive ones, so no byte is stuffed.
#[must_use]
pub fn bytes_min(size: Size) -> u64 {
    let side = |pixels: u32| u64::from(pixels.div_ceil(16));
    HEADERS_MAX + COARSEST_BYTES * side(size.width) * side(size.height)
}

impl Scaler {
    pub(super) fn scale_jpeg(&mut self, payload: &[u8], to: Size) -> Result<Vec<u8>, MediaError> {
        let mut decoded = std::mem::take(&mut self.decoded);
        let mut resized = std::mem::take(&mut self.resized);
        let result = decode_samples(payload, &mut decoded).and_then(|(from, kind)| {
            resized.resize(area(to) * kind.per_pixel(), 0);
            match kind {
                Samples::Grey => {
                    self.resize.pixels::<U8>((&mut decoded, from), (&mut resized, to))?
                }
                Samples::Ycbcr | Samples::Rgb => {
                    self.resize.pixels::<U8x3>((&mut decoded, from), (&mut resized, to))?;
                }
            }
            let orientation = exif(payload).and_then(Orientation::read);
            let limit = self.limit;
            if orientation.is_some() {
                self.limit = limit.map(|limit| limit.saturating_sub(ORIENTATION_BYTES));
            }
            let mut coded = self.encode(to, kind, &mut resized);
            self.limit = limit;
            if let (Ok(coded), Some(orientation)) = (&mut coded, orientation) {
                insert_orientation(coded, orientation);
            }
            coded
        });
        (self.decoded, self.resized) = (decoded, resized);
        result
    }

    /// Encodes a JPEG picture at the highest quality that does not exceed the limit, near that of the last picture; if
    /// there is none, with less and less detail. Changes `pixels` then.
    fn encode(
        &mut self,
        to: Size,
        kind: Samples,
        pixels: &mut [u8],
    ) -> Result<Vec<u8>, MediaError> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let coded = self.encode_at_quality(to, kind, pixels)?;
        if coded.len() <= limit {
            return Ok(coded);
        }
        // The next picture begins near quality 1 too.
        self.fitted = 0;
        let kind = if kind == Samples::Rgb {
            to_ycbcr(pixels);
            Samples::Ycbcr
        } else {
            kind
        };
        let mut coarsest = coded;
        for (luma, chroma) in COARSE {
            match kind {
                Samples::Grey => flatten(pixels, to, (0, 1), luma),
                Samples::Ycbcr | Samples::Rgb => {
                    for (channel, cell) in [luma, chroma, chroma].into_iter().enumerate() {
                        flatten(pixels, to, (channel, 3), cell);
                    }
                }
            }
            coarsest = encode_samples(to, kind, pixels, (1, Tables::Short))?;
            if coarsest.len() <= limit {
                break;
            }
        }
        Ok(coarsest)
    }

    fn encode_at_quality(
        &mut self,
        to: Size,
        kind: Samples,
        pixels: &[u8],
    ) -> Result<Vec<u8>, MediaError> {
        let most = self.quality.unwrap_or(QUALITY);
        let mut quality = self.fitted.saturating_add(QUALITY_STEP).min(most);
        loop {
            let coded = encode_samples(to, kind, pixels, (quality, Tables::Standard))?;
            let limit = self.limit.unwrap_or(usize::MAX);
            if coded.len() <= limit || quality == 1 {
                self.fitted = quality;
                return Ok(coded);
            }
            // The number of bytes falls by less than the quality.
            let part = usize::from(quality).saturating_mul(limit) / coded.len();
            let lower = u8::try_from(part).unwrap_or(u8::MAX);
            quality = lower.min(quality.saturating_sub(QUALITY_STEP)).max(1);
        }
    }
}
