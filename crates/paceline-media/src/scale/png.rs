//! Scaling of PNG payloads, with 8 or 16 bits per sample, with or without alpha.

use fast_image_resize::PixelTrait;
use fast_image_resize::images::TypedImage;
use fast_image_resize::pixels::{InnerPixel, U8, U8x3, U16, U16x2, U16x3, U16x4};

use super::Scaler;
use super::coarse::flatten;
use crate::error::MediaError;
use crate::exif::Orientation;
use crate::picture::area;
use crate::png::{Colour, Effort, Samples, encode_samples, exif};
use crate::size::Size;

/// The greatest number of bytes of the headers of a scaled picture.
const HEADERS_MAX: u64 = 256;
/// The number of pixels of one colour, of four channels of 16 bits, that take a byte at most.
const COARSEST_PIXELS: u64 = 16;

/// Returns the most bytes of a scaled PNG picture of this size at the lowest setting, whatever it shows: the least
/// limit that [`Scaler::set_limit`] keeps. At that setting it has one colour.
#[must_use]
pub fn bytes_min(size: Size) -> u64 {
    // A filter and the first pixel of each row.
    HEADERS_MAX + size.pixels() / COARSEST_PIXELS + 2 * u64::from(size.height)
}

impl Scaler {
    pub(super) fn scale_png(&mut self, payload: &[u8], to: Size) -> Result<Vec<u8>, MediaError> {
        let mut decoded = std::mem::take(&mut self.decoded);
        let mut resized = std::mem::take(&mut self.resized);
        let result = crate::png::decode_samples(payload, &mut decoded).and_then(|(from, kind)| {
            resized.resize(area(to) * kind.per_pixel(), 0);
            self.resize_samples(kind, (&mut decoded, from), (&mut resized, to))?;
            let orientation = exif(payload).and_then(Orientation::read);
            let coded = encode_samples(to, kind, &resized, (Effort::Fast, orientation))?;
            let whole = coded.len();
            let coded = match self.limit {
                Some(limit) if whole > limit => fit((to, kind), &mut resized, orientation, limit)?,
                Some(_) | None => coded,
            };
            self.saved = whole.saturating_sub(coded.len());
            Ok(coded)
        });
        (self.decoded, self.resized) = (decoded, resized);
        result
    }

    pub(super) fn resize_samples(
        &mut self,
        kind: Samples,
        source: (&mut [u8], Size),
        target: (&mut [u8], Size),
    ) -> Result<(), MediaError> {
        match (kind.colour, kind.wide) {
            (Colour::Grey, false) => self.resize.pixels::<U8>(source, target),
            (Colour::Rgb, false) => self.resize.pixels::<U8x3>(source, target),
            (Colour::Grey, true) => self.resize_wide::<U16>(kind, source, target),
            (Colour::GreyAlpha, _) => self.resize_wide::<U16x2>(kind, source, target),
            (Colour::Rgb, true) => self.resize_wide::<U16x3>(kind, source, target),
            (Colour::Rgba, _) => self.resize_wide::<U16x4>(kind, source, target),
        }
    }

    /// Resizes samples of 16 bits, or of 8 bits with alpha.
    ///
    /// The latter have no pixel type of their own, because each 8-bit type compiles hundreds of
    /// vectorised functions and PNG with alpha is rare.
    fn resize_wide<P: PixelTrait + InnerPixel<Component = u16>>(
        &mut self,
        kind: Samples,
        (source, from): (&mut [u8], Size),
        (target, to): (&mut [u8], Size),
    ) -> Result<(), MediaError> {
        let mut image = TypedImage::<P>::new(from.width, from.height);
        kind.widen(source, P::components_mut(image.pixels_mut()));
        let mut small = TypedImage::<P>::new(to.width, to.height);
        self.resize.image(&image, from, &mut small, to)?;
        kind.narrow(P::components(small.pixels()), target);
        Ok(())
    }
}

/// Encodes a picture within a limit: with better compression, and then with less and less detail. The last one, of one
/// colour, may still exceed the limit.
fn fit(
    (size, kind): (Size, Samples),
    samples: &mut [u8],
    orientation: Option<Orientation>,
    limit: usize,
) -> Result<Vec<u8>, MediaError> {
    let setting = (Effort::Best, orientation);
    let mut coded = encode_samples(size, kind, samples, setting)?;
    let side = usize::try_from(size.width.max(size.height)).unwrap_or(usize::MAX);
    let mut cell = 1_usize;
    while coded.len() > limit && cell < side {
        cell *= 2;
        let channels = kind.colour.channels();
        for channel in 0..channels {
            if kind.wide {
                flatten(samples.as_chunks_mut::<2>().0, size, (channel, channels), cell);
            } else {
                flatten(samples, size, (channel, channels), cell);
            }
        }
        coded = encode_samples(size, kind, samples, setting)?;
    }
    Ok(coded)
}
