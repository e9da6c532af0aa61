//! Conversion of pixels for programs that show them, and of YUV 4:2:2 for scaling.

use super::pixels::Pixels;
use crate::picture::{area, ycbcr_to_rgb};
use crate::png::Colour;
use crate::size::Size;

/// Returns packed pixels as RGB of 8 bits. Samples of 16 bits are big-endian.
pub(crate) fn to_rgb(pixels: Pixels, packed: &[u8], size: Size) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(area(size) * 3);
    match pixels {
        Pixels::Interleaved { samples, bgr } => {
            let width = if samples.wide { 2 } else { 1 };
            for pixel in packed.chunks_exact(samples.per_pixel()) {
                // The first byte of each sample.
                let sample = |at: usize| pixel.get(at * width).copied().unwrap_or_default();
                let colours = match samples.colour {
                    Colour::Grey | Colour::GreyAlpha => [0; 3],
                    Colour::Rgb | Colour::Rgba if bgr => [2, 1, 0],
                    Colour::Rgb | Colour::Rgba => [0, 1, 2],
                };
                rgb.extend(colours.map(sample));
            }
        }
        Pixels::Yuv422 { luma_first } => {
            for pair in packed.as_chunks::<4>().0 {
                let [first, second, cb, cr] = unpack(*pair, luma_first);
                rgb.extend(ycbcr_to_rgb(first, cb, cr));
                rgb.extend(ycbcr_to_rgb(second, cb, cr));
            }
        }
    }
    rgb
}

/// Returns both luma samples of a pair of pixels, then Cb and Cr.
fn unpack(pair: [u8; 4], luma_first: bool) -> [u8; 4] {
    let [a, b, c, d] = pair;
    if luma_first { [a, c, b, d] } else { [b, d, a, c] }
}

/// Splits YUV 4:2:2 into three planes: luma, and Cb and Cr of half the width.
pub(crate) fn split_422(packed: &[u8], luma_first: bool) -> [Vec<u8>; 3] {
    let pairs = packed.len() / 4;
    let (mut luma, mut cb, mut cr) =
        (Vec::with_capacity(pairs * 2), Vec::with_capacity(pairs), Vec::with_capacity(pairs));
    for pair in packed.as_chunks::<4>().0 {
        let [first, second, blue, red] = unpack(*pair, luma_first);
        luma.extend([first, second]);
        cb.push(blue);
        cr.push(red);
    }
    [luma, cb, cr]
}

/// Joins three planes to YUV 4:2:2.
pub(crate) fn join_422([luma, cb, cr]: [&[u8]; 3], luma_first: bool, packed: &mut [u8]) {
    let pairs = packed.as_chunks_mut::<4>().0;
    let planes = luma.as_chunks::<2>().0.iter().zip(cb.iter().zip(cr));
    for (pair, (&[first, second], (&blue, &red))) in pairs.iter_mut().zip(planes) {
        *pair = if luma_first { [first, blue, second, red] } else { [blue, first, red, second] };
    }
}
