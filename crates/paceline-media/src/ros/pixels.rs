//! The encodings of pixels that can be scaled.

use crate::png::{Colour, Samples};

/// The layout of the pixels of an `Image`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pixels {
    /// Interleaved samples, row by row.
    Interleaved {
        samples: Samples,
        /// Blue is before red.
        bgr: bool,
    },
    /// YUV 4:2:2: four bytes for two pixels.
    Yuv422 {
        /// The order is Y U Y V instead of U Y V Y.
        luma_first: bool,
    },
}

impl Pixels {
    /// Returns the layout of an encoding of `sensor_msgs`; `None` if it is not scaled.
    pub(super) fn of(encoding: &str) -> Option<Self> {
        let interleaved =
            |colour, wide, bgr| Some(Self::Interleaved { samples: Samples { colour, wide }, bgr });
        match encoding {
            "mono8" | "8UC1" => interleaved(Colour::Grey, false, false),
            "mono16" => interleaved(Colour::Grey, true, false),
            "rgb8" => interleaved(Colour::Rgb, false, false),
            // Three channels without names are those of OpenCV.
            "bgr8" | "8UC3" => interleaved(Colour::Rgb, false, true),
            "rgb16" => interleaved(Colour::Rgb, true, false),
            "bgr16" => interleaved(Colour::Rgb, true, true),
            "rgba8" => interleaved(Colour::Rgba, false, false),
            "bgra8" => interleaved(Colour::Rgba, false, true),
            "rgba16" => interleaved(Colour::Rgba, true, false),
            "bgra16" => interleaved(Colour::Rgba, true, true),
            "yuv422" | "uyvy" => Some(Self::Yuv422 { luma_first: false }),
            "yuv422_yuy2" | "yuyv" => Some(Self::Yuv422 { luma_first: true }),
            _ => None,
        }
    }

    /// Returns the bytes per pixel.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Interleaved { samples, .. } => samples.per_pixel(),
            Self::Yuv422 { .. } => 2,
        }
    }

    /// Returns true if samples have 16 bits, whose order a message states.
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Self::Interleaved { samples: Samples { wide: true, .. }, .. })
    }

    /// Returns true if the width must be even.
    pub(crate) const fn is_paired(self) -> bool {
        matches!(self, Self::Yuv422 { .. })
    }
}
