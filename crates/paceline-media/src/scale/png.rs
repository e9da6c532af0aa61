//! Scaling of PNG payloads, with 8 or 16 bits per sample, with or without alpha.

use fast_image_resize::PixelTrait;
use fast_image_resize::images::TypedImage;
use fast_image_resize::pixels::{InnerPixel, U8, U8x3, U16, U16x2, U16x3, U16x4};

use super::Scaler;
use crate::error::MediaError;
use crate::exif::Orientation;
use crate::picture::area;
use crate::png::{Colour, Samples, decode_samples, encode_samples, exif};
use crate::size::Size;

impl Scaler {
    pub(super) fn scale_png(&mut self, payload: &[u8], to: Size) -> Result<Vec<u8>, MediaError> {
        let mut decoded = std::mem::take(&mut self.decoded);
        let mut resized = std::mem::take(&mut self.resized);
        let result = decode_samples(payload, &mut decoded).and_then(|(from, kind)| {
            resized.resize(area(to) * kind.per_pixel(), 0);
            self.resize_samples(kind, (&mut decoded, from), (&mut resized, to))?;
            let orientation = exif(payload).and_then(Orientation::read);
            encode_samples(to, kind, &resized, orientation)
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
