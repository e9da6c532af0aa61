//! Resizing of one picture or plane, by convolution with a triangle.

use fast_image_resize::images::{TypedCroppedImage, TypedImage, TypedImageRef};
use fast_image_resize::pixels::{InnerPixel, U8};
use fast_image_resize::{FilterType, ImageView, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

use crate::error::MediaError;
use crate::size::Size;

/// A resizer with its buffers and options.
#[derive(Debug)]
pub(crate) struct Resize {
    resizer: Resizer,
    options: ResizeOptions,
}

impl Resize {
    pub(crate) fn new() -> Self {
        let algorithm = ResizeAlg::Convolution(FilterType::Bilinear);
        Self { resizer: Resizer::new(), options: ResizeOptions::new().resize_alg(algorithm) }
    }

    /// Resizes a decoded picture with pixels of type `P`. Does not change the source.
    ///
    /// The source has the type of the resizer's own intermediate picture, because each type of view
    /// compiles hundreds of vectorised functions.
    pub(crate) fn pixels<P: PixelTrait + InnerPixel>(
        &mut self,
        (source, from): (&mut [u8], Size),
        target: (&mut [u8], Size),
    ) -> Result<(), MediaError> {
        let view = TypedImage::<P>::from_buffer(from.width, from.height, source)
            .map_err(|error| failed(from, target.1, &error))?;
        self.view(&view, from, target)
    }

    /// Resizes one plane of samples with rows `stride` samples apart.
    pub(crate) fn rows(
        &mut self,
        (source, stride, from): (&[u8], usize, Size),
        target: (&mut [u8], Size),
    ) -> Result<(), MediaError> {
        let stride = u32::try_from(stride).unwrap_or(u32::MAX);
        let rows = TypedImageRef::<U8>::from_buffer(stride, from.height, source)
            .map_err(|error| failed(from, target.1, &error))?;
        let view = TypedCroppedImage::from_ref(&rows, 0, 0, from.width, from.height)
            .map_err(|error| failed(from, target.1, &error))?;
        self.view(&view, from, target)
    }

    /// Resizes a view of size `from` into the samples of `target`.
    pub(crate) fn view<P: PixelTrait + InnerPixel>(
        &mut self,
        source: &impl ImageView<Pixel = P>,
        from: Size,
        (target, to): (&mut [u8], Size),
    ) -> Result<(), MediaError> {
        let mut target = TypedImage::<P>::from_buffer(to.width, to.height, target)
            .map_err(|error| failed(from, to, &error))?;
        self.image(source, from, &mut target, to)
    }

    /// Resizes a picture of size `from` into an image of size `to`.
    pub(crate) fn image<P: PixelTrait + InnerPixel>(
        &mut self,
        source: &impl ImageView<Pixel = P>,
        from: Size,
        target: &mut TypedImage<'_, P>,
        to: Size,
    ) -> Result<(), MediaError> {
        self.resizer
            .resize_typed(source, target, &self.options)
            .map_err(|error| failed(from, to, &error))
    }
}

pub(crate) fn failed(from: Size, to: Size, error: &dyn std::error::Error) -> MediaError {
    MediaError::Resize { from, to, reason: error.to_string() }
}
